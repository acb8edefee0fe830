package axis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/axis"
)

// pingPong makes two engines that wait for one another; the tensor engine's counter is
// off by x cycles on the copies' axis and runs k times as fast.
func pingPong(r *rand.Rand, n int, k, x float64) (w axis.Waits) {
	tiuEnd := 0.0 // TIU cycles on the axis
	for range n {
		g := math.Ceil(tiuEnd/k) + float64(r.IntN(5))
		w.CopyStart, w.TIUEnd = append(w.CopyStart, int64(g)), append(w.TIUEnd, int64(math.Floor(tiuEnd-x)))
		g += 10 + float64(r.IntN(300))
		t := math.Ceil(g*k-x) + float64(r.IntN(5))
		w.TIUStart, w.CopyEnd = append(w.TIUStart, int64(t)), append(w.CopyEnd, int64(g))
		tiuEnd = t + x + 10 + float64(r.IntN(300))
	}
	return w
}

// TestSolve finds ratio and offset of made-up engines.
func TestSolve(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct {
		k, offset float64
		expected  []float64
		want      float64
	}{
		{1.2, 150, []float64{1.2}, 1.2},
		{1, -132_667_169, []float64{1.2, 1}, 1},
		{1, 0, []float64{750.0 / 650, 1, 0.75}, 1},
		{0.9, 5000, []float64{1.2}, 0.9}, // of no chip: by the widest interval
	} {
		groups := []axis.Waits{pingPong(r, 300, x.k, x.offset), {}, pingPong(r, 200, x.k, x.offset+33)}
		ratio, offsets := axis.Solve(groups, x.expected, false)
		// Of 60,000 cycles a few are open at each end: the ratio is known to about one in ten
		// thousand.
		if !(math.Abs(ratio.K-x.want) <= 2e-4) || !ratio.Solved {
			t.Errorf("ratio is %+v, want %v", ratio, x.want)
		}
		if math.Abs(ratio.K-x.want) > 1e-12 && x.want != 0.9 {
			t.Errorf("ratio is %v, and not the one that was expected", ratio.K)
		}
		for i, want := range []float64{x.offset, math.NaN(), x.offset + 33} {
			o := offsets[i]
			if math.IsNaN(want) {
				if o.Waits != 0 {
					t.Errorf("group %d has %d dependencies", i, o.Waits)
				}
				continue
			}
			if o.Violated != 0 || !(o.Low-1e-3 <= o.X && o.X <= o.High+1e-3) {
				t.Errorf("offset is %+v", o)
			}
			// Cycles of either engine are cut to whole ones, and engines wake up within five.
			if x.want != 0.9 && !(math.Abs(o.X-want) <= 12) {
				t.Errorf("offset is %v, want %v", o.X, want)
			}
		}
	}
}

// TestContradicted keeps to what most dependencies say, and counts the others.
func TestContradicted(t *testing.T) {
	w := pingPong(rand.New(rand.NewPCG(3, 4)), 500, 1.2, 100)
	for i := 0; i < 500; i += 100 {
		w.TIUStart[i] -= 5000
	}
	ratio, offsets := axis.Solve([]axis.Waits{w}, []float64{1.2, 1}, false)
	if ratio.K != 1.2 || ratio.Solved || offsets[0].Violated != 5 || !(math.Abs(offsets[0].X-100) <= 12) {
		t.Errorf("%+v, %+v: want 1.2 with 5 contradicted", ratio, offsets[0])
	}
	// A ratio that is given is taken, whatever the record says.
	ratio, offsets = axis.Solve([]axis.Waits{pingPong(rand.New(rand.NewPCG(3, 4)), 500, 1.2, 100)}, []float64{1}, true)
	if ratio.K != 1 || ratio.Solved || offsets[0].Violated == 0 || !(math.Abs(ratio.Best-1.2) <= 2e-4) {
		t.Errorf("%+v, %+v", ratio, offsets[0])
	}
}

// TestOneSide places an engine by dependencies of one kind.
func TestOneSide(t *testing.T) {
	_, o := axis.Solve([]axis.Waits{{TIUStart: []int64{100}, CopyEnd: []int64{500}}}, []float64{1}, false)
	if o[0].X != 404 || !math.IsInf(o[0].High, 1) || o[0].Violated != 0 {
		t.Errorf("offset is %+v", o[0])
	}
	_, o = axis.Solve([]axis.Waits{{CopyStart: []int64{500}, TIUEnd: []int64{100}}}, []float64{1}, false)
	if o[0].X != 396 || !math.IsInf(o[0].Low, -1) {
		t.Errorf("offset is %+v", o[0])
	}
}

// TestMedian is not moved by one outlier.
func TestMedian(t *testing.T) {
	d, ok := axis.Median([]float64{10, 20, 30, 40, 99}, []float64{1, 11, 21, 31, 0})
	if !ok || d != 9 {
		t.Errorf("difference is %v, want 9", d)
	}
	if _, ok := axis.Median(nil, []float64{1}); ok {
		t.Error("a difference of nothing")
	}
}

// FuzzSolve places any counters: no panic, and an offset that is a number.
func FuzzSolve(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), int64(4), int64(1<<40))
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, a, b, c, d, e int64) {
		const most = 1 << 50 // wraps make counters of no more
		for _, v := range []*int64{&a, &b, &c, &d, &e} {
			*v %= most
		}
		w := axis.Waits{TIUStart: []int64{a, b, c, d}, CopyEnd: []int64{b, c, d, e}, CopyStart: []int64{e, d, c, b}, TIUEnd: []int64{d, c, b, a}}
		ratio, offsets := axis.Solve([]axis.Waits{w}, []float64{1.2, 1}, false)
		if !(ratio.K >= 0.7-1e-9 && ratio.K <= 1.8+1e-9) || math.IsNaN(offsets[0].X) || math.IsInf(offsets[0].X, 0) {
			t.Fatalf("%+v %+v", ratio, offsets)
		}
	})
}
