package mltk

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// plan is the memory plan of a full report.
type plan struct {
	memory *profile.Memory
	ram    *int64
	label  func(step int64) string
}

// newPlan returns the plan of a profile, nil if absent.
func newPlan(p *profile.Profile, ls []layer) *plan {
	if p.Memory == nil || len(p.Memory.Plan) == 0 {
		return nil
	}
	at := map[int64]int{} // row by index of the layer
	for i, l := range ls {
		at[l.Index] = i
	}
	return &plan{p.Memory, p.Totals.RAMBytes, func(step int64) string {
		if n, ok := p.LayerAt(step); ok {
			return fmt.Sprintf("%d %s", at[n], strings.ToLower(p.Layers[n].Op))
		}
		if step <= 0 {
			return "inputs"
		}
		return "outputs"
	}}
}

// marks name buffers in the map; those beyond share the last one.
const marks = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ*"

// text draws the plan: a row for every step with the buffers that it needs, and
// what they are.
func (l *plan) text(b *strings.Builder, o Options) {
	m := l.memory
	show := func(n int64) string {
		if o.Raw {
			return strconv.FormatInt(n, 10)
		}
		return prefixed(float64(n))
	}
	b.WriteString("\nMemory Plan\n")
	for _, f := range []struct {
		label string
		v     *int64
	}{{"Total", l.ram}, {"Persistent", m.PersistentBytes}, {"Buffers", m.ArenaBytes}} {
		if f.v != nil {
			b.WriteString(f.label + ": " + show(*f.v) + "\n")
		}
	}
	var last, size int64
	for _, e := range m.Plan {
		last, size = max(last, e.Last), max(size, e.Offset+e.Bytes)
	}
	if size == 0 {
		return
	}
	const columns = 64
	width := 0
	for s := range last + 1 {
		width = max(width, len(l.label(s)))
	}
	for s := range last + 1 {
		line := []byte(strings.Repeat(".", columns))
		used := int64(0)
		for i, e := range m.Plan {
			if s < e.First || s > e.Last {
				continue
			}
			used += e.Bytes
			// Whole columns only, so that neighbours do not overlap; small buffers get one.
			from := int(float64(e.Offset) / float64(size) * columns)
			to := max(int(float64(e.Offset+e.Bytes)/float64(size)*columns), min(from+1, columns))
			for c := from; c < to; c++ {
				line[c] = marks[min(i, len(marks)-1)]
			}
		}
		fmt.Fprintf(b, "%-*s  %s  %s\n", width, l.label(s), line, show(used))
	}
	b.WriteString("Legend:\n")
	rows := [][]string{{"", "Offset", "Size", "Buffer"}}
	for i, e := range m.Plan {
		name, _, _ := strings.Cut(e.Name, ";") // a converter joins the names of what it fused
		if o.Text != nil {
			name = o.Text(name)
		}
		rows = append(rows, []string{string(marks[min(i, len(marks)-1)]), show(e.Offset), show(e.Bytes), name})
	}
	boxed(b, rows)
}

// object is the plan for JSON, in bytes and steps.
func (l *plan) object() object {
	m := l.memory
	buffers := []object{}
	for _, e := range m.Plan {
		buffers = append(buffers, object{
			{key: "offset", value: e.Offset}, {key: "size", value: e.Bytes}, {key: "start", value: e.First}, {key: "end", value: e.Last}, {key: "name", value: e.Name},
		})
	}
	return object{
		{key: "total", value: known(l.ram)},
		{key: "persistent", value: known(m.PersistentBytes)},
		{key: "buffers_size", value: known(m.ArenaBytes)},
		{key: "buffers", value: buffers},
	}
}
