package profile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/docs"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/update"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestSchema generates the JSON Schema from the Go types and their comments, and
// compares it with the published one: a field in one of them only is a
// difference.
func TestSchema(t *testing.T) {
	t.Parallel()
	got, err := jsonx.MarshalIndent(buildSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	if update.Wanted() {
		if err := os.WriteFile(filepath.Join("..", "docs", "profile.schema.json"), got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(docs.ProfileSchema), string(got)); d != "" {
		t.Errorf("docs/profile.schema.json is not current; run go test ./profile -run TestSchema$ -update (-have +want):\n%s", d)
	}
}

// TestSchemaOfNewQuantity adds one entry to the table: it stands in the schema of
// layers and totals, and in the types that the page is compiled with.
// Reports are tested in internal/report/quantities.
func TestSchemaOfNewQuantity(t *testing.T) {
	t.Parallel()
	added := entry{Quantity: Quantity{Key: "bus_wait_s", Unit: "s", Name: "Wait for the bus", Doc: "Time in which nothing but the bus moved.", Adds: true, Better: -1}}
	schema := buildSchema(t, added)
	for _, def := range []string{"Layer", "Totals"} {
		figures := schema["$defs"].(map[string]any)[def].(map[string]any)["properties"].(map[string]any)["figures"].(map[string]any)
		got, ok := figures["properties"].(map[string]any)[added.Key].(map[string]any)
		if !ok || got["description"] != added.Doc || got["$ref"] != "#/$defs/Metric" {
			t.Errorf("%s: %s is %v", def, added.Key, got)
		}
	}
	if _, err := exec.LookPath("node"); err != nil {
		material.Skip(t, "node is missing: install Node.js, which makes the page's types")
	}
	data, err := jsonx.MarshalIndent(schema)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "schema.json"), filepath.Join(dir, "profile.ts")
	if err := os.WriteFile(in, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.CommandContext(t.Context(), "node", filepath.Join("..", "web", "scripts", "types.mjs"), in, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	types, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(types), "/** "+added.Doc+" */\n    "+added.Key+"?: Metric;"); n != 2 {
		t.Errorf("the types of layers and totals name %s %d times, want 2:\n%s", added.Key, n, types)
	}
}

// TestSchemaHolds checks that a profile with every field set uses only keys of
// the schema, uses all of them, and has the types that it states.
func TestSchemaHolds(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := jsonx.Unmarshal(docs.ProfileSchema, &schema); err != nil {
		t.Fatal(err)
	}
	var p Profile
	fillAll(reflect.ValueOf(&p).Elem())
	b, err := jsonx.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := jsonx.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	c := schemaCheck{t: t, defs: schema["$defs"].(map[string]any)}
	c.value("profile", schema, v)
}

type schemaCheck struct {
	t    *testing.T
	defs map[string]any
}

func (c schemaCheck) value(at string, s map[string]any, v any) {
	c.t.Helper()
	if r, ok := s["$ref"].(string); ok {
		s = c.defs[strings.TrimPrefix(r, "#/$defs/")].(map[string]any)
	}
	kind := map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number"}[reflect.TypeOf(v).Kind()]
	if want := s["type"]; want != kind && (want != "integer" || kind != "number") {
		c.t.Errorf("%s is %s, schema says %v", at, kind, want)
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			c.value(at+"[]", s["items"].(map[string]any), e)
		}
	case map[string]any:
		props, _ := s["properties"].(map[string]any)
		if extra, ok := s["additionalProperties"].(map[string]any); ok {
			for k, e := range v {
				if known, ok := props[k].(map[string]any); ok {
					c.value(at+"."+k, known, e)
				} else {
					c.value(at+"."+k, extra, e)
				}
			}
			return
		}
		for k, e := range v {
			if p, ok := props[k].(map[string]any); ok {
				c.value(at+"."+k, p, e)
			} else {
				c.t.Errorf("%s.%s is not in the schema", at, k)
			}
		}
		for k := range props {
			if _, ok := v[k]; !ok {
				c.t.Errorf("%s.%s is in the schema and never written", at, k)
			}
		}
	}
}

// fillAll sets every field to something that is not zero.
func fillAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fillAll(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fillAll(v.Index(i))
		}
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fillAll(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), e)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64, reflect.Int32:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		panic(v.Kind())
	}
}

// TestSchemaNamesQuantities checks that each quantity that is stored has a place in
// the schema: a field of its own or one in figures.
func TestSchemaNamesQuantities(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := jsonx.Unmarshal(docs.ProfileSchema, &schema); err != nil {
		t.Fatal(err)
	}
	properties := func(def string) map[string]any {
		return schema["$defs"].(map[string]any)[def].(map[string]any)["properties"].(map[string]any)
	}
	fields := properties("Layer")
	figures := fields["figures"].(map[string]any)["properties"].(map[string]any)
	sparsity := properties("Sparsity")
	for _, q := range table() {
		if q.Derived() {
			continue
		}
		places := 0
		for _, m := range []map[string]any{fields, figures} {
			if _, ok := m[q.Key]; ok {
				places++
			}
		}
		if of, ok := strings.CutPrefix(q.Key, "sparsity_"); ok && sparsity[of] != nil {
			places++
		}
		if places != 1 {
			t.Errorf("%s has %d places in the schema of layers", q.Key, places)
		}
	}
}

// TestSchemaColumns checks that what the saved file and the page store as binary is
// marked, and nothing else.
func TestSchemaColumns(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := jsonx.Unmarshal(docs.ProfileSchema, &schema); err != nil {
		t.Fatal(err)
	}
	marked := 0
	var count func(any)
	count = func(v any) {
		if m, ok := v.(map[string]any); ok {
			if m["column"] == true {
				marked++
			}
			for _, e := range m {
				count(e)
			}
		}
	}
	count(schema)
	var p Profile
	fillAll(reflect.ValueOf(&p).Elem())
	want := 0
	for range p.Columns() {
		want++
	}
	if marked != want || want < 10 {
		t.Errorf("%d columns are marked, a profile has %d", marked, want)
	}
}

// buildSchema makes the schema, with further entries of the table where there are any.
func buildSchema(t *testing.T, more ...entry) map[string]any {
	t.Helper()
	b := &schemaBuilder{t: t, docs: map[string]string{}, words: map[string][]string{}, defs: map[string]any{}}
	b.parse(reflect.TypeFor[Profile](), ".")
	b.parse(reflect.TypeFor[timeline.Timeline](), "timeline")
	root := b.object(reflect.TypeFor[Profile]())
	out := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://github.com/opmeter/opmeter/docs/profile.schema.json",
		"title":   "opmeter profile, version 1",
		"$defs":   b.defs,
	}
	for k, v := range root {
		out[k] = v
	}
	out["properties"].(map[string]any)["schema"].(map[string]any)["const"] = SchemaV1
	b.figures(slices.Concat(table(), more))
	b.columns(out)
	return out
}

type schemaBuilder struct {
	t     *testing.T
	docs  map[string]string   // by "package.Type" or "package.Type.Field"
	words map[string][]string // constants by their type's "package.Type"
	defs  map[string]any
}

// figures names the known quantities that have no field: they stand in the maps.
func (b *schemaBuilder) figures(all []entry) {
	for _, def := range []string{"Layer", "Totals"} {
		figures := b.defs[def].(map[string]any)["properties"].(map[string]any)["figures"].(map[string]any)
		props := map[string]any{}
		for _, q := range all {
			if !q.Derived() && q.layer == nil && q.total == nil {
				m := b.of(reflect.TypeFor[Metric]())
				m["description"] = q.Doc
				props[q.Key] = m
			}
		}
		figures["properties"] = props
	}
}

// columns marks the lists that may be stored as binary beside the text, by the
// list of them that the saved file and the page use.
func (b *schemaBuilder) columns(root map[string]any) {
	var p Profile
	fillAll(reflect.ValueOf(&p).Elem())
	for path := range p.Columns() {
		s := root
		for _, step := range path {
			if r, ok := s["$ref"].(string); ok {
				s = b.defs[strings.TrimPrefix(r, "#/$defs/")].(map[string]any)
			}
			props, _ := s["properties"].(map[string]any)
			name, isName := step.(string)
			switch {
			case !isName:
				s = s["items"].(map[string]any)
			case props[name] != nil:
				s = props[name].(map[string]any)
			default:
				s = s["additionalProperties"].(map[string]any)
			}
		}
		s["column"] = true
	}
}

// parse reads the comments and the constants of the source of a type's package.
func (b *schemaBuilder) parse(of reflect.Type, dir string) {
	b.t.Helper()
	fset := token.NewFileSet()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					if id, ok := s.Type.(*ast.Ident); ok && len(s.Values) == 1 {
						if l, ok := s.Values[0].(*ast.BasicLit); ok {
							key := of.PkgPath() + "." + id.Name
							b.words[key] = append(b.words[key], strings.Trim(l.Value, `"`))
						}
					}
				case *ast.TypeSpec:
					b.comments(of.PkgPath()+"."+s.Name.Name, g, s)
				}
			}
		}
	}
}

// comments keeps the comments of a type and of its fields. A comment holds for the
// fields that follow without a comment.
func (b *schemaBuilder) comments(key string, g *ast.GenDecl, s *ast.TypeSpec) {
	b.docs[key] = oneLine(g.Doc.Text())
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	last := ""
	for _, f := range st.Fields.List {
		switch {
		case f.Doc != nil:
			last = oneLine(f.Doc.Text())
		case f.Comment != nil:
			last = oneLine(f.Comment.Text())
		}
		for _, n := range f.Names {
			b.docs[key+"."+n.Name] = last
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func typeKey(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// def names a type among the definitions. Of two with one name, that of the timeline
// says so.
func (b *schemaBuilder) def(t reflect.Type) string {
	own := reflect.TypeFor[Profile]().PkgPath()
	if _, taken := b.docs[own+"."+t.Name()]; taken && t.PkgPath() != own {
		return "Timeline" + t.Name()
	}
	return t.Name()
}

func (b *schemaBuilder) object(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := b.of(f.Type)
		text := b.docs[typeKey(t)+"."+f.Name]
		if text == "" {
			b.t.Errorf("%s.%s has no comment", t, f.Name)
		}
		s["description"] = text
		props[key] = s
		if opts == "" {
			required = append(required, key)
		}
	}
	slices.Sort(required)
	out := map[string]any{"type": "object", "description": b.docs[typeKey(t)], "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (b *schemaBuilder) of(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return b.of(t.Elem())
	case reflect.Struct:
		name := b.def(t)
		if _, ok := b.defs[name]; !ok {
			b.defs[name] = nil // stops recursion
			b.defs[name] = b.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": b.of(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": b.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.String:
		s := map[string]any{"type": "string"}
		if t.Name() != "string" {
			s["enum"] = b.words[typeKey(t)]
		}
		return s
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int64, reflect.Int32:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	panic("no schema for " + t.String())
}
