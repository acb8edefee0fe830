package profile

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/base/columnar"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Columns lists the long slices of figures of a profile, with their places in
// JSON: samples and the columns of the timeline. The saved file and the page store
// them as binary beside the text. Whoever changes a column through its pointer
// changes the profile.
func (p *Profile) Columns() iter.Seq2[[]any, timeline.Column] {
	return func(yield func([]any, timeline.Column) bool) {
		samples := func(v *[]float64, path ...any) bool {
			if *v == nil {
				return true
			}
			return yield(path, timeline.Column{Key: path[len(path)-1].(string), Holds: timeline.Span, Float64: v})
		}
		if !samples(&p.Totals.LatencySamples, "totals", "latency_samples_s") {
			return
		}
		for i := range p.Layers {
			if !samples(&p.Layers[i].Samples, "layers", i, "samples_s") {
				return
			}
		}
		if p.Timeline == nil {
			return
		}
		for path, c := range p.Timeline.Columns() {
			if c.Absent() {
				continue
			}
			if !yield(append([]any{"timeline"}, path...), c) {
				return
			}
		}
	}
}

// Detached returns a copy of p whose columns may be replaced without changing p:
// what they stand in is copied, their figures are not.
func (p *Profile) Detached() *Profile {
	q := *p
	q.Layers = slices.Clone(p.Layers)
	if q.Layers == nil {
		q.Layers = []Layer{}
	}
	if p.Timeline != nil {
		t := *p.Timeline
		t.Lanes = slices.Clone(t.Lanes)
		for i := range t.Lanes {
			t.Lanes[i].Figures = maps.Clone(t.Lanes[i].Figures)
		}
		t.Counters, t.Memories = slices.Clone(t.Counters), slices.Clone(t.Memories)
		q.Timeline = &t
	}
	return &q
}

// clearColumn takes the figures of a column away, after they were stored elsewhere.
func clearColumn(c *timeline.Column) {
	switch {
	case c.Float64 != nil:
		*c.Float64 = []float64{}
		if c.Store != nil {
			c.Store(*c.Float64)
		}
	case c.Int64 != nil:
		*c.Int64 = []int64{}
	default:
		*c.Int32 = []int32{}
	}
}

// split moves the columns of a detached profile to a writer.
func (p *Profile) split() *columnar.Writer {
	w := &columnar.Writer{Refs: []columnar.Ref{}}
	for path, c := range p.Columns() {
		if c.Len() == 0 {
			continue
		}
		switch {
		case c.Float64 != nil:
			columnar.AddExact(w, *c.Float64, path...)
		case c.Int64 != nil:
			columnar.Add(w, columnar.I64, *c.Int64, path...)
		default:
			columnar.Add(w, columnar.I32, *c.Int32, path...)
		}
		clearColumn(&c)
	}
	return w
}

// join puts columns back. Both lists are in one order; the text has an empty list
// where a column belongs.
func (p *Profile) join(refs []columnar.Ref, r io.Reader) error {
	at := 0
	for path, c := range p.Columns() {
		if at >= len(refs) {
			break
		}
		if c.Len() != 0 || !samePath(path, refs[at].Path) {
			continue
		}
		ref := refs[at]
		at++
		var err error
		switch {
		case c.Float64 != nil:
			if *c.Float64, err = columnar.Read[float64](r, ref); err == nil && c.Store != nil {
				c.Store(*c.Float64)
			}
		case c.Int64 != nil:
			*c.Int64, err = columnar.Read[int64](r, ref)
		default:
			*c.Int32, err = columnar.Read[int32](r, ref)
		}
		if err != nil {
			return err
		}
	}
	if at < len(refs) {
		return fmt.Errorf("column %v has no place in the profile", refs[at].Path)
	}
	return nil
}

// samePath compares places. Positions are integers, which JSON reads as reals.
func samePath(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool {
		if n, ok := x.(int); ok {
			x = float64(n)
		}
		if n, ok := y.(int); ok {
			y = float64(n)
		}
		return x == y
	})
}
