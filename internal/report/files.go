package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// writeCSV writes one table, a row a layer, figures in base units, empty where not known.
func writeCSV(w io.Writer, p *profile.Profile, o Options) error {
	return writeLayers(w, []*profile.Profile{p}, o)
}

// writeLayers writes the layers of profiles as comma-separated values. Those of several
// say first of which model and target they are. Columns that nothing has a value for are
// left out.
func writeLayers(w io.Writer, ps []*profile.Profile, o Options) error {
	o.All = true
	of := make([][]row, len(ps))
	var cols []column // of all profiles
	for i, p := range ps {
		rs, err := rows(p, o)
		if err != nil {
			return err
		}
		of[i] = rs
		for _, c := range columnsFor(p, o) {
			known := slices.ContainsFunc(cols, func(x column) bool { return x.key == c.key })
			if c.key != "" && !known && (c.needed || slices.ContainsFunc(rs, func(r row) bool { return c.raw(&r) != "" })) {
				cols = append(cols, c)
			}
		}
	}
	var head []string
	if len(ps) > 1 {
		head = []string{"model", "target"}
		order := func(c column) int {
			return slices.IndexFunc(allColumns(ps, o), func(key string) bool { return key == c.key })
		}
		sorting.Stable(cols, func(x, y column) int { return order(x) - order(y) })
	}
	for _, c := range cols {
		head = append(head, c.key)
	}
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	for i, p := range ps {
		mine := columnsFor(p, o)
		cells := make([]func(*row) string, len(cols)) // nil where the profile has no such column
		for n, c := range cols {
			if j := slices.IndexFunc(mine, func(x column) bool { return x.key == c.key }); j >= 0 {
				cells[n] = mine[j].raw
			}
		}
		for k := range of[i] {
			line := make([]string, 0, len(head))
			if len(ps) > 1 {
				line = append(line, text.Cell(p.Model.Name), text.Cell(p.Target.ID))
			}
			for n, c := range cols {
				cell := ""
				if cells[n] != nil {
					cell = cells[n](&of[i][k])
				}
				if c.left {
					cell = text.Cell(cell)
				}
				line = append(line, cell)
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// allColumns are the keys of the columns of all profiles in the order of their tables.
func allColumns(ps []*profile.Profile, o Options) []string {
	var keys []string
	for _, p := range ps {
		for _, c := range columnsFor(p, o) {
			if !slices.Contains(keys, c.key) {
				keys = append(keys, c.key)
			}
		}
	}
	return keys
}

// writeMarkdown writes headline, table, findings and details as Markdown.
func writeMarkdown(w io.Writer, p *profile.Profile, o Options) error {
	rs, err := rows(p, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Profile of %s\n\n", escape(p.Model.Name))
	title, brief := headline(p)
	if title == "" {
		markdownFacts(&b, p)
	} else {
		fmt.Fprintf(&b, "%s\n\n", escape(title))
		for _, f := range brief {
			fmt.Fprintf(&b, "- **%s**: %s\n", escape(f.label), escape(f.value))
		}
	}
	var cols []column
	for _, c := range columnsFor(p, o) {
		if c.keep >= 0 && !c.terminal && slices.ContainsFunc(rs, func(r row) bool { return c.human(&r) != "" }) {
			cols = append(cols, c)
		}
	}
	b.WriteString("\n|")
	for _, c := range cols {
		b.WriteString(" " + escape(c.head) + " |")
	}
	b.WriteString("\n|")
	for _, c := range cols {
		if c.left {
			b.WriteString(" --- |")
		} else {
			b.WriteString(" ---: |")
		}
	}
	b.WriteByte('\n')
	for i := range rs {
		b.WriteByte('|')
		for _, c := range cols {
			b.WriteString(" " + escape(c.human(&rs[i])) + " |")
		}
		b.WriteByte('\n')
	}
	if o.Memory {
		markdownMemory(&b, p)
	}
	if len(p.Findings) > 0 {
		b.WriteString("\n## Findings\n\n")
		for _, f := range p.Findings {
			fmt.Fprintf(&b, "- %s: %s\n", f.Severity, escape(f.Text))
		}
	}
	if len(p.Incomplete) > 0 {
		fmt.Fprintf(&b, "\nIncomplete: %s\n", escape(words.Incomplete(p)))
	}
	if title != "" {
		b.WriteString("\n## Details\n\n")
		markdownFacts(&b, p)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// markdownFacts writes all figures of the model as a table.
func markdownFacts(b *strings.Builder, p *profile.Profile) {
	b.WriteString("| | |\n| --- | --- |\n")
	for _, f := range summary(p) {
		fmt.Fprintf(b, "| %s | %s |\n", escape(f.label), escape(f.value))
	}
}

func escape(s string) string { return text.Markdown(s) }
