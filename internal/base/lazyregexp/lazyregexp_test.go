package lazyregexp_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

func TestRegexp(t *testing.T) {
	t.Parallel()
	r := lazyregexp.New(`(?P<key>[a-z]+)=(\d+)`)
	if m := r.FindStringSubmatch("x a=1"); len(m) != 3 || m[r.SubexpIndex("key")] != "a" || r.String() != `(?P<key>[a-z]+)=(\d+)` {
		t.Errorf("%v", m)
	}
	if r.MatchString("a=") || r.ReplaceAllString("a=1 b=2", "$2") != "1 2" {
		t.Error("another expression")
	}
}

// TestExpressionsCompile compiles the expressions of the whole program: a wrong one would otherwise
// panic where it is used first.
func TestExpressionsCompile(t *testing.T) {
	t.Parallel()
	texts := map[string]map[string]ast.Expr{} // constants and variables, by folder
	calls := map[string][]ast.Expr{}
	set := token.NewFileSet()
	err := filepath.WalkDir("../../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(name)
		if texts[dir] == nil {
			texts[dir] = map[string]ast.Expr{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, v := range n.Values {
					texts[dir][n.Names[i].Name] = v
					if c, ok := v.(*ast.CallExpr); ok && eager(c) && !developer.MatchString(filepath.ToSlash(name)) {
						t.Errorf("%s: compiled at each start of the program; use lazyregexp.New", set.Position(v.Pos()))
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok {
					x, _ := s.X.(*ast.Ident)
					if x != nil && (x.Name+"."+s.Sel.Name == "lazyregexp.New" || x.Name+"."+s.Sel.Name == "textscan.On") {
						calls[dir] = append(calls[dir], n.Args[0])
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for dir, args := range calls {
		for _, a := range args {
			s, ok := text(a, texts[dir])
			if !ok {
				continue // a parameter of a constructor
			}
			found++
			if _, err := regexp.Compile(s); err != nil {
				t.Errorf("%s: %v", set.Position(a.Pos()), err)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d expressions found, expected at least 100", found)
	}
}

// developer matches files of programs and tests that users do not start.
var developer = regexp.MustCompile(`^\.\./\.\./\.\./(tools|bench|web|examples|internal/testing|internal/kernel/gen)/`)

// eager reports whether a call compiles an expression at once.
func eager(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, _ := s.X.(*ast.Ident)
	return x != nil && x.Name == "regexp" && s.Sel.Name == "MustCompile"
}

// text is the value of a constant expression.
func text(e ast.Expr, known map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.Ident:
		if v := known[e.Name]; v != nil {
			return text(v, known)
		}
	case *ast.ParenExpr:
		return text(e.X, known)
	case *ast.BinaryExpr:
		a, ok := text(e.X, known)
		b, also := text(e.Y, known)
		return a + b, ok && also
	}
	return "", false
}
