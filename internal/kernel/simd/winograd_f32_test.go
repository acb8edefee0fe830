package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// winogradMatrices returns Aᵀ, G and Bᵀ of the points; see [Winograd].
func winogradMatrices() (at, g, bt [][]float64) {
	points := []float64{0, 0.75, -0.75, 1.5, -1.5}
	// zeros returns the polynomial that is zero at some points, with its constant first.
	zeros := func(at []float64) []float64 {
		p := []float64{1}
		for _, x := range at {
			q := make([]float64, len(p)+1)
			for i, v := range p {
				q[i+1] += v
				q[i] -= x * v
			}
			p = q
		}
		return p
	}
	at = make([][]float64, WinogradTile)
	for i, x := range points {
		others := slices.Delete(slices.Clone(points), i, i+1)
		distances := 1.0
		for _, y := range others {
			distances *= x - y
		}
		for k := range at {
			at[k] = append(at[k], math.Pow(x, float64(k)))
		}
		g = append(g, []float64{1 / distances, x / distances, x * x / distances})
		bt = append(bt, append(zeros(others), 0))
	}
	for k := range at {
		at[k] = append(at[k], float64(k/(WinogradTile-1)))
	}
	return at, append(g, []float64{0, 0, 1}), append(bt, zeros(points))
}

// bothSides returns m·x·mᵀ.
func bothSides(m, x [][]float64) [][]float64 {
	out := make([][]float64, len(m))
	for i := range m {
		out[i] = make([]float64, len(m))
		for j := range m {
			for k, row := range x {
				for l, v := range row {
					out[i][j] += m[i][k] * v * m[j][l]
				}
			}
		}
	}
	return out
}

// TestWinograd compares the transforms with their definition. Memory next to the results stays
// unchanged.
func TestWinograd(t *testing.T) {
	at, g, bt := winogradMatrices()
	for _, set := range Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer Use(set)()
			f := WinogradKernels()
			if f == nil {
				t.Skip("no kernels in this instruction set")
			}
			r := rand.New(rand.NewPCG(1, 2))
			values := func(n int) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = float32(r.NormFloat64())
				}
				return v
			}
			near := func(what string, got float32, want float64) {
				t.Helper()
				if !(math.Abs(float64(got)-want) <= 1e-4) { // of sums of 36 values of a few units
					t.Fatalf("%s: got %v, want %v", what, got, want)
				}
			}
			buf := new(WinogradWorkspace)
			for range 200 {
				tiles := 1 + r.IntN(50)
				all := (tiles + f.Lanes - 1) / f.Lanes * f.Lanes

				// Lines are split and frames transformed.
				lines, pitch, width := 1+r.IntN(9), 4*all+4+r.IntN(9), tiles+r.IntN(3)
				src := values(lines * pitch)
				frame := lines*width + all
				frames := make([]float32, WinogradInputTile*frame)
				f.Split(frames, frame, width, src, pitch, tiles, lines, &src[0], pitch)
				for i := range WinogradInputTile * lines * tiles {
					j, y, x := i/tiles/lines, i/tiles%lines, i%tiles
					if got, want := frames[j*frame+y*width+x], src[y*pitch+4*x+j]; got != want {
						t.Fatalf("frame %d, line %d, place %d: got %v, want %v", j, y, x, got, want)
					}
				}
				line := r.IntN(20)
				frame = line + all + r.IntN(9)
				frames = values(WinogradFrames * frame)
				place := all + r.IntN(9)
				dst := values(WinogradPositions * place)
				before := slices.Clone(dst)
				f.Input(dst, place, frames, frame, line, tiles, buf)
				for x := range place {
					if x >= all {
						if dst[x] != before[x] {
							t.Fatalf("position %d next to the results is overwritten", x)
						}
						continue
					}
					d := make([][]float64, WinogradInputTile)
					for i := range WinogradPositions {
						y, j := i/WinogradInputTile, i%WinogradInputTile
						d[y] = append(d[y], float64(frames[(y%4*WinogradInputTile+j)*frame+y/4*line+x]))
					}
					for i, row := range bothSides(bt, d) {
						for j, want := range row {
							near("input", dst[(WinogradInputTile*i+j)*place+x], want)
						}
					}
				}

				// Sums are transformed to results.
				columns, high := 1+r.IntN(4*tiles), 1+r.IntN(4)
				step, bias := columns+r.IntN(9), float32(r.NormFloat64())
				got := values(high * step)
				before = slices.Clone(got)
				f.Output(got[:(high-1)*step+columns], step, high, columns, dst, place, bias, -40, 50, buf)
				for i, v := range got {
					y, x := i/step, i%step
					if x >= columns {
						if v != before[i] {
							t.Fatalf("result %d next to the %d columns of a line is overwritten", x, columns)
						}
						continue
					}
					m := make([][]float64, WinogradInputTile)
					for i := range WinogradPositions {
						m[i/WinogradInputTile] = append(m[i/WinogradInputTile], float64(dst[i*place+x/4]))
					}
					near("output", v, min(max(bothSides(at, m)[y%4][x%4]+float64(bias), -40), 50))
				}

				// Filters are transformed to weights.
				n := 1 + r.IntN(5)
				w := values(9 * n * f.Lanes)
				place = n*f.Lanes + r.IntN(5)
				dst = values(WinogradPositions * place)
				f.Weights(dst, place, f.Lanes, w, n, buf)
				for i := range n * f.Lanes {
					k := make([][]float64, 3)
					for j := range 9 {
						k[j/3] = append(k[j/3], float64(w[(i/f.Lanes*9+j)*f.Lanes+i%f.Lanes]))
					}
					for y, row := range bothSides(g, k) {
						for x, want := range row {
							near("weights", dst[(WinogradInputTile*y+x)*place+i], want)
						}
					}
				}
			}
		})
	}
}

// TestWinogradLimits checks that a result with an infinite or NaN term is infinite or NaN, for any
// limits.
func TestWinogradLimits(t *testing.T) {
	for _, set := range Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer Use(set)()
			f := WinogradKernels()
			if f == nil {
				t.Skip("no kernels in this instruction set")
			}
			src, dst := make([]float32, WinogradPositions*f.Lanes), make([]float32, 4)
			src[0], src[1] = float32(math.NaN()), float32(math.Inf(1))
			f.Output(dst, 4, 1, 4, src, f.Lanes, 0, 0, 6, new(WinogradWorkspace))
			if dst[0] == dst[0] {
				t.Errorf("got %v, want NaN", dst[0])
			}
			f.Output(dst, 4, 1, 4, src[1:], f.Lanes-1, 0, 0, 6, new(WinogradWorkspace))
		})
	}
}
