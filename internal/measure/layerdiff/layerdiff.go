// Package layerdiff compares the outputs of the layers of two models, or of one model in two
// engines, and finds the errors that single layers add.
//
// Both sides compute the same inputs. The layers are paired by [align.Layers]; layers that one of
// the engines fuses are one row with those that it fuses them into. For each row, its outputs are
// compared, and the layers of one side are run in opmeter's own engine on the inputs that the other
// side computed: the difference between that and the outputs of the other side is the error that
// the row adds itself.
//
// Memory is bounded: the models run several times, each time for the values of as many rows as fit
// into [Options].LimitBytes.
package layerdiff

import (
	"context"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/divergence"
)

// Side is a model and what runs it.
type Side struct {
	Model *graph.Model
	// Profile describes the model without times, for the shapes of Inputs.
	Profile *profile.Profile
	Inputs  []*tensor.Tensor
	Engine  Engine
	// External says that Engine is not opmeter's own.
	External bool
}

// Engine runs a model.
type Engine interface {
	// Open prepares for runs that compute some values of the main graph. It returns why values
	// cannot be computed, and the sizes of others in bytes as far as they are known.
	Open(ctx context.Context, ids []int) (missing map[int]error, bytes map[int]int, err error)
	// Values runs the model once and passes each of some opened values that it computes. A value
	// is valid within the call only.
	Values(ctx context.Context, ids []int, take func(id int, t *tensor.Tensor) error) error
	// Outputs runs the unchanged model once and returns its outputs, nil for those that could not
	// be computed.
	Outputs(ctx context.Context) ([]*tensor.Tensor, error)
	// Half says that the engine computes in 16-bit floating point, as far as it told.
	Half() bool
	Close()
}

// Options configures a comparison.
type Options struct {
	// Engine configures opmeter's own engine, for layers that run alone.
	Engine engine.Options
	// LimitBytes bounds the values of each side that are held at a time, 0 for [DefaultLimit].
	LimitBytes int
	Progress   func(phase string, fraction float64)
}

// DefaultLimit is how many bytes of values of each side are held at a time.
const DefaultLimit = 256 << 20

// unknownBytes is what a value of unknown size counts for.
const unknownBytes = 16 << 20

// comparison is the state of a run of [Compare].
type comparison struct {
	sides [2]*Side
	views [2]*view
	o     Options
	diff  outputdiff.Options
	rows  []*row
	// ref is the side whose layers run alone, on the inputs of the other one.
	ref int
	// made finds the row and the place of its output by value, for each side.
	made [2]map[int]place
	// missing says why a value of a side is absent.
	missing [2]map[int]error
	// plain has the outputs of the unchanged model of an external engine, by value.
	plain  [2]map[int]*tensor.Tensor
	bytes  [2]map[int]int
	passes int
	report *divergence.Report
}

// place is an output of a row.
type place struct {
	row *row
	out int
}

// Compare compares two sides. The caller adds to the report what they are called, their engines and
// the inputs. It must hold the files of the models as engines demand it.
func Compare(ctx context.Context, a, b *Side, o Options) (*divergence.Report, error) {
	if o.LimitBytes <= 0 {
		o.LimitBytes = DefaultLimit
	}
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	c := &comparison{sides: [2]*Side{a, b}, o: o, report: &divergence.Report{Schema: divergence.SchemaV1, LimitBytes: int64(o.LimitBytes)}}
	for k, s := range c.sides {
		c.views[k] = newView(s.Model)
	}
	if a.External && !b.External {
		c.ref = 1
	}
	for k, s := range c.sides {
		c.report.Sides[k] = divergence.Side{Model: s.Profile.Model.Name, Format: s.Model.Format, SHA256: s.Profile.Model.SHA256}
	}
	c.diff = outputdiff.Options{Quantised: quantised(a.Profile) || quantised(b.Profile), Half: half(a) || half(b)}
	c.pair()
	if err := c.outputs(ctx); err != nil { // first, while no other session holds memory
		return nil, err
	}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	for from := 0; from < len(c.rows); {
		to := c.chunk(from)
		o.Progress("comparing the layers", float64(from)/float64(len(c.rows)))
		if err := c.compare(ctx, c.rows[from:to]); err != nil {
			return nil, err
		}
		from = to
	}
	for _, r := range c.rows {
		c.report.Rows = append(c.report.Rows, r.Row)
	}
	c.report.Passes = int64(c.passes)
	c.report.Judge()
	return c.report, nil
}

// open prepares the engines for the values that are compared.
func (c *comparison) open(ctx context.Context) error {
	for k, s := range c.sides {
		var ids []int
		seen := map[int]bool{}
		for _, r := range c.rows {
			for _, id := range r.needs(k) {
				if !seen[id] {
					seen[id] = true
					ids = append(ids, id)
				}
			}
		}
		c.o.Progress("preparing "+s.Model.ShortName(), 0)
		var err error
		if c.missing[k], c.bytes[k], err = s.Engine.Open(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// chunk returns the end of the rows from a position on whose values fit into the limit; one row in
// any case.
func (c *comparison) chunk(from int) int {
	var held [2]int
	seen := [2]map[int]bool{{}, {}}
	for i := from; i < len(c.rows); i++ {
		for k := range c.sides {
			for _, id := range c.rows[i].needs(k) {
				if seen[k][id] {
					continue
				}
				seen[k][id] = true
				n, ok := c.bytes[k][id]
				if !ok {
					n = unknownBytes
				}
				held[k] += n
			}
		}
		if max(held[0], held[1]) > c.o.LimitBytes {
			return max(i, from+1)
		}
	}
	return len(c.rows)
}

// compare computes the values of some rows on both sides and compares them.
func (c *comparison) compare(ctx context.Context, rows []*row) error {
	var got [2]map[int]*tensor.Tensor
	for k, s := range c.sides {
		got[k] = map[int]*tensor.Tensor{}
		var ids []int
		seen := map[int]bool{}
		for _, r := range rows {
			for _, id := range r.needs(k) {
				if !seen[id] && c.missing[k][id] == nil {
					seen[id] = true
					ids = append(ids, id)
				}
			}
		}
		if len(ids) == 0 {
			continue
		}
		err := s.Engine.Values(ctx, ids, func(id int, t *tensor.Tensor) error {
			got[k][id] = t.Clone()
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.passes++
	for _, r := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.compareRow(r, got)
		if err := c.addOwn(ctx, r, got); err != nil {
			return err
		}
	}
	return nil
}

// compareRow compares the outputs of a row.
func (c *comparison) compareRow(r *row, got [2]map[int]*tensor.Tensor) {
	if r.Cause != nil || len(r.outs) == 0 {
		return
	}
	for n := range r.outs {
		o := &r.outs[n]
		var v [2]*value
		for k := range v {
			t := got[k][o.ids[k]]
			if t == nil {
				r.Cause = c.absent(k, o.ids[k])
				return
			}
			v[k] = c.views[k].value(o.ids[k], t)
		}
		o.typ, o.shape = v[c.ref].t.Type, v[c.ref].t.Shape
		d, order := c.difference(v[0], v[1])
		o.order, o.known, o.state = order, d.State != profile.NotComparable, d.State
		c.unmarked(v)
		if d.State == profile.NotComparable {
			if r.Cause = d.Cause; r.Output == nil {
				r.Output = d
			}
			continue
		}
		if r.Layout == "" {
			r.Layout = order.String()
		}
		o.noise, _ = divergence.Noise(d)
		if w, ok := divergence.Noise(r.Output); !ok || o.noise > w {
			r.Output = d
		}
	}
	if _, ok := divergence.Noise(r.Output); ok {
		r.Cause = nil
	}
	c.inputNoise(r)
}

// unmarked notes where an output of an external engine is another one while outputs of layers are
// outputs of the model, too.
func (c *comparison) unmarked(v [2]*value) {
	for k, x := range v {
		y := c.plain[k][x.id]
		if y == nil {
			continue
		}
		delete(c.plain[k], x.id)
		d, _ := c.difference(c.views[k].value(x.id, y), x)
		if d.State == profile.Differs || d.State == profile.NotComparable {
			c.report.Unlike = true
			c.note("Output %q of %s differs between the unchanged model and the model with the outputs of layers as further outputs. The rows show the latter.", c.views[k].g.Values[x.id].Name, c.sideName(k))
		}
	}
}

// absent says why a value of a side was not computed.
func (c *comparison) absent(k, id int) *profile.Cause {
	name := c.views[k].g.Values[id].Name
	if err := c.missing[k][id]; err != nil {
		return &profile.Cause{Code: profile.ByInput, Text: fmt.Sprintf("%q of %s is not computed: %v", name, c.sideName(k), err)}
	}
	return &profile.Cause{Code: profile.ByInput, Text: fmt.Sprintf("%q of %s was not computed in this run", name, c.sideName(k))}
}

func (c *comparison) sideName(k int) string { return [2]string{"the first side", "the second side"}[k] }

// inputNoise sets the largest error of the inputs that the row reads from other rows.
func (c *comparison) inputNoise(r *row) {
	r.inNoise, r.inKnown = 0, true
	v := c.views[0]
	seen := map[int]bool{}
	for todo := v.reads(r.nodes[0]); len(todo) > 0; {
		id := todo[0]
		todo = todo[1:]
		if _, ok := v.inputs[id]; ok || seen[id] {
			continue
		}
		seen[id] = true
		p, ok := c.made[0][id]
		switch {
		case ok && p.row.outs[p.out].known:
			r.inNoise = max(r.inNoise, p.row.outs[p.out].noise)
		case !ok && v.maker[id] > 0 && len(seen) < maxAlone:
			// Only the first side has the layer: its inputs count.
			todo = append(todo, v.reads([]int{v.maker[id] - 1})...)
		default:
			r.inKnown = false
		}
	}
	r.Input = decibels(r.inNoise)
}

// outputs compares the outputs of the unchanged models.
func (c *comparison) outputs(ctx context.Context) error {
	var got [2][]*tensor.Tensor
	for k, s := range c.sides {
		c.o.Progress("running "+s.Model.ShortName(), 0)
		var err error
		if got[k], err = s.Engine.Outputs(ctx); err != nil {
			return err
		}
		c.diff.Half = c.diff.Half || s.Engine.Half()
		c.plain[k] = map[int]*tensor.Tensor{}
		for i, id := range c.views[k].g.Outputs {
			if s.External && id >= 0 && got[k][i] != nil {
				c.plain[k][id] = got[k][i]
			}
		}
	}
	ids := [2][]int{c.views[0].g.Outputs, c.views[1].g.Outputs}
	other := c.pairOutputs(ids, got)
	for i, id := range ids[0] {
		if id < 0 {
			continue
		}
		d := &profile.Difference{State: profile.NotComparable, Cause: &profile.Cause{Code: profile.ByData, Text: "the other model has no such output"}}
		if k := other[i]; k >= 0 && ids[1][k] >= 0 {
			x, y := got[0][i], got[1][k]
			if x == nil || y == nil {
				d.Cause = &profile.Cause{Code: profile.ByInput, Text: "it was not computed"}
			} else {
				d, _ = c.difference(c.views[0].value(id, x), c.views[1].value(ids[1][k], y))
			}
		}
		d.Output, d.Name = int64(i), c.views[0].g.Values[id].Name
		c.report.Outputs = append(c.report.Outputs, *d)
	}
	if len(ids[0]) != len(ids[1]) {
		c.note("The models have %d and %d outputs.", len(ids[0]), len(ids[1]))
	}
	return nil
}

// pairOutputs returns for each output of the first model the place of its partner, -1 for none: by
// name, then what the same row computes, then the only ones of a size. If no name is in both, those
// of equal size follow in order. Partners of other names are noted.
func (c *comparison) pairOutputs(ids [2][]int, got [2][]*tensor.Tensor) []int {
	names := [2][]string{c.views[0].names(ids[0]), c.views[1].names(ids[1])}
	out, taken := make([]int, len(ids[0])), make([]bool, len(ids[1]))
	each := func(find func(i int) int) {
		for i := range out {
			if out[i] >= 0 || ids[0][i] < 0 {
				continue
			}
			if k := find(i); k >= 0 && !taken[k] && ids[1][k] >= 0 {
				out[i], taken[k] = k, true
			}
		}
	}
	for i := range out {
		out[i] = -1
	}
	each(func(i int) int {
		return slices.IndexFunc(names[1], func(n string) bool { return n == names[0][i] && n != "" })
	})
	named := slices.Contains(taken, true)
	each(func(i int) int {
		if p, ok := c.made[0][ids[0][i]]; ok {
			return slices.Index(ids[1], p.row.outs[p.out].ids[1])
		}
		return -1
	})
	each(func(i int) int { return onlySize(got, out, taken, i) })
	if !named {
		each(func(i int) int {
			for k, x := range got[1] {
				if !taken[k] && (x == nil || got[0][i] == nil || x.Len() == got[0][i].Len()) {
					return k
				}
			}
			return -1
		})
	}
	for i, k := range out {
		if k >= 0 && names[0][i] != names[1][k] && len(out) > 1 {
			c.note("Output %q of the first side is compared with %q of the second.", names[0][i], names[1][k])
		}
	}
	return out
}

// onlySize returns the output of the second model that has as many elements as output i of the
// first one, -1 if none has, or several of either model that have no partner yet.
func onlySize(got [2][]*tensor.Tensor, partner []int, taken []bool, i int) int {
	if got[0][i] == nil {
		return -1
	}
	at, n := -1, got[0][i].Len()
	for k, x := range got[0] {
		if k != i && partner[k] < 0 && x != nil && x.Len() == n {
			return -1
		}
	}
	for k, x := range got[1] {
		if taken[k] || x == nil || x.Len() != n {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = k
	}
	return at
}

func (c *comparison) note(format string, args ...any) {
	c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
}

// matchNames returns for each name the place of its partner in another list, -1 for none: by name,
// and in order if no name is in both lists and the lists have as many.
func matchNames(a, b []string) []int {
	out := make([]int, len(a))
	any := false
	for i, n := range a {
		out[i] = -1
		for k := range b {
			if b[k] == n && n != "" {
				out[i], any = k, true
				break
			}
		}
	}
	if !any && len(a) == len(b) {
		for i := range out {
			out[i] = i
		}
	}
	return out
}
