package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A report holds what a comparison found.
type report struct {
	equal, renamed, moved, movedRenamed int
	files, filesMoved, ignored          int

	changed, names, codes, oldOnly, newOnly []string

	texts     []string
	textCount int
}

func (r *report) same() bool {
	return len(r.changed)+len(r.names)+len(r.codes)+len(r.oldOnly)+len(r.newOnly) == 0
}

// text records a string literal that changed. Texts without a blank may be read by code.
func (r *report) text(oldFile string, x tok, newFile string, y tok) {
	if x.text == y.text {
		return
	}
	s := fmt.Sprintf("%s:%d -> %s:%d: %q -> %q", oldFile, x.line, newFile, y.line, x.text, y.text)
	if code(x.text) || code(y.text) {
		r.codes = append(r.codes, s)
		return
	}
	r.textCount++
	r.texts = append(r.texts, s)
}

func code(s string) bool { return s != "" && !strings.ContainsAny(s, " \n") }

// directives records embed and generate lines that changed.
func (r *report) directives(a, b *decl) {
	if !slices.Equal(a.texts, b.texts) {
		r.codes = append(r.codes, fmt.Sprintf("%s -> %s: %q -> %q", a.at(), b.at(), a.texts, b.texts))
	}
}

func (r *report) print(w io.Writer, opt options) {
	section := func(title string, list []string) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(w, "%s: %d\n", title, len(list))
		for _, s := range list {
			fmt.Fprintln(w, "  "+s)
		}
		fmt.Fprintln(w)
	}
	section("changed", r.changed)
	section("names that refer to something else", r.names)
	section("code-like text changed", r.codes)
	section("only old", r.oldOnly)
	section("only new", r.newOnly)
	if opt.texts {
		section("texts", r.texts)
	}
	fmt.Fprintf(w, "declarations: %d equal, %d renamed, %d moved, %d moved and renamed, %d changed\n",
		r.equal, r.renamed, r.moved, r.movedRenamed, len(r.changed))
	fmt.Fprintf(w, "names that refer to something else: %d; code-like texts: %d; other texts changed: %d\n",
		len(r.names), len(r.codes), r.textCount)
	fmt.Fprintf(w, "only old: %d; only new: %d\n", len(r.oldOnly), len(r.newOnly))
	fmt.Fprintf(w, "assembly and data files: %d equal, %d moved; Go files, documents and pages in the new tree: %d\n",
		r.files, r.filesMoved, r.ignored)
}

// An edit is a run of tokens that are equal in both lists, or that replace each other.
type edit struct {
	equal bool
	a, b  []tok
}

// edits aligns two lists of tokens by their longest common subsequence.
func edits(a, b []tok, keyA, keyB func(tok) string) []edit {
	ka, kb := make([]string, len(a)), make([]string, len(b))
	for i, x := range a {
		ka[i] = keyA(x)
	}
	for i, x := range b {
		kb[i] = keyB(x)
	}
	var list []edit
	head := 0
	for head < len(a) && head < len(b) && ka[head] == kb[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && ka[len(a)-1-tail] == kb[len(b)-1-tail] {
		tail++
	}
	add := func(equal bool, x, y []tok) {
		if n := len(list); n > 0 && list[n-1].equal == equal {
			list[n-1].a = append(list[n-1].a, x...)
			list[n-1].b = append(list[n-1].b, y...)
		} else if len(x)+len(y) > 0 {
			list = append(list, edit{equal, slices.Clone(x), slices.Clone(y)})
		}
	}
	add(true, a[:head], b[:head])
	ma, mb := a[head:len(a)-tail], b[head:len(b)-tail]
	ka, kb = ka[head:], kb[head:]
	if n, m := len(ma), len(mb); n*m > 25_000_000 {
		add(false, ma, mb)
	} else {
		best := make([]int32, (n+1)*(m+1)) // of what follows i and j
		for i := n - 1; i >= 0; i-- {
			for j := m - 1; j >= 0; j-- {
				at := i*(m+1) + j
				if ka[i] == kb[j] {
					best[at] = best[at+m+2] + 1
				} else {
					best[at] = max(best[at+1], best[at+m+1])
				}
			}
		}
		i, j := 0, 0
		for i < n || j < m {
			switch {
			case i < n && j < m && ka[i] == kb[j]:
				add(true, ma[i:i+1], mb[j:j+1])
				i, j = i+1, j+1
			case j == m || i < n && best[(i+1)*(m+1)+j] >= best[i*(m+1)+j+1]:
				add(false, ma[i:i+1], nil)
				i++
			default:
				add(false, nil, mb[j:j+1])
				j++
			}
		}
	}
	add(true, a[len(a)-tail:], b[len(b)-tail:])
	return list
}
