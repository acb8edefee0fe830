package signal

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func options(t testing.TB, m map[string]any) graph.Attrs {
	t.Helper()
	b, err := flexbuffer.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return graph.Attrs{"custom_options": b}
}

func i16(shape []int, v ...int16) *tensor.Tensor { return tensor.From(tensor.Int16, shape, v) }

// dft is the transform by its definition.
func dft(x []complex128, inverse bool) []complex128 {
	sign := -2 * math.Pi
	if inverse {
		sign = -sign
	}
	y := make([]complex128, len(x))
	for k := range y {
		for i, v := range x {
			y[k] += v * cmplx.Rect(1, sign*float64(i*k%len(x))/float64(len(x)))
		}
	}
	return y
}

func TestFloatFFT(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 30, 31, 64, 77, 240} {
		for _, inverse := range []bool{false, true} {
			x := make([]complex128, n)
			for i := range x {
				x[i] = complex(math.Sin(float64(3*i*i)), math.Cos(float64(i*i)))
			}
			want, got := dft(x, inverse), newFloatFFT(n, inverse).run(x)
			for k := range want {
				if cmplx.Abs(got[k]-want[k]) > 1e-9*float64(n) {
					t.Fatalf("length %d, inverse %v: point %d is %v, want %v", n, inverse, k, got[k], want[k])
				}
			}
		}
	}
}

// TestFixedFFT compares with the exact transform, which the fixed-point one
// divides by its length.
func TestFixedFFT(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 4, 6, 10, 14, 16, 60, 256, 480, 512} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			f, err := newRealFFT[int32](n, false)
			if err != nil {
				t.Fatal(err)
			}
			g, err := newRealFFT[int16](n, false)
			if err != nil {
				t.Fatal(err)
			}
			x, s, z := make([]int32, n), make([]int16, n), make([]complex128, n)
			for i := range x {
				s[i] = int16(20000 * math.Sin(float64(7*i*i)))
				x[i] = int32(s[i]) << 16
				z[i] = complex(float64(s[i]), 0)
			}
			y, q := make([]point[int32], n/2+1), make([]point[int16], n/2+1)
			f.forward(y, x)
			g.forward(q, s)
			want := dft(z, false)
			for k := range y {
				w := want[k] / complex(float64(n), 0)
				if d := cmplx.Abs(complex(float64(y[k].r), float64(y[k].i))/65536 - w); !(d <= 0.01) {
					t.Fatalf("32 bits: point %d differs by %v", k, d)
				}
				if d := cmplx.Abs(complex(float64(q[k].r), float64(q[k].i)) - w); !(d <= 8) {
					t.Fatalf("16 bits: point %d differs by %v", k, d)
				}
			}
		})
	}
}

func TestSquareRoot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v")
		r := uint64(squareRoot(v))
		limit := uint64(math.MaxUint32)
		if v < 1<<32 {
			limit = math.MaxUint16
		}
		// Nearest: (r-1/2)^2 <= v <= (r+1/2)^2.
		if r > 0 && r*r-r > v || r < limit && v > r*r+r {
			t.Fatalf("root of %d is %d", v, r)
		}
	})
}

// TestLog allows one step of the table: the reference shifts the interpolation
// by nine bits too many, and so do its bits.
func TestLog(t *testing.T) {
	t.Parallel()
	for x := uint32(2); x < 1<<30; x = x*3/2 + 1 {
		got, want := float64(naturalLog(x, 1600)), 1600*math.Log(float64(x))
		if !optest.Within(got, want, 4, 0) {
			t.Errorf("log of %d is %v, want %v", x, got, want)
		}
	}
}

func TestSpectra(t *testing.T) {
	t.Parallel()
	x := tensor.From(tensor.Float32, []int{2, 4}, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	size := tensor.From(tensor.Int32, []int{2}, []int32{2, 4})
	for _, fixed := range []bool{false, true} {
		y, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "RFFT2D", Const: []bool{false, fixed}}, x, size)
		if err != nil {
			t.Fatal(err)
		}
		want := []complex64{36, -4 + 4i, -4, -16, 0, 0}
		points := tensor.Of[complex64](y[0])
		if len(points) != len(want) {
			t.Fatalf("%d points, want %d", len(points), len(want))
		}
		for i, w := range want {
			if !(cmplx.Abs(complex128(points[i]-w)) <= 1e-5) {
				t.Errorf("point %d is %v, want %v", i, points[i], w)
			}
		}
		a, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "COMPLEX_ABS"}, y[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Of[float32](a[0])[3]; got != 16 {
			t.Errorf("magnitude %v, want 16", got)
		}
	}
}

// TestStreams runs the stateful operators twice.
func TestStreams(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, op string
		options  map[string]any
		outs     int
		in       [2]*tensor.Tensor
		want     [2][]int16
		valid    [2]bool
	}{
		{name: "delay", op: "SignalDelay", options: map[string]any{"delay_length": int64(3)}, in: [2]*tensor.Tensor{i16([]int{1, 2}, 1, 2), i16([]int{1, 2}, 3, 4)}, want: [2][]int16{{0, 0}, {0, 1}}},
		{name: "short delay", op: "SignalDelay", options: map[string]any{"delay_length": int64(1)}, in: [2]*tensor.Tensor{i16([]int{1, 2}, 1, 2), i16([]int{1, 2}, 3, 4)}, want: [2][]int16{{0, 1}, {2, 3}}},
		{name: "overlap", op: "SignalOverlapAdd", options: map[string]any{"frame_step": int64(1)}, in: [2]*tensor.Tensor{i16([]int{2, 2}, 1, 2, 3, 4), i16([]int{2, 2}, 5, 6, 7, 8)}, want: [2][]int16{{1, 5}, {9, 13}}},
		{name: "frames", op: "SignalFramer", options: map[string]any{"frame_size": int64(3), "frame_step": int64(2), "prefill": false}, outs: 2, in: [2]*tensor.Tensor{i16([]int{2}, 1, 2), i16([]int{2}, 3, 4)}, want: [2][]int16{{0, 0, 0}, {1, 2, 3}}, valid: [2]bool{false, true}},
		{name: "filled frames", op: "SignalFramer", options: map[string]any{"frame_size": int64(3), "frame_step": int64(2), "prefill": true}, outs: 2, in: [2]*tensor.Tensor{i16([]int{2}, 1, 2), i16([]int{2}, 3, 4)}, want: [2][]int16{{0, 1, 2}, {2, 3, 4}}, valid: [2]bool{true, true}},
		{
			name: "stack", op: "SignalStacker", options: map[string]any{"num_channels": int64(1), "stacker_left_context": int64(1), "stacker_right_context": int64(1), "stacker_step": int64(1)}, outs: 2,
			in: [2]*tensor.Tensor{i16([]int{1}, 1), i16([]int{1}, 2)}, want: [2][]int16{{0, 0, 0}, {1, 1, 2}}, valid: [2]bool{false, true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := &optest.Env{}
			for i, x := range tt.in {
				got, err := optest.RunEnv(env, Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: tt.op, Attrs: options(t, tt.options), Outputs: tt.outs}, x)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want[i], tensor.Of[int16](got[0])); diff != "" {
					t.Errorf("run %d (-want +got):\n%s", i, diff)
				}
				if tt.outs == 2 && tensor.Of[bool](got[1])[0] != tt.valid[i] {
					t.Errorf("run %d: valid is %v", i, !tt.valid[i])
				}
			}
		})
	}
}

// TestInverse goes to the spectrum and back; each fixed-point transform divides.
func TestInverse(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Float32, 2, 16)
	for i, v := 0, tensor.Of[float32](x); i < len(v); i++ {
		v[i] = float32(i * i % 7)
	}
	a := options(t, map[string]any{"fft_length": int64(16)})
	y, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "SignalRfft", Attrs: a}, x)
	if err != nil {
		t.Fatal(err)
	}
	z, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "SignalIrfft", Attrs: a}, y[0])
	if err != nil {
		t.Fatal(err)
	}
	var want []float64
	for _, v := range tensor.Of[float32](x) {
		want = append(want, float64(v))
	}
	optest.Near(t, "back", z[0], want, 1e-5, 0)
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op      string
		options map[string]any
		in      *tensor.Tensor
	}{
		{"SignalRfft", map[string]any{"fft_length": int64(7)}, i16([]int{4}, 1, 2, 3, 4)},
		{"SignalRfft", map[string]any{"fft_length": int64(2)}, i16([]int{4}, 1, 2, 3, 4)},
		{"SignalFramer", map[string]any{"frame_size": int64(1), "frame_step": int64(2)}, i16([]int{4}, 1, 2, 3, 4)},
		{"SignalEnergy", map[string]any{"start_index": int64(0), "end_index": int64(9)}, i16([]int{4}, 1, 2, 3, 4)},
		{"SignalDelay", map[string]any{"delay_length": int64(-1)}, i16([]int{4}, 1, 2, 3, 4)},
	} {
		if got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: tt.op, Attrs: options(t, tt.options)}, tt.in); err == nil {
			t.Errorf("%s with %v gives %v", tt.op, tt.options, got[0])
		}
	}
}
