package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// row is a layer, or a group of layers.
type row struct {
	profile.Layers
	// group is the name of a group, which may be empty; nil for a layer.
	group *string
	cum   *float64 // share of this row and those above
	inner bool     // a scope within the scope of a row above
}

// layer is the layer of a row, nil for groups.
func (r *row) layer() *profile.Layer {
	if r.group != nil {
		return nil
	}
	return r.Layers[0]
}

// figure is the layer's figure, nil for groups. A layer that was never called has
// no time of its own to show.
func (r *row) figure(key string) *profile.Metric {
	l := r.layer()
	if l == nil || l.State == profile.NotReached && (key == "latency_s" || key == "share") {
		return nil
	}
	return l.Figure(key)
}

// value is what to show of a known quantity.
func (r *row) value(key string) (float64, bool) {
	if r.group != nil {
		return r.Sum(key)
	}
	return r.figure(key).Best()
}

// valueOf is [row.value] of any quantity, such as one that the profile brings.
func (r *row) valueOf(q *profile.Quantity) (float64, bool) {
	if r.group != nil || q.Derived() {
		return r.SumOf(q)
	}
	return r.figure(q.Key).Best()
}

// bytes is what the row reads and writes.
func (r *row) bytes() (float64, bool) {
	a, read := r.value("bytes_read")
	b, written := r.value("bytes_written")
	return a + b, read || written
}

func (r *row) op() string {
	if r.group != nil {
		return *r.group
	}
	return words.Op(r.layer())
}

func (r *row) name() string {
	if l := r.layer(); l != nil {
		return l.Name
	}
	return ""
}

// Sorts are the orders that [Options.Sort] takes beside the keys of quantities.
var Sorts = []string{"index", "time", "macs", "ops", "params", "bytes", "op", "name"}

// Groups are the groupings that [Options.By] takes.
var Groups = []string{"op", "scope"}

// rows makes the table's rows in the order and grouping asked for.
func rows(p *profile.Profile, o Options) ([]row, error) {
	ls := p.Select(func(l *profile.Layer) bool { return o.By != "" || o.All || !l.State.Elsewhere() })
	var out []row
	switch o.By {
	case "":
		for i := range ls {
			out = append(out, row{Layers: ls[i : i+1]})
		}
	case "op":
		for _, g := range ls.Group(words.Op) {
			out = append(out, row{Layers: g.Layers, group: &g.Name})
		}
	case "scope":
		return scopeRows(p, ls, o)
	default:
		return nil, fmt.Errorf("cannot group by %q: use one of %s", o.By, strings.Join(Groups, ", "))
	}
	if err := sortRows(out, o.groupOrder(), p.AllQuantities()); err != nil {
		return nil, err
	}
	addShares(out)
	return out, nil
}

// groupOrder is the order of the rows: groups have the slowest first unless another is asked for.
func (o *Options) groupOrder() string {
	if o.Sort == "" && o.By != "" {
		return "time"
	}
	return o.Sort
}

// addShares sets the cumulative shares of rows that are not part of others.
func addShares(out []row) {
	var c float64
	for i := range out {
		if out[i].inner {
			continue
		}
		if s, ok := out[i].value("share"); ok {
			c += s
			out[i].cum = new(c)
		}
	}
}

// sortRows puts rows in an order: by a text, or by a figure with the largest first
// and unknown ones last.
func sortRows(rs []row, order string, quantities []profile.Quantity) error {
	var value func(r *row) (float64, bool)
	switch order {
	case "", "index":
		return nil // as they come
	case "op":
		sorting.Stable(rs, func(a, b row) int { return cmp.Compare(a.op(), b.op()) })
		return nil
	case "name":
		sorting.Stable(rs, func(a, b row) int { return cmp.Compare(a.name(), b.name()) })
		return nil
	case "time":
		value = func(r *row) (float64, bool) { return r.value("latency_s") }
	case "bytes":
		value = (*row).bytes
	default:
		i := slices.IndexFunc(quantities, func(q profile.Quantity) bool { return q.Key == order })
		if i < 0 {
			return fmt.Errorf("cannot sort by %q: use one of %s, or the key of a quantity such as energy_j", order, strings.Join(Sorts, ", "))
		}
		value = func(r *row) (float64, bool) { return r.valueOf(&quantities[i]) }
	}
	sorting.Stable(rs, func(a, b row) int {
		x, hasX := value(&a)
		y, hasY := value(&b)
		switch {
		case !hasX && !hasY:
			return 0
		case !hasX:
			return 1
		case !hasY:
			return -1
		}
		return cmp.Compare(y, x)
	})
	return nil
}
