package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// site is one change: a piece of a file and what stands there instead.
type site struct {
	file       string // absolute
	line       int
	start, end int // bytes
	text       string
	before     string // the line as it is
}

// String shows the place and both lines.
func (s *site) String() string {
	return fmt.Sprintf("%s:%d: %s  =>  %s", relative(s.file), s.line, s.before, s.after())
}

// after is the changed line, as far as it is one line.
func (s *site) after() string {
	src, err := os.ReadFile(s.file)
	if err != nil {
		return s.text
	}
	begin := s.start
	for begin > 0 && src[begin-1] != '\n' {
		begin--
	}
	end := s.end
	for end < len(src) && src[end] != '\n' {
		end++
	}
	out, _, _ := strings.Cut(strings.TrimSpace(string(src[begin:s.start])+s.text+string(src[s.end:end])), "\n")
	if out == "" {
		return "(removed)"
	}
	return out
}

func relative(file string) string {
	if wd, err := os.Getwd(); err == nil {
		if r, err := filepath.Rel(wd, file); err == nil {
			return r
		}
	}
	return file
}

// generated marks files that a program wrote, as the go command defines it.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// sites finds the changes of a file.
func sites(file string) ([]site, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if generated.Match(src) {
		return nil, nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	v := &visitor{src: src, file: file, of: fset.File(f.Pos())}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			ast.Inspect(fn.Body, v.visit)
		}
	}
	return v.out, nil
}

type visitor struct {
	src  []byte
	file string
	of   *token.File
	out  []site
}

func (v *visitor) add(from, to token.Pos, text string) {
	line := v.of.Line(from)
	start := v.of.Offset(v.of.LineStart(line))
	end := start
	for end < len(v.src) && v.src[end] != '\n' {
		end++
	}
	v.out = append(v.out, site{
		file: v.file, line: line, start: v.of.Offset(from), end: v.of.Offset(to), text: text,
		before: strings.TrimSpace(string(v.src[start:end])),
	})
}

// swaps holds what an operator becomes.
var swaps = map[token.Token][]string{
	token.LSS: {"<=", ">"}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<"}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.SHL: {">>"}, token.SHR: {"<<"}, token.AND: {"|"}, token.OR: {"&"},
}

// assigns holds what an assigning operator becomes.
var assigns = map[token.Token]string{
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
	token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=", token.SHL_ASSIGN: ">>=", token.SHR_ASSIGN: "<<=",
}

func (v *visitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, s := range swaps[n.Op] {
			v.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), s)
		}
	case *ast.BasicLit:
		if n.Kind != token.INT {
			break
		}
		if x, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			v.add(n.Pos(), n.End(), strconv.FormatInt(x+1, 10))
		}
	case *ast.ArrayType:
		return false // lengths of types
	case *ast.IfStmt:
		v.add(n.Cond.Pos(), n.Cond.End(), "!("+v.text(n.Cond)+")")
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			v.add(n.OpPos, n.OpPos+1, "")
		}
	case *ast.IncDecStmt:
		v.add(n.TokPos, n.End(), map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
	case *ast.AssignStmt:
		if s, ok := assigns[n.Tok]; ok {
			v.add(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), s)
		}
		if n.Tok == token.ASSIGN {
			v.add(n.Pos(), n.End(), "")
		}
	case *ast.ExprStmt:
		if _, ok := n.X.(*ast.CallExpr); ok {
			v.add(n.Pos(), n.End(), "")
		}
	case *ast.CallExpr:
		// Capacities change nothing that can be noticed.
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "make" && len(n.Args) == 3 {
			ast.Inspect(n.Args[1], v.visit)
			return false
		}
	}
	return true
}

func (v *visitor) text(n ast.Node) string {
	return string(v.src[v.of.Offset(n.Pos()):v.of.Offset(n.End())])
}

// draw puts the changes of files into the order in which they are tried, one a line.
func draw(path string, files []string, seed uint64) ([]site, error) {
	var all []site
	for _, f := range files {
		s, err := sites(f)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	h := fnv.New64a()
	h.Write([]byte(path))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	type place struct {
		file string
		line int
	}
	seen := map[place]bool{}
	out := all[:0]
	for _, s := range all {
		if at := (place{s.file, s.line}); !seen[at] {
			seen[at] = true
			out = append(out, s)
		}
	}
	return out, nil
}
