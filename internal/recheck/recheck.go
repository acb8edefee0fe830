// Package recheck measures the slowest layers of a profile in a second way.
//
// An engine's profiler costs time of its own, in the layers and between them, and not in all alike. What a layer
// adds to an inference can be found without it: the model up to and with the layer, the model without it, and the whole
// model take turns as plain inferences, and the difference of the first two, as a part of the third, is the layer's share. It says
// something else where the engine executes other nodes in the cut model than in the whole, which its profiler tells, and it is
// less sure the smaller the layer is beside what comes before.
package recheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/cut"
	"github.com/opmeter/opmeter/internal/stats"
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

// Timer runs models in an engine.
type Timer interface {
	// Time runs the models of some files in turns, each for about so long, and returns what was shown of each. An error
	// of a model that the engine does not take wraps [ErrRefused].
	Time(ctx context.Context, files []string, each time.Duration) ([]Series, error)
}

// ErrRefused tells that an engine does not take a model.
var ErrRefused = errors.New("the engine does not take the model")

// Options says what is checked.
type Options struct {
	// Source is the model to cut, File its file.
	Source *cut.Source
	File   string
	Timer  Timer
	// Folder is for the cut models. Who made it removes it.
	Folder string
	// Time is for all checks together.
	Time time.Duration
	// Progress is told how far the work is. May be nil.
	Progress func(fraction float64)
}

// Limits of what is checked: the slowest layers until they have half of the time, five at most.
const (
	enough = 0.5
	most   = 5
)

// other is the part of a layer's time that nodes which the engine executes in one of the cut models only may take.
const other = 0.1

// wide is the half of both intervals together, as a part of the layer's time, beyond which they tell nothing.
const wide = 0.25

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
		if v, _ := l.Latency.Best(); sum < enough*all && i < most {
			sum += v
			continue
		}
		return timed[:i]
	}
	return timed
}

// nodes are the nodes of the model's main graph that a layer does, what is fused into it included; the outcome says why
// they cannot be told.
func nodes(p *profile.Profile, l *profile.Layer) ([]int, *profile.Check) {
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
		if _, timed := x.Latency.Best(); mine[int64(i)] || !timed || x.Provenance == nil {
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

// check measures one layer.
func check(ctx context.Context, p *profile.Profile, l *profile.Layer, whole float64, each time.Duration, o *Options) error {
	list, c := nodes(p, l)
	if c != nil {
		l.Check = c
		return nil
	}
	with, without, err := o.Source.Around(list)
	if err != nil {
		l.Check = &profile.Check{Outcome: profile.CheckNotCut, Text: err.Error()}
		return nil
	}
	files := []string{o.File}
	for i, m := range []*cut.Model{with, without} {
		if m == nil {
			continue
		}
		name := filepath.Join(o.Folder, fmt.Sprintf("layer-%d-%s.%s", l.Index, [...]string{"with", "without"}[i], o.Source.Model().Format))
		if err := os.WriteFile(name, m.Data, 0o600); err != nil {
			return err
		}
		defer os.Remove(name)
		files = append(files, name)
	}
	got, err := o.Timer.Time(ctx, files, each)
	switch {
	case ctx.Err() != nil:
		l.Check = &profile.Check{Outcome: profile.CheckStopped}
		return nil
	case err != nil:
		l.Check = &profile.Check{Outcome: profile.CheckRefused, Text: err.Error()}
		return nil
	case len(got) != len(files):
		return fmt.Errorf("%d series of %d models", len(got), len(files))
	}
	if len(got) == 2 {
		got = append(got, Series{}) // nothing comes before the layer
	}
	conclude(l, whole, got[0], got[1], got[2])
	return nil
}

// conclude makes the figure and the outcome of three series.
func conclude(l *profile.Layer, whole float64, all, with, without Series) {
	is, _ := l.Latency.Best()
	text, fits := executes(is, with.Rows, without.Rows)
	if !fits {
		l.Check = &profile.Check{Outcome: profile.CheckOther, Text: text}
		return
	}
	share, ok := stats.Repeated(shares(all.Plain, with.Plain, without.Plain), 0)
	if !ok {
		l.Check = &profile.Check{Outcome: profile.CheckOpen, Text: "too few inferences"}
		return
	}
	v, half := whole*share.Middle, whole*(share.High-share.Low)/2
	if math.IsNaN(v) || math.IsInf(v, 0) || math.IsNaN(half) || math.IsInf(half, 0) {
		l.Check = &profile.Check{Outcome: profile.CheckOpen, Text: "no figure"}
		return
	}
	m := &profile.Metric{Kind: profile.Measured, Median: &v, CI95: &[2]float64{v - half, v + half}, Method: "difference of two cut models as a part of the whole, in turns"}
	if without.Plain == nil {
		m.Method = "the model up to this layer, with what an inference costs in itself, as a part of the whole, in turns"
	}
	if l.Set("checked_s", m) != nil {
		return
	}
	own := 0.0
	if ci := l.Latency.CI95; ci != nil {
		own = (ci[1] - ci[0]) / 2
	}
	l.Check = &profile.Check{Outcome: profile.CheckAgrees, Text: text}
	far := math.Abs(v - is)
	switch {
	case far > half+own && !(without.Plain == nil && v > is): // a first layer has more in it than its own time
		l.Check.Outcome = profile.CheckDiffers
	case half+own > wide*is:
		l.Check.Outcome = profile.CheckOpen
	}
}

// shares are differences as parts of the whole, of samples that were taken at about the same time: series of different
// lengths are cut into as many blocks.
func shares(all, with, without []float64) []float64 {
	n := min(len(all), len(with), stats.MostBlocks)
	if without != nil {
		n = min(n, len(without))
	}
	out := make([]float64, 0, n)
	middle := func(s []float64, i int) float64 { return stats.Median(s[i*len(s)/n : (i+1)*len(s)/n]) }
	for i := range n {
		d := middle(with, i)
		if without != nil {
			d -= middle(without, i)
		}
		if w := middle(all, i); w > 0 {
			out = append(out, d/w)
		}
	}
	return out
}

// executes reports whether the two cut models differ by one node of the engine, but for what takes next to nothing, and
// says by what else they do.
func executes(is float64, with, without []Row) (text string, fits bool) {
	if with == nil {
		return "", true // the engine does not tell
	}
	count, seconds := map[string]int{}, map[string]float64{}
	for _, r := range with {
		count[r.Op]++
		seconds[r.Op] += r.Seconds
	}
	have := maps.Clone(count)
	for _, r := range without {
		count[r.Op]--
		if have[r.Op] == 0 {
			seconds[r.Op] += r.Seconds
		}
	}
	var more, less []string
	sum, longest, one := 0.0, 0.0, ""
	mean := func(op string) float64 {
		n := max(1, have[op])
		return seconds[op] / float64(n)
	}
	ops := slices.Sorted(maps.Keys(count))
	for _, op := range ops { // the layer itself is the longest of what is more
		if count[op] > 0 && mean(op) >= longest {
			longest, one = mean(op), op
		}
	}
	if one == "" {
		return "the engine executes nothing more with the layer than without it", false
	}
	for _, op := range ops {
		n := count[op]
		if op == one {
			n--
		}
		switch {
		case n > 0:
			more = append(more, op)
		case n < 0:
			less = append(less, op)
		default:
			continue
		}
		sum += math.Abs(float64(n)) * mean(op)
	}
	if more == nil && less == nil {
		return "", true
	}
	var parts []string
	if more != nil {
		parts = append(parts, "with it also "+strings.Join(more, ", "))
	}
	if less != nil {
		parts = append(parts, "without it also "+strings.Join(less, ", "))
	}
	return "the engine executes " + strings.Join(parts, ", "), sum <= other*is
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
