package recheck

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/profile"
)

// retryFactor is by how much a repeated check increases the rounds, as far as they take no longer
// than maxRetrySeconds.
const (
	retryFactor     = 3
	maxRetrySeconds = 10
)

// checker measures one layer.
type checker struct {
	p     *profile.Profile
	l     *profile.Layer
	whole float64
	each  time.Duration
	o     *Options
	nodes []int // nodes of the layer
}

// submodelPair is a part of the model with a layer and without it.
type submodelPair struct {
	with, without *submodel.Model // without is nil if nothing is left
	inputs        map[string]string
	// context is the approximate time of the submodel without the layer, in seconds.
	context float64
	// upTo says that the submodel begins where the model begins.
	upTo bool
}

// withProducers makes a submodel of the layer and the producers of its inputs, nil without
// producers.
func (c *checker) withProducers(ctx context.Context) (*submodelPair, error) {
	context, seconds := c.producers()
	if len(context) == 0 {
		return nil, nil
	}
	return c.window(ctx, context, seconds)
}

// alone makes a submodel of the layer only.
func (c *checker) alone(ctx context.Context) (*submodelPair, error) { return c.window(ctx, nil, 0) }

// fromStart makes a submodel of the layer and everything that it depends on.
func (c *checker) fromStart(context.Context) (*submodelPair, error) {
	with, without, err := c.o.Source.WithAndWithout(c.nodes)
	if err != nil {
		return nil, err
	}
	return &submodelPair{with: with, without: without, context: c.whole / 2, upTo: true}, nil
}

// producers lists the nodes that produce the layer's inputs, with the nodes that the engine fuses
// with them, and their time in the profile.
func (c *checker) producers() (nodes []int, seconds float64) {
	near := c.o.Source.Predecessors(c.nodes)
	if len(near) == 0 {
		return nil, 0
	}
	done := map[int]bool{}
	for i := range c.p.Layers {
		l := &c.p.Layers[i]
		if l.Provenance == nil || l.Provenance.Inserted || l.FusedInto != nil {
			continue
		}
		list, no := nodesOf(c.p, l)
		if no != nil || !slices.ContainsFunc(list, func(n int) bool { return slices.Contains(near, n) }) {
			continue
		}
		if v, ok := l.Latency.Best(); ok {
			seconds += v
		}
		for _, n := range list {
			if !done[n] && !slices.Contains(c.nodes, n) {
				done[n] = true
				nodes = append(nodes, n)
			}
		}
	}
	for _, n := range near { // nodes that no known layer computes
		if !done[n] {
			done[n] = true
			nodes = append(nodes, n)
		}
	}
	return nodes, seconds
}

// window cuts a submodel out of the model, with its inputs as they are in a run of the whole.
func (c *checker) window(ctx context.Context, context []int, seconds float64) (*submodelPair, error) {
	w, err := c.o.Source.Window(c.nodes, context)
	if err != nil {
		return nil, err
	}
	out := &submodelPair{context: seconds}
	var given []submodel.Given
	if w.Needs != nil {
		name := c.file("needs")
		if err := os.WriteFile(name, w.Needs.Data, 0o600); err != nil {
			return nil, err
		}
		defer os.Remove(name)
		if given, out.inputs, err = c.o.Timer.Values(ctx, name, c.o.Folder); err != nil {
			return nil, err
		}
	}
	out.with, out.without, err = w.Models(given)
	return out, err
}

func (c *checker) file(part string) string {
	return filepath.Join(c.o.Folder, fmt.Sprintf("layer-%d-%s.%s", c.l.Index, part, c.o.Source.Model().Format))
}

// try measures the layer in a submodel and records the outcome. The layer has no check if there
// is no such submodel. The error is of the disk.
func (c *checker) try(ctx context.Context, way func(context.Context) (*submodelPair, error)) error {
	c.l.Check = nil
	delete(c.l.Figures, "checked_s")
	s, err := way(ctx)
	switch {
	case ctx.Err() != nil:
		c.l.Check = &profile.Check{Outcome: profile.CheckStopped}
		return nil
	case err != nil:
		c.l.Check = &profile.Check{Outcome: profile.CheckNotCut, Text: err.Error()}
		return nil
	case s == nil:
		return nil
	}
	is, _ := c.l.Latency.Best()
	pieces := []Piece{{File: c.o.File, Seconds: c.whole}}
	for i, m := range []*submodel.Model{s.with, s.without} {
		if m == nil {
			continue
		}
		name := c.file([...]string{"with", "without"}[i])
		if err := os.WriteFile(name, m.Data, 0o600); err != nil {
			return err
		}
		defer os.Remove(name)
		pieces = append(pieces, Piece{File: name, Inputs: s.inputs, Seconds: s.context + is*float64(1-i)})
	}
	// A result near the limit is measured again with more rounds.
	var parts []float64
	for n := turnsFor(pieces, c.each); ; n = min(retryFactor*n, max(n, int(maxRetrySeconds/turn(pieces)))) {
		got, err := c.o.Timer.Time(ctx, pieces, n)
		switch {
		case ctx.Err() != nil:
			c.l.Check = &profile.Check{Outcome: profile.CheckStopped}
			return nil
		case err != nil:
			c.l.Check = &profile.Check{Outcome: profile.CheckRefused, Text: err.Error()}
			return nil
		case len(got) != len(pieces):
			return fmt.Errorf("%d series of %d models", len(got), len(pieces))
		}
		if len(got) == 2 {
			got = append(got, Series{}) // no node before the layer
		}
		second := parts != nil
		parts = append(parts, shares(got[0].Plain, got[1].Plain, got[2].Plain)...)
		c.conclude(s, parts, got[1].Rows, got[2].Rows)
		if second || c.l.Check.Outcome != profile.CheckOpen {
			return nil
		}
	}
}

// conclude derives the figure and the outcome from a layer's shares, and from what the engine
// executed with and without it.
func (c *checker) conclude(s *submodelPair, parts []float64, with, without []Row) {
	l, whole := c.l, c.whole
	is, _ := l.Latency.Best()
	delete(l.Figures, "checked_s")
	more, unsure, text, fits := beside(l.Op, with, without)
	if !fits || profilerUncertainty*unsure > maxHalfWidth*is {
		l.Check = &profile.Check{Outcome: profile.CheckOther, Text: text}
		return
	}
	share, ok := stats.Repeated(parts, 0)
	if !ok {
		l.Check = &profile.Check{Outcome: profile.CheckOpen, Text: "too few inferences"}
		return
	}
	v, half := whole*share.Middle-more, whole*(share.High-share.Low)/2+profilerUncertainty*unsure
	if math.IsNaN(v) || math.IsInf(v, 0) || math.IsNaN(half) || math.IsInf(half, 0) {
		l.Check = &profile.Check{Outcome: profile.CheckOpen, Text: "no figure"}
		return
	}
	own := 0.0
	if ci := l.Latency.CI95; ci != nil { // asymmetric for a disturbed series
		own = max(ci[1]-is, is-ci[0])
	} else if ci := c.p.Totals.Latency.CI95; ci != nil {
		// without runs at best as certain as the whole
		own = is / whole * max(ci[1]-whole, whole-ci[0])
	}
	cached := 0.0
	if !s.upTo {
		cached = c.memoryTime() // in a submodel more data is in caches
	}
	if text != "" {
		text += ", which is subtracted as its profiler reports it"
	}
	l.Check = &profile.Check{Outcome: profile.CheckAgrees, Text: text}
	switch {
	case is-v > half+own+cached || v-is > half+own && s.without != nil:
		// by itself it includes the overhead of an inference
		l.Check.Outcome = profile.CheckDiffers
	case is-v > half+own:
		l.Check.Outcome = profile.CheckOpen
		l.Check.Text = "the submodel takes less time, but reading the layer's inputs from memory can explain the difference"
	case half+own > maxHalfWidth*is:
		l.Check.Outcome = profile.CheckOpen
	}
	if !(v > 0) {
		// A layer cannot take negative time: such a figure describes the machine and not the
		// layer.
		l.Check = &profile.Check{Outcome: profile.CheckOpen, Text: "the submodel with the layer took no longer than without it"}
		return
	}
	m := &profile.Metric{Kind: profile.Measured, Median: &v, CI95: &[2]float64{max(v-half, 0), v + half}}
	switch {
	case s.upTo && s.without == nil:
		m.Method = "the model up to this layer, including the overhead of an inference, as a fraction of the whole model, interleaved"
	case s.upTo:
		m.Method = "difference of two submodels as a fraction of the whole model, interleaved"
	case s.without == nil:
		m.Method = "the layer by itself, including the overhead of an inference, as a fraction of the whole model, interleaved"
	default:
		m.Method = "difference of a short submodel with the layer and without it, as a fraction of the whole model, interleaved"
	}
	if err := l.Set("checked_s", m); err != nil {
		l.Check = &profile.Check{Outcome: profile.CheckOpen, Text: err.Error()}
	}
}

// memoryTime returns the time, in seconds, to read the layer's inputs from memory. In a submodel
// they may be in caches, from which the rest of the whole model evicts them. It returns 0 if the
// target's memory bandwidth is not known.
func (c *checker) memoryTime() float64 {
	rate := c.p.Target.PeakBytesPerSecond
	if rate == nil || !(*rate > 0) || c.l.BytesRead == nil {
		return 0
	}
	return float64(*c.l.BytesRead) / *rate
}

// shares returns differences as fractions of the whole, for samples taken at about the same time:
// series of different lengths are divided into the same number of blocks.
func shares(all, with, without []float64) []float64 {
	series := [][]float64{all, with}
	if without != nil {
		series = append(series, without)
	}
	out := []float64{}
	for _, b := range estimator.Paired(stats.MostBlocks, series...) {
		d := b[1]
		if without != nil {
			d -= b[2]
		}
		if b[0] > 0 {
			out = append(out, d/b[0])
		}
	}
	return out
}

// beside finds what the engine executes with the layer in addition to the submodel without it,
// except for the layer itself: the time in seconds, the sum of its absolute parts, and a
// description. fits is false if the layer itself cannot be identified.
func beside(layer string, with, without []Row) (more, unsure float64, text string, fits bool) {
	if with == nil {
		return 0, 0, "", true // the engine does not report it
	}
	count, seconds := map[string]int{}, map[string]float64{}
	var ops []string
	add := func(rows []Row, sign int) {
		for _, r := range rows {
			if _, seen := count[r.Op]; !seen {
				ops = append(ops, r.Op)
			}
			count[r.Op] += sign
			seconds[r.Op] += float64(sign) * r.Seconds
		}
	}
	add(with, 1)
	add(without, -1)
	slices.Sort(ops)
	one, slowest := "", 0.0 // the layer: the node with its name, or the slowest additional one
	for _, op := range ops {
		if count[op] > 0 && one != layer && (one == "" || op == layer || seconds[op] > slowest) {
			one, slowest = op, seconds[op]
		}
	}
	switch {
	case one == "":
		return 0, 0, "the engine executes nothing more with the layer than without it", false
	case count[one] > 1:
		return 0, 0, fmt.Sprintf("the engine executes %d nodes of %s more with the layer than without it", count[one], one), false
	}
	var plus, minus []string
	for _, op := range ops {
		if op == one {
			continue
		}
		switch {
		case count[op] > 0:
			plus = append(plus, op)
		case count[op] < 0:
			minus = append(minus, op)
		case slices.ContainsFunc(with, func(r Row) bool { return r.Op == op && slowest <= r.Seconds }):
			continue // a neighbour as slow as the layer: it is in both, its difference is noise
		}
		more += seconds[op]
		unsure += math.Abs(seconds[op])
	}
	var said []string
	if plus != nil {
		said = append(said, "with the layer also "+strings.Join(plus, ", "))
	}
	if minus != nil {
		said = append(said, "without it also "+strings.Join(minus, ", "))
	}
	if said != nil {
		text = "the engine executes " + strings.Join(said, ", ")
	}
	return more, unsure, text, true
}
