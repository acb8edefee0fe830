// Command prose fails where code looks into texts that are for people: states and
// causes are codes, texts are made where they are shown, and nothing reads them
// again.
//
//	go run ./tools/prose
//
// It reports calls of strings and regexp functions that search, cut or compare, and
// comparisons with string constants, on fields that hold such texts, anywhere outside
// internal/report. It reads source as text of Go and needs no types: a field is known
// by its name and by what it hangs on.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prose are the fields that hold texts for people, with the names of what they hang
// on: those of variables and fields in this repository, "" for any.
var prose = map[string][]string{
	"Text":       {"Cause", "Placement", "Missing", "Finding", "Incomplete", "Findings", "c", "f", "m"},
	"Reason":     {""},
	"Method":     {""},
	"PeakMethod": {""},
	"Remarks":    {""},
	"Detail":     {""},
}

// looking are functions of strings that look into their first argument.
var looking = []string{"Contains", "ContainsAny", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "Index", "LastIndex", "EqualFold", "Split", "SplitN", "Fields", "TrimPrefix", "TrimSuffix", "Compare", "Count"}

func main() {
	found, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		fmt.Println("texts for people are read by code: give it a code to go by")
		os.Exit(1)
	}
}

// check lists the places in the Go files below a folder, tests and reports left out.
func check(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			switch filepath.ToSlash(rel) {
			case ".git", "web", "internal/report", "internal/testing", "testdata":
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		list, err := file(path, text)
		found = append(found, list...)
		return err
	})
	return found, err
}

// file lists the places in one file.
func file(path string, text []byte) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	at := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), what))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				break
			}
			if p, ok := s.X.(*ast.Ident); ok && p.Name == "strings" && slices.Contains(looking, s.Sel.Name) && isProse(n.Args[0]) {
				at(n, "strings."+s.Sel.Name+" of a text for people")
			}
			if strings.HasPrefix(s.Sel.Name, "Match") || strings.HasPrefix(s.Sel.Name, "Find") {
				for _, a := range n.Args {
					if isProse(a) {
						at(n, s.Sel.Name+" in a text for people")
					}
				}
			}
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				break
			}
			for _, p := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
				if l, ok := p[1].(*ast.BasicLit); ok && l.Kind == token.STRING && l.Value != `""` && isProse(p[0]) {
					at(n, "comparison of a text for people")
				}
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isProse(n.Tag) {
				at(n, "switch on a text for people")
			}
		}
		return true
	})
	return found, nil
}

// isProse reports whether an expression is a field that holds a text for people.
func isProse(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	on, ok := prose[s.Sel.Name]
	if !ok {
		return false
	}
	if slices.Contains(on, "") {
		return true
	}
	switch x := s.X.(type) {
	case *ast.SelectorExpr:
		return slices.Contains(on, x.Sel.Name)
	case *ast.Ident:
		return slices.Contains(on, x.Name)
	case *ast.IndexExpr:
		y, ok := x.X.(*ast.SelectorExpr)
		return ok && slices.Contains(on, y.Sel.Name)
	}
	return false
}
