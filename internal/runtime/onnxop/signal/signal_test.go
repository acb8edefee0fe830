package signal

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func scalar(v int64) *tensor.Tensor { return tensor.From(tensor.Int64, nil, []int64{v}) }

// slow is the definition of the transform.
func slow(x []complex128) []complex128 {
	y := make([]complex128, len(x))
	for k := range y {
		for n, v := range x {
			y[k] += v * cmplx.Rect(1, -2*math.Pi*float64(k*n%len(x))/float64(len(x)))
		}
	}
	return y
}

func TestEveryLength(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 300; n++ {
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(r.NormFloat64(), r.NormFloat64())
		}
		f := newFFT(n)
		got := make([]complex128, n)
		f.forward(got, x, make([]complex128, f.scratch()))
		for k, w := range slow(x) {
			if cmplx.Abs(got[k]-w) > 1e-11*float64(n) {
				t.Fatalf("length %d: bin %d is %v, want %v", n, k, got[k], w)
			}
		}
	}
}

func run(t *testing.T, n optest.Node, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatalf("%s: %v", n.Op, err)
	}
	return out[0]
}

var near = cmpopts.EquateApprox(0, 1e-5)

// TestRoundTrip goes to the spectrum and back in all forms.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, typ := range []tensor.Type{tensor.Float32, tensor.Float64} {
		for _, length := range []int64{6, 7, 17} {
			for _, oneSided := range []int64{0, 1} {
				t.Run(fmt.Sprint(typ, length, oneSided), func(t *testing.T) {
					t.Parallel()
					x := tensor.New(typ, 2, int(length), 3, 1)
					for i := range x.Len() {
						if typ == tensor.Float32 {
							tensor.Of[float32](x)[i] = float32(i*i%11) - 4
						} else {
							tensor.Of[float64](x)[i] = float64(i*i%11) - 4
						}
					}
					axis := scalar(1)
					y := run(t, optest.Node{Op: "DFT", Version: 20, Attrs: graph.Attrs{"onesided": oneSided}}, x, nil, axis)
					bins := int(length)
					if oneSided == 1 {
						bins = int(length)/2 + 1
					}
					if d := cmp.Diff([]int{2, bins, 3, 2}, y.Shape); d != "" {
						t.Fatal(d)
					}
					back := run(t, optest.Node{Op: "DFT", Version: 20, Attrs: graph.Attrs{"onesided": oneSided, "inverse": int64(1)}}, y, scalar(length), axis)
					for i := range x.Len() {
						at := i * back.Shape[3]
						if typ == tensor.Float32 {
							if d := cmp.Diff(tensor.Of[float32](x)[i], tensor.Of[float32](back)[at], near); d != "" {
								t.Fatal(i, d)
							}
						} else if d := cmp.Diff(tensor.Of[float64](x)[i], tensor.Of[float64](back)[at], near); d != "" {
							t.Fatal(i, d)
						}
					}
				})
			}
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Float32, 1, 7, 1)
	for i, v := 0, tensor.Of[float32](x); i < len(v); i++ {
		v[i] = float32(i + 1)
	}
	w := tensor.From(tensor.Float32, []int{4}, []float32{1, 2, 2, 1})
	got := run(t, optest.Node{Op: "STFT", Version: 17}, x, scalar(3), w)
	if d := cmp.Diff([]int{1, 2, 3, 2}, got.Shape); d != "" {
		t.Fatal(d)
	}
	var want []float32
	for _, f := range [][]complex128{{1, 4, 6, 4}, {4, 10, 12, 7}} {
		for _, v := range slow(f)[:3] {
			want = append(want, float32(real(v)), float32(imag(v)))
		}
	}
	if d := cmp.Diff(want, tensor.Of[float32](got), near); d != "" {
		t.Error(d)
	}
	whole := run(t, optest.Node{Op: "STFT", Version: 17, Attrs: graph.Attrs{"onesided": int64(0)}}, x, scalar(1))
	if d := cmp.Diff([]int{1, 1, 7, 2}, whole.Shape); d != "" {
		t.Error(d)
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for _, tt := range []struct {
		op       string
		periodic int64
		want     []float32
	}{
		{"HannWindow", 1, []float32{0}},
		{"HannWindow", 0, []float32{nan}},
		{"HammingWindow", 1, []float32{.08695652}},
		{"HammingWindow", 0, []float32{nan}},
		{"BlackmanWindow", 1, []float32{0}},
		{"BlackmanWindow", 0, []float32{nan}},
		{"HannWindow", 1, []float32{0, .5, 1, .5}},
		{"HannWindow", 0, []float32{0, .75, .75, 0}},
		{"HammingWindow", 1, []float32{.08695652, .5434783, 1, .5434783}},
		{"BlackmanWindow", 1, []float32{0, .34, 1, .34}},
	} {
		got := run(t, optest.Node{Op: tt.op, Version: 17, Attrs: graph.Attrs{"periodic": tt.periodic}}, scalar(int64(len(tt.want))))
		if d := cmp.Diff(tt.want, tensor.Of[float32](got), near, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s %d: %s", tt.op, tt.periodic, d)
		}
	}
}

func TestMelBands(t *testing.T) {
	t.Parallel()
	hertz := func(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, nil, []float32{v}) }
	got := run(t, optest.Node{Op: "MelWeightMatrix", Version: 17}, scalar(8), scalar(64), scalar(8192), hertz(0), hertz(4096))
	if d := cmp.Diff([]int{33, 8}, got.Shape); d != "" {
		t.Fatal(d)
	}
	v := tensor.Of[float32](got)
	for b := range 8 {
		peak := float32(0)
		for r := range 33 {
			peak = max(peak, v[r*8+b])
		}
		if peak != 1 {
			t.Errorf("band %d peaks at %g", b, peak)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Float32, 1, 4, 2)
	hertz := tensor.From(tensor.Float32, nil, []float32{-9e9})
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
	}{
		{"one-sided complex", optest.Node{Op: "DFT", Version: 20, Attrs: graph.Attrs{"onesided": int64(1)}}, []*tensor.Tensor{x}},
		{"axis", optest.Node{Op: "DFT", Version: 17, Attrs: graph.Attrs{"axis": int64(2)}}, []*tensor.Tensor{x}},
		{"length", optest.Node{Op: "DFT", Version: 20}, []*tensor.Tensor{x, scalar(1 << 40)}},
		{"frames", optest.Node{Op: "STFT", Version: 17}, []*tensor.Tensor{x, scalar(1), nil, scalar(5)}},
		{"window", optest.Node{Op: "HannWindow", Version: 17}, []*tensor.Tensor{scalar(-1)}},
		{"mel", optest.Node{Op: "MelWeightMatrix", Version: 17}, []*tensor.Tensor{scalar(2), scalar(8), scalar(100), hertz, hertz}},
	} {
		if _, err := optest.Run(Defs(), tt.node, tt.in...); err == nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
}
