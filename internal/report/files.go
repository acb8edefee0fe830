package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
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
	for _, c := range columns() {
		if c.key == "" || o.By != "" && !c.group || o.By == "" && c.key == "layers" {
			continue
		}
		cols = append(cols, c)
	}
	out := csv.NewWriter(w)
	line := make([]string, len(cols))
	for i, c := range cols {
		line[i] = c.key
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for _, r := range rs {
		for i, c := range cols {
			line[i] = c.raw(r)
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
	for _, c := range columns() {
		if c.keep < 0 || o.By != "" && !c.group || o.By == "" && c.key == "layers" {
			continue
		}
		for _, r := range rs {
			if c.human(r) != "" {
				cols = append(cols, c)
				break
			}
		}
	}
	b.WriteString("\n|")
	for _, c := range cols {
		b.WriteString(" " + c.head + " |")
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
	for _, r := range rs {
		b.WriteByte('|')
		for _, c := range cols {
			b.WriteString(" " + escape(c.human(r)) + " |")
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
	if p.Incomplete != "" {
		fmt.Fprintf(&b, "\nIncomplete: %s\n", escape(p.Incomplete))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func escape(s string) string { return text.Markdown(s) }
