package elem

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// FloatsAnd adds types to the floating-point ones.
func FloatsAnd(more ...tensor.Type) []tensor.Type { return slices.Concat(Floats, more) }

// RealDef makes a definition over floating-point types.
func RealDef(name string, infer func(*op.Call) error, p32, p64 Prepare) op.Def {
	types := Floats
	if p64 == nil {
		types = []tensor.Type{tensor.Float32, tensor.Float16, tensor.BFloat16}
	}
	return op.Def{Name: name, Since: 1, Types: types, Infer: infer, Prepare: ByReal(p32, p64)}
}

// Fusing marks a definition that applies a following clamp itself.
func Fusing(d op.Def) op.Def { d.Fuses = true; return d }

// InDomain moves definitions to another domain.
func InDomain(name string, defs ...op.Def) []op.Def {
	for i := range defs {
		defs[i].Domain = name
	}
	return defs
}

// Elements returns the elements of an optional input, nil when it is absent or not known.
func Elements[T tensor.Number](c *op.Call, i int) []T {
	if x := c.Input(i); x.Known() {
		return tensor.Of[T](x)
	}
	return nil
}

// Grow returns a slice of n elements, v itself when it is large enough.
func Grow[E any](v []E, n int) []E {
	if cap(v) < n {
		return make([]E, n)
	}
	return v[:n]
}
