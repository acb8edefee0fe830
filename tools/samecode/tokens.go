package main

import (
	"go/ast"
	"go/doc"
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
)

// A placed is a token with its position; dropped is the class of an omitted package qualifier.
type placed struct {
	pos token.Pos
	tok
}

const dropped class = '-'

// scan splits a file into tokens. Optional commas and semicolons are left out, and string
// literals that are joined by + become one, so that line breaks make no difference.
func scan(s *source, idents map[token.Pos]tok) []placed {
	fset := token.NewFileSet()
	f := fset.AddFile(s.path, fset.Base(), len(s.text))
	var sc scanner.Scanner
	sc.Init(f, s.text, nil, 0)
	var list []placed
	for {
		pos, kind, lit := sc.Scan()
		if kind == token.EOF {
			return list
		}
		x := placed{pos, tok{exact, lit, f.Line(pos)}}
		last := len(list) - 1
		switch {
		case kind == token.IDENT:
			if id, ok := idents[pos]; ok {
				x.class, x.text = id.class, id.text
			}
			if x.class == dropped {
				sc.Scan() // the dot
				continue
			}
		case kind == token.SEMICOLON:
			x.text = ";"
		case kind == token.STRING:
			if id, ok := idents[pos]; ok {
				x.text = id.text
				break
			}
			x.class = text
			x.text, _ = strconv.Unquote(lit)
			if last > 0 && list[last].text == "+" && list[last].class == exact && list[last-1].class == text {
				list[last-1].text += x.text
				list = list[:last]
				continue
			}
		case kind.IsOperator():
			x.text = kind.String()
			if (kind == token.RPAREN || kind == token.RBRACE) && last >= 0 && list[last].class == exact &&
				(list[last].text == ";" || list[last].text == ",") {
				list = list[:last]
			}
		}
		list = append(list, x)
	}
}

// classify finds out what each identifier of a file is.
func (t *tree) classify(s *source) map[token.Pos]tok {
	idents := map[token.Pos]tok{}
	top := map[any]bool{}
	for _, d := range s.file.Decls {
		top[d] = true
		if g, ok := d.(*ast.GenDecl); ok {
			for _, spec := range g.Specs {
				top[spec] = true
			}
		}
	}
	imported := func(e ast.Expr) (string, bool) {
		id, ok := e.(*ast.Ident)
		if !ok || id.Obj != nil || t.globals[s.dir+"."+id.Name] {
			return "", false
		}
		p, ok := s.imports[id.Name]
		return p, ok
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				idents[n.Name.Pos()] = method(n.Name.Name)
			} else if n.Name.Name == "init" || n.Name.Name == "main" {
				idents[n.Name.Pos()] = tok{class: exact, text: n.Name.Name}
			}
		case *ast.StructType:
			tagged := false
			for _, f := range n.Fields.List {
				tagged = tagged || f.Tag != nil
			}
			for _, f := range n.Fields.List {
				if f.Tag != nil {
					idents[f.Tag.Pos()] = tok{class: exact, text: unquote(f.Tag.Value)}
				}
				for _, name := range f.Names {
					c := memberDef
					if tagged && f.Tag == nil && name.IsExported() || name.Name == "_" {
						c = exact // encoders use the name
					}
					idents[name.Pos()] = tok{class: c, text: name.Name}
				}
			}
		case *ast.InterfaceType:
			for _, f := range n.Methods.List {
				for _, name := range f.Names {
					idents[name.Pos()] = method(name.Name)
				}
			}
		case *ast.SelectorExpr:
			x := tok{class: member, text: n.Sel.Name}
			if p, ok := imported(n.X); ok {
				if dir, ok := t.within(p); ok {
					x = tok{class: global, text: dir + "." + n.Sel.Name}
					idents[n.X.Pos()] = tok{class: dropped}
				} else {
					x.class = exact
					idents[n.X.Pos()] = tok{class: exact, text: p}
				}
			}
			idents[n.Sel.Pos()] = x
		case *ast.CompositeLit:
			if n.Type != nil {
				t.keys(s, n, n.Type, s.dir, idents)
			}
		case *ast.Ident:
			if _, known := idents[n.Pos()]; known {
				break
			}
			x := tok{class: exact, text: n.Name}
			switch {
			case n.Name == "_":
			case n.Obj != nil && !top[n.Obj.Decl]:
				x.class = local
			case n.Obj != nil || t.globals[s.dir+"."+n.Name]:
				x = tok{class: global, text: s.dir + "." + n.Name}
			case !doc.IsPredeclared(n.Name) && s.imports[n.Name] == "":
				x.class = member
			}
			idents[n.Pos()] = x
		}
		return true
	})
	return idents
}

// keys marks the field names in a composite literal of a type that is named in a folder.
func (t *tree) keys(s *source, lit *ast.CompositeLit, typ ast.Expr, dir string, idents map[token.Pos]tok) {
	fields := true
	var elem, key ast.Expr
	for range 100 {
		var next ast.Expr
		switch x := typ.(type) {
		case *ast.ParenExpr:
			next = x.X
		case *ast.StarExpr:
			next = x.X
		case *ast.IndexExpr:
			next = x.X
		case *ast.IndexListExpr:
			next = x.X
		case *ast.ArrayType:
			fields, elem = false, x.Elt
		case *ast.MapType:
			fields, elem, key = false, x.Value, x.Key
		case *ast.Ident:
			if x.Obj != nil {
				if spec, ok := x.Obj.Decl.(*ast.TypeSpec); ok {
					next = spec.Type
				}
			} else {
				next = t.types[dir+"."+x.Name]
			}
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok {
				if d, ok := t.within(s.imports[id.Name]); ok {
					next, dir = t.types[d+"."+x.Sel.Name], d
				}
			}
		}
		if next == nil {
			break
		}
		typ = next
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && fields {
				idents[id.Pos()] = tok{class: member, text: id.Name}
			}
			if c, ok := kv.Key.(*ast.CompositeLit); ok && c.Type == nil && key != nil {
				t.keys(s, c, key, dir, idents)
			}
			e = kv.Value
		}
		if c, ok := e.(*ast.CompositeLit); ok && c.Type == nil && elem != nil {
			t.keys(s, c, elem, dir, idents)
		}
	}
}

// wellKnown are methods that the standard library finds by name.
var wellKnown = regexp.MustCompile(`^(String|GoString|Format|Error|Unwrap|Is|As|Read|ReadAt|Write|WriteTo|Close|Seek|` +
	`Len|Less|Swap|ServeHTTP|RoundTrip|(Unm|M)arshal(JSON|Text|Binary)\w*)$`)

// method returns the token of a method's declaration.
func method(name string) tok {
	if wellKnown.MatchString(name) {
		return tok{class: exact, text: name}
	}
	return tok{class: memberDef, text: name}
}

func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}
