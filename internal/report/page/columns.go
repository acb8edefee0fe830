package page

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/columnar"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// split puts a copy of p without its long columns into d, and returns these.
func split(d *document, p *profile.Profile, limit int) *columnar.Writer {
	w := &columnar.Writer{Refs: []columnar.Ref{}}
	q := p.Detached()
	d.Profile = q
	reduce(d, limit)
	for i := range d.Distributions {
		s, at := &d.Distributions[i], []any{"distributions", i}
		move(w, columnar.F64, &s.Edges, append(at, "edges_s")...)
		move(w, columnar.I32, &s.Counts, append(at, "counts")...)
		move(w, columnar.F32, &s.Quantiles, append(at, "quantiles_s")...)
		move(w, columnar.F32, &s.Mins, append(at, "mins_s")...)
		move(w, columnar.F32, &s.Medians, append(at, "medians_s")...)
		move(w, columnar.F32, &s.Maxs, append(at, "maxs_s")...)
	}
	for place, c := range q.Columns() {
		take(w, c, append([]any{"profile"}, place...))
	}
	d.Columns = w.Refs
	return w
}

// take moves one column of the profile. Points in time keep their nanoseconds and
// lengths seven digits, which is more than a screen shows; of all else nothing is
// lost.
func take(w *columnar.Writer, c timeline.Column, path []any) {
	switch {
	case c.Int32 != nil:
		move(w, columnar.I32, c.Int32, path...)
	case c.Int64 != nil:
		move(w, columnar.I64, c.Int64, path...)
	case c.Holds == timeline.Span:
		move(w, columnar.F32, c.Float64, path...)
	case c.Holds == timeline.Time, c.Holds == timeline.Number && strings.HasSuffix(c.Key, "_s"):
		move(w, columnar.NS, c.Float64, path...)
	default:
		columnar.AddExact(w, *c.Float64, path...)
		*c.Float64 = nil
	}
	if c.Store != nil {
		c.Store(nil)
	}
}

// move hands a column to the writer and takes it out of the text.
func move[T columnar.Number](w *columnar.Writer, code columnar.Code, v *[]T, path ...any) {
	columnar.Add(w, code, *v, path...)
	*v = nil
}
