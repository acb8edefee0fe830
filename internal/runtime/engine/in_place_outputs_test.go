package engine

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// TestInPlace: an output takes the memory of an input only where nothing else sees a difference.
func TestInPlace(t *testing.T) {
	t.Parallel()
	put := op.Def{Name: "Put", Updates: [][2]int{{0, 0}}, Infer: func(c *op.Call) error { return c.Result(c.In[0].Type, c.In[0].Shape) }, Prepare: op.Simple(func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		if !op.SameMemory(x, y) {
			copy(y, x)
		}
		y[0] = 9
		return nil
	})}
	longer := put
	longer.Name, longer.Infer = "Longer", func(c *op.Call) error { return c.Result(c.In[0].Type, []int{c.In[0].Len() + 1}) }
	for _, c := range []struct {
		name, in, out string
		lines         []string
		o             Options
		want          bool
		y             []float32
	}{
		{"alone", "x", "y", []string{"Put y x"}, Options{}, true, []float32{9, 2}},
		{"read before", "x", "y z", []string{"Inc z x", "Put y x"}, Options{}, true, []float32{9, 2}},
		{"read after", "x", "y z", []string{"Put y x", "Inc z x"}, Options{}, false, []float32{9, 2}},
		{"an output, too", "x", "y x", []string{"Put y x"}, Options{}, false, []float32{9, 2}},
		{"twice in a step", "x", "y", []string{"Put y x x"}, Options{}, false, []float32{9, 2}},
		{"of another operator", "x", "y", []string{"Inc y x"}, Options{}, false, []float32{2, 3}},
		{"of another value", "x", "y", []string{"Inc a x", "Put y a"}, Options{}, false, []float32{9, 3}},
		{"another shape", "x", "y", []string{"Longer y x"}, Options{}, false, []float32{9, 2, 0}},
		{"every value kept", "x", "y", []string{"Put y x"}, Options{KeepAll: true}, false, []float32{9, 2}},
		{"carried", "x", "y", []string{"Put y x"}, Options{Carry: []Carry{{0, 0}}}, false, []float32{9, 2}},
	} {
		c.o.Registry, c.o.InPlace = with(put, longer), []Carry{{0, 0}}
		x := vec(1, 2)
		s := start(t, c.o, []*tensor.Tensor{x}, build(0, nil, c.in, c.out, c.lines...))
		arena, _ := s.Memory()
		run(t, s)
		wantOut(t, s, 0, c.y...)
		if got := len(s.InPlace()) == 1; got != c.want {
			t.Errorf("%s: in place %v, want %v", c.name, got, c.want)
		}
		first := float32(1)
		if c.want {
			first = 9
		}
		if got := tensor.Of[float32](x); !slices.Equal(got, []float32{first, 2}) {
			t.Errorf("%s: the input is %v", c.name, got)
		}
		if c.name == "alone" && arena != 0 {
			t.Errorf("the plan has %d bytes for an output in the memory of an input", arena)
		}
		// Another tensor of the caller, then another shape.
		other := vec(3, 4)
		s.SetInput(0, other)
		run(t, s)
		if got := tensor.Of[float32](other)[0] == 9; got != c.want {
			t.Errorf("%s: the second input was changed: %v", c.name, got)
		}
		s.SetInput(0, vec(5, 6, 7))
		run(t, s)
		if got := len(s.InPlace()) == 1; got != c.want {
			t.Errorf("%s: in place %v with another shape", c.name, got)
		}
	}
}
