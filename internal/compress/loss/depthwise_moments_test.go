package loss

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
)

// Moments of depthwise convolutions by shifts of the channels are those of unfolded windows,
// whatever window, stride, dilation and padding.
func TestLags(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		g := drawnWindow(t)
		if g.taps > maxLagTaps {
			t.Skip()
		}
		groups, last := rapid.IntRange(minLagGroups, 40).Draw(t, "groups"), rapid.Bool().Draw(t, "last")
		step := rapid.IntRange(1, 3).Draw(t, "step")
		first := rapid.IntRange(0, min(step, g.lines())-1).Draw(t, "first")
		lines := (g.lines() - first + step - 1) / step
		n := lines * g.width()
		pool := workers.New(2, nil)
		defer pool.Close()
		fast, slow := newMoments(groups, g.taps, pool), newMoments(groups, g.taps, nil)
		open := make([]float32, g.taps*n)
		var copier move.LineCopier
		for run := range rapid.IntRange(1, 20).Draw(t, "runs") {
			fast.beginRun(0)
			slow.beginRun(0)
			x := make([]float32, groups*g.plane)
			for i := range x {
				x[i] = float32(r.NormFloat64() + 0.5)
			}
			given := x
			if last {
				given = make([]float32, len(x))
				move.Transpose(given, groups, x, g.plane, g.plane, groups)
			}
			if !fast.addDepthwise(g, given, last, first, step) {
				t.Fatalf("run %d is not taken", run)
			}
			for c := range groups {
				g.unfold(&copier, open, n, x[c*g.plane:][:g.plane], first, lines, step)
				slow.planes(c, open, n, n)
			}
		}
		fast.finish()
		slow.finish()
		same(t, fast, slow, g)
	})
}

// drawnWindow draws a random window over two axes.
func drawnWindow(t *rapid.T) *geometry {
	g := &geometry{axes: []axis{{in: 1, out: 1, window: 1, stride: 1, dil: 1}}, taps: 1, plane: 1, outputs: 1}
	for _, name := range []string{"rows", "columns"} {
		a := axis{in: rapid.IntRange(1, 20).Draw(t, name), window: rapid.IntRange(1, 7).Draw(t, "window"), stride: rapid.IntRange(1, 3).Draw(t, "stride"), dil: rapid.IntRange(1, 3).Draw(t, "dilation"), pad: rapid.IntRange(0, 4).Draw(t, "padding")}
		room := a.in + a.pad + rapid.IntRange(0, 4).Draw(t, "behind") - a.dil*(a.window-1) - 1
		if room < 0 {
			t.Skip()
		}
		a.out = room/a.stride + 1
		g.axes, g.taps, g.plane, g.outputs = append(g.axes, a), g.taps*a.window, g.plane*a.in, g.outputs*a.out
	}
	return g
}

// same compares moments that were computed in two ways.
func same(t rapid.TB, fast, slow *moments, g *geometry) {
	if fast.n != slow.n {
		t.Fatalf("%d inputs, want %d", fast.n, slow.n)
	}
	most := 0.0
	for _, sum := range slow.sum {
		for _, v := range sum {
			most = max(most, math.Abs(v))
		}
	}
	// Sums of up to some thousand numbers around 1 in single precision.
	for c := range slow.groups {
		for i, v := range slow.sum[c] {
			if got := fast.sum[c][i]; math.Abs(got-v) > 1e-5*most+1e-4 {
				t.Fatalf("group %d, product %d: %v, want %v of %+v", c, i, got, v, g.axes)
			}
		}
		for i, v := range slow.total[c*slow.cols:][:slow.cols] {
			if got := fast.total[c*slow.cols+i]; math.Abs(got-v) > 1e-5*most+1e-4 {
				t.Fatalf("group %d, sum %d: %v, want %v of %+v", c, i, got, v, g.axes)
			}
		}
	}
}

// Moments of convolutions by shifts of lines are those of unfolded windows.
func TestShifts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		g := drawnWindow(t)
		if g.axes[1].window < 2 {
			t.Skip()
		}
		channels := smallCols/g.taps + rapid.IntRange(1, 5).Draw(t, "channels")
		pool := workers.New(2, nil)
		defer pool.Close()
		fast, slow := newMoments(1, channels*g.taps, pool), newMoments(1, channels*g.taps, nil)
		open := make([]float32, channels*g.taps*g.outputs)
		var copier move.LineCopier
		for run := range rapid.IntRange(1, 20).Draw(t, "runs") {
			fast.beginRun(0)
			slow.beginRun(0)
			x := make([]float32, channels*g.plane)
			for i := range x {
				x[i] = float32(r.NormFloat64() + 0.5)
			}
			if !fast.addConvolution(g, x, channels) {
				t.Fatalf("run %d is not taken", run)
			}
			for c := range channels {
				g.unfold(&copier, open[c*g.taps*g.outputs:], g.outputs, x[c*g.plane:][:g.plane], 0, g.lines(), 1)
			}
			slow.planes(0, open, g.outputs, g.outputs)
		}
		fast.finish()
		slow.finish()
		same(t, fast, slow, g)
	})
}

// Channels that are too large to be copied at once go line by line.
func TestLagsOfLargeChannels(t *testing.T) {
	t.Parallel()
	const side, groups = 260, 5
	a := axis{in: side, out: side, window: 3, stride: 1, dil: 1, pad: 1}
	g := &geometry{axes: []axis{{in: 1, out: 1, window: 1, stride: 1, dil: 1}, a, a}, taps: 9, plane: side * side, outputs: side * side}
	if g.plane <= maxLagPlane {
		t.Fatal("channels are not large")
	}
	r := rand.New(rand.NewPCG(9, 9))
	x := make([]float32, groups*g.plane)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	fast, slow := newMoments(groups, g.taps, nil), newMoments(groups, g.taps, nil)
	open := make([]float32, g.taps*g.outputs)
	var copier move.LineCopier
	fast.beginRun(0)
	slow.beginRun(0)
	if !fast.addDepthwise(g, x, false, 0, 1) {
		t.Fatal("not taken")
	}
	for c := range groups {
		g.unfold(&copier, open, g.outputs, x[c*g.plane:][:g.plane], 0, g.lines(), 1)
		slow.planes(c, open, g.outputs, g.outputs)
	}
	fast.finish()
	slow.finish()
	same(t, fast, slow, g)
}
