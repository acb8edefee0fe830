package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/opmeter/opmeter/profile"
)

// memoryHeads are the headings of the memory plan; those at 4 are flush left.
var memoryHeads = []string{"offset", "bytes", "from", "to", "what for"}

// memoryPlan is the memory plan as text: a line about the whole, and a row for
// every placed buffer, by place and time. The line is empty without a plan.
func memoryPlan(p *profile.Profile) (title string, rows [][]string) {
	m := p.Memory
	if m == nil || len(m.Plan) == 0 {
		return "", nil
	}
	var facts []string
	fact := func(what string, v *int64) {
		if v != nil {
			facts = append(facts, what+" "+Bytes(*v))
		}
	}
	fact("arena", m.ArenaBytes)
	fact("alive at one time", m.PeakBytes)
	fact("persistent", m.PersistentBytes)
	if m.Planner != "" {
		s := "planner " + Clean(m.Planner)
		if m.AlignBytes != nil {
			s += ", aligned to " + Bytes(*m.AlignBytes)
		}
		facts = append(facts, s)
	}
	title = "Memory plan: " + strings.Join(facts, ", ")
	step := steps(p)
	plan := slices.Clone(m.Plan)
	slices.SortStableFunc(plan, func(a, b profile.Placement) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.First, b.First))
	})
	for _, e := range plan {
		name, _, _ := strings.Cut(e.Name, ";") // a converter joins the names of what it fused
		if e.Scratch && name == "" {
			name = "scratch"
		}
		rows = append(rows, []string{strconv.FormatInt(e.Offset, 10), strconv.FormatInt(e.Bytes, 10), step(e.First), step(e.Last), Clean(name)})
	}
	return title, rows
}

// steps returns how to show a step of the plan: as the number of the layer in
// the table where that is known, "start" before the first and "end" after the
// last one.
func steps(p *profile.Profile) func(n int64) string {
	// Steps count the operators of the main graph; layers of bodies stand between.
	var main []int64
	bodies := false
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Parent == nil {
			main = append(main, l.Index)
		} else {
			bodies = true
		}
		switch l.Op {
		case "IF", "WHILE", "CALL_ONCE":
			bodies = true
		}
	}
	before := int64(0)
	if p.Memory.Planner == "tflm" {
		if bodies {
			// Allocation scopes are opened for bodies too, which layers do not tell.
			return func(n int64) string { return "scope " + strconv.FormatInt(n, 10) }
		}
		before = 1 // scope 0 is before the first operator
	}
	return func(n int64) string {
		n -= before
		switch {
		case n < 0:
			return "start"
		case n >= int64(len(main)):
			return "end"
		}
		return "#" + strconv.FormatInt(main[n], 10)
	}
}

// writeMemory writes the memory plan for a terminal.
func writeMemory(b *strings.Builder, p *profile.Profile, o Options) {
	title, rows := memoryPlan(p)
	if title == "" {
		b.WriteString("\nThis profile has no memory plan.\n")
		return
	}
	b.WriteByte('\n')
	for _, l := range wrap(title, o.Width) {
		b.WriteString(l + "\n")
	}
	width := make([]int, len(memoryHeads))
	for i, h := range memoryHeads {
		width[i] = len(h)
		for _, r := range rows {
			width[i] = max(width[i], lipgloss.Width(r[i]))
		}
	}
	line := func(r []string) string {
		var l strings.Builder
		for i, c := range r[:4] {
			l.WriteString(pad(c, width[i], false) + gap)
		}
		name := r[4]
		if room := o.Width - l.Len(); o.Width > 0 && room >= leastText {
			name = shorten(name, room)
		}
		return l.String() + name
	}
	h := line(memoryHeads)
	if o.Color {
		h = lipgloss.NewStyle().Bold(true).Render(h)
	}
	b.WriteString(h + "\n")
	for _, r := range rows {
		b.WriteString(line(r) + "\n")
	}
}

// markdownMemory writes the memory plan as a section of a Markdown page.
func markdownMemory(b *strings.Builder, p *profile.Profile) {
	title, rows := memoryPlan(p)
	if title == "" {
		return
	}
	fmt.Fprintf(b, "\n## Memory plan\n\n%s.\n\n| %s |\n| ---: | ---: | ---: | ---: | --- |\n", escape(strings.TrimPrefix(title, "Memory plan: ")), strings.Join(memoryHeads, " | "))
	for _, r := range rows {
		for _, c := range r {
			b.WriteString("| " + escape(c) + " ")
		}
		b.WriteString("|\n")
	}
}
