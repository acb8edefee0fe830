package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"hash/maphash"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A class says how a token is compared.
type class byte

const (
	exact     class = 'x' // operators, keywords, numbers, tags, names of other modules
	local     class = 'l' // names declared within the declaration
	global    class = 'p' // package-level names of this module: folder.Name
	member    class = 'f' // uses of fields and methods, by name
	memberDef class = 'F' // declarations of fields and methods
	text      class = 's' // string literals, unquoted
	folder    class = 'd' // folders in blank imports
)

type tok struct {
	class class
	text  string
	line  int
}

// A decl is a top-level function, method, or one specification of a type, const or var group.
type decl struct {
	kind  string
	dir   string
	file  string
	line  int
	order int
	names []string // "Name", or "Receiver.Name" of a method
	toks  []tok
	texts []string // embed and generate directives, which may name moved folders
	hash  uint64
}

func (d *decl) at() string { return fmt.Sprintf("%s:%d", d.file, d.line) }

func (d *decl) name() string { return strings.Join(d.names, ", ") }

// A source is one parsed Go file.
type source struct {
	path, dir string
	file      *ast.File
	fset      *token.FileSet
	text      []byte
	imports   map[string]string // local name to path
}

// A tree holds the declarations of one commit.
type tree struct {
	module  string
	names   map[string]string   // folder to package name
	types   map[string]ast.Expr // folder.Name to the type expression
	globals map[string]bool     // folder.Name
	sources []*source
	decls   []*decl
}

var seed = maphash.MakeSeed()

// parse reads the declarations of all Go files.
func parse(files map[string][]byte, tests bool) (*tree, error) {
	t := &tree{names: map[string]string{}, types: map[string]ast.Expr{}, globals: map[string]bool{}}
	if m := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(files["go.mod"]); m != nil {
		t.module = string(m[1])
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") && !tests || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, files[name], parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s := &source{path: name, dir: path.Dir(name), file: f, fset: fset, text: files[name]}
		if strings.HasSuffix(f.Name.Name, "_test") {
			s.dir += "_test"
		} else {
			t.names[s.dir] = f.Name.Name
		}
		t.sources = append(t.sources, s)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name != "init" && d.Name.Name != "_" {
					t.globals[s.dir+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						t.globals[s.dir+"."+spec.Name.Name] = true
						t.types[s.dir+"."+spec.Name.Name] = spec.Type
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							t.globals[s.dir+"."+n.Name] = n.Name != "_"
						}
					}
				}
			}
		}
	}
	for _, s := range t.sources {
		t.addSource(s)
		s.file, s.text, s.fset = nil, nil, nil
	}
	return t, nil
}

var major = regexp.MustCompile(`^v[0-9]+$`)

// importName returns the name under which a file sees an import.
func (t *tree) importName(spec *ast.ImportSpec, p string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	if dir, ok := t.within(p); ok {
		return t.names[dir]
	}
	base := path.Base(p)
	if major.MatchString(base) && strings.Contains(p, "/") {
		base = path.Base(path.Dir(p))
	}
	base, _, _ = strings.Cut(base, ".")
	return strings.TrimPrefix(base, "go-")
}

// within returns the folder of an import path of this module.
func (t *tree) within(p string) (string, bool) {
	if p == t.module {
		return ".", true
	}
	return strings.CutPrefix(p, t.module+"/")
}

// addSource appends the declarations of one file.
func (t *tree) addSource(s *source) {
	s.imports = map[string]string{}
	marks := t.constraints(s)
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := t.importName(spec, p)
		s.imports[name] = p
		if name != "_" && name != "." && p != "C" {
			continue
		}
		d := &decl{kind: "import", names: []string{"import " + name}}
		d.toks = append(slices.Clone(marks), tok{exact, "import", 0}, tok{exact, name, 0})
		if dir, ok := t.within(p); ok {
			d.toks = append(d.toks, tok{folder, dir, 0})
		} else {
			d.toks = append(d.toks, tok{exact, p, 0})
		}
		if p == "C" {
			d.toks = append(d.toks, tok{exact, s.file.Doc.Text(), 0})
		}
		t.finish(s, d, spec.Pos())
	}
	idents := t.classify(s)
	toks := scan(s, idents)
	between := func(from, to token.Pos) []tok {
		i, _ := slices.BinarySearchFunc(toks, from, func(x placed, p token.Pos) int { return int(x.pos - p) })
		j, _ := slices.BinarySearchFunc(toks, to, func(x placed, p token.Pos) int { return int(x.pos - p) })
		list := make([]tok, 0, j-i)
		for _, x := range toks[i:j] {
			list = append(list, x.tok)
		}
		return list
	}
	for _, top := range s.file.Decls {
		switch top := top.(type) {
		case *ast.FuncDecl:
			d := &decl{kind: "func", names: []string{top.Name.Name}}
			d.toks = append(d.directives(top.Doc), between(top.Pos(), top.End())...)
			if top.Recv != nil {
				d.kind, d.names[0] = "method", receiver(top.Recv)+"."+top.Name.Name
			} else if m := testFunc.FindString(top.Name.Name); m != "" && strings.HasSuffix(s.path, "_test.go") {
				d.toks = append(d.toks, tok{exact, m, 0})
			}
			d.toks = append(slices.Clone(marks), d.toks...)
			t.finish(s, d, top.Pos())
		case *ast.GenDecl:
			var inherited *ast.ValueSpec
			for i, spec := range top.Specs {
				d := &decl{kind: top.Tok.String()}
				d.toks = append(slices.Clone(marks), tok{exact, d.kind, 0})
				switch spec := spec.(type) {
				case *ast.ImportSpec:
					continue
				case *ast.TypeSpec:
					d.names = []string{spec.Name.Name}
					d.toks = append(d.toks, d.directives(spec.Doc)...)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						d.names = append(d.names, n.Name)
					}
					d.toks = append(d.toks, d.directives(spec.Doc)...)
					if top.Tok != token.CONST {
						break
					}
					if len(spec.Values) > 0 {
						inherited = spec
					} else if inherited != nil {
						if inherited.Type != nil {
							d.toks = append(d.toks, between(inherited.Type.Pos(), inherited.Type.End())...)
						}
						for _, v := range inherited.Values {
							d.toks = append(d.toks, between(v.Pos(), v.End())...)
						}
						d.toks = append(d.toks, tok{exact, "(repeated)", 0})
					}
					if inherited != nil && usesIota(inherited) {
						d.toks = append(d.toks, tok{exact, fmt.Sprintf("iota=%d", i), 0})
					}
				}
				d.toks = append(d.toks, d.directives(top.Doc)...)
				d.toks = append(d.toks, between(spec.Pos(), spec.End())...)
				t.finish(s, d, spec.Pos())
			}
		}
	}
}

var testFunc = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)

func usesIota(spec *ast.ValueSpec) bool {
	found := false
	for _, v := range spec.Values {
		ast.Inspect(v, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && id.Name == "iota"
			return true
		})
	}
	return found
}

func receiver(list *ast.FieldList) string {
	e := list.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// directives returns compiler directives as tokens; embed and generate become texts.
func (d *decl) directives(doc *ast.CommentGroup) []tok {
	var list []tok
	if doc == nil {
		return nil
	}
	for _, comment := range doc.List {
		switch {
		case strings.HasPrefix(comment.Text, "//go:embed"), strings.HasPrefix(comment.Text, "//go:generate"):
			d.texts = append(d.texts, comment.Text)
			list = append(list, tok{exact, strings.Fields(comment.Text)[0], 0})
		case strings.HasPrefix(comment.Text, "//go:linkname "):
			// The local name may change like any other.
			f := strings.Fields(comment.Text)
			list = append(list, tok{exact, strings.Join(append(f[:1:1], f[2:]...), " "), 0})
		case strings.HasPrefix(comment.Text, "//go:"), strings.HasPrefix(comment.Text, "//export "):
			list = append(list, tok{exact, comment.Text, 0})
		}
	}
	return list
}

var (
	systems       = strings.Fields("aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris wasip1 windows unix")
	architectures = strings.Fields("386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm")
)

// constraints returns what a file's name and build line demand.
func (t *tree) constraints(s *source) []tok {
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test")
	parts := strings.Split(base, "_")[1:]
	var marks []tok
	if n := len(parts); n > 0 && slices.Contains(architectures, parts[n-1]) {
		marks = append(marks, tok{exact, "build " + parts[n-1], 0})
		parts = parts[:n-1]
	}
	if n := len(parts); n > 0 && slices.Contains(systems, parts[n-1]) && parts[n-1] != "unix" {
		marks = append(marks, tok{exact, "build " + parts[n-1], 0})
	}
	for _, g := range s.file.Comments {
		for _, c := range g.List {
			if x, err := constraint.Parse(c.Text); err == nil && c.Pos() < s.file.Package {
				marks = append(marks, tok{exact, "build " + x.String(), 0})
			}
		}
	}
	if strings.HasSuffix(s.path, "_test.go") {
		marks = append(marks, tok{exact, "test", 0})
	}
	return marks
}

func (t *tree) finish(s *source, d *decl, pos token.Pos) {
	d.dir, d.file, d.line, d.order = s.dir, s.path, s.fset.Position(pos).Line, len(t.decls)
	var h maphash.Hash
	h.SetSeed(seed)
	seen := map[tok]int{}
	for _, x := range d.toks {
		switch x.class {
		case local, global:
			key := tok{x.class, x.text, 0}
			if seen[key] == 0 {
				seen[key] = len(seen) + 1
			}
			fmt.Fprintf(&h, "%c%d ", x.class, seen[key])
		case member, memberDef, text, folder:
			h.WriteByte(byte(x.class) | 32)
		default:
			h.WriteString(x.text)
			h.WriteByte(0)
		}
	}
	d.hash = h.Sum64()
	t.decls = append(t.decls, d)
}
