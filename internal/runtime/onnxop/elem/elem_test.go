package elem

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func TestFromCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]tensor.Type{1: tensor.Float32, 7: tensor.Int64, 9: tensor.Bool, 10: tensor.Float16, 16: tensor.BFloat16, 22: tensor.Int4, 28: tensor.Float6E3M2} {
		if got, err := FromCode(code); err != nil || got != want {
			t.Errorf("%d is %v, %v", code, got, err)
		}
	}
	for _, code := range []int{-1, 0, 29} {
		if _, err := FromCode(code); err == nil || !strings.Contains(err.Error(), "is not known") {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestClamp(t *testing.T) {
	t.Parallel()
	y := []float32{-2, 0, 3, 7}
	if Clamp(activation.Clamp{Min: -1, Max: 6}, y); !cmp.Equal(y, []float32{-2, 0, 3, 7}) {
		t.Errorf("a clamp that is off: %v", y)
	}
	if Clamp(activation.Clamp{On: true, Min: -1, Max: 6}, y); !cmp.Equal(y, []float32{-1, 0, 3, 6}) {
		t.Errorf("%v", y)
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()
	v := make([]int, 2, 4)
	if g := Grow(v, 4); len(g) != 4 || &g[0] != &v[0] {
		t.Error("a slice that is large enough is made anew")
	}
	if g := Grow(v, 5); len(g) != 5 || &g[0] == &v[0] {
		t.Error("a slice that is too small is kept")
	}
	if g := Grow(v, 1); len(g) != 1 {
		t.Errorf("%d elements", len(g))
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Int8, 2, 3)
	c := &op.Call{Node: &graph.Node{Op: "Foo"}, In: []*tensor.Tensor{x}, Out: []*tensor.Tensor{{}, {}}}
	if err := Same(c); err != nil || c.Out[0].Type != tensor.Int8 || !cmp.Equal(c.Out[0].Shape, []int{2, 3}) || c.Out[1].Type != tensor.Invalid {
		t.Errorf("%+v, %v", c.Out[0], err)
	}
	if err := SameTruth(c); err != nil || c.Out[0].Type != tensor.Bool || !cmp.Equal(c.Out[0].Shape, []int{2, 3}) {
		t.Errorf("%+v, %v", c.Out[0], err)
	}
	none := &op.Call{In: []*tensor.Tensor{nil}}
	if Same(none) == nil || SameTruth(none) == nil {
		t.Error("no input has a shape")
	}
	if err := BadType(c, 0); !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), "Foo of int8") {
		t.Error(err)
	}
	i8, f := tensor.New(tensor.Int8, 1), tensor.New(tensor.Float32, 1)
	for _, tt := range []struct {
		in    []*tensor.Tensor
		first int
		want  string
	}{
		{[]*tensor.Tensor{i8, i8}, 0, ""},
		{[]*tensor.Tensor{f, i8, i8}, 1, ""},
		{[]*tensor.Tensor{i8, nil, i8}, 0, ""},
		{[]*tensor.Tensor{nil, i8, f}, 0, ""},
		{[]*tensor.Tensor{i8}, 0, ""},
		{[]*tensor.Tensor{i8, f}, 0, "input 0 is int8, input 1 is float32"},
		{[]*tensor.Tensor{f, i8, nil, f}, 1, "input 1 is int8, input 3 is float32"},
	} {
		if err := SameTypes(&op.Call{In: tt.in}, tt.first); (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if v := Elements[int8](&op.Call{In: []*tensor.Tensor{i8, nil, {Type: tensor.Int8, Shape: []int{1}}}}, 0); len(v) != 1 {
		t.Errorf("%v", v)
	}
	for i := 1; i < 4; i++ {
		if v := Elements[int8](&op.Call{In: []*tensor.Tensor{i8, nil, {Type: tensor.Int8, Shape: []int{1}}}}, i); v != nil {
			t.Errorf("input %d has elements %v", i, v)
		}
	}
}

// double doubles input 0 and reports by the kernel's name which variant it is.
func double[T tensor.Real](name string, seen *[]string) Prepare {
	return func(c *op.Call) (op.Run, error) {
		c.Scratch(8)
		return func(c *op.Call) error {
			*seen = append(*seen, name)
			x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
			for i, v := range x {
				y[i] = 2 * v
				if c.Has(1) {
					y[i] += tensor.Of[T](c.In[1])[i]
				}
			}
			return nil
		}, nil
	}
}

// TestByReal chooses a kernel by the first floating-point input; 16-bit types use float32.
func TestByReal(t *testing.T) {
	t.Parallel()
	f32 := tensor.From(tensor.Float32, []int{1}, []float32{1.5})
	f64 := tensor.From(tensor.Float64, []int{1}, []float64{1.5})
	f16 := tensor.From(tensor.Float16, []int{1}, []uint16{0x3e00})
	bf16 := tensor.From(tensor.BFloat16, []int{1}, []uint16{0x3fc0})
	i8 := tensor.New(tensor.Int8, 1)
	for _, tt := range []struct {
		x    *tensor.Tensor
		name string
		want []byte // 3
	}{
		{f32, "32", []byte{0, 0, 0x40, 0x40}}, {f64, "64", []byte{0, 0, 0, 0, 0, 0, 8, 0x40}}, {f16, "32", []byte{0, 0x42}}, {bf16, "32", []byte{0x40, 0x40}},
	} {
		var seen []string
		c := &op.Call{Node: &graph.Node{Op: "Foo", Inputs: []int{0}}, Graph: &graph.Graph{Values: []*graph.Value{{}}}, In: []*tensor.Tensor{tt.x}, Out: []*tensor.Tensor{tensor.New(tt.x.Type, 1)}}
		run, err := ByReal(double[float32]("32", &seen), double[float64]("64", &seen))(c)
		for range 2 {
			if err = errors.Join(err, run(c)); err != nil {
				t.Fatal(err)
			}
		}
		if !cmp.Equal(c.Out[0].Data, tt.want) || !cmp.Equal(seen, []string{tt.name, tt.name}) || c.In[0] != tt.x {
			t.Errorf("%v: % x by %v", tt.x.Type, c.Out[0].Data, seen)
		}
		if scratch := c.ScratchBytes(); tt.x.Type.IsHalf() && scratch != 16 || !tt.x.Type.IsHalf() && scratch != 8 {
			t.Errorf("%v: %d bytes of scratch memory", tt.x.Type, scratch)
		}
	}
	call := func(in ...*tensor.Tensor) *op.Call {
		return &op.Call{Node: &graph.Node{Op: "Foo", Inputs: make([]int, len(in))}, Graph: &graph.Graph{Values: []*graph.Value{{}}}, In: in, Out: []*tensor.Tensor{tensor.New(tensor.Float32, 1)}}
	}
	ok := func(*op.Call) (op.Run, error) { return nil, nil }
	for want, err := range map[string]error{
		"Foo of float64":               func() error { _, err := PrepareReal(call(f64), ok, nil); return err }(),
		"Foo of float32":               func() error { _, err := PrepareReal(call(f32), nil, ok); return err }(),
		"Foo of int8":                  func() error { _, err := PrepareReal(call(i8), ok, ok); return err }(),
		"Foo of invalid":               func() error { _, err := PrepareReal(call(nil), ok, ok); return err }(),
		"Foo of half-precision floats": func() error { _, err := PrepareReal(call(i8, f16), nil, ok); return err }(),
	} {
		if !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := PrepareReal(call(nil, i8, f64, f32), nil, ok); err != nil {
		t.Errorf("the first floating-point input does not choose: %v", err)
	}
	d := RealDef("Foo", Same, ok, nil)
	if d.Name != "Foo" || d.Since != 1 || len(d.Types) != 3 || len(RealDef("Foo", Same, ok, ok).Types) != 4 {
		t.Errorf("%+v", d)
	}
	if !Fusing(d).Fuses || InDomain("d", d, d)[1].Domain != "d" || len(FloatsAnd(tensor.Bool)) != 5 {
		t.Error("definitions")
	}
}

// TestWidenConstants converts a constant once, and other inputs in each run.
func TestWidenConstants(t *testing.T) {
	t.Parallel()
	half := func(v uint16) *tensor.Tensor { return tensor.From(tensor.Float16, []int{1}, []uint16{v}) }
	const one, two, four, five = 0x3c00, 0x4000, 0x4400, 0x4500
	x, w := half(one), half(two)
	var seen []string
	c := &op.Call{Node: &graph.Node{}, In: []*tensor.Tensor{x, w}, Out: []*tensor.Tensor{half(0)}, Fixed: []bool{false, true}}
	run, err := Widen(double[float32]("", &seen))(c)
	if err = errors.Join(err, run(c)); err != nil || tensor.Of[uint16](c.Out[0])[0] != four {
		t.Fatalf("%#x, %v", tensor.Of[uint16](c.Out[0])[0], err)
	}
	// the second is not looked at again
	tensor.Of[uint16](x)[0], tensor.Of[uint16](w)[0] = two, four
	if err := run(c); err != nil || tensor.Of[uint16](c.Out[0])[0] != 0x4600 {
		t.Errorf("%#x, %v", tensor.Of[uint16](c.Out[0])[0], err)
	}
	// At run time other tensors may replace those at preparation.
	other := &op.Call{In: []*tensor.Tensor{half(one), w}, Out: []*tensor.Tensor{half(0)}}
	if err := run(other); err != nil || tensor.Of[uint16](other.Out[0])[0] != four {
		t.Errorf("%#x, %v", tensor.Of[uint16](other.Out[0])[0], err)
	}
	// A single 16-bit output is enough; without 16-bit tensors the call itself is prepared.
	single := tensor.From(tensor.Float32, []int{1}, []float32{2.5})
	c = &op.Call{Node: &graph.Node{}, In: []*tensor.Tensor{single, nil}, Out: []*tensor.Tensor{half(0), nil}, Fixed: []bool{false, false}}
	run, err = Widen(double[float32]("", &seen))(c)
	if err = errors.Join(err, run(c)); err != nil || tensor.Of[uint16](c.Out[0])[0] != five {
		t.Errorf("%#x, %v", tensor.Of[uint16](c.Out[0])[0], err)
	}
	wrong := errors.New("wrong")
	c = &op.Call{Node: &graph.Node{}, In: []*tensor.Tensor{x}, Out: []*tensor.Tensor{half(0)}, Fixed: []bool{false}}
	if _, err := Widen(func(*op.Call) (op.Run, error) { return nil, wrong })(c); !errors.Is(err, wrong) {
		t.Error(err)
	}
	run, err = Widen(func(*op.Call) (op.Run, error) { return func(*op.Call) error { return wrong }, nil })(c)
	if err != nil || !errors.Is(run(c), wrong) {
		t.Error("the error of a run is lost")
	}
	// Longer than what one thread processes at a time.
	long := tensor.New(tensor.Float16, 20000)
	for i := range tensor.Of[uint16](long) {
		tensor.Of[uint16](long)[i] = one
	}
	wide := make([]float32, 20000)
	WidenTo(nil, wide, long)
	clear(long.Data)
	NarrowTo(nil, long, wide)
	if h := tensor.Of[uint16](long); wide[0] != 1 || wide[19999] != 1 || h[0] != one || h[19999] != one {
		t.Error("the ends of a long tensor")
	}
}
