package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// memoryHeads are the headings of the memory plan; those at 4 are left-aligned.
var memoryHeads = []string{"offset", "bytes", "from", "to", "tensor"}

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
	fact("peak", m.PeakBytes)
	fact("persistent", m.PersistentBytes)
	if m.Planner != "" {
		s := "planner " + text.Clean(m.Planner)
		if m.AlignBytes != nil {
			s += ", aligned to " + Bytes(*m.AlignBytes)
		}
		facts = append(facts, s)
	}
	title = "Memory plan: " + strings.Join(facts, ", ")
	plan := slices.Clone(m.Plan)
	sorting.Stable(plan, func(a, b profile.Buffer) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.First, b.First))
	})
	for _, e := range plan {
		name, _, _ := strings.Cut(e.Name, ";") // a converter joins the names of what it fused
		if e.Scratch && name == "" {
			name = "scratch"
		}
		rows = append(rows, []string{strconv.FormatInt(e.Offset, 10), strconv.FormatInt(e.Bytes, 10), step(p, e.First), step(p, e.Last), text.Clean(name)})
	}
	return title, rows
}

// step is the layer that runs at a step of the plan, by its number in the table.
func step(p *profile.Profile, n int64) string {
	if l, ok := p.LayerAt(n); ok {
		return "#" + strconv.FormatInt(l, 10)
	}
	if n <= 0 {
		return "start"
	}
	return "end"
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
			width[i] = max(width[i], text.Width(r[i]))
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
		h = text.Bold.Render(h)
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
