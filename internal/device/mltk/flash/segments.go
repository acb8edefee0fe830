package flash

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Segment is a contiguous range of bytes of a firmware.
type Segment struct {
	Address uint32
	Bytes   uint32
}

// maxSegments bounds what is kept of a firmware.
const maxSegments = 100_000

// Segments reads the addresses used by a firmware: Motorola S-records (.s37, .srec, .mot), Intel
// HEX (.hex), or raw bytes (.bin), which start at the beginning of the flash memory.
func Segments(name string, data []byte, p Part) ([]Segment, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".s37", ".s19", ".s28", ".srec", ".mot":
		return records(data, srecord)
	case ".hex", ".ihex", ".ihx":
		high := uint32(0)
		return records(data, func(l []byte) (Segment, error) { return intel(l, &high) })
	case ".bin":
		if len(data) == 0 || uint64(len(data)) > uint64(p.Bytes) {
			return nil, fmt.Errorf("%d bytes are not firmware for %d bytes of flash memory", len(data), p.Bytes)
		}
		return []Segment{{p.Base, uint32(len(data))}}, nil
	}
	return nil, fmt.Errorf("the name tells no format: use .s37, .hex or .bin")
}

// records reads lines, and joins adjacent segments.
func records(data []byte, read func(line []byte) (Segment, error)) ([]Segment, error) {
	var out []Segment
	s := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; s.Scan(); n++ {
		l := bytes.TrimSpace(s.Bytes())
		if len(l) == 0 {
			continue
		}
		x, err := read(l)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if x.Bytes == 0 {
			continue
		}
		if uint64(x.Address)+uint64(x.Bytes) > 1<<32 {
			return nil, fmt.Errorf("line %d: the address 0x%08X lies outside", n, x.Address)
		}
		if k := len(out) - 1; k >= 0 && uint64(out[k].Address)+uint64(out[k].Bytes) == uint64(x.Address) {
			out[k].Bytes += x.Bytes
			continue
		}
		if len(out) >= maxSegments {
			return nil, fmt.Errorf("line %d: more than %d parts", n, maxSegments)
		}
		out = append(out, x)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no data is in it")
	}
	sorting.Func(out, func(a, b Segment) int {
		switch {
		case a.Address < b.Address:
			return -1
		case a.Address > b.Address:
			return 1
		}
		return 0
	})
	return out, nil
}

// srecord parses an S-record: S, type, count of the following bytes, address, data, the
// complement of the sum of everything but the type.
func srecord(l []byte) (Segment, error) {
	if len(l) < 4 || l[0] != 'S' {
		return Segment{}, fmt.Errorf("is not an S-record")
	}
	b, err := hex.DecodeString(string(l[2:]))
	if err != nil || len(b) < 1 || len(b) != int(b[0])+1 {
		return Segment{}, fmt.Errorf("is an incomplete S-record")
	}
	sum := byte(0)
	for _, c := range b {
		sum += c
	}
	if sum != 0xff {
		return Segment{}, fmt.Errorf("the checksum of the S-record is wrong")
	}
	size := map[byte]int{'1': 2, '2': 3, '3': 4}[l[1]]
	if size == 0 {
		return Segment{}, nil // heads, counts, starts
	}
	if len(b) < 2+size {
		return Segment{}, fmt.Errorf("is an incomplete S-record")
	}
	address := uint32(0)
	for _, c := range b[1 : 1+size] {
		address = address<<8 | uint32(c)
	}
	return Segment{address, uint32(len(b) - 2 - size)}, nil
}

// intel parses an Intel HEX record: byte count, address, type, data, the negative of the sum.
// high is the upper half of addresses.
func intel(l []byte, high *uint32) (Segment, error) {
	if l[0] != ':' {
		return Segment{}, fmt.Errorf("is not an Intel HEX record")
	}
	b, err := hex.DecodeString(string(l[1:]))
	if err != nil || len(b) < 5 || len(b) != int(b[0])+5 {
		return Segment{}, fmt.Errorf("is an incomplete Intel HEX record")
	}
	sum := byte(0)
	for _, c := range b {
		sum += c
	}
	if sum != 0 {
		return Segment{}, fmt.Errorf("the checksum of the record is wrong")
	}
	data := b[4 : len(b)-1]
	switch b[3] {
	case 0:
		return Segment{*high + (uint32(b[1])<<8 | uint32(b[2])), uint32(len(data))}, nil
	case 2, 4:
		if len(data) != 2 {
			return Segment{}, fmt.Errorf("is an incomplete Intel HEX record")
		}
		*high = uint32(data[0])<<8 | uint32(data[1])
		if b[3] == 4 {
			*high <<= 16
		} else {
			*high <<= 4
		}
	}
	return Segment{}, nil
}
