package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// writeCSV writes one table, a row a layer, figures in base units, empty where
// not known.
func writeCSV(w io.Writer, p *profile.Profile, o Options) error {
	o.All = true
	rs, err := rows(p, o)
	if err != nil {
		return err
	}
	var cols []column
	for _, c := range columnsFor(p, o) {
		if c.key != "" {
			cols = append(cols, c)
		}
	}
	out := csv.NewWriter(w)
	line := make([]string, len(cols))
	for i, c := range cols {
		line[i] = c.key
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for k := range rs {
		for i, c := range cols {
			line[i] = c.raw(&rs[k])
			if c.left {
				line[i] = text.Cell(line[i])
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// writeMarkdown writes summary, table and findings as Markdown.
func writeMarkdown(w io.Writer, p *profile.Profile, o Options) error {
	rs, err := rows(p, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Profile of %s\n\n| | |\n| --- | --- |\n", escape(p.Model.Name))
	for _, f := range summary(p) {
		fmt.Fprintf(&b, "| %s | %s |\n", escape(f.label), escape(f.value))
	}
	var cols []column
	for _, c := range columnsFor(p, o) {
		if c.keep >= 0 && slices.ContainsFunc(rs, func(r row) bool { return c.human(&r) != "" }) {
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
	_, err = io.WriteString(w, b.String())
	return err
}

func escape(s string) string { return text.Markdown(s) }
