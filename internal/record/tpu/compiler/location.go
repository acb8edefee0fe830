package compiler

import (
	"bytes"
	"io"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
)

// Locations is tensor_location.json: the commands of operations.
type Locations struct {
	List []Location
	// Bad counts unreadable entries, Dropped those beyond the bound.
	Bad, Dropped int64

	names texts
}

// Location is an entry.
type Location struct {
	Line         int64 // the operation's line in final.mlir, counted from 1
	Subnet, Core int32
	Op           string
	// The entry owns the commands from Before + 1 to After, of TIU and DMA, counted from 1.
	Before, After [2]int64
	// Operands and Results are tensors of the operation's first entry.
	Operands, Results []Place
}

// Place is an operand or result.
type Place struct {
	Name string
	// Type is the element type as the compiler writes it, such as "f16".
	Type  string
	Shape []int64
}

// IsLocations reports whether the beginning of a text is that of such a file.
func IsLocations(head []byte) bool {
	return bytes.Contains(head, []byte("tiu_dma_id(before)")) && bytes.Contains(head, []byte("file-line"))
}

const maxPlaces = 64

// ReadLocations reads the file. The error is the reader's. The entries before are kept.
func ReadLocations(r io.Reader) (*Locations, error) {
	l := &Locations{}
	seen := map[int64]bool{}
	_, err := jsonscan.Each(r, jsonscan.Options{}, func(_ string, v []byte) error {
		if len(l.List) >= maxLayers {
			l.Dropped++
			return nil
		}
		l.entry(v, seen)
		return nil
	})
	return l, err
}

func (l *Locations) entry(v []byte, seen map[int64]bool) {
	x := Location{Line: -1}
	var subnet, core int64
	var have [2]bool
	var operands, results []byte
	err := jsonscan.Walk(v, func(key, value []byte) bool {
		switch string(key) {
		case "file-line":
			if n, ok := jsonscan.Int(value); ok {
				x.Line = n
			}
		case "subnet_id":
			subnet, _ = jsonscan.Int(value)
		case "core_id":
			core, _ = jsonscan.Int(value)
		case "opcode":
			if s, ok := jsonscan.Unquote(value); ok {
				x.Op = l.names.of([]byte(s))
			}
		case "tiu_dma_id(before)":
			x.Before, have[0] = pair(value)
		case "tiu_dma_id(after)":
			x.After, have[1] = pair(value)
		case "operands":
			operands = value
		case "results":
			results = value
		}
		return true
	})
	if err != nil || x.Line < 0 || !have[0] || !have[1] || subnet < 0 || core < 0 || core > 255 || subnet > 1<<30 {
		l.Bad++
		return
	}
	x.Subnet, x.Core = int32(subnet), int32(core)
	if !seen[x.Line] {
		seen[x.Line] = true
		x.Operands, x.Results = l.places(operands), l.places(results)
	}
	l.List = append(l.List, x)
}

// pair parses a list of two numbers from 0 on.
func pair(v []byte) (p [2]int64, ok bool) {
	n := 0
	ok = true
	_ = jsonscan.Walk(v, func(_, value []byte) bool {
		x, fine := jsonscan.Int(value)
		if ok = fine && x >= 0 && n < 2; ok {
			p[n] = x
			n++
		}
		return ok
	})
	return p, ok && n == 2
}

func (l *Locations) places(v []byte) []Place {
	var out []Place
	_ = jsonscan.Walk(v, func(_, value []byte) bool {
		var p Place
		_ = jsonscan.Walk(value, func(key, x []byte) bool {
			s, ok := jsonscan.Unquote(x)
			switch {
			case ok && string(key) == "name":
				p.Name = s
			case ok && string(key) == "memory_type":
				p.Shape, p.Type = l.memory(s)
			}
			return true
		})
		out = append(out, p)
		return len(out) < maxPlaces
	})
	return out
}

// memory parses a type such as <1x3x128x128xf32>.
func (l *Locations) memory(s string) ([]int64, string) {
	b := bytes.Trim([]byte(s), "<>")
	shape := []int64{}
	for {
		n := digits(b)
		if n == 0 || n >= len(b) || b[n] != 'x' || len(shape) >= maxDimensions {
			break
		}
		v, _ := integer(b)
		shape = append(shape, v)
		b = b[n+1:]
	}
	return shape, l.names.of(b)
}
