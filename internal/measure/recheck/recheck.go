// Package recheck measures the slowest layers of a profile with a second method.
//
// An engine's profiler costs time in the layers and between them, and not equally in all. The
// time of a layer can be measured without it. A short submodel, made of the layer and the layers
// that produce its inputs, is measured interleaved with the same submodel without the layer and
// with the whole model, all as plain inferences. The difference of the first two, as a fraction
// of the third, is the layer's share. The submodel reads values that the rest of the model
// computed. It is as short as possible: the difference of two long models would be lost in their
// common time.
//
// An engine may execute other nodes in a submodel than in the whole model, such as a layout
// conversion at its end. Its profiler reports them, and small amounts are subtracted. If they are
// large, the check says so and has no figure.
package recheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/profile"
)

// Series holds an engine's measurements of a model.
type Series struct {
	// Plain holds times of plain inferences, in seconds and in chronological order.
	Plain []float64
	// Rows lists what the engine executed, nil if it does not report it.
	Rows []Row
}

// Row is a node that an engine executed.
type Row struct {
	Op      string
	Seconds float64
}

// Piece is a model to be timed.
type Piece struct {
	File string
	// Inputs are files by input name, in addition to those of the whole model.
	Inputs map[string]string
	// Seconds is the approximate time of an inference.
	Seconds float64
}

// Timer runs models in an engine.
type Timer interface {
	// Time runs some models for a number of rounds, one after the other in every round, and
	// returns the measurements of each. The error for a model that the engine rejects wraps
	// [ErrRefused].
	Time(ctx context.Context, pieces []Piece, turns int) ([]Series, error)
	// Values runs a model once and writes its outputs to files in a folder. It returns their
	// descriptions, and the files by name.
	Values(ctx context.Context, file, folder string) ([]submodel.Given, map[string]string, error)
}

// ErrRefused reports that an engine rejects a model.
var ErrRefused = errors.New("the engine does not take the model")

// Options configures the check.
type Options struct {
	// Source is the model to cut, File its file.
	Source *submodel.Source
	File   string
	Timer  Timer
	// Folder is for the submodels. The caller removes it.
	Folder string
	// Time is for all checks together, but each gets at least a few rounds.
	Time time.Duration
	// Progress is called with the progress from 0 to 1. May be nil.
	Progress func(fraction float64)
}

// Which layers are checked: the slowest ones until they cover half of the time, at most five.
const (
	coveredShare = 0.5
	maxLayers    = 5
)

// profilerUncertainty is the uncertain fraction of the time of additional nodes as reported by
// the engine's profiler: the profilers that were measured cost up to 62 % of the time.
const profilerUncertainty = 0.5

// maxHalfWidth is the half-width of both intervals together, as a fraction of the layer's time,
// beyond which the check is inconclusive.
const maxHalfWidth = 0.25

// Rounds of a check: an interval from fewer rounds is dominated by their small number, and more
// than the blocks of an interval do not help. Models that take long get the minimum.
const (
	minTurns = 8
	maxTurns = stats.MostBlocks
)

// TurnTime is the minimum duration of a round of a short model, in seconds.
const TurnTime = 0.005

// turnsFor returns the number of rounds that fit into a time.
func turnsFor(pieces []Piece, each time.Duration) int {
	return int(min(max(each.Seconds()/turn(pieces), minTurns), maxTurns))
}

// turn returns the approximate duration of a round, in seconds.
func turn(pieces []Piece) float64 {
	sum := 0.0
	for _, p := range pieces {
		sum += 4 * max(p.Seconds, TurnTime) // plain and instrumented runs, twice
	}
	return sum
}

// Check measures the slowest layers of a profile again and records the outcomes in it. The error
// is the context's, or of the disk; any other failure is an outcome.
func Check(ctx context.Context, p *profile.Profile, o Options) error {
	whole, ok := p.Totals.Latency.Best()
	if !ok || !(whole > 0) {
		return nil
	}
	rows := slowest(p)
	each := o.Time / time.Duration(3*max(1, len(rows)))
	for n, l := range rows {
		if o.Progress != nil {
			o.Progress(float64(n) / float64(len(rows)))
		}
		l.Check = nil
		delete(l.Figures, "checked_s")
		if err := ctx.Err(); err != nil {
			l.Check = &profile.Check{Outcome: profile.CheckStopped}
			continue
		}
		if err := check(ctx, p, l, whole, each, &o); err != nil {
			return err
		}
	}
	p.Findings = slices.DeleteFunc(p.Findings, func(f profile.Finding) bool { return strings.HasPrefix(f.ID, "check.") })
	p.Findings = append(p.Findings, findings(p, rows)...)
	return ctx.Err()
}

// slowest returns the layers to check, the slowest first.
func slowest(p *profile.Profile) profile.Layers {
	timed := p.Select(func(l *profile.Layer) bool { v, ok := l.Latency.Best(); return ok && v > 0 && l.State == profile.Ran })
	sorting.Stable(timed, func(a, b *profile.Layer) int {
		x, _ := a.Latency.Best()
		y, _ := b.Latency.Best()
		return cmp.Compare(y, x)
	})
	all, _ := timed.Sum("latency_s")
	sum := 0.0
	for i, l := range timed {
		if v, _ := l.Latency.Best(); sum < coveredShare*all && i < maxLayers {
			sum += v
			continue
		}
		return timed[:i]
	}
	return timed
}

// nodesOf returns the nodes of the model's main graph that a layer computes, including fused
// ones. If they are unknown, the outcome states why.
func nodesOf(p *profile.Profile, l *profile.Layer) ([]int, *profile.Check) {
	if l.Provenance != nil && l.Provenance.Inserted {
		return nil, &profile.Check{Outcome: profile.CheckUnjoined} // inserted by the engine
	}
	mine := map[int64]bool{l.Index: true}
	for again := true; again; {
		again = false
		for i := range p.Layers {
			if into := p.Layers[i].FusedInto; into != nil && mine[*into] && !mine[int64(i)] {
				mine[int64(i)], again = true, true
			}
		}
	}
	var out []int
	for i := range p.Layers {
		pv := p.Layers[i].Provenance
		if !mine[int64(i)] || pv == nil {
			continue
		}
		for _, s := range pv.SourceNodes {
			if s.Graph != 0 {
				return nil, &profile.Check{Outcome: profile.CheckBody}
			}
			if !slices.Contains(out, int(s.Node)) {
				out = append(out, int(s.Node))
			}
		}
	}
	if len(out) == 0 {
		return nil, &profile.Check{Outcome: profile.CheckUnjoined}
	}
	for i := range p.Layers {
		x := &p.Layers[i]
		if _, timed := x.Latency.Best(); mine[int64(i)] || !timed || x.Provenance == nil || x.Provenance.Inserted {
			continue
		}
		for _, s := range x.Provenance.SourceNodes {
			if s.Graph == 0 && slices.Contains(out, int(s.Node)) {
				return nil, &profile.Check{Outcome: profile.CheckShared, Text: fmt.Sprintf("layer %d", i)}
			}
		}
	}
	return out, nil
}

// check measures one layer: in a submodel with the producers of its inputs, by itself if that is
// not possible, and with everything before it if nothing shorter can be cut.
func check(ctx context.Context, p *profile.Profile, l *profile.Layer, whole float64, each time.Duration, o *Options) error {
	list, c := nodesOf(p, l)
	if c != nil {
		l.Check = c
		return nil
	}
	k := &checker{p: p, l: l, whole: whole, each: each, o: o, nodes: list}
	var best *profile.Check
	var figure *profile.Metric
	for _, way := range []func(context.Context) (*submodelPair, error){k.withProducers, k.alone, k.fromStart} {
		if err := k.try(ctx, way); err != nil {
			return err
		}
		if l.Check == nil {
			continue // no such submodel
		}
		if best == nil || rank(l.Check) > rank(best) {
			best, figure = l.Check, l.Figure("checked_s")
		}
		if best.Outcome == profile.CheckStopped || rank(best) >= rank(&profile.Check{Outcome: profile.CheckOpen}) {
			break // a longer submodel is less conclusive
		}
	}
	l.Check = best
	delete(l.Figures, "checked_s")
	if figure != nil {
		return l.Set("checked_s", figure)
	}
	return nil
}

// rank orders outcomes by how conclusive they are.
func rank(c *profile.Check) int {
	return slices.Index([]profile.CheckOutcome{
		profile.CheckNotCut, profile.CheckRefused, profile.CheckOther, profile.CheckOpen, profile.CheckAgrees, profile.CheckDiffers,
	}, c.Outcome)
}

// findings report the outcomes of the checks.
func findings(p *profile.Profile, rows profile.Layers) []profile.Finding {
	var differ, agree []int64
	open := 0
	var parts []string
	sum := 0.0
	for _, l := range rows {
		switch l.Check.Outcome {
		case profile.CheckDiffers:
			differ = append(differ, l.Index)
			is, _ := l.Latency.Best()
			v, _ := l.Figure("checked_s").Best()
			parts = append(parts, fmt.Sprintf("layer %d (%s): %.3g ms against %.3g ms", l.Index, l.Op, 1e3*is, 1e3*v))
		case profile.CheckAgrees:
			agree = append(agree, l.Index)
			if l.Share != nil {
				sum += *l.Share
			}
		default:
			open++
		}
	}
	var out []profile.Finding
	if differ != nil {
		out = append(out, profile.Finding{
			ID: "check.differs", Severity: profile.Warning, Layers: differ,
			Text: "The engine's profiler disagrees with measurements of submodels with and without a layer: " + strings.Join(parts, ", ") + ".",
		})
	}
	if agree != nil || open > 0 {
		s := fmt.Sprintf("Of the %d slowest layers, %d with %.0f %% of the time were confirmed by timing submodels", len(rows), len(agree), 100*sum)
		if open > 0 {
			s += fmt.Sprintf("; %d are inconclusive, for the reasons given with them", open)
		}
		out = append(out, profile.Finding{ID: "check.agrees", Severity: profile.Info, Layers: agree, Text: s + "."})
	}
	return out
}
