package compiler

import (
	"bytes"
	"io"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
)

// Locations is tensor_location.json: which commands belong to an operation, as columns.
type Locations struct {
	// Line is the operation's line in final.mlir, counted from 1.
	Line         []int64
	Subnet, Core []int32
	Op           []string
	// Before and After are the numbers of TIU and DMA commands before and after the
	// operation: it has those from before + 1 to after, counted from 1.
	Before, After [][2]int64
	// Results are names of tensors that the operation makes, of its first entry.
	Results [][]Place
	// Operands are what it takes, of its first entry.
	Operands [][]Place
	// Bad counts entries that could not be read, Dropped those beyond the bound.
	Bad, Dropped int64

	names texts
}

// Place is an operand or result.
type Place struct {
	Name string
	// Type is the element type as the compiler writes it, such as "f16".
	Type  string
	Shape []int64
}

// Len is the number of entries.
func (l *Locations) Len() int { return len(l.Line) }

// IsLocations reports whether a text that begins so is such a file.
func IsLocations(head []byte) bool {
	return bytes.Contains(head, []byte("tiu_dma_id(before)")) && bytes.Contains(head, []byte("file-line"))
}

const maxPlaces = 64

// ReadLocations reads the file. The error is the reader's; what came before is kept.
func ReadLocations(r io.Reader) (*Locations, error) {
	l := &Locations{}
	seen := map[int64]bool{}
	_, err := jsonscan.Each(r, jsonscan.Options{}, func(_ string, v []byte) error {
		if len(l.Line) >= maxLayers {
			l.Dropped++
			return nil
		}
		l.entry(v, seen)
		return nil
	})
	return l, err
}

func (l *Locations) entry(v []byte, seen map[int64]bool) {
	line := int64(-1)
	var subnet, core int64
	var op string
	var before, after [2]int64
	var have [2]bool
	var operands, results []byte
	err := jsonscan.Walk(v, func(key, value []byte) bool {
		switch string(key) {
		case "file-line":
			if n, ok := jsonscan.Int(value); ok {
				line = n
			}
		case "subnet_id":
			subnet, _ = jsonscan.Int(value)
		case "core_id":
			core, _ = jsonscan.Int(value)
		case "opcode":
			if s, ok := jsonscan.Unquote(value); ok {
				op = l.names.of([]byte(s))
			}
		case "tiu_dma_id(before)":
			before, have[0] = pair(value)
		case "tiu_dma_id(after)":
			after, have[1] = pair(value)
		case "operands":
			operands = value
		case "results":
			results = value
		}
		return true
	})
	if err != nil || line < 0 || !have[0] || !have[1] || subnet < 0 || core < 0 || core > 255 || subnet > 1<<30 {
		l.Bad++
		return
	}
	l.Line = append(l.Line, line)
	l.Subnet, l.Core = append(l.Subnet, int32(subnet)), append(l.Core, int32(core))
	l.Op = append(l.Op, op)
	l.Before, l.After = append(l.Before, before), append(l.After, after)
	var in, out []Place
	if !seen[line] {
		seen[line] = true
		in, out = l.places(operands), l.places(results)
	}
	l.Operands, l.Results = append(l.Operands, in), append(l.Results, out)
}

func pair(v []byte) (p [2]int64, ok bool) {
	n := 0
	_ = jsonscan.Walk(v, func(_, value []byte) bool {
		x, fine := jsonscan.Int(value)
		if !fine || x < 0 || n >= 2 {
			n = 3
			return false
		}
		p[n] = x
		n++
		return true
	})
	return p, n == 2
}

func (l *Locations) places(v []byte) []Place {
	var out []Place
	_ = jsonscan.Walk(v, func(_, value []byte) bool {
		var p Place
		_ = jsonscan.Walk(value, func(key, x []byte) bool {
			switch string(key) {
			case "name":
				if s, ok := jsonscan.Unquote(x); ok {
					p.Name = s
				}
			case "memory_type":
				if s, ok := jsonscan.Unquote(x); ok {
					p.Shape, p.Type = l.memory(s)
				}
			}
			return true
		})
		out = append(out, p)
		return len(out) < maxPlaces
	})
	return out
}

// memory reads a type such as <1x3x128x128xf32>.
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
