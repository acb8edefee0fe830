// Package marked makes streams of marks for tests, by docs/reference/marks.md and without the
// code of the product. Only tests import it.
package marked

import "encoding/binary"

// Writer makes a stream. The zero value is ready.
type Writer struct {
	// Out is the stream until now, Process the key of the process whose blocks follow.
	Out      []byte
	Process  uint32
	sequence map[uint32]uint32
}

// Block writes a block with its check.
func (w *Writer) Block(kind byte, body []byte) {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	if w.sequence == nil {
		w.sequence = map[uint32]uint32{}
	}
	b := []byte{'o', 'M', 'k', 0xF5, 1, kind, byte(len(body)), byte(len(body) >> 8)}
	b = binary.LittleEndian.AppendUint32(b, w.Process)
	b = binary.LittleEndian.AppendUint32(b, w.sequence[w.Process])
	w.sequence[w.Process]++
	b = append(b, body...)
	var first, second uint32 = 1, 0
	for i := 0; i < len(b); i += 4 {
		first += uint32(b[i]) | uint32(b[i+1])<<8 | uint32(b[i+2])<<16 | uint32(b[i+3])<<24
		second += first
	}
	w.Out = binary.LittleEndian.AppendUint32(append(w.Out, b...), first)
	w.Out = binary.LittleEndian.AppendUint32(w.Out, second)
}

// Numbers are unsigned numbers of the format.
func Numbers(v ...uint64) (b []byte) {
	for _, x := range v {
		b = binary.AppendUvarint(b, x)
	}
	return b
}

// Names writes names, which have the numbers 1, 2, 3 and so on.
func (w *Writer) Names(list ...string) {
	b := Numbers(1, uint64(len(list)))
	for _, s := range list {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	w.Block(3, b)
}

// Hello says who writes.
func (w *Writer) Hello(pid, unix uint64) { w.Block(2, append([]byte{0}, Numbers(pid, unix)...)) }

// Marks writes a block of marks of a lane; each is kind, name and the numbers that follow.
// Times are from the mark before, of the first one from base.
func (w *Writer) Marks(lane, base uint64, list ...[]uint64) {
	b := Numbers(lane, base)
	for _, m := range list {
		b = append(b, Numbers(append([]uint64{m[1]<<4 | m[0]}, m[2:]...)...)...)
	}
	w.Block(1, b)
}

// Sync says that all up to a time is written.
func (w *Writer) Sync(t uint64) { w.Block(4, Numbers(t)) }

// End is the last word.
func (w *Writer) End(t uint64) { w.Block(5, Numbers(t, 0)) }
