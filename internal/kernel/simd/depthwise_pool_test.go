package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestWindowLayout checks the field offsets that the assembly uses.
func TestWindowLayout(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("no SIMD kernels")
	}
	var x Window
	var y IntWindow
	for i, got := range []uintptr{
		unsafe.Offsetof(x.Dst), unsafe.Offsetof(x.StepDst), unsafe.Offsetof(x.Src), unsafe.Offsetof(x.StepSrc), unsafe.Offsetof(x.places),
		unsafe.Offsetof(x.n), unsafe.Offsetof(x.offs), unsafe.Offsetof(x.taps), unsafe.Offsetof(x.W), unsafe.Offsetof(x.StepW), unsafe.Offsetof(x.Bias),
		unsafe.Offsetof(x.mask), unsafe.Offsetof(x.Min), unsafe.Offsetof(x.bits),
	} {
		if got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
	for i, got := range []uintptr{
		unsafe.Offsetof(y.Dst), unsafe.Offsetof(y.StepDst), unsafe.Offsetof(y.Src), unsafe.Offsetof(y.StepSrc), unsafe.Offsetof(y.places),
		unsafe.Offsetof(y.blocks), unsafe.Offsetof(y.offs), unsafe.Offsetof(y.pairs), unsafe.Offsetof(y.W),
	} {
		if got != uintptr(8*i) {
			t.Errorf("field %d is at %d of integer windows", i, got)
		}
	}
}

// everyWindows runs f for each instruction set with window kernels.
func everyWindows(t *testing.T, f func(t *testing.T, k *Windows, r *rand.Rand)) {
	everySet(t, func(t *testing.T) {
		k := WindowKernels()
		if k == nil {
			t.Skip("plain Go")
		}
		f(t, k, rand.New(rand.NewPCG(1, 2)))
	})
}

func TestWindows(t *testing.T) {
	odd := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-42, -3e38}
	everyWindows(t, func(t *testing.T, k *Windows, r *rand.Rand) {
		for round := range 3000 {
			places, n, taps := 1+r.IntN(4), 1+r.IntN(150), 1+r.IntN(12)
			srcStep, dstStep := r.IntN(200), n+r.IntN(5)
			offs := make([]int, taps)
			for i := range offs {
				offs[i] = 4 * r.IntN(300)
			}
			// Memory ends after the last value.
			x := make([]float32, (places-1)*srcStep+slices.Max(offs)/4+n)
			w, bias := make([]float32, taps*n), make([]float32, n)
			for _, v := range [][]float32{x, w, bias} {
				for i := range v {
					v[i] = float32(r.NormFloat64())
					if round%7 == 0 && r.IntN(10) == 0 {
						v[i] = odd[r.IntN(len(odd))]
					}
				}
			}
			hasBias, on := r.IntN(2) == 0, r.IntN(2) == 0
			lo, hi := float32(-1), float32(2)
			for kind := range 5 {
				win := Window{StepDst: 4 * dstStep, Src: &x[0], StepSrc: 4 * srcStep, W: &w[0], StepW: 4 * n}
				win.SetTaps(offs)
				win.SetClamp(on, lo, hi)
				if hasBias || kind == 1 {
					win.Bias = &bias[0]
				}
				if (kind == 2 || kind == 4) && !on {
					win.Min, win.Max = float32(math.Inf(-1)), float32(math.Inf(1))
				}
				got := make([]float32, places*dstStep)
				want := slices.Clone(got)
				win.Dst = &got[0]
				for p := range places {
					for i := range n {
						var s float32
						switch kind {
						case 1:
							s = bias[0]
						case 2, 4:
							s = float32(math.Inf(-1))
						}
						for q, o := range offs {
							v := x[p*srcStep+o/4+i]
							switch kind {
							case 0:
								s += float32(v * w[q*n+i])
							case 1:
								s = float32(math.FMA(float64(v), float64(w[q]), float64(s)))
							case 2:
								if v > s {
									s = v
								}
							case 4:
								s = max(s, v)
							default:
								s += v
							}
						}
						if kind == 0 && hasBias {
							s += bias[i]
						}
						if on {
							s = min(max(s, lo), hi)
						}
						want[p*dstStep+i] = s
					}
				}
				[]func(*Window, int, int){k.Lanes, k.Spread, k.Largest, k.Sum, k.Greatest}[kind](&win, places, n)
				for i := range want {
					g, v := got[i], want[i]
					// The fused sum in float64 is rounded twice: the last bit may differ.
					near := kind == 1 && math.Abs(float64(g-v)) <= 1e-6*(1+math.Abs(float64(v)))
					if g != v && !near && (g == g || v == v) {
						t.Fatalf("kind %d, %d positions of %d values, %d taps, clamp %v: value %d is %v, want %v", kind, places, n, taps, on, i, g, v)
					}
				}
			}
		}
	})
}

func TestIntWindows(t *testing.T) {
	everyWindows(t, func(t *testing.T, k *Windows, r *rand.Rand) {
		for range 2000 {
			places, n, taps := 1+r.IntN(4), 1+r.IntN(150), 1+r.IntN(12)
			blocks := (n + k.Block - 1) / k.Block
			srcStep, dstStep := r.IntN(200), blocks*k.Block+r.IntN(5)
			offs := make([]int, (taps+1)/2*2)
			for i := range offs {
				offs[i] = 2 * r.IntN(300)
			}
			x, w := make([]int16, (places-1)*srcStep+slices.Max(offs)/2+blocks*k.Block), make([]int16, (taps+1)*n)
			for _, v := range [][]int16{x, w} {
				for i := range v {
					v[i] = int16(r.IntN(511) - 255)
				}
			}
			packed := k.PackLanes(taps, n, w)
			got := make([]int32, places*dstStep)
			win := IntWindow{Dst: &got[0], StepDst: 4 * dstStep, Src: &x[0], StepSrc: 2 * srcStep, W: &packed[0]}
			k.IntLanes(&win, places, blocks, offs)
			for p := range places {
				for i := range n {
					var s int32
					for q, o := range offs[:taps] {
						s += int32(x[p*srcStep+o/2+i]) * int32(w[q*n+i])
					}
					if got[p*dstStep+i] != s {
						t.Fatalf("%d positions of %d values, %d taps: position %d value %d is %d, want %d", places, n, taps, p, i, got[p*dstStep+i], s)
					}
				}
			}
			win.W = &w[0]
			k.IntSpread(&win, places, blocks, offs)
			for p := range places {
				for i := range n {
					var s int32
					for q, o := range offs {
						s += int32(x[p*srcStep+o/2+i]) * int32(w[q])
					}
					if got[p*dstStep+i] != s {
						t.Fatalf("spread over %d positions of %d values, %d taps: position %d value %d is %d, want %d", places, n, taps, p, i, got[p*dstStep+i], s)
					}
				}
			}
		}
	})
}

func TestCopyLines(t *testing.T) {
	everyWindows(t, func(t *testing.T, k *Windows, r *rand.Rand) {
		for range 2000 {
			n, lines, step := 1+r.IntN(60), 1+r.IntN(4), 1+r.IntN(2)
			if k.copyFloats[len(k.copyFloats)-1] != nil {
				step = 1 + r.IntN(len(k.copyFloats))
			}
			stepSrc, stepDst := r.IntN(300), n+r.IntN(5)
			// Memory ends after the last value.
			src, dst := make([]float32, (lines-1)*stepSrc+(n-1)*step+1), make([]float32, (lines-1)*stepDst+n)
			for i := range src {
				if src[i] = r.Float32(); r.IntN(5) == 0 {
					src[i] = float32(math.Copysign(0, -1))
				}
			}
			if !k.CopyLines(new(Window), dst, stepDst, src, stepSrc, step, n, lines) {
				t.Fatal("refused")
			}
			for i, v := range dst {
				want := float32(0)
				if i%stepDst < n {
					want = src[i/stepDst*stepSrc+i%stepDst*step]
				}
				if math.Float32bits(v) != math.Float32bits(want) {
					t.Fatalf("%d lines of %d by %d: value %d is %v, want %v", lines, n, step, i, v, want)
				}
			}
		}
	})
}
