package record

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Limits of the search for a prefix.
const (
	prefixLines = 2000 // of the beginning of a file
	leastLines  = 4    // that have the prefix
	prefixBytes = 160
	prefixCuts  = 12 // places in a line where a prefix may end
)

// prefix is what a terminal, a service, a document or a source file puts before each line of a
// text. shape is its text with blanks and numbers made equal: "web-12  | " has the shape "web-9 |".
type prefix struct {
	shape string
	bar   bool // a vertical bar ends each line, as in a table of one column
}

// WithoutPrefix returns the file without the common prefix of its lines if formats read more of it
// then, else f itself. The beginning of the file decides. Prefixes of loggers, which differ from
// line to line, are removed by the readers: see [textscan.Strip].
func WithoutPrefix(ctx context.Context, formats []*Format, f *File, o Options) *File {
	lines := textscan.Head(f.Head, f.Whole)
	lines = lines[:min(len(lines), prefixLines)]
	found, common, texts := prefixes(lines)
	if len(found) == 0 {
		return f
	}
	file, plain := f, reads(ctx, formats, f, o)
	best := plain
	logger := slices.ContainsFunc(lines, func(l string) bool { return textscan.Strip(l) != l })
	for _, p := range found {
		g := f.without(p)
		r := reads(ctx, formats, g, o)
		all := strings.HasPrefix(common, p.shape)
		switch {
		case r.gains(&plain) && r.more(&best), all && r.foreign(&plain, texts, logger), all && file != f && r.same(&best):
			file, best = g, r
		}
	}
	return file
}

// reading is what a format reads from the beginning of a file.
type reading struct {
	format  *Format
	sure    Sure
	layers  int
	figures int // and layers
	lost    int64
}

// reads reads the beginning of a file with the format that is surest of it. A single format was
// named by the user, and reads every file.
func reads(ctx context.Context, formats []*Format, f *File, o Options) (r reading) {
	if r.format = Surest(formats, f); len(formats) == 1 {
		r.format = formats[0]
	}
	if r.format == nil {
		return r
	}
	r.sure = r.format.Match(f)
	head := &File{Path: f.Path, Dir: f.Dir, Name: f.Name, Head: f.Head, Whole: true}
	// A beginning may be cut off anywhere: the runs count, and not the errors.
	runs, _ := r.format.Read(ctx, &Input{Files: []*File{head}, Options: o})
	for _, run := range runs {
		r.layers += len(run.Profile.Layers)
		r.figures += figures(run.Profile)
		for _, l := range run.Lost {
			if l.Records != nil {
				r.lost += *l.Records
			}
		}
	}
	return r
}

// figures counts layers and figures.
func figures(p *profile.Profile) int {
	n := len(p.Layers)
	for _, q := range p.AllQuantities() {
		if _, ok := p.Totals.Value(q.Key); ok {
			n++
		}
		for i := range p.Layers {
			if _, ok := p.Layers[i].Value(q.Key); ok {
				n++
			}
		}
	}
	return n
}

// more reports whether a reading has more than another one: figures, or as many with fewer lost
// records.
func (r *reading) more(than *reading) bool {
	return r.figures > than.figures || r.figures == than.figures && r.figures > 0 && r.lost < than.lost
}

// gains reports whether a reading has more than that of the text with its prefix. A format without
// marks of its tool may take parts of names for more names, so that it needs twice as many.
func (r *reading) gains(plain *reading) bool {
	sure := plain.sure == Certain || r.format != plain.format || r.figures == plain.figures || r.figures >= 2*plain.figures
	return sure && r.more(plain)
}

// same reports whether a reading has as much as another one.
func (r *reading) same(as *reading) bool {
	return r.format == as.format && r.figures == as.figures && r.lost <= as.lost
}

// foreign reports whether what all lines of a text begin with, that of a header included, was
// added to it: without it, the tool is still recognised by its marks, and as much is read. If no
// prefix of a logger was removed, some of what was read before may be wrong.
func (r *reading) foreign(plain *reading, texts int, logger bool) bool {
	if plain.sure != Certain || r.format != plain.format || r.layers >= texts || r.figures == 0 {
		return false
	}
	return r.figures >= plain.figures || !logger && 2*r.figures >= plain.figures
}

// prefixes lists the prefixes that three quarters of the lines have, the shortest first. common is
// the longest shape that all lines have; texts is their number. Blank lines do not count.
func prefixes(lines []string) (out []prefix, common string, texts int) {
	count := map[string]int{}
	bars := 0
	for _, l := range lines {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		texts++
		if strings.HasSuffix(l, "|") {
			bars++
		}
		cuts(l, func(shape string, _ int) bool {
			count[shape]++
			return true
		})
	}
	for shape, n := range count {
		if n < leastLines || 4*n < 3*texts {
			continue
		}
		out = append(out, prefix{shape: shape})
		if strings.HasSuffix(shape, "|") && 4*bars >= 3*texts {
			out = append(out, prefix{shape: shape, bar: true})
		}
		if n == texts && len(shape) > len(common) {
			common = shape
		}
	}
	sorting.Func(out, func(a, b prefix) int {
		if a.shape == b.shape && a.bar != b.bar {
			if b.bar {
				return -1
			}
			return 1
		}
		return len(a.shape) - len(b.shape)
	})
	return out[:min(len(out), 2*prefixCuts)], common, texts
}

// cuts calls use with the shape of each beginning of a line that may be a prefix, and with where it
// ends, until use returns false. A prefix ends with a colon or a tab, or with a number, a time or
// another sign before a blank. Separators of CSV, quotation marks and braces are not part of one.
func cuts(line string, use func(shape string, end int) bool) {
	var shape []byte
	begin := len(line) - len(strings.TrimLeft(line, " "))
	n := 0
	for i := begin; i < len(line) && i < begin+prefixBytes && n < prefixCuts; i++ {
		c := line[i]
		switch {
		case strings.IndexByte(",;\"{}", c) >= 0:
			return
		case c >= '0' && c <= '9':
			if i == begin || line[i-1] < '0' || line[i-1] > '9' {
				shape = append(shape, '9')
			}
		case c != ' ' || line[i-1] != ' ':
			shape = append(shape, c)
		}
		number := c >= '0' && c <= '9' || c == 'Z' && bytes.HasSuffix(shape, []byte("9Z"))
		last := i+1 == len(line) || line[i+1] == ' '
		if c == ':' || c == '\t' || last && (number || strings.IndexByte("|])>*#/+-=~.%$", c) >= 0) {
			if n++; !use(string(shape), i+1) {
				return
			}
		}
	}
}

// cut removes the prefix of a line with the blank after it; other lines stay as they are.
func (p prefix) cut(line string) string {
	inner := line
	cuts(line, func(shape string, end int) bool {
		if shape == p.shape {
			inner = strings.TrimPrefix(line[end:], " ")
		}
		return len(shape) < len(p.shape)
	})
	if p.bar && len(inner) < len(line) {
		if body, ok := strings.CutSuffix(strings.TrimRight(inner, " "), "|"); ok {
			inner = strings.TrimRight(body, " ")
		}
	}
	return inner
}

// without returns the file without a prefix.
func (f *File) without(p prefix) *File {
	g := &File{Path: f.Path, Dir: f.Dir, Name: f.Name, Whole: f.Whole}
	var head strings.Builder
	for _, l := range textscan.Head(f.Head, f.Whole) {
		head.WriteString(p.cut(l))
		head.WriteByte('\n')
	}
	if g.Head = []byte(head.String()); len(g.Head) > HeadBytes {
		g.Head, g.Whole = g.Head[:HeadBytes], false
	}
	if g.Whole {
		g.Progress = f.Progress
	}
	// Otherwise f reports what is read of it.
	g.open = func() (io.ReadCloser, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		return &readCloser{Reader: &withoutPrefix{lines: textscan.NewScanner(r), p: p}, close: r.Close}, nil
	}
	return g
}

// withoutPrefix reads the lines of a text without their prefix.
type withoutPrefix struct {
	lines *textscan.Scanner
	p     prefix
	rest  string
}

func (w *withoutPrefix) Read(b []byte) (int, error) {
	if w.rest == "" {
		if !w.lines.Scan() {
			if err := w.lines.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		w.rest = w.p.cut(w.lines.Text()) + "\n"
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}
