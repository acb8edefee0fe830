// Package stages reads the stage marks of applications (docs/reference/marks.md): blocks
// ([Decoder]), the marks in them and the frames of a pipeline ([Collector]), and their profile
// ([Pipelines], [Layout]). The public package marks and its C counterpart write them.
//
// The input is untrusted: every length is checked, every list is bounded, and violations of the
// rules are counted and skipped.
package stages

import (
	"bytes"
	"encoding/binary"
)

// Sizes of a block in bytes.
const (
	headBytes = 16
	tailBytes = 8
	// MaxBlock is the maximum size of a block.
	MaxBlock = 4096
)

// magic starts every block. Its last byte does not occur in UTF-8 text.
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

// Block is one block with a valid checksum.
type Block struct {
	Kind              byte
	Process, Sequence uint32
	// Body is valid until the next call of the decoder.
	Body []byte
}

// Decoder finds blocks in a stream that may contain other bytes. The zero value is ready.
type Decoder struct {
	buf []byte
	// Blocks counts the blocks found, Foreign the bytes outside of blocks, Newer the blocks with
	// a later version of the format.
	Blocks, Foreign, Newer int64
}

// Feed appends bytes of the stream and calls each for every complete block.
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

// next consumes one block, or foreign bytes, from the start of b. ok is false if more bytes are
// needed.
func (d *Decoder) next(b []byte, each func(Block)) (n int, ok bool) {
	at := bytes.Index(b, magic)
	switch {
	case at > 0:
		d.Foreign += int64(at)
		return at, true
	case at < 0:
		// The end may be the start of a magic number.
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
	if !checksumValid(b[:whole]) {
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

// End marks the end of the stream. An apparent block with an invalid checksum may contain other
// blocks. It returns how many bytes belong to an incomplete block.
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
		cut = 0 // damaged, not truncated
	default:
		d.Foreign = foreign
	}
	return cut
}

// checksumValid verifies the checksum of a block: two sums of its words, modulo 2^32, the second
// one over the values of the first.
func checksumValid(b []byte) bool {
	first, second := uint32(1), uint32(0)
	end := len(b) - tailBytes
	for i := 0; i < end; i += 4 {
		first += binary.LittleEndian.Uint32(b[i:])
		second += first
	}
	return first == binary.LittleEndian.Uint32(b[end:]) && second == binary.LittleEndian.Uint32(b[end+4:])
}

// Sure returns the confidence, from 0 to 100, that bytes are in the format.
func Sure(head []byte) int {
	d := Decoder{}
	d.Feed(head, func(Block) {})
	switch {
	case d.Blocks >= 2:
		return 98
	case d.Blocks == 1:
		return 92
	case bytes.HasPrefix(head, magic):
		return 20 // a block may still be completed
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
