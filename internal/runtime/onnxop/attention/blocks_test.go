package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// drawn is attention of either type over the same numbers.
type drawn struct {
	batch, heads, group, rows, total, size, vsize int
	packed, products                              bool
	// keys before and after the diagonal that is offset to the right; -1 for all
	window, offset int
	outside        float64
	masks          [2]drawnMask
	softcap        float64
	sink           bool
	q, k, v        []float64
}

type drawnMask struct {
	data                  []float64
	batch, head, row, key int
}

func (d *drawn) span(_, i int) (from, to int) {
	to = i + d.offset + 1
	if d.window >= 0 {
		from = to - d.window
	}
	return from, to
}

func numbers(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(float32(r.NormFloat64()))
	}
	return v
}

func drawAttend(t *rapid.T) *drawn {
	of := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
	d := &drawn{
		batch: of("batch", 1, 2), heads: of("key heads", 1, 2), group: of("group", 1, 3), rows: rapid.SampledFrom([]int{1, 2, 7, 8, 13, 61, 150}).Draw(t, "rows"),
		total: rapid.SampledFrom([]int{1, 3, 8, 31, 33, 65, 200}).Draw(t, "keys"), size: of("size", 1, 40), vsize: of("size of values", 1, 40),
		packed: rapid.Bool().Draw(t, "packed"), sink: rapid.Bool().Draw(t, "sink"), softcap: float64(of("softcap", 0, 1) * 3),
		window: of("window", -1, 9), offset: of("offset", -3, 40), outside: math.Inf(-1),
	}
	d.products = !d.packed && !d.sink && rapid.Bool().Draw(t, "products")
	if rapid.Bool().Draw(t, "all keys") {
		d.window, d.offset = -1, d.total
	}
	if rapid.Bool().Draw(t, "lowest") {
		d.outside = -math.MaxFloat32
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	d.q, d.k = numbers(r, d.batch*d.heads*d.group*d.rows*d.size), numbers(r, d.batch*d.heads*d.total*d.size)
	d.v = numbers(r, d.batch*d.heads*d.total*d.vsize)
	for m := range d.masks {
		if !rapid.Bool().Draw(t, "mask") {
			continue
		}
		k := &d.masks[m]
		size := func(name string, n, step int) (int, int) {
			if rapid.Bool().Draw(t, name) {
				return step, step * n
			}
			return 0, step
		}
		n := 1
		k.key, n = size("by key", d.total, n)
		k.row, n = size("by row", d.rows, n)
		k.head, n = size("by head", d.heads*d.group, n)
		k.batch, n = size("by batch", d.batch, n)
		k.data = numbers(r, n)
		// The sum of two lowest numbers overflows to infinity in float32, and a larger one would
		// round the scores.
		never := rapid.SampledFrom([]float64{math.Inf(-1), -100, -math.MaxFloat32}[:3-m]).Draw(t, "never")
		for i := range k.data {
			if r.IntN(3) == 0 || k.key == 1 && i%d.total < d.total/3 {
				k.data[i] = never
			}
		}
	}
	return d
}

func convert[T tensor.Real](v []float64) []T {
	if v == nil {
		return nil
	}
	r := make([]T, len(v))
	for i, x := range v {
		r[i] = T(x)
	}
	return r
}

func attendDrawn[T tensor.Real](d *drawn, p *workers.Pool) []T {
	a := &Attend[T]{
		Batch: d.batch, Heads: d.heads * d.group, KVHeads: d.heads, Rows: d.rows, Total: d.total, Size: d.size, VSize: d.vsize,
		Scale: .5, Softcap: d.softcap, Span: d.span, Outside: T(d.outside), Products: d.products,
	}
	for i, m := range d.masks {
		a.Added[i] = Added[T]{convert[T](m.data), m.batch, m.head, m.row, m.key}
	}
	if d.sink {
		a.Sink = func(h int) float64 { return float64(h) }
	}
	y, k := make([]T, d.batch*a.Heads*d.rows*d.vsize), ViewOf(convert[T](d.k), d.packed, d.total, d.heads, d.size)
	if d.products {
		k.Row = d.total
	}
	a.Run(p, ViewOf(convert[T](d.q), d.packed, d.rows, a.Heads, d.size), k,
		ViewOf(convert[T](d.v), d.packed, d.total, d.heads, d.vsize), ViewOf(y, d.packed, d.rows, a.Heads, d.vsize))
	return y
}

// TestBlocks compares blocks of float32 with float64, row by row, and threads with one.
func TestBlocks(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	t.Cleanup(pool.Close)
	rapid.Check(t, func(t *rapid.T) {
		d := drawAttend(t)
		got, want := attendDrawn[float32](d, nil), attendDrawn[float64](d, nil)
		// Scores are about a hundred, with a float32 error of 1e-5.
		if why := optest.Differ(tensor.From(tensor.Float32, []int{len(got)}, got), want, 5e-5, 5e-5); why != "" {
			t.Fatalf("%s", why)
		}
		if threads := attendDrawn[float32](d, pool); !slices.EqualFunc(got, threads, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Fatalf("threads make another result")
		}
	})
}

// TestAddedTakesOut masks out keys whose scores are NaN.
func TestAddedTakesOut(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	nan := inf - inf
	s := []float32{nan, inf, 1, 2, 3, 4, 5, 6, 7, nan}
	d := []float32{-inf, -inf, 1, 0, 0, 0, 0, 0, 0, -inf}
	addTo(s, d, 1)
	if want := []float32{-inf, -inf, 2, 2, 3, 4, 5, 6, 7, -inf}; !slices.Equal(s, want) {
		t.Errorf("got %v, want %v", s, want)
	}
}
