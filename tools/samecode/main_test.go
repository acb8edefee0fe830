package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const goMod = "module example.com/m\n\ngo 1.26\n"

// base is a small tree; each case replaces or removes files of it.
var base = map[string]string{
	"go.mod": goMod,
	"a/a.go": `package a

import "example.com/m/b"

// Sum adds.
func Sum(xs []int) int {
	total := 0
	for _, x := range xs {
		total += b.Twice(x)
	}
	return total + b.Limit
}

func fail() string { return "it is missing " + "at all" }
`,
	"b/b.go": `package b

const (
	Limit = iota + 7
	Other
	Last
)

func Twice(x int) int { return double(x) }

func double(x int) int { return 2 * x }

func triple(x int) int { return 3 * x }

type Point struct {
	X int ` + "`json:\"x\"`" + `
	Y int ` + "`json:\"y\"`" + `
}

type point struct{ across, down int }

func (p point) sum() int { return p.across + p.down }

func origin(across int) point { return point{across: across, down: triple(0)} }
`,
	"b/k_amd64.s": "// Old comment.\nTEXT ·double(SB), $0\n\tRET // done\n",
	"b/t.bin":     "data",
}

func files(edit func(map[string]string)) map[string][]byte {
	texts := maps.Clone(base)
	if edit != nil {
		edit(texts)
	}
	out := map[string][]byte{}
	for name, s := range texts {
		out[name] = []byte(s)
	}
	return out
}

func replace(file string, pairs ...string) func(map[string]string) {
	return func(m map[string]string) {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(m[file], pairs[i]) {
				panic("no " + pairs[i])
			}
		}
		m[file] = strings.NewReplacer(pairs...).Replace(m[file])
	}
}

func all(edits ...func(map[string]string)) func(map[string]string) {
	return func(m map[string]string) {
		for _, e := range edits {
			e(m)
		}
	}
}

func move(from, to string) func(map[string]string) {
	return func(m map[string]string) { m[to] = m[from]; delete(m, from) }
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(map[string]string)
		want string // part of the report, "" when nothing differs
	}{
		"nothing":            {nil, ""},
		"comment":            {replace("a/a.go", "// Sum adds.", "// Sum returns the sum.\n// It is long."), ""},
		"layout":             {replace("a/a.go", "b.Twice(x)", "b.Twice(\n\t\tx,\n\t)"), ""},
		"local":              {replace("a/a.go", "total", "acc", "xs", "values"), ""},
		"text":               {replace("a/a.go", `"it is missing " + "at all"`, `"not a number"`), ""},
		"package moved":      {all(move("b/b.go", "c/b.go"), move("b/k_amd64.s", "c/k_amd64.s"), move("b/t.bin", "c/t.bin"), replace("c/b.go", "package b", "package c"), replace("a/a.go", "m/b", "m/c", "b.", "c.")), ""},
		"function renamed":   {all(replace("b/b.go", "double", "twofold"), replace("b/k_amd64.s", "double", "twofold", "Old", "New")), ""},
		"field renamed":      {replace("b/b.go", "across", "column"), ""},
		"method renamed":     {replace("b/b.go", "sum()", "total()"), ""},
		"file split":         {all(replace("b/b.go", "func triple(x int) int { return 3 * x }", ""), func(m map[string]string) { m["b/c.go"] = "package b\n\nfunc triple(n int) int { return 3 * n }\n" }), ""},
		"other call":         {replace("b/b.go", "return double(x)", "return triple(x)"), "in Twice: b.double -> b.triple (became b.double)"},
		"same name reused":   {replace("b/b.go", "double", "triple", "triple", "double"), ""},
		"implied method":     {all(replace("b/b.go", "sum()", "String()")), "changed: 1"},
		"other field":        {replace("b/b.go", "p.across + p.down", "p.across + p.across"), "in point.sum: down -> across (became down)"},
		"other local":        {replace("b/b.go", "func triple(x int) int { return 3 * x }", "func triple(x, y int) int { return 3 * y }"), "triple"},
		"number":             {replace("b/b.go", "2 * x", "4 * x"), "- 2\n    + 4"},
		"operator":           {replace("b/b.go", "2 * x", "2 + x"), "changed: 1"},
		"iota":               {replace("b/b.go", "\tOther\n", ""), "only old: 1"},
		"tag":                {replace("b/b.go", `json:"x"`, `json:"col"`), "type Point"},
		"build line":         {replace("b/b.go", "package b", "//go:build linux\n\npackage b"), "build linux"},
		"constraint by name": {move("b/b.go", "b/b_amd64.go"), "build amd64"},
		"directive":          {replace("b/b.go", "func double", "//go:noinline\nfunc double"), "//go:noinline"},
		"key":                {replace("a/a.go", `"it is missing " + "at all"`, `"number"`), "code-like text changed: 1"},
		"removed":            {replace("b/b.go", "func (p point) sum() int { return p.across + p.down }", ""), "only old: 1"},
		"added":              {replace("b/b.go", "type point", "var extra = map[string]bool{}\n\ntype point"), "only new: 1"},
		"assembly":           {replace("b/k_amd64.s", "RET", "NOP"), "b/k_amd64.s: file: content differs"},
		"data":               {replace("b/t.bin", "data", "date"), "b/t.bin: file: content differs"},
		"standard library":   {all(replace("a/a.go", "import ", "import \"math/bits\"\nimport ", "b.Limit", "bits.Len(1)")), "math/bits . Len"},
		"predeclared":        {replace("b/b.go", "double(x int) int", "double(x int32) int"), "- int\n    + int32"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := compare(files(nil), files(tt.edit), options{})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			r.print(&out, options{texts: true})
			if r.same() != (tt.want == "") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("want %q:\n%s", tt.want, &out)
			}
		})
	}
}

// A field that was added does not look like a renamed one.
func TestAddedField(t *testing.T) {
	t.Parallel()
	after := replace("b/b.go", "struct{ across, down int }", "struct{ above, across, column int }", "p.down", "p.column", "down:", "column:")
	r, err := compare(files(nil), files(after), options{})
	if err != nil || len(r.changed) != 1 || len(r.names) != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// Declarations with equal bodies are told apart by their uses.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	before := "package a\n\nimport \"errors\"\n\nvar errA = errors.New(\"a b\")\n\nvar errB = errors.New(\"b c\")\n\nfunc f() error { return errA }\n\nfunc g(x int) error { return errB }\n"
	after := "package a\n\nimport \"errors\"\n\nvar errSecond = errors.New(\"second one\")\n\nvar errFirst = errors.New(\"first one\")\n\nfunc f() error { return errFirst }\n\nfunc g(x int) error { return errSecond }\n"
	run := func(after string) *report {
		r, err := compare(map[string][]byte{"a.go": []byte(before)}, map[string][]byte{"a.go": []byte(after)}, options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(after); !r.same() || r.renamed != 2 || r.equal != 2 || r.textCount != 2 {
		t.Errorf("%+v", r)
	}
	if r := run(strings.Replace(before, "return errB", "return errA", 1)); len(r.names) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	write := func(name, s string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	git("init", "-q")
	for name, s := range base {
		write(name, s)
	}
	git("add", ".")
	git("commit", "-qm", "a")
	write("a/a.go", strings.ReplaceAll(base["a/a.go"], "total", "sum"))
	write("b/t.bin", "other")
	t.Chdir(dir)
	for name, tt := range map[string]struct {
		dirs []string
		same bool
	}{"all": {nil, false}, "one folder": {[]string{"a"}, true}} {
		var out bytes.Buffer
		if same, err := run(&out, "HEAD", ".", tt.dirs, options{}); err != nil || same != tt.same {
			t.Errorf("%s: %v, %v\n%s", name, same, err, &out)
		}
	}
}
