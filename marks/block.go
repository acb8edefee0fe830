package marks

import (
	"encoding/binary"
	"errors"
	"os"
	"time"
)

// Blocks of the stream; docs/reference/marks.md has their bytes.
const (
	maxBlock  = 4096
	headBytes = 16
	tailBytes = 8
	longest   = 40 // bytes of the longest mark

	version = 1

	blockMarks = 1
	blockHello = 2
	blockNames = 3
	blockSync  = 4
	blockEnd   = 5
)

// start is an empty block with room for its head.
func (s *stream) start() []byte { return s.buf[:headBytes] }

// send completes a block and gives it to the output. It reports whether that took it.
func (s *stream) send(kind byte, b []byte) bool {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	copy(b, "oMk\xF5")
	b[4], b[5] = version, kind
	binary.LittleEndian.PutUint16(b[6:], uint16(len(b)-headBytes))
	binary.LittleEndian.PutUint32(b[8:], s.process)
	binary.LittleEndian.PutUint32(b[12:], s.sequence)
	first, second := uint32(1), uint32(0)
	for i := 0; i < len(b); i += 4 {
		first += binary.LittleEndian.Uint32(b[i:])
		second += first
	}
	b = binary.LittleEndian.AppendUint32(b, first)
	b = binary.LittleEndian.AppendUint32(b, second)
	err := s.out.put(b)
	if errors.Is(err, errGone) && !s.dead {
		s.dead = true
		close(s.stop)
		active.CompareAndSwap(s, nil)
		s.out.last(time.Now())
		go func() { _ = s.out.close() }() // nobody is there to be told
	}
	if err == nil {
		s.sequence++ // one that was refused is made again
	}
	return err == nil
}

// greet says hello, and the names that the stream lacks.
func (s *stream) greet() bool {
	if !s.greeted {
		b := append(s.start(), 1) // written by this package
		b = binary.AppendUvarint(b, uint64(os.Getpid()))
		b = binary.AppendUvarint(b, uint64(s.zero.UnixNano()))
		if !s.send(blockHello, b) {
			return false
		}
		s.greeted = true
	}
	texts.Lock()
	list := texts.list[s.written:]
	texts.Unlock()
	for len(list) > 0 {
		b := binary.AppendUvarint(s.start(), uint64(s.written+1))
		at, n := len(b), 0
		b = append(b, 0)
		for n < len(list) && n < 100 && len(b) < s.out.limit()-tailBytes-maxText-8 {
			b = binary.AppendUvarint(b, uint64(len(list[n])))
			b = append(b, list[n]...)
			n++
		}
		b[at] = byte(n)
		if !s.send(blockNames, b) {
			return false
		}
		s.written += n
		list = list[n:]
	}
	return true
}

// encode appends a mark. Before is the time of the one before.
func encode(b []byte, m *mark, before *int64) []byte {
	b = binary.AppendUvarint(b, uint64(m.name)<<4|uint64(m.kind))
	switch m.kind {
	case count:
		return binary.AppendVarint(b, int64(m.value))
	case dropped:
		return binary.AppendUvarint(b, m.value)
	case model:
		return binary.AppendUvarint(binary.AppendUvarint(b, m.value&0xFFFFFFFF), m.value>>32)
	case laneStart:
		return b
	}
	t := max(m.time, *before)
	b = binary.AppendUvarint(b, uint64(t-*before))
	*before = t
	switch m.kind {
	case level:
		return binary.LittleEndian.AppendUint64(b, m.value)
	case stageBegin, stageEnd, frameLeave:
		return b
	}
	return binary.AppendUvarint(b, m.value)
}

// empty writes the marks that a lane had when the round began.
func (s *stream) empty(l *Lane) bool {
	tail := l.tail.Load()
	full := s.out.limit() - tailBytes - longest - 4
	for tail < l.upto {
		before := l.ring[tail%ringSize].time
		b := binary.AppendUvarint(s.start(), uint64(l.number))
		b = binary.AppendUvarint(b, uint64(before))
		for tail < l.upto && len(b) < full {
			m := &l.ring[tail%ringSize]
			// Most marks are of a stage with a small number, soon after the one before.
			if d := m.time - before; m.kind <= stageEnd && m.name < 8 && uint64(d) < 1<<14 {
				before = m.time
				if d < 1<<7 {
					b = append(b, byte(m.name)<<4|byte(m.kind), byte(d))
				} else {
					b = append(b, byte(m.name)<<4|byte(m.kind), byte(d)|0x80, byte(d>>7))
				}
			} else {
				b = encode(b, m, &before)
			}
			tail++
		}
		if !s.send(blockMarks, b) {
			return false
		}
		l.tail.Store(tail)
	}
	return true
}

// round writes what all lanes have, under the mutex.
func (s *stream) round(now int64) {
	if s.dead {
		return
	}
	lanes.Lock()
	list := lanes.list
	lanes.Unlock()
	for _, l := range list {
		l.upto = l.head.Load() // before the names: those that these marks have are known
	}
	ok := s.greet()
	for i := 0; ok && i < len(list); i++ {
		ok = s.empty(list[i])
	}
	if ok {
		s.send(blockSync, binary.AppendUvarint(s.start(), uint64(now)))
	}
	s.last.Store(now)
}
