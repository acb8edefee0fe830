package loss

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestTwister has the published numbers of the generator MT19937: of its standard seed the
// first and the 10,000th, and the first fractions of seed 0 as NumPy draws them.
func TestTwister(t *testing.T) {
	t.Parallel()
	r := newTwister(5489)
	var last uint32
	for i := range 10_000 {
		if last = r.next(); i == 0 && last != 3499211612 {
			t.Errorf("the first number is %d", last)
		}
	}
	if last != 4123659995 {
		t.Errorf("the 10,000th number is %d", last)
	}
	r = newTwister(0)
	for _, want := range []float64{0.5488135039273248, 0.7151893663724195, 0.6027633760716439, 0.5448831829968969, 0.4236547993389047} {
		if got := r.float(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestDropout keeps what draws a number from the ratio on: of seed 0 they are 0.549, 0.715, 0.603, 0.545.
func TestDropout(t *testing.T) {
	t.Parallel()
	x := tensor.From(tensor.Float32, []int{4}, []float32{1, 2, 3, 4})
	number := func(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, []int{}, []float32{v}) }
	truth := func(v uint8) *tensor.Tensor { return tensor.From(tensor.Bool, []int{}, []uint8{v}) }
	empty := tensor.New(tensor.Float32, 0)
	seed := graph.Attrs{"seed": int64(0)}
	same := []float64{1, 2, 3, 4}
	for _, tt := range []struct {
		name    string
		version int
		attrs   graph.Attrs
		in      []*tensor.Tensor
		want    []float64
		mask    []float64
	}{
		{"training", 13, seed, []*tensor.Tensor{x, number(.6), truth(1)}, []float64{0, 5, 7.5, 0}, []float64{0, 1, 1, 0}},
		{"half by default", 13, seed, []*tensor.Tensor{x, nil, truth(1)}, []float64{2, 4, 6, 8}, []float64{1, 1, 1, 1}},
		{"empty ratio", 13, seed, []*tensor.Tensor{x, empty, truth(1)}, []float64{2, 4, 6, 8}, []float64{1, 1, 1, 1}},
		{"three quarters", 13, seed, []*tensor.Tensor{x, number(.75), truth(1)}, []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}},
		{"not training", 13, seed, []*tensor.Tensor{x, number(.6), truth(0)}, same, []float64{1, 1, 1, 1}},
		{"training not said", 13, seed, []*tensor.Tensor{x, number(.6)}, same, []float64{1, 1, 1, 1}},
		{"nothing dropped", 13, seed, []*tensor.Tensor{x, number(0), truth(1)}, same, []float64{1, 1, 1, 1}},
		{"version 12", 12, seed, []*tensor.Tensor{x, number(.6), truth(1)}, []float64{0, 5, 7.5, 0}, []float64{0, 1, 1, 0}},
		{"version 10", 10, graph.Attrs{"ratio": float32(.6), "seed": int64(0)}, []*tensor.Tensor{x}, same, []float64{0, 0, 0, 0}},
		{"version 7", 7, graph.Attrs{"ratio": float32(.6)}, []*tensor.Tensor{x}, same, []float64{0, 0, 0, 0}},
		{"version 6", 6, graph.Attrs{"ratio": float32(.6), "seed": int64(0)}, []*tensor.Tensor{x}, []float64{0, 5, 7.5, 0}, []float64{0, 1, 1, 0}},
		{"version 6, half by default", 6, seed, []*tensor.Tensor{x}, []float64{2, 4, 6, 8}, []float64{1, 1, 1, 1}},
		{"version 6, test", 6, graph.Attrs{"is_test": int64(1)}, []*tensor.Tensor{x}, same, []float64{0, 0, 0, 0}},
	} {
		for n := 1; n <= 2; n++ {
			out, err := optest.Run(Defs(), optest.Node{Op: "Dropout", Version: tt.version, Attrs: tt.attrs, Outputs: n}, tt.in...)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if why := optest.Differ(out[0], tt.want, 0, 1e-6); why != "" { // the ratio is of float32
				t.Errorf("%s: %s", tt.name, why)
			}
			if n < 2 {
				continue
			}
			if why := optest.Differ(out[1], tt.mask, 0, 0); why != "" {
				t.Errorf("%s, mask: %s", tt.name, why)
			}
			if typ := map[bool]tensor.Type{true: tensor.Bool, false: tensor.Float32}[tt.version >= 10]; out[1].Type != typ || !cmp.Equal(out[1].Shape, []int{4}) {
				t.Errorf("%s: mask of %v %v", tt.name, out[1].Type, out[1].Shape)
			}
		}
	}
}
