// Package stages reads what applications tell of their stages (docs/reference/marks.md): blocks
// ([Decoder]), the marks in them and the passes of a pipeline that these make ([Collector]),
// and the profile of those ([Pipelines], [Layout]). The public package marks and the C
// functions beside it write it.
//
// It reads bytes that anybody may have written: every length is checked, every list has an
// end, and what contradicts the rules is counted and left out.
package stages

import (
	"bytes"
	"encoding/binary"
)

// Bounds of a block.
const (
	headBytes = 16
	tailBytes = 8
	// MaxBlock is how large a block may be.
	MaxBlock = 4096
)

// magic begins every block. Its last byte is in no text of UTF-8.
var magic = []byte("oMk\xF5")

const version = 1

// Kinds of blocks.
const (
	blockMarks = 1
	blockHello = 2
	blockNames = 3
	blockSync  = 4
	blockEnd   = 5
)

// Block is one block whose check was right.
type Block struct {
	Kind              byte
	Process, Sequence uint32
	// Body is valid until the next call of the decoder.
	Body []byte
}

// Decoder finds blocks in a stream, whatever stands between them. The zero value is ready.
type Decoder struct {
	buf []byte
	// Blocks is how many were found, Foreign how many bytes belong to none, Newer how many
	// blocks have a later version of the format.
	Blocks, Foreign, Newer int64
}

// Feed takes the next bytes of the stream and gives the blocks that are whole.
func (d *Decoder) Feed(p []byte, each func(Block)) {
	d.buf = append(d.buf, p...)
	b := d.buf
	for {
		n, ok := d.next(b, each)
		b = b[n:]
		if !ok {
			break
		}
	}
	d.buf = append(d.buf[:0], b...)
}

// next takes one block, or bytes that are none, from the beginning of b. ok is false where
// more bytes are needed.
func (d *Decoder) next(b []byte, each func(Block)) (n int, ok bool) {
	at := bytes.Index(b, magic)
	switch {
	case at > 0:
		d.Foreign += int64(at)
		return at, true
	case at < 0:
		// The end may be the beginning of a magic number.
		n = max(0, len(b)-len(magic)+1)
		d.Foreign += int64(n)
		return n, false
	case len(b) < headBytes:
		return 0, false
	}
	size := int(binary.LittleEndian.Uint16(b[6:]))
	if size%4 != 0 || headBytes+size+tailBytes > MaxBlock {
		d.Foreign++
		return 1, true
	}
	whole := headBytes + size + tailBytes
	if len(b) < whole {
		return 0, false
	}
	if !checked(b[:whole]) {
		d.Foreign++
		return 1, true
	}
	d.Blocks++
	if b[4] != version {
		d.Newer++
		return whole, true
	}
	each(Block{b[5], binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:]), b[headBytes : headBytes+size]})
	return whole, true
}

// End says that no more comes. What looked like the beginning of a block and is none may have
// others within. It returns how many bytes wait for the rest of a block.
func (d *Decoder) End(each func(Block)) (cut int) {
	b := d.buf
	d.buf = nil
	var foreign, blocks int64
	for len(b) > 0 {
		n, ok := d.next(b, each)
		b = b[n:]
		if ok || len(b) == 0 {
			continue
		}
		if cut == 0 && bytes.HasPrefix(b, magic) {
			cut, foreign, blocks = len(b), d.Foreign, d.Blocks
		}
		d.Foreign++
		b = b[1:]
	}
	switch {
	case cut == 0:
	case d.Blocks > blocks:
		cut = 0 // not cut, but damaged
	default:
		d.Foreign = foreign
	}
	return cut
}

// checked reports whether the check of a block is right: two sums of its words, modulo 2^32,
// the second one over the values of the first.
func checked(b []byte) bool {
	first, second := uint32(1), uint32(0)
	end := len(b) - tailBytes
	for i := 0; i < end; i += 4 {
		first += binary.LittleEndian.Uint32(b[i:])
		second += first
	}
	return first == binary.LittleEndian.Uint32(b[end:]) && second == binary.LittleEndian.Uint32(b[end+4:])
}

// Sure says how sure it is, from 0 to 100, that bytes are of the format.
func Sure(head []byte) int {
	d := Decoder{}
	d.Feed(head, func(Block) {})
	switch {
	case d.Blocks >= 2:
		return 98
	case d.Blocks == 1:
		return 92
	case bytes.HasPrefix(head, magic):
		return 20 // a block may still become whole
	}
	return 0
}

// numbers reads the fields of a body.
type numbers struct {
	b   []byte
	bad bool
}

func (r *numbers) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *numbers) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *numbers) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}
