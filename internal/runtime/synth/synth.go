// Package synth generates deterministic model inputs.
//
// The generator is part of the interface: the same seed gives the same bytes in every release and
// on every machine, so that results with generated inputs can be compared. It is splitmix64 with
// the state seed + k*2^32 for input number k, with one draw per element in row-major order:
//
//	float32, float64, float16, bfloat16  top 24 bits / 2^24, in [0, 1)
//	int8, uint8, int16, uint16           top 8 or 16 bits
//	int32, int64, uint32, uint64         top 31 bits modulo 100: valid as small indices
//	bool                                 top bit
//	int4, uint4, int2, uint2             top 4 or 2 bits
//	complex64, complex128                real part as for floats, imaginary part 0
//	string                               empty
package synth

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Generator is splitmix64.
type Generator struct{ state uint64 }

// NewGenerator starts the sequence of input number k.
func NewGenerator(seed uint64, k int) *Generator { return &Generator{state: seed + uint64(k)<<32} }

// Next draws 64 bits.
func (g *Generator) Next() uint64 {
	g.state += 0x9E3779B97F4A7C15
	z := g.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Fill replaces the generator's distribution. The first field that is set is used.
type Fill struct {
	Const  *float64    `json:"const"`  // every element
	Values []float64   `json:"values"` // literal, row-major
	Iota   float64     `json:"iota"`   // not 0: 0, 1, 2, ...
	Range  *[2]float64 `json:"range"`  // floats: uniform over [low, high)
	Mod    uint64      `json:"mod"`    // integers of 32 bits and more: below Mod
}

// Overrides adapts the inputs of one model, by input name.
type Overrides struct {
	Dims map[string][]int `json:"dims"` // shapes of inputs with unknown dimensions
	Fill map[string]Fill  `json:"fill"`
}

// maxOverrides bounds the overrides file, in bytes.
const maxOverrides = 16 << 20

// LoadOverrides reads a JSON file that maps model file names to overrides.
func LoadOverrides(name string) (map[string]Overrides, error) {
	data, err := infile.Read(name, maxOverrides)
	if err != nil {
		return nil, err
	}
	var all map[string]Overrides
	if err := jsonx.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// Inputs generates all inputs of a graph. Unknown dimensions are 1 unless the overrides or the
// model's own placeholder give a size.
func Inputs(g *graph.Graph, seed uint64, o Overrides) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(g.Inputs))
	for k, id := range g.Inputs {
		v := g.Values[id]
		var fill *Fill
		if f, ok := o.Fill[v.Name]; ok {
			fill = &f
		}
		shape, ok := o.Dims[v.Name]
		if !ok {
			shape = Shape(v)
		}
		x, err := Tensor(v.Type, shape, seed, k, fill)
		if err != nil {
			return nil, fmt.Errorf("input %d %q: %w", k, v.Name, err)
		}
		x.Quant = v.Quant
		out[k] = x
	}
	return out, nil
}

// Shape returns a value's shape with its unknown dimensions set to the placeholder's or 1.
func Shape(v *graph.Value) []int {
	out := make([]int, len(v.Shape))
	for i, d := range v.Shape {
		switch {
		case d >= 0:
			out[i] = d
		case i < len(v.Placeholder) && v.Placeholder[i] >= 0:
			out[i] = v.Placeholder[i]
		default:
			out[i] = 1
		}
	}
	return out
}

// Tensor generates input number k. fill may be nil.
func Tensor(t tensor.Type, shape []int, seed uint64, k int, fill *Fill) (*tensor.Tensor, error) {
	if _, err := tensor.CheckShape(t, shape); err != nil {
		return nil, err
	}
	x := tensor.New(t, shape...)
	g := NewGenerator(seed, k)
	if fill == nil {
		fill = &Fill{}
	}
	if fill.Values != nil && len(fill.Values) != x.Len() {
		return nil, fmt.Errorf("%d values for shape %s", len(fill.Values), tensor.FormatShape(shape))
	}
	switch t {
	case tensor.Float32:
		floats(x, g, fill, func(v float64) float32 { return float32(v) })
	case tensor.Float64:
		floats(x, g, fill, func(v float64) float64 { return v })
	case tensor.Float16:
		floats(x, g, fill, func(v float64) uint16 { return tensor.F32ToF16(float32(v)) })
	case tensor.BFloat16:
		floats(x, g, fill, func(v float64) uint16 { return tensor.F32ToBF16(float32(v)) })
	case tensor.Complex64:
		c := tensor.Of[complex64](x)
		for i := range c {
			c[i] = complex(float32(fill.float(i, g)), 0)
		}
	case tensor.Complex128:
		c := tensor.Of[complex128](x)
		for i := range c {
			c[i] = complex(fill.float(i, g), 0)
		}
	case tensor.Int8:
		integers(x, g, fill, func(z uint64) int8 { return int8(int(z>>56) - 128) })
	case tensor.Uint8:
		integers(x, g, fill, func(z uint64) uint8 { return uint8(z >> 56) })
	case tensor.Int16:
		integers(x, g, fill, func(z uint64) int16 { return int16(int(z>>48) - 32768) })
	case tensor.Uint16:
		integers(x, g, fill, func(z uint64) uint16 { return uint16(z >> 48) })
	case tensor.Bool:
		integers(x, g, fill, func(z uint64) uint8 { return uint8(z >> 63) })
	case tensor.Int32:
		integers(x, g, fill, func(z uint64) int32 { return int32(z >> 33 % fill.modulus()) })
	case tensor.Int64:
		integers(x, g, fill, func(z uint64) int64 { return int64(z >> 33 % fill.modulus()) })
	case tensor.Uint32:
		integers(x, g, fill, func(z uint64) uint32 { return uint32(z >> 33 % fill.modulus()) })
	case tensor.Uint64:
		integers(x, g, fill, func(z uint64) uint64 { return z >> 33 % fill.modulus() })
	case tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2:
		packed(x, g, fill)
	case tensor.String:
	default:
		return nil, fmt.Errorf("inputs of type %v cannot be made", t)
	}
	return x, nil
}

func (f *Fill) modulus() uint64 {
	if f.Mod == 0 {
		return 100
	}
	return f.Mod
}

// fixed returns the element if it is not drawn.
func (f *Fill) fixed(i int) (float64, bool) {
	switch {
	case f.Const != nil:
		return *f.Const, true
	case f.Values != nil:
		return f.Values[i], true
	case f.Iota != 0:
		return float64(i), true
	}
	return 0, false
}

func (f *Fill) float(i int, g *Generator) float64 {
	if v, ok := f.fixed(i); ok {
		return v
	}
	u := float64(g.Next()>>40) / (1 << 24)
	if f.Range != nil {
		u = float64(float32(f.Range[0] + (f.Range[1]-f.Range[0])*u))
	}
	return u
}

func floats[T tensor.Number](x *tensor.Tensor, g *Generator, f *Fill, to func(float64) T) {
	v := tensor.Of[T](x)
	for i := range v {
		v[i] = to(f.float(i, g))
	}
}

func integers[T tensor.Number](x *tensor.Tensor, g *Generator, f *Fill, draw func(uint64) T) {
	v := tensor.Of[T](x)
	for i := range v {
		if c, ok := f.fixed(i); ok {
			v[i] = T(int64(math.Trunc(c)))
			continue
		}
		v[i] = draw(g.Next())
	}
}

// packed fills types below eight bits, first element in the low bits.
func packed(x *tensor.Tensor, g *Generator, f *Fill) {
	bits := x.Type.Bits()
	per := 8 / bits
	for i := range x.Len() {
		z := g.Next() >> (64 - bits)
		if c, ok := f.fixed(i); ok {
			z = uint64(int64(c)) & (1<<bits - 1)
		}
		x.Data[i/per] |= byte(z) << (i % per * bits)
	}
}
