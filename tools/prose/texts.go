package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A passage is a text for readers and the line where it begins. Line breaks are kept.
type passage struct {
	line int
	text string
}

const columns = 100

func checkGo(name, content string, texts, display bool) ([]finding, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []finding
	if display {
		found = displayReads(fset, f)
	}
	if !texts || ast.IsGenerated(f) {
		return found, nil
	}
	found = append(found, goComments(name, content, fset, f)...)
	var list []passage
	for _, g := range f.Comments {
		list = append(list, passage{fset.Position(g.Pos()).Line, commentText(g)})
	}
	skip := map[*ast.BasicLit]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			skip[n.Path] = true
		case *ast.Field:
			skip[n.Tag] = true
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && !skip[n] && strings.Contains(s, " ") {
				list = append(list, passage{fset.Position(n.Pos()).Line, s})
			}
		}
		return true
	})
	found = append(found, dialect(name, list)...)
	ast.Inspect(f, func(n ast.Node) bool {
		var names []*ast.Ident
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.FuncDecl:
			names = []*ast.Ident{n.Name}
		case *ast.TypeSpec:
			names = []*ast.Ident{n.Name}
		case *ast.ValueSpec:
			names = n.Names
		case *ast.StructType:
			for _, field := range n.Fields.List {
				names = append(names, field.Names...)
			}
		case *ast.InterfaceType:
			for _, field := range n.Methods.List {
				names = append(names, field.Names...)
			}
		}
		for _, id := range names {
			if id.IsExported() {
				found = append(found, dialectName(name, fset.Position(id.Pos()).Line, id.Name)...)
			}
		}
		return true
	})
	return found, nil
}

// commentText returns a comment without its markers, one line for each line of the source.
func commentText(g *ast.CommentGroup) string {
	var s strings.Builder
	for i, comment := range g.List {
		if i > 0 {
			s.WriteByte('\n')
		}
		t := comment.Text
		if strings.HasPrefix(t, "//go:") || strings.HasPrefix(t, "//nolint") {
			continue
		}
		t = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(t, "//"), "/*"), "*/")
		s.WriteString(t)
	}
	return s.String()
}

// goComments reports comments that end beyond the last column.
func goComments(name, content string, fset *token.FileSet, f *ast.File) []finding {
	lines := strings.Split(content, "\n")
	var found []finding
	for _, g := range f.Comments {
		for _, comment := range g.List {
			if strings.HasPrefix(comment.Text, "//go:") || strings.HasPrefix(comment.Text, "//nolint") {
				continue
			}
			for i := fset.Position(comment.Pos()).Line; i <= fset.Position(comment.End()).Line; i++ {
				if n := width(lines[i-1]); n > columns {
					found = append(found, finding{name, i, "width", fmt.Sprintf("comment ends in column %d", n)})
				}
			}
		}
	}
	return found
}

var address = regexp.MustCompile(`https?://[^\s)>]+`)

// width returns the columns of a line. Addresses cannot be broken and do not count.
func width(line string) int {
	return utf8.RuneCountInString(address.ReplaceAllString(strings.TrimRight(line, " \t\r"), ""))
}

// cTexts returns the comments, and the strings with a blank, of a language with C's lexis.
func cTexts(s string, line int) []passage {
	var list []passage
	add := func(line int, text string, comment bool) {
		if n := len(list); comment && n > 0 && list[n-1].line+strings.Count(list[n-1].text, "\n")+1 == line && strings.HasPrefix(list[n-1].text, " ") {
			list[n-1].text += "\n" + text // consecutive lines of // comments
		} else if comment || strings.Contains(text, " ") {
			list = append(list, passage{line, text})
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			line++
		case strings.HasPrefix(s[i:], "//"):
			text, _, _ := strings.Cut(s[i+2:], "\n")
			add(line, " "+strings.TrimPrefix(text, " "), true)
			i += 1 + len(text)
		case strings.HasPrefix(s[i:], "/*"):
			text, _, _ := strings.Cut(s[i+2:], "*/")
			add(line, text, true)
			i += 3 + len(text)
			line += strings.Count(text, "\n")
		case c == '"' || c == '\'' || c == '`':
			j := i + 1
			for j < len(s) && s[j] != c && (s[j] != '\n' || c == '`') {
				if s[j] == '\\' {
					j++
				}
				j++
			}
			j = min(j, len(s))
			add(line, s[i+1:j], false)
			line += strings.Count(s[i+1:j], "\n")
			if i = j; j < len(s) && s[j] == '\n' {
				line++
			}
		}
	}
	return list
}

var (
	svelteCode = regexp.MustCompile(`(?s)<(script|style)\b.*?</(?:script|style)>`)
	attribute  = regexp.MustCompile(`(?s)\b(?:title|label|aria-label|alt|placeholder)="([^"]*)"`)
	markup     = regexp.MustCompile(`(?s)<!--(.*?)-->|</?[a-zA-Z][^<>]*>|\{[^{}]*\}`)
)

// svelteTexts returns the texts of a component: those of its script, and what its markup shows.
func svelteTexts(s string) []passage {
	var list []passage
	lineOf := func(offset int) int { return 1 + strings.Count(s[:offset], "\n") }
	blank := func(t string) string { // of the same lines, so that places stay right
		return " " + strings.Repeat("\n", strings.Count(t, "\n"))
	}
	rest := []byte(s)
	var out strings.Builder
	last := 0
	for _, m := range svelteCode.FindAllStringIndex(s, -1) {
		list = append(list, cTexts(s[m[0]:m[1]], lineOf(m[0]))...)
		out.Write(rest[last:m[0]])
		out.WriteString(blank(s[m[0]:m[1]]))
		last = m[1]
	}
	out.Write(rest[last:])
	shown := out.String()
	for _, m := range attribute.FindAllStringSubmatchIndex(shown, -1) {
		list = append(list, passage{1 + strings.Count(shown[:m[2]], "\n"), shown[m[2]:m[3]]})
	}
	for _, m := range quoted.FindAllStringSubmatchIndex(shown, -1) { // strings in {expressions}
		list = append(list, passage{1 + strings.Count(shown[:m[2]], "\n"), shown[m[2]:m[3]]})
	}
	shown = markup.ReplaceAllStringFunc(shown, func(t string) string {
		if m, ok := strings.CutPrefix(t, "<!--"); ok {
			return strings.TrimSuffix(m, "-->")
		}
		return blank(t)
	})
	return append(list, passage{1, shown})
}

var quoted = regexp.MustCompile("\\{[^{}]*?['`]([^'`{}\\n]* [^'`{}\\n]*)['`]")
