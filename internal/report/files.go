package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

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
				line[i] = Cell(line[i])
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Cell makes text safe for a spreadsheet: what it would take for a formula gets
// an apostrophe before it, and control characters become escapes.
func Cell(s string) string {
	s = Clean(s)
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
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

var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`)

func escape(s string) string { return markdown.Replace(Clean(s)) }

// writeYAML writes the same data as JSON, in the same order.
func writeYAML(w io.Writer, p *profile.Profile, _ Options) error {
	var b bytes.Buffer
	if err := p.Encode(&b); err != nil {
		return err
	}
	n, err := yamlNode(jsontext.NewDecoder(&b))
	if err != nil {
		return err
	}
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	return errors.Join(out.Encode(n), out.Close())
}

func yamlNode(d *jsontext.Decoder) (*yaml.Node, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, v string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v}, nil
	}
	switch t.Kind() {
	case '"':
		return scalar("!!str", t.String())
	case '0':
		s := t.String()
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			return scalar("!!int", s)
		}
		return scalar("!!float", s)
	case 't', 'f':
		return scalar("!!bool", t.String())
	case 'n':
		return scalar("!!null", "null")
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	end := jsontext.Kind(']')
	if t.Kind() == '{' {
		n.Kind, n.Tag, end = yaml.MappingNode, "!!map", '}'
	}
	leaf := true
	for d.PeekKind() != end {
		c, err := yamlNode(d)
		if err != nil {
			return nil, err
		}
		leaf = leaf && c.Kind == yaml.ScalarNode
		n.Content = append(n.Content, c)
	}
	if n.Kind == yaml.SequenceNode && leaf {
		n.Style = yaml.FlowStyle
	}
	_, err = d.ReadToken()
	return n, err
}
