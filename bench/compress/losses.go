package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/study"
)

// levels are those at which layers are ranked.
var levels = []float64{.6, .7, .8, .9, .95}

// parts is how many parts the held-out samples are divided into, which are drawn again for
// intervals.
const parts = 20

// surface is a figure by layer and level, NaN if absent.
type surface [][]float64

// losses runs a loss profile of unstructured weights that become zero.
func (n *network) losses(ctx context.Context, set *samples.Set, method study.Method, metric string) (byLayer surface, more surface, err error) {
	s := study.LossSettings{Method: method, Metric: metric, Higher: loss.HigherIsBetter(metric)}
	for _, v := range levels {
		s.Changes = append(s.Changes, study.Change{Structure: study.Unstructured, Level: v})
	}
	blank := func() surface {
		out := make(surface, len(n.job.Layers))
		for i := range out {
			out[i] = slices.Repeat([]float64{math.NaN()}, len(levels))
		}
		return out
	}
	byLayer, more = blank(), blank()
	j := loss.Job{Model: n.m, Layers: n.job.Layers, Data: set, Settings: s, Point: func(p study.LossPoint) error {
		k := slices.Index(levels, p.Change.Level)
		if v, ok := p.Value.Best(); ok {
			byLayer[p.Layer][k] = v
		}
		if v, ok := p.More[loss.KL]; ok {
			more[p.Layer][k] = v
		}
		return nil
	}}
	base, err := j.Run(ctx)
	if b, ok := base.Best(); ok {
		for _, row := range byLayer {
			for k := range row {
				row[k] = b - row[k]
			}
		}
	}
	return byLayer, more, err
}

// truths prints rank correlations of predicted with true drops.
func truths(ctx context.Context, nets []*network) error {
	fmt.Println("Rank correlation over layers with the drop of accuracy on held-out samples, all layers, levels", levels)
	fmt.Println("network\tlayers\tpredicted by\tof the mean over levels\tby level")
	for _, n := range nets {
		if err := n.truth(ctx); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return nil
}

func (n *network) truth(ctx context.Context) error {
	test, err := samples.Open(n.m, n.test)
	if err != nil {
		return err
	}
	use, err := samples.Open(n.m, n.use)
	if err != nil {
		return err
	}
	// Drops are means over samples: those of the whole are the means of those of parts, by their
	// sizes.
	var drops []surface
	var sizes []float64
	for k := range parts {
		var runs []int
		for r := k; r < test.Runs(); r += parts {
			runs = append(runs, r)
		}
		d, _, err := n.losses(ctx, test.Pick(runs), study.EndToEnd, loss.Accuracy)
		if err != nil {
			return err
		}
		drops, sizes = append(drops, d), append(sizes, float64(len(runs)))
	}
	accuracy, kl, err := n.losses(ctx, use, study.EndToEnd, loss.Accuracy)
	if err != nil {
		return err
	}
	calibrated, _, err := n.losses(ctx, use, study.Calibrated, loss.KL)
	if err != nil {
		return err
	}
	output, _, err := n.losses(ctx, use, study.OutputError, loss.RelativeError)
	if err != nil {
		return err
	}
	magnitude, _, err := n.losses(ctx, nil, study.Magnitude, loss.MagnitudeMean)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name string
		s    surface
	}{{"divergence, end to end", kl}, {"accuracy, end to end", accuracy}, {"calibrated, divergence", calibrated}, {"output's error", output}, {"magnitude", magnitude}} {
		rank := func(times []float32, level int) float64 {
			return spearman(column(mean(drops, sizes, times), level), column(x.s, level))
		}
		all := func(times []float32) float64 { return rank(times, -1) }
		fmt.Printf("%s\t%d\t%s\t%.2f", n.name, len(n.job.Layers), x.name, all(nil))
		// draws that all rank alike tell of no other ones
		if lo, hi := loss.BootstrapInterval(parts, 1, all); lo < hi {
			fmt.Printf(" (%.2f to %.2f)", lo, hi)
		}
		fmt.Print("\t")
		for k := range levels {
			fmt.Printf("%.2f ", rank(nil, k))
		}
		fmt.Println()
	}
	return nil
}

// mean weighs the figures of parts, each taken so many times, nil for once.
func mean(of []surface, sizes []float64, times []float32) surface {
	out := make(surface, len(of[0]))
	for i := range out {
		out[i] = make([]float64, len(levels))
		for k := range out[i] {
			sum, n := 0.0, 0.0
			for p, s := range of {
				w := sizes[p]
				if times != nil {
					w *= float64(times[p])
				}
				sum, n = sum+w*s[i][k], n+w
			}
			out[i][k] = sum / n
		}
	}
	return out
}

// column is one level of all layers, for -1 the mean over levels.
func column(s surface, level int) []float64 {
	out := make([]float64, len(s))
	for i, row := range s {
		if level >= 0 {
			out[i] = row[level]
			continue
		}
		for _, v := range row {
			out[i] += v / float64(len(row))
		}
	}
	return out
}

// spearman is the correlation of ranks, equal figures having the mean of theirs.
func spearman(a, b []float64) float64 {
	var x, y []float64
	for i := range a {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	x, y = ranks(x), ranks(y)
	middle := float64(len(x)-1) / 2
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		p, q := x[i]-middle, y[i]-middle
		xy, xx, yy = xy+p*q, xx+p*p, yy+q*q
	}
	return xy / math.Sqrt(xx*yy)
}

func ranks(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		for k, y := range v {
			switch {
			case y < x:
				out[i]++
			case y == x && k != i:
				out[i] += .5
			}
		}
	}
	return out
}
