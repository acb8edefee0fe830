package agent

import (
	"encoding/binary"
	"hash/crc32"
	"unicode/utf8"
)

// board is a device with the agent, written after docs/reference/agent.md and not after the C
// code: the tests of the reader play its bytes, those of the C code compare theirs with them. Its
// clock counts read for each reading, perByte for each byte that is sent, and what the test adds.
type board struct {
	clock         uint64
	read, perByte uint64
	send          func(p []byte)
	frame         int // bytes of the longest frame

	hz, num, den       uint32
	unit               uint8
	name, board, model *string

	cost, pairs uint64
	sequence    uint16
	inferences  uint32
	running     bool
	muted       bool
	depth       int
	open        []openOp
	told        map[uint16]bool
	own, began  uint64
	ops, calls  uint64
	begun       uint16
}

type openOp struct {
	index             uint16
	begin, own, calls uint64
}

func newBoard(send func(p []byte)) *board {
	return &board{send: send, read: 3, perByte: 10, frame: 128, hz: 1e6, num: 1, den: 1, unit: unitCycles, name: new("net"), board: new("bench"), told: map[uint16]bool{}}
}

func (b *board) now() uint64 {
	b.clock += b.read
	return b.clock
}

// encode makes a frame with its delimiters.
func encode(t Type, sequence uint16, body []byte) []byte {
	p := append([]byte{byte(t), byte(sequence), byte(sequence >> 8)}, body...)
	p = binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(p))
	out := []byte{0}
	// COBS: every run of bytes that are not 0, with its length plus one before it.
	for {
		n := 0
		for n < len(p) && p[n] != 0 {
			n++
		}
		out = append(out, byte(n+1))
		out = append(out, p[:n]...)
		if n == len(p) {
			return append(out, 0)
		}
		p = p[n+1:]
	}
}

func (b *board) emit(t Type, parts ...any) {
	var body []byte
	for _, p := range parts {
		switch p := p.(type) {
		case uint8:
			body = append(body, p)
		case uint64:
			body = binary.AppendUvarint(body, p)
		case string:
			body = binary.AppendUvarint(body, uint64(len(p)))
			body = append(body, p...)
		default:
			panic("part")
		}
	}
	out := encode(t, b.sequence, body)
	b.sequence++
	if !b.muted {
		b.clock += b.perByte * uint64(len(out))
		b.send(out)
	}
}

// cut is at most so many bytes of a text, whole characters where it is UTF-8 there.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for n := most; n > 0 && n >= most-3; n-- {
		if utf8.RuneStart(s[n]) {
			return s[:n]
		}
	}
	return s[:most]
}

func (b *board) hello(flags uint8) {
	b.emit(THello, uint8(1), flags, b.unit, uint64(b.hz), uint64(b.num), uint64(b.den), b.cost, b.pairs, uint64(16), uint64(0), uint64(b.inferences))
	b.emit(TInfo, uint8(infoCounter), "user")
	for _, x := range []struct {
		key  uint8
		text *string
	}{{infoName, b.name}, {infoBoard, b.board}, {infoModel, b.model}} {
		if x.text != nil {
			b.emit(TInfo, x.key, cut(*x.text, b.frame-16))
		}
	}
	clear(b.told)
}

func (b *board) start() {
	b.now()
	// Four rounds of eight empty operators: their costs follow from the readings.
	b.cost, b.pairs = b.read, 8*2*b.read
	b.clock += 4 * (3 + 8*4) * b.read
	for range 2 {
		b.now()
	}
	b.own = 0
	b.calls = 0
	b.depth, b.open = 0, nil
	b.running = false
	b.inferences = 0
	b.begun = 0
	b.sequence = 0
	b.hello(0)
}

func (b *board) inferenceBegin() {
	if b.running {
		b.emit(TProblem, uint8(problemInference), uint64(0))
	}
	n := b.inferences
	if n != 0 && (n%16 == 0 || n == 1 || n == 2 || n == 4 || n == 8) {
		b.hello(flagRepeat)
	}
	b.inferences++
	b.emit(TBegin, uint64(n))
	b.running, b.depth, b.open = true, 0, nil
	b.ops, b.calls, b.own, b.begun = 0, 0, 0, 0
	b.began = b.now()
}

func (b *board) inferenceEnd() {
	now := b.now()
	if !b.running {
		b.emit(TProblem, uint8(problemInference), uint64(1))
		return
	}
	if b.depth > 0 {
		b.emit(TProblem, uint8(problemOpen), uint64(b.open[0].index))
		b.depth, b.open = 0, nil
	}
	b.running = false
	b.emit(TEnd, uint64(b.inferences-1), now-b.began, b.own, b.ops, b.calls)
}

func (b *board) opBegin(index uint16, tag *string) {
	entered := b.now()
	b.calls++
	b.begun++
	switch {
	case !b.running:
		b.emit(TProblem, uint8(problemOutside), uint64(index))
		b.own += b.now() - entered
		return
	case b.depth >= 8:
		b.emit(TProblem, uint8(problemNest), uint64(index))
		b.depth = min(b.depth+1, 255)
		b.own += b.now() - entered
		return
	}
	if tag != nil && !b.told[index] {
		b.told[index] = index < 1024
		b.emit(TTag, uint64(index), cut(*tag, b.frame-16))
	}
	now := b.now()
	b.own += now - entered
	b.open = append(b.open[:b.depth], openOp{index, now, b.own, b.calls})
	b.depth++
}

func (b *board) opEnd(index uint16) {
	entered := b.now()
	defer func() { b.own += b.now() - entered }()
	b.calls++
	if b.depth > 8 {
		b.depth--
		return
	}
	if !b.running {
		b.emit(TProblem, uint8(problemOutside), uint64(index))
		return
	}
	if b.depth == 0 {
		b.emit(TProblem, uint8(problemOrder), uint64(index))
		return
	}
	b.depth--
	o := b.open[b.depth]
	if o.index != index {
		b.emit(TProblem, uint8(problemOrder), uint64(index))
	}
	b.ops++
	own := b.own - o.own
	b.emit(TOp, uint64(o.index), uint8(b.depth), entered-o.begin-own, b.calls-o.calls-1)
}

func (b *board) counter(name string, value uint64) {
	entered := b.now()
	b.calls++
	scope := uint64(0)
	if b.depth > 0 {
		scope = uint64(b.open[min(b.depth, 8)-1].index) + 1
	}
	b.emit(TCounter, scope, cut(name, 40), value)
	b.own += b.now() - entered
}

func (b *board) memory(name string, bytes uint32) {
	entered := b.now()
	b.calls++
	b.emit(TMemory, cut(name, 40), uint64(bytes))
	b.own += b.now() - entered
}

func (b *board) text(s string) {
	entered := b.now()
	b.calls++
	for {
		p := cut(s, b.frame-16)
		s = s[len(p):]
		more := uint8(0)
		if s != "" {
			more = 1
		}
		b.emit(TText, more, p)
		if s == "" {
			break
		}
	}
	b.own += b.now() - entered
}

func (b *board) data(name string, index uint16, p []byte) {
	entered := b.now()
	b.calls++
	name = cut(name, 40)
	for at := 0; ; {
		n := min(len(p)-at, b.frame-26-len(name))
		b.emit(TData, name, uint64(index), uint64(len(p)), uint64(at), string(p[at:at+n]))
		if at += n; at >= len(p) {
			break
		}
	}
	b.own += b.now() - entered
}

func (b *board) done() { b.emit(TDone, uint64(b.inferences)) }
