package agent

import (
	"errors"
	"math"
	"strings"
)

// Type is the type of a frame.
type Type uint8

// Types of frames.
const (
	THello   Type = 1
	TInfo    Type = 2
	TTag     Type = 3
	TBegin   Type = 4
	TOp      Type = 5
	TEnd     Type = 6
	TCounter Type = 7
	TMemory  Type = 8
	TText    Type = 9
	TData    Type = 10
	TDone    Type = 11
	TProblem Type = 12
)

func known(t Type) bool { return t >= THello && t <= TProblem }

// version is the version of the format.
const version = 1

// Flags of a hello.
const (
	flagRepeat = 1 << iota // not the first one after a start
	flagStill              // the counter did not move
	flagPolled             // nobody counts how often the counter goes round
)

// Units of the counter, in the order of the format.
const (
	unitCycles = iota
	unitInstructions
	unitNanoseconds
	unitTicks
)

// Hello describes the counter. It has no pointers and can be compared with ==.
type Hello struct {
	Flags      uint8
	Unit       uint8
	Hz         uint32 // of the counter, 0 unknown
	Num, Den   uint32 // figure = counts * Num / Den, neither is 0
	Cost       uint64 // counts inside an empty operator
	CallCost   uint64 // counts of Calls calls that the agent does not see itself
	Calls      uint64
	Period     uint64 // counts after which the counter may go round unseen, 0 never
	Inferences uint64 // begun until then
}

// scale returns the factor from counts to figures.
func (h *Hello) scale() float64 { return float64(h.Num) / float64(h.Den) }

// perCall returns the counts of a call that the agent does not measure itself.
func (h *Hello) perCall() float64 { return float64(h.CallCost) / float64(max(h.Calls, 1)) }

// Keys of an info.
const (
	infoName    = 1
	infoBoard   = 2
	infoModel   = 3
	infoCounter = 4
)

// Codes of problems.
const (
	problemNest      = 1
	problemOrder     = 2
	problemOutside   = 3
	problemOpen      = 4
	problemInference = 5
	problemBackwards = 6
)

// errBody says that a frame with a valid checksum has a body of the wrong form.
var errBody = errors.New("a frame that does not have the parts of its type")

// body reads the fields of a frame. After the first missing field all are zero.
type body struct {
	b   []byte
	bad bool
}

func (r *body) octet() uint8 {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// number reads a varint of at most most: 7 bits a byte, lowest first, the high bit set on all but
// the last byte.
func (r *body) number(most uint64) uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := r.octet()
		if r.bad || shift == 63 && c > 1 {
			r.bad = true
			return 0
		}
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			break
		}
	}
	if v > most {
		r.bad = true
		return 0
	}
	return v
}

func (r *body) bytes() []byte {
	n := r.number(uint64(len(r.b)))
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// text returns readable text: UTF-8 without control characters.
func (r *body) text() string { return clean(r.bytes()) }

// clean converts bytes to text: invalid UTF-8 and control characters are replaced.
func clean(b []byte) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7F {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(string(b), "\uFFFD"))
}

func (r *body) err() error {
	if r.bad {
		return errBody
	}
	return nil
}

func parseHello(b []byte) (h Hello, v uint8, err error) {
	r := body{b: b}
	v = r.octet()
	if v != version {
		return h, v, r.err()
	}
	h = Hello{
		Flags: r.octet(), Unit: r.octet(), Hz: uint32(r.number(math.MaxUint32)),
		Num: uint32(r.number(math.MaxUint32)), Den: uint32(r.number(math.MaxUint32)),
		Cost: r.number(math.MaxUint64), CallCost: r.number(math.MaxUint64), Calls: r.number(math.MaxUint64),
		Period: r.number(math.MaxUint64), Inferences: r.number(math.MaxUint64),
	}
	if h.Num == 0 || h.Den == 0 || h.Unit > unitTicks {
		r.bad = true
	}
	return h, v, r.err()
}

// opFrame is an operator that ended.
type opFrame struct {
	index  uint16
	depth  uint8  // operators around it
	counts uint64 // without the agent's own time that it measured
	calls  uint64 // of the agent within it
}

func parseOp(b []byte) (opFrame, error) {
	r := body{b: b}
	o := opFrame{index: uint16(r.number(math.MaxUint16)), depth: r.octet(), counts: r.number(math.MaxInt64), calls: r.number(math.MaxInt64)}
	return o, r.err()
}

// endFrame is an inference that ended.
type endFrame struct {
	number, counts, own, ops, calls uint64
}

func parseEnd(b []byte) (endFrame, error) {
	r := body{b: b}
	e := endFrame{r.number(math.MaxUint32), r.number(math.MaxInt64), r.number(math.MaxInt64), r.number(math.MaxUint32), r.number(math.MaxUint32)}
	if e.own > e.counts {
		r.bad = true
	}
	return e, r.err()
}

// counterFrame is a figure of an operator, or of the inference if index is -1.
type counterFrame struct {
	index int
	name  string
	value uint64
}

func parseCounter(b []byte) (counterFrame, error) {
	r := body{b: b}
	c := counterFrame{int(r.number(math.MaxUint16+1)) - 1, r.text(), r.number(math.MaxUint64)}
	return c, r.err()
}

// dataFrame is a piece of data sent by the firmware.
type dataFrame struct {
	name     string
	index    int
	size, at uint64
	piece    []byte
}

func parseData(b []byte) (dataFrame, error) {
	r := body{b: b}
	d := dataFrame{name: r.text(), index: int(r.number(math.MaxUint16)), size: r.number(math.MaxUint32), at: r.number(math.MaxUint32), piece: r.bytes()}
	if d.at+uint64(len(d.piece)) > d.size {
		r.bad = true
	}
	return d, r.err()
}
