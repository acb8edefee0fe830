package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// displayFields are the fields that hold texts for display, with the names of the variables or
// fields they belong to; "" stands for any.
var displayFields = map[string][]string{
	"Text":       {"Cause", "Placement", "Missing", "Finding", "Incomplete", "Findings", "c", "f", "m"},
	"Reason":     {""},
	"Method":     {""},
	"PeakMethod": {""},
	"Remarks":    {""},
	"Detail":     {""},
}

// inspecting are the functions of package strings that inspect their first argument.
var inspecting = []string{"Contains", "ContainsAny", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "Index", "LastIndex", "EqualFold", "Split", "SplitN", "Fields", "TrimPrefix", "TrimSuffix", "Compare", "Count"}

// displayReads reports code in one file that inspects display texts.
func displayReads(fset *token.FileSet, f *ast.File) []finding {
	var found []finding
	at := func(n ast.Node, what string) {
		p := fset.Position(n.Pos())
		found = append(found, finding{p.Filename, p.Line, "display", what})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				break
			}
			if p, ok := s.X.(*ast.Ident); ok && p.Name == "strings" && slices.Contains(inspecting, s.Sel.Name) && isDisplayText(n.Args[0]) {
				at(n, "strings."+s.Sel.Name+" inspects a display text")
			}
			if strings.HasPrefix(s.Sel.Name, "Match") || strings.HasPrefix(s.Sel.Name, "Find") {
				for _, a := range n.Args {
					if isDisplayText(a) {
						at(n, s.Sel.Name+" inspects a display text")
					}
				}
			}
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				break
			}
			for _, p := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
				if l, ok := p[1].(*ast.BasicLit); ok && l.Kind == token.STRING && l.Value != `""` && isDisplayText(p[0]) {
					at(n, "comparison of a display text")
				}
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isDisplayText(n.Tag) {
				at(n, "switch on a display text")
			}
		}
		return true
	})
	return found
}

// isDisplayText reports whether an expression is a field that holds a display text.
func isDisplayText(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	on, ok := displayFields[s.Sel.Name]
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
