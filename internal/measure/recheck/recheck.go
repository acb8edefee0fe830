// Package recheck measures the slowest layers of a profile in a second way.
//
// An engine's profiler costs time of its own, in the layers and between them, and not in all alike. What a layer takes
// can be found without it: a short stretch of the model, the layers that make what the layer reads and the layer itself,
// takes turns with the same stretch without the layer and with the whole model, all as plain inferences. The
// difference of the first two, as a part of the third, is the layer's share. The stretch reads what the rest of the model made,
// and is as short as it can be: the difference of two long models would be lost in what they have in common.
//
// An engine may execute something else in a stretch than in the whole, such as a change of layout at its end. Its
// profiler tells, and what takes little is taken off; where it is much, the check says so and has no figure.
package recheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/profile"
)

// Series is what an engine showed of a model.
type Series struct {
	// Plain holds times of plain inferences, seconds, in the order in which they were taken.
	Plain []float64
	// Rows is what the engine executed, nil where it does not tell.
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
	// Inputs are files by the names of inputs, beside those of the whole model.
	Inputs map[string]string
	// Seconds is what an inference takes, about.
	Seconds float64
}

// Timer runs models in an engine.
type Timer interface {
	// Time runs some models, so many turns each, one after the other in every turn, and returns what was shown of each. An
	// error of a model that the engine does not take wraps [ErrRefused].
	Time(ctx context.Context, pieces []Piece, turns int) ([]Series, error)
	// Values runs a model once and keeps its outputs in files in a folder. It returns what they are, and the files by
	// name.
	Values(ctx context.Context, file, folder string) ([]submodel.Given, map[string]string, error)
}

// ErrRefused tells that an engine does not take a model.
var ErrRefused = errors.New("the engine does not take the model")

// Options says what is checked.
type Options struct {
	// Source is the model to cut, File its file.
	Source *submodel.Source
	File   string
	Timer  Timer
	// Folder is for the cut models. Who made it removes it.
	Folder string
	// Time is for all checks together, as far as it is enough for some turns of each.
	Time time.Duration
	// Progress is told how far the work is. May be nil.
	Progress func(fraction float64)
}

// Limits of what is checked: the slowest layers until they have half of the time, five at most.
const (
	coveredShare = 0.5
	maxLayers    = 5
)

// profilerUncertainty is the part of what the engine executes beside the layer, as its profiler has it, that is not sure: the
// profilers that were measured cost up to 62 % of the time.
const profilerUncertainty = 0.5

// maxHalfWidth is the half of both intervals together, as a part of the layer's time, beyond which they tell nothing.
const maxHalfWidth = 0.25

// Turns of a check: an interval from fewer is mostly that of so few, and more than the blocks of an interval are for
// nothing. Models that take long get the least.
const (
	minTurns = 8
	maxTurns = stats.MostBlocks
)

// TurnTime is how long a turn of a short model lasts at least, in seconds.
const TurnTime = 0.005

// turnsFor is the number of turns that fit into a time.
func turnsFor(pieces []Piece, each time.Duration) int {
	return int(min(max(each.Seconds()/turn(pieces), minTurns), maxTurns))
}

// turn is about what a turn takes, in seconds.
func turn(pieces []Piece) float64 {
	sum := 0.0
	for _, p := range pieces {
		sum += 4 * max(p.Seconds, TurnTime) // plain and instrumented runs, twice
	}
	return sum
}

// Check measures the slowest layers of a profile again and notes in it what came of it. The error is the context's, or of
// the disk; whatever else goes wrong is an outcome.
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

// slowest are the layers to check, the slowest first.
func slowest(p *profile.Profile) profile.Layers {
	timed := p.Select(func(l *profile.Layer) bool { v, ok := l.Latency.Best(); return ok && v > 0 && l.State == profile.Ran })
	slices.SortStableFunc(timed, func(a, b *profile.Layer) int {
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

// nodesOf are the nodes of the model's main graph that a layer does, what is fused into it included; the outcome says why
// they cannot be told.
func nodesOf(p *profile.Profile, l *profile.Layer) ([]int, *profile.Check) {
	if l.Provenance != nil && l.Provenance.Inserted {
		return nil, &profile.Check{Outcome: profile.CheckUnjoined} // it serves an operator and is none
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

// check measures one layer: in a stretch with what makes its inputs, by itself where that cannot be, and in all that comes
// before it where nothing shorter can be cut.
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
			continue // no such stretch
		}
		if best == nil || rank(l.Check) > rank(best) {
			best, figure = l.Check, l.Figure("checked_s")
		}
		if best.Outcome == profile.CheckStopped || rank(best) >= rank(&profile.Check{Outcome: profile.CheckOpen}) {
			break // another stretch, which is longer, tells less
		}
	}
	l.Check = best
	delete(l.Figures, "checked_s")
	if figure != nil {
		return l.Set("checked_s", figure)
	}
	return nil
}

// rank says how much an outcome tells.
func rank(c *profile.Check) int {
	return slices.Index([]profile.CheckOutcome{
		profile.CheckNotCut, profile.CheckRefused, profile.CheckOther, profile.CheckOpen, profile.CheckAgrees, profile.CheckDiffers,
	}, c.Outcome)
}

// findings say what came of the checks.
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
			Text: "What the engine's profiler says is not what a layer adds to an inference, by cutting the model: " + strings.Join(parts, ", ") + ".",
		})
	}
	if agree != nil || open > 0 {
		s := fmt.Sprintf("Of the %d slowest layers, %d with %.0f %% of the time were confirmed by cutting the model", len(rows), len(agree), 100*sum)
		if open > 0 {
			s += fmt.Sprintf("; of %d nothing can be said, for the reasons that stand with them", open)
		}
		out = append(out, profile.Finding{ID: "check.agrees", Severity: profile.Info, Layers: agree, Text: s + "."})
	}
	return out
}
