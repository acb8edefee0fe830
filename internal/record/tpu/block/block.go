// Package block reads and writes the binary files of a Sophgo profile directory: a sequence of
// typed blocks with the records of hardware monitors, firmware, runtime and driver. All values are
// little-endian and packed. Encoding decoded data gives the same bytes.
//
// Records of monitors are columns ([Table]): one slice for each requested field.
package block

import (
	"encoding/binary"
	"errors"
	"io"
)

// Type is the kind of content of a block.
type Type uint32

// Types of blocks.
const (
	Summary     Type = 1  // one subnet's run ([Step])
	CompilerLog Type = 2  // text, reserved
	MonitorBD   Type = 3  // records of the tensor engine
	MonitorGDMA Type = 4  // records of the copy engine
	DynData     Type = 5  // records of the firmware ([Dyn])
	DynExtra    Type = 6  // data for them ([Extra])
	FirmwareLog Type = 7  // text of an older chip
	Commands    Type = 8  // places of command streams ([Streams])
	BMLib       Type = 9  // events of the driver ([Driver])
	BMLibExtra  Type = 10 // texts for them
	MonitorSDMA Type = 11 // records of the second copy engine
	MonitorCDMA Type = 12 // records of a chip-to-chip engine
	DesBD       Type = 13 // command streams, embedded
	DesGDMA     Type = 14
	DesSDMA     Type = 15
	DesCDMA     Type = 16
)

// Known reports whether the type is one of those above.
func (t Type) Known() bool { return t >= Summary && t <= DesCDMA }

// Cut describes a block at whose inside the file ends.
type Cut struct {
	Offset     int64 // begin of the block in bytes
	Type       Type  // 0 if the file ends within the head of the block
	Want, Have int64 // the block's length and the present bytes
}

const headBytes = 8

// Scan walks the blocks of a file. f may leave any part of the payload unread. A payload that is
// shorter than the length ends with io.EOF. cut is set if the file ends inside a block. The error
// is that of the reader or of f.
func Scan(r io.Reader, f func(t Type, length int64, payload io.Reader) error) (cut *Cut, err error) {
	var head [headBytes]byte
	at := int64(0)
	for {
		n, err := io.ReadFull(r, head[:])
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return &Cut{Offset: at, Want: headBytes, Have: int64(n)}, nil
		case err != nil:
			return nil, err
		}
		t, length := Type(le.Uint32(head[:])), int64(le.Uint32(head[4:]))
		p := &payload{r: r, left: length}
		if err := f(t, length, p); err != nil {
			return nil, err
		}
		if p.left > 0 && p.err == nil {
			_, _ = io.Copy(io.Discard, p)
		}
		switch {
		case p.err != nil && !errors.Is(p.err, io.EOF) && !errors.Is(p.err, io.ErrUnexpectedEOF):
			return nil, p.err
		case p.left > 0:
			return &Cut{Offset: at, Type: t, Want: length, Have: length - p.left}, nil
		}
		at += headBytes + length
	}
}

type payload struct {
	r    io.Reader
	left int64
	err  error // of the reader, io.EOF included
}

func (p *payload) Read(b []byte) (int, error) {
	if p.left <= 0 || p.err != nil {
		return 0, io.EOF
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.left)])
	p.left -= int64(n)
	if err != nil {
		p.err = err
	}
	if n == 0 && err != nil {
		return 0, io.EOF
	}
	return n, nil
}

// Append adds a block to a file.
func Append(dst []byte, t Type, data []byte) []byte {
	return append(appendValues(dst, t, uint32(len(data))), data...)
}

// sizes divide the lengths of blocks. Other blocks have any length.
var sizes = map[Type]uint32{MonitorBD: 16, MonitorGDMA: 16, MonitorSDMA: 16, MonitorCDMA: 128, DynData: 8}

// Plausible reports whether the beginning of a file can be that of blocks: the first type is
// known, and its length is possible for the type.
func Plausible(head []byte) bool {
	if len(head) < headBytes {
		return false
	}
	t, n := Type(le.Uint32(head)), le.Uint32(head[4:])
	if t == Summary {
		return n == stepBytes
	}
	return t.Known() && n > 0 && n%max(1, sizes[t]) == 0
}

var le = binary.LittleEndian

// list decodes the elements at the beginning of data, at most n. T has a fixed size.
func list[T any](data []byte, n int) (out []T, rest []byte) {
	var one T
	size := binary.Size(one)
	if n = min(n, len(data)/size); n == 0 {
		return nil, data
	}
	out = make([]T, n)
	_, _ = binary.Decode(data, le, out) // data is long enough
	return out, data[n*size:]
}

func appendValues(dst []byte, values ...any) []byte {
	for _, v := range values {
		dst, _ = binary.Append(dst, le, v)
	}
	return dst
}
