package profile

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/docs"
	"github.com/opmeter/opmeter/internal/jsonx"
)

var update = flag.Bool("update", false, "write docs/profile.schema.json anew from the Go types")

// TestSchema generates the JSON Schema from the Go types and their comments, and
// compares it with the published one: a field in one of them only is a
// difference.
func TestSchema(t *testing.T) {
	t.Parallel()
	got, err := jsonx.MarshalIndent(buildSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("..", "docs", "profile.schema.json"), got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(docs.ProfileSchema), string(got)); d != "" {
		t.Errorf("docs/profile.schema.json is not current; run go test ./profile -run TestSchema$ -update (-have +want):\n%s", d)
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
				c.value(at+"."+k, extra, e)
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

func buildSchema(t *testing.T) map[string]any {
	t.Helper()
	b := &schemaBuilder{docs: map[string]string{}, words: map[string][]string{}, defs: map[string]any{}}
	b.parse(t)
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
	return out
}

type schemaBuilder struct {
	docs  map[string]string   // "Type" or "Type.Field"
	words map[string][]string // constants by their type
	defs  map[string]any
}

// parse reads the comments and the constants of the package's source.
func (b *schemaBuilder) parse(t *testing.T) {
	t.Helper()
	fset := token.NewFileSet()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
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
							b.words[id.Name] = append(b.words[id.Name], strings.Trim(l.Value, `"`))
						}
					}
				case *ast.TypeSpec:
					b.docs[s.Name.Name] = oneLine(g.Doc.Text())
					st, ok := s.Type.(*ast.StructType)
					if !ok {
						continue
					}
					last := ""
					for _, f := range st.Fields.List {
						if f.Doc != nil {
							last = oneLine(f.Doc.Text())
						}
						for _, n := range f.Names {
							if last == "" && f.Tag != nil {
								t.Errorf("%s.%s has no comment", s.Name.Name, n.Name)
							}
							b.docs[s.Name.Name+"."+n.Name] = last
						}
					}
				}
			}
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (b *schemaBuilder) object(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := b.of(f.Type)
		s["description"] = b.docs[t.Name()+"."+f.Name]
		props[key] = s
		if opts == "" {
			required = append(required, key)
		}
	}
	slices.Sort(required)
	out := map[string]any{"type": "object", "description": b.docs[t.Name()], "properties": props}
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
		if _, ok := b.defs[t.Name()]; !ok {
			b.defs[t.Name()] = nil // stops recursion
			b.defs[t.Name()] = b.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": b.of(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": b.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.String:
		s := map[string]any{"type": "string"}
		if t.Name() != "string" {
			s["enum"] = b.words[t.Name()]
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
