package compiler

import (
	"bytes"
	"io"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/jsonx"
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
	Line   int64  `json:"file-line"` // the operation's line in final.mlir, counted from 1
	Subnet int32  `json:"subnet_id"`
	Core   int32  `json:"core_id"`
	Op     string `json:"opcode"`
	// The entry owns the commands from Before + 1 to After, of TIU and DMA, counted from 1.
	Before [2]int64 `json:"tiu_dma_id(before)"`
	After  [2]int64 `json:"tiu_dma_id(after)"`
	// Operands and Results are tensors of the operation's first entry.
	Operands []Place `json:"operands"`
	Results  []Place `json:"results"`
}

// Place is an operand or result.
type Place struct {
	Name string `json:"name"`
	// Type is the compiler's name of the element type, such as "f16".
	Type  string  `json:"memory_type"`
	Shape []int64 `json:"-"`
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

// entry adds an entry. The operands of later entries of an operation are dropped.
func (l *Locations) entry(v []byte, seen map[int64]bool) {
	unknown := [2]int64{-1, -1}
	x := Location{Line: -1, Before: unknown, After: unknown}
	err := jsonx.Unmarshal(v, &x)
	if err != nil || min(x.Line, int64(x.Subnet), int64(x.Core), x.Before[0], x.Before[1], x.After[0], x.After[1]) < 0 || x.Core > 255 {
		l.Bad++
		return
	}
	if seen[x.Line] {
		x.Operands, x.Results = nil, nil
	}
	seen[x.Line] = true
	x.Op = l.names.of([]byte(x.Op))
	for _, list := range []*[]Place{&x.Operands, &x.Results} {
		*list = (*list)[:min(len(*list), maxPlaces)]
		for i := range *list {
			if p := &(*list)[i]; p.Type != "" {
				p.Shape, p.Type = l.memory(p.Type)
			}
		}
	}
	l.List = append(l.List, x)
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
