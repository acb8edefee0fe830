package outputdiff_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
)

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func one(a, b outputdiff.Tensor, o outputdiff.Options) profile.Difference {
	o.With = "other"
	return outputdiff.Compare([]outputdiff.Tensor{a}, []outputdiff.Tensor{b}, o)[0]
}

func real32(v ...float32) outputdiff.Tensor {
	return outputdiff.Tensor{Name: "y", DType: "float32", Shape: []int{1, len(v)}, Data: floats(v...)}
}

// near checks a float64 figure computed from a handful of elements: a few roundings.
func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || !(math.Abs(*got-want) <= 1e-12*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	d := one(real32(1, -2, nan), real32(1, -2, nan), outputdiff.Options{})
	if d.State != profile.Equal || d.NotFinite != nil || d.SNR != nil {
		t.Errorf("%+v", d)
	}
	near(t, "same", d.Same, 1)
	near(t, "largest difference", d.MaxAbsolute, 0)
	near(t, "cosine", d.Cosine, 1)
	near(t, "top", d.Top, 1)
	if f := outputdiff.Finding([]profile.Difference{d}); f != nil {
		t.Errorf("finding %v", f)
	}
}

// TestFigures computes every figure by hand: a = (3, 4), b = (4, 3).
func TestFigures(t *testing.T) {
	t.Parallel()
	d := one(real32(3, 4), real32(4, 3), outputdiff.Options{})
	if d.State != profile.Differs || *d.Elements != 2 {
		t.Errorf("%+v", d)
	}
	near(t, "same", d.Same, 0)
	near(t, "largest difference", d.MaxAbsolute, 1)
	near(t, "largest relative difference", d.MaxRelative, 0.25)
	near(t, "SNR", d.SNR, 10*math.Log10(25.0/2))
	near(t, "cosine", d.Cosine, 24.0/25)
	near(t, "top", d.Top, 0)
	near(t, "limit", d.Limit, 80)
	f := outputdiff.Finding([]profile.Difference{d})
	if f == nil || f.Severity != profile.Warning || !strings.Contains(f.Text, "y (SNR 11 dB, at most 1 in nearly all elements, top-1 class differs)") {
		t.Errorf("finding %+v", f)
	}
}

// TestNextToNothing has an element near zero whose relative error is one and irrelevant.
func TestNextToNothing(t *testing.T) {
	t.Parallel()
	d := one(real32(1000, 1e-6, 0), real32(1000, -1e-6, 0), outputdiff.Options{})
	// The root mean square is 1000/sqrt 3, a thousandth of it 0.577.
	near(t, "largest relative difference", d.MaxRelative, 2*float64(float32(1e-6))/(1000/math.Sqrt(3+3*1e-18)*1e-3))
	if d.State != profile.Rounding { // 1e6 over 4e-12: 174 dB
		t.Errorf("state %s at %v dB", d.State, *d.SNR)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	ints := func(scale float64, v ...byte) outputdiff.Tensor {
		return outputdiff.Tensor{DType: "int8", Shape: []int{len(v)}, Data: v, Scale: scale}
	}
	for _, tt := range []struct {
		name string
		a, b outputdiff.Tensor
		o    outputdiff.Options
		want profile.DifferenceState
	}{
		{"a millionth", real32(1, 1), real32(1, 1.000001), outputdiff.Options{}, profile.Rounding},
		{"a thousandth", real32(1, 1), real32(1, 1.001), outputdiff.Options{}, profile.Differs},
		{"a thousandth in half precision", real32(1, 1), real32(1, 1.001), outputdiff.Options{Half: true}, profile.Rounding},
		{"a twentieth between integers", real32(1, 1), real32(1, 1.05), outputdiff.Options{Quantised: true}, profile.Rounding},
		{"half between integers", real32(1, 1), real32(1, 1.5), outputdiff.Options{Quantised: true}, profile.Differs},
		{"zeros of two signs", real32(0, 1), real32(float32(math.Copysign(0, -1)), 1), outputdiff.Options{}, profile.Rounding},
		{"infinite in one", real32(inf, 1), real32(1, 1), outputdiff.Options{}, profile.Differs},
		{"infinite in both", real32(inf, 1), real32(inf, 1.0000001), outputdiff.Options{}, profile.Rounding},
		{"infinities of two signs", real32(inf, 1), real32(-inf, 1), outputdiff.Options{}, profile.Differs},
		{"a step", ints(.5, 1, 2), ints(.5, 2, 2), outputdiff.Options{}, profile.Rounding},
		{"two steps", ints(.5, 1, 2), ints(.5, 3, 2), outputdiff.Options{}, profile.Differs},
		{"three steps after integers", ints(.5, 1, 2), ints(.5, 4, 2), outputdiff.Options{Quantised: true}, profile.Rounding},
		{"a step, of an engine that does not tell the scale", ints(0, 1, 2), ints(.5, 2, 2), outputdiff.Options{}, profile.Rounding},
		{"three steps, of an engine that does not tell the scale", ints(0, 1, 2), ints(.5, 4, 2), outputdiff.Options{}, profile.Differs},
		{"from -128 to 127", ints(.5, 128), ints(.5, 127), outputdiff.Options{}, profile.Differs},
		{"a place", ints(0, 1, 2), ints(0, 2, 2), outputdiff.Options{}, profile.Differs},
		{"nothing", ints(0), ints(0), outputdiff.Options{}, profile.Equal},
		{"other shapes", real32(1), real32(1, 2), outputdiff.Options{}, profile.NotComparable},
		{"other types", real32(1), ints(0, 1, 1, 1, 1), outputdiff.Options{}, profile.NotComparable},
		{"too few bytes", real32(1, 2), outputdiff.Tensor{DType: "float32", Shape: []int{1, 2}, Data: []byte{1}}, outputdiff.Options{}, profile.NotComparable},
		{"no type", outputdiff.Tensor{DType: "x"}, outputdiff.Tensor{DType: "x"}, outputdiff.Options{}, profile.NotComparable},
		{"a huge shape", outputdiff.Tensor{DType: "int8", Shape: []int{1 << 40, 1 << 40}}, outputdiff.Tensor{DType: "int8", Shape: []int{1 << 40, 1 << 40}}, outputdiff.Options{}, profile.NotComparable},
		{"texts", outputdiff.Tensor{DType: "string", Shape: []int{2}, Strings: []string{"a", "b"}}, outputdiff.Tensor{DType: "string", Shape: []int{2}, Strings: []string{"a", "c"}}, outputdiff.Options{}, profile.Differs},
		{"equal texts", outputdiff.Tensor{DType: "string", Shape: []int{1}, Strings: []string{"a"}}, outputdiff.Tensor{DType: "string", Shape: []int{1}, Strings: []string{"a"}}, outputdiff.Options{}, profile.Equal},
		{"half a text", outputdiff.Tensor{DType: "string", Shape: []int{2}, Strings: []string{"a"}}, outputdiff.Tensor{DType: "string", Shape: []int{2}, Strings: []string{"a"}}, outputdiff.Options{}, profile.NotComparable},
	} {
		d := one(tt.a, tt.b, tt.o)
		if d.State != tt.want {
			t.Errorf("%s: %s, want %s (%+v)", tt.name, d.State, tt.want, d)
		}
		p := profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t", Kind: profile.TargetHost}, Layers: []profile.Layer{}, Differences: []profile.Difference{d}}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := outputdiff.Finding(p.Differences) != nil; got != (tt.want == profile.Differs || tt.want == profile.NotComparable) {
			t.Errorf("%s: finding %v", tt.name, got)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	d := outputdiff.Compare([]outputdiff.Tensor{real32(1), real32(2)}, []outputdiff.Tensor{real32(1)}, outputdiff.Options{With: "x"})
	if len(d) != 2 || d[0].State != profile.Equal || d[1].State != profile.NotComparable || d[1].Output != 1 {
		t.Errorf("%+v", d)
	}
	d = outputdiff.Compare(nil, []outputdiff.Tensor{real32(1)}, outputdiff.Options{With: "x"})
	if len(d) != 1 || d[0].State != profile.NotComparable || d[0].Name != "y" {
		t.Errorf("%+v", d)
	}
}

// TestNotComputed: engines are not said to differ by outputs that one of them did not compute.
func TestNotComputed(t *testing.T) {
	t.Parallel()
	d := outputdiff.Compare([]outputdiff.Tensor{real32(1)}, []outputdiff.Tensor{{Name: "y"}}, outputdiff.Options{With: "x"})
	f := outputdiff.Finding(d)
	if d[0].State != profile.NotComparable || f == nil || f.ID != "outputs.unknown" || f.Text != "Outputs were not compared with those of x: y cannot be compared (x did not compute it)." {
		t.Errorf("%+v: %+v", d, f)
	}
}

// TestTop counts rows of scores, also with dimensions of one after the classes, but not of
// images.
func TestTop(t *testing.T) {
	t.Parallel()
	a, b := real32(1, 2, 3, 6, 5, 4), real32(1, 2, 3, 4, 5, 6)
	for _, tt := range []struct {
		shape []int
		want  float64
	}{{[]int{2, 3}, .5}, {[]int{2, 3, 1, 1}, .5}, {[]int{6}, 0}, {[]int{1, 2, 3}, -1}, {[]int{6, 1}, -1}} {
		a.Shape, b.Shape = tt.shape, tt.shape
		switch d := one(a, b, outputdiff.Options{}); {
		case tt.want < 0 && d.Top != nil:
			t.Errorf("%v: top %v", tt.shape, *d.Top)
		case tt.want >= 0:
			near(t, "top", d.Top, tt.want)
		}
	}
}
