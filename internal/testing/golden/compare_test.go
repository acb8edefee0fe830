package golden

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func floats(list ...float32) *tensor.Tensor {
	x := tensor.New(tensor.Float32, len(list))
	copy(tensor.Of[float32](x), list)
	return x
}

// recorded writes a tensor as the archive holds it.
func recorded(t *testing.T, dir, name string, x *tensor.Tensor) Output {
	t.Helper()
	if err := npy.WriteFile(filepath.Join(dir, name), x); err != nil {
		t.Fatal(err)
	}
	return Output{Dtype: x.Type.String(), Shape: x.Shape, SHA256: Hash(x), File: name}
}

// TestCompare breaks a result in every way that the comparison is there to notice.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	nan := float32(math.NaN())
	negative := float32(math.Copysign(0, -1))
	want := floats(1, 0, -3, 0.5)
	ints := tensor.New(tensor.Int8, 4)
	copy(tensor.Of[int8](ints), []int8{1, -2, 3, 4})
	last := tensor.New(tensor.Int8, 4)
	copy(tensor.Of[int8](last), []int8{1, -2, 3, 5})
	near := Tolerance{Relative: 1e-4, Steps: 1}
	out := recorded(t, dir, "float.npy", want)
	whole := recorded(t, dir, "int.npy", ints)
	broken := recorded(t, dir, "nan.npy", floats(nan, 1))
	cases := []struct {
		name  string
		out   Output
		got   *tensor.Tensor
		tol   Tolerance
		equal bool
	}{
		{"the same", out, floats(1, 0, -3, 0.5), Exact, true},
		{"last bit of the first", out, floats(math.Nextafter32(1, 2), 0, -3, 0.5), Exact, false},
		{"last bit of the last", out, floats(1, 0, -3, math.Nextafter32(0.5, 0)), Exact, false},
		{"the smallest number for zero", out, floats(1, math.SmallestNonzeroFloat32, -3, 0.5), Exact, false},
		{"sign of zero", out, floats(1, negative, -3, 0.5), Exact, false},
		{"NaN", out, floats(1, 0, nan, 0.5), Exact, false},
		{"longer", out, floats(1, 0, -3, 0.5, 1), Exact, false},
		{"shorter", out, floats(1, 0, -3), Exact, false},
		{"nothing", out, nil, Exact, false},
		{"unknown", out, &tensor.Tensor{Type: tensor.Float32, Shape: []int{4}}, Exact, false},
		{"another type", out, ints, Exact, false},
		{"near", out, floats(1, 0, -3.0001, 0.5), near, true},
		{"too far", out, floats(1, 0, -3.0005, 0.5), near, false},
		{"NaN beside a tolerance", out, floats(1, 0, nan, 0.5), near, false},
		{"infinity beside a tolerance", out, floats(1, 0, float32(math.Inf(-1)), 0.5), near, false},
		{"NaN where one is recorded", broken, floats(nan, 1), near, true},
		{"a number where NaN is recorded", broken, floats(0, 1), near, false},
		{"integers", whole, ints, Exact, true},
		{"a step", whole, last, Exact, false},
		{"a step of tolerance", whole, last, near, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if why := c.out.Check(dir, c.got, c.tol); (why == "") != c.equal {
				t.Errorf("found %q, equal is %v", why, c.equal)
			}
		})
	}
}

// TestCompareBeyond changes what a large output has recorded by its hash alone.
func TestCompareBeyond(t *testing.T) {
	dir := t.TempDir()
	all := tensor.New(tensor.Float32, 1000)
	out := recorded(t, dir, "all.npy", all)
	out.File, out.Head, out.Stride, out.StrideStep = "", "head.npy", "stride.npy", 100
	recorded(t, dir, "head.npy", tensor.New(tensor.Float32, 10))
	recorded(t, dir, "stride.npy", tensor.New(tensor.Float32, 10))
	if why := out.Check(dir, all, Exact); why != "" {
		t.Errorf("the same differs: %s", why)
	}
	got := tensor.New(tensor.Float32, 1000)
	tensor.Of[float32](got)[555] = 1e-30
	if out.Check(dir, got, Exact) == "" {
		t.Error("a bit outside the sample is not noticed")
	}
	tensor.Of[float32](got)[500] = 1
	if out.Check(dir, got, Tolerance{Relative: 1e-4}) == "" {
		t.Error("an element of the stride is not noticed")
	}
}

// TestCompareCounts has outputs on one side only.
func TestCompareCounts(t *testing.T) {
	dir := t.TempDir()
	x := floats(1, 2)
	out := recorded(t, dir, "x.npy", x)
	for _, c := range []struct {
		name  string
		want  []Output
		got   []*tensor.Tensor
		wrong int
	}{
		{"both", []Output{out, out}, []*tensor.Tensor{x, x}, 0},
		{"one is missing", []Output{out, out}, []*tensor.Tensor{x}, 1},
		{"one is not computed", []Output{out, out}, []*tensor.Tensor{nil, x}, 1},
		{"all are missing", []Output{out, out}, nil, 2},
		{"one too many", []Output{out}, []*tensor.Tensor{x, x}, 1},
	} {
		if wrong := Compare(dir, c.want, c.got, Exact); len(wrong) != c.wrong {
			t.Errorf("%s: %q, want %d lines", c.name, wrong, c.wrong)
		}
	}
}
