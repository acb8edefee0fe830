package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// row is a layer, or a group of layers.
type row struct {
	profile.Layers
	// group is the name of a group, which may be empty; nil for a layer.
	group *string
	cum   *float64 // share of this row and those above
	level int      // 0 for rows that add up to the total, 1 for those within one of them
	at    int      // place in the table
	// inside are the rows within a row, in the order in which they run.
	inside []row
	// block is nil for rows that are not of repeated blocks.
	block *blockRow
}

// inner reports whether a row is part of one above.
func (r *row) inner() bool { return r.level > 0 }

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
	return r.layer().OpText()
}

// like is the layer of a row, or the first one of a row of equal layers; nil for others.
func (r *row) like() *profile.Layer {
	if r.block != nil && r.block.alike {
		return r.Layers[0]
	}
	return r.layer()
}

func (r *row) name() string {
	if r.block != nil && r.block.alike {
		return r.block.name
	}
	if l := r.layer(); l != nil {
		return l.Name
	}
	return ""
}

// Sorts are the orders that [Options.Sort] takes beside the keys of quantities.
var Sorts = []string{"index", "time", "macs", "ops", "params", "bytes", "op", "name"}

// grouping is a way to gather layers.
type grouping struct {
	key  string
	many string // what the rows are
	head string // heading of the first column
	// wide and least are the longest label and the length to which labels may be cut, 0 for those of
	// operators; tail says that their ends tell them apart.
	wide, least int
	tail        bool
	indent      bool     // labels of rows within others
	also        []string // keys of columns of layers that rows have too
	note        string   // how rows within others add up
	times       string   // what times of one of several equal groups are, where they are known
	rows        func(p *profile.Profile, ls profile.Layers, o Options) []row
}

// groupings are the values of [Options.By] but "".
var groupings = []grouping{
	{key: "op", many: "operators", head: "operator", rows: opRows},
	{
		key: "scope", many: "scopes", head: "scope", wide: 60, least: 20, tail: true, rows: scopeRows,
		note: "A scope includes the scopes inside it. The outermost scopes add up to the total.",
	},
	{
		key: "block", many: "rows", head: "block", wide: 44, least: 24, indent: true, also: []string{"name", "outputs"}, rows: blockRows,
		note:  "A block includes its parts and layers. The outermost rows add up to the total.",
		times: "Median, min and max are the time of one of the equal blocks.",
	},
}

// Groups are the keys of the groupings.
var Groups = func() (keys []string) {
	for i := range groupings {
		keys = append(keys, groupings[i].key)
	}
	return keys
}()

// groupingOf returns the grouping with a key, nil for none.
func groupingOf(key string) *grouping {
	i := slices.IndexFunc(groupings, func(g grouping) bool { return g.key == key })
	if i < 0 {
		return nil
	}
	return &groupings[i]
}

// rows makes the table's rows in the order and grouping asked for.
func rows(p *profile.Profile, o Options) ([]row, error) {
	ls := p.Select(func(l *profile.Layer) bool { return o.By != "" || o.All || !l.State.Elsewhere() })
	var out []row
	if g := groupingOf(o.By); g != nil {
		out = g.rows(p, ls, o)
	} else if o.By != "" {
		return nil, fmt.Errorf("cannot group by %q: use one of %s", o.By, strings.Join(Groups, ", "))
	} else {
		for i := range ls {
			out = append(out, row{Layers: ls[i : i+1]})
		}
	}
	out, err := flatten(p, o, out, 0)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].at = i
	}
	if o.Top > 0 && o.Top < len(out) && slices.ContainsFunc(out, func(r row) bool { return r.inner() }) {
		if err := largestFirst(p, o, out); err != nil {
			return nil, err
		}
	}
	addShares(out)
	return out, nil
}

// flatten sorts each level on its own and puts the rows inside of a row behind it.
func flatten(p *profile.Profile, o Options, rs []row, level int) ([]row, error) {
	if err := sortRows(rs, o.groupOrder(), p.AllQuantities()); err != nil {
		return nil, err
	}
	var out []row
	for _, r := range rs {
		r.level = level
		out = append(out, r)
		inside, err := flatten(p, o, r.inside, level+1)
		if err != nil {
			return nil, err
		}
		out = append(out, inside...)
	}
	return out, nil
}

// largestFirst moves the rows that come first when all are sorted together to the front, in the
// order that they have.
func largestFirst(p *profile.Profile, o Options, rs []row) error {
	sorted := slices.Clone(rs)
	if err := sortRows(sorted, o.groupOrder(), p.AllQuantities()); err != nil {
		return err
	}
	first := make([]bool, len(rs))
	for _, r := range sorted[:o.Top] {
		first[r.at] = true
	}
	sorting.Stable(rs, func(a, b row) int {
		switch {
		case first[a.at] == first[b.at]:
			return 0
		case first[a.at]:
			return -1
		}
		return 1
	})
	return nil
}

// opRows makes a row for each operator.
func opRows(_ *profile.Profile, ls profile.Layers, _ Options) (out []row) {
	for _, g := range ls.Group((*profile.Layer).OpText) {
		out = append(out, row{Layers: g.Layers, group: &g.Name})
	}
	return out
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
		if out[i].inner() {
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
