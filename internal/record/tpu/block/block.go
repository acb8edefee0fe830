// Package block reads and writes the binary files of a Sophgo profile directory: a
// sequence of typed blocks with the records of hardware monitors, firmware, runtime
// and driver. Everything is little-endian and packed. What is decoded and encoded
// again is the same bytes.
//
// Records of monitors are columns ([Table]): one slice for each field that is asked
// for.
package block

import (
	"encoding/binary"
	"errors"
	"io"
)

// Type says what a block holds.
type Type uint32

// Types of blocks.
const (
	Summary     Type = 1  // one subnet's run ([Step])
	CompilerLog Type = 2  // text, reserved
	MonitorBD   Type = 3  // records of the tensor engine
	MonitorGDMA Type = 4  // records of the copy engine
	DynData     Type = 5  // records of the firmware ([Dyn])
	DynExtra    Type = 6  // what belongs to them ([Extra])
	FirmwareLog Type = 7  // text of an older chip
	Commands    Type = 8  // where command streams are ([Streams])
	BMLib       Type = 9  // events of the driver ([Driver])
	BMLibExtra  Type = 10 // texts for them
	MonitorSDMA Type = 11 // records of the second copy engine
	MonitorCDMA Type = 12 // records of a chip-to-chip engine
	DesBD       Type = 13 // command streams, embedded
	DesGDMA     Type = 14
	DesSDMA     Type = 15
	DesCDMA     Type = 16
)

// Known reports whether blocks of the type have a meaning.
func (t Type) Known() bool { return t >= Summary && t <= DesCDMA }

// Cut says that a file ends inside a block.
type Cut struct {
	// Offset is where the block begins, in bytes.
	Offset int64
	// Type of the block, 0 where the file ends within its head.
	Type Type
	// Want and Have are the block's length and what is there of it, bytes.
	Want, Have int64
}

const headBytes = 8

// Scan walks the blocks of a file. f may leave any part of the payload unread; a
// payload that is shorter than the length ends with io.EOF. cut is set where the file
// ends inside a block. The error is that of the reader or of f.
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
		t, length := Type(binary.LittleEndian.Uint32(head[:])), int64(binary.LittleEndian.Uint32(head[4:]))
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

// payload is what a block holds.
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
	dst = binary.LittleEndian.AppendUint32(dst, uint32(t))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	return append(dst, data...)
}

// Plausible reports whether a file that begins so may be one of blocks: the first
// type is known, and its length is one that such a block can have.
func Plausible(head []byte) bool {
	if len(head) < headBytes {
		return false
	}
	t, n := Type(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	switch {
	case !t.Known() || n == 0:
		return false
	case t == Summary:
		return n == stepBytes
	case t == MonitorBD || t == MonitorGDMA || t == MonitorSDMA:
		return n%16 == 0
	case t == MonitorCDMA:
		return n%128 == 0
	case t == DynData:
		return n%8 == 0
	}
	return true
}

// fields reads numbers one after the other; after the end they are 0 and short is
// set.
type fields struct {
	b     []byte
	short bool
}

func (f *fields) u32() uint32 {
	if len(f.b) < 4 {
		f.short, f.b = true, nil
		return 0
	}
	v := binary.LittleEndian.Uint32(f.b)
	f.b = f.b[4:]
	return v
}

func (f *fields) u64() uint64 {
	if len(f.b) < 8 {
		f.short, f.b = true, nil
		return 0
	}
	v := binary.LittleEndian.Uint64(f.b)
	f.b = f.b[8:]
	return v
}

func u32(dst []byte, v ...uint32) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, x)
	}
	return dst
}

func u64(dst []byte, v ...uint64) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, x)
	}
	return dst
}
