package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/opmeter/opmeter/internal/mcp"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
)

// mcpPage lists the tools of opmeter mcp, as a client sees them.
func mcpPage(b *bytes.Buffer, d *docs) error {
	err := d.head(b, "Tools for agents", `The tools of `+"`opmeter mcp`"+` with their arguments and answers. [The guide](page:use-from-agents) says
how to set it up, and what the server may read. Clients get the same as JSON schemas.

An answer is structured content of at most 20 KiB, with a text of at most 6 KiB. Lists are in
`+"`rows`"+`. If rows are left out, `+"`more`"+` has their number (`+"`left`"+`) and how to ask for them. Figures are
in base units, under the keys of [quantities](page:quantities). A figure that is absent is unknown.`)
	if err != nil {
		return err
	}
	tools, err := mcp.Tools(context.Background())
	if err != nil {
		return err
	}
	for _, t := range tools {
		fmt.Fprintf(b, "\n## %s\n\n", t.Name)
		b.WriteString(strings.Join(report.Wrap(t.Description, 100), "\n") + "\n")
		for _, x := range []struct {
			head, schema string
			from         any
		}{{"argument", "arguments", t.InputSchema}, {"answer", "answer", t.OutputSchema}} {
			s, err := schemaOf(x.from)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", t.Name, x.schema, err)
			}
			fmt.Fprintf(b, "\n| %s | type | meaning |\n| --- | --- | --- |\n", x.head)
			schemaRows(b, "", s)
		}
	}
	return nil
}

// schemaOf decodes a schema that a client got.
func schemaOf(from any) (*jsonschema.Schema, error) {
	raw, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	return s, json.Unmarshal(raw, s)
}

// schemaRows writes the properties of an object, and those of the objects in it.
func schemaRows(b *bytes.Buffer, before string, s *jsonschema.Schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		kind, inner := schemaType(p)
		if slices.Contains(s.Required, name) && before == "" {
			kind += ", required"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", code(before+name), kind, text.TableCell(p.Description))
		if inner != nil && name != "more" {
			schemaRows(b, before+name+".", inner)
		}
	}
}

// schemaType says what a value may be, and which object it holds.
func schemaType(s *jsonschema.Schema) (kind string, inner *jsonschema.Schema) {
	kind = s.Type
	if kind == "" { // nullable
		kind = strings.Join(slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }), " or ")
	}
	number := func(v *float64) string {
		if *v == math.Trunc(*v) {
			return strconv.FormatInt(int64(*v), 10)
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	if s.Minimum != nil && s.Maximum != nil {
		kind += " from " + number(s.Minimum) + " to " + number(s.Maximum)
	}
	switch {
	case s.Items != nil:
		of, in := schemaType(s.Items)
		return "list of " + of, in
	case len(s.Properties) > 0:
		return kind, s
	case s.AdditionalProperties != nil && s.AdditionalProperties.Type != "":
		of, in := schemaType(s.AdditionalProperties)
		return "map of " + of, in
	}
	return kind, nil
}
