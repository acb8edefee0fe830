package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

type options struct{ texts, tests bool }

// A pair is a declaration before and after.
type pair struct{ before, after *decl }

type comparison struct {
	before, after *tree
	pairs         []pair // equal but for names
	changed       []pair
	oldOnly       []*decl
	newOnly       []*decl

	// What each name of the old tree became, from the declarations that were paired.
	globals map[string]map[string]bool
	members map[string]map[string]bool
	folders map[string]string
	newDefs map[string]bool // members that the new tree declares

	report report
}

// compare compares two trees, given as path to content.
func compare(oldFiles, newFiles map[string][]byte, opt options) (*report, error) {
	c := &comparison{newDefs: map[string]bool{}}
	var err error
	if c.before, err = parse(oldFiles, opt.tests); err != nil {
		return nil, err
	}
	if c.after, err = parse(newFiles, opt.tests); err != nil {
		return nil, err
	}
	c.match()
	c.learn()
	for _, p := range c.pairs {
		c.check(p)
	}
	for _, p := range c.changed {
		c.report.changed = append(c.report.changed, c.difference(p))
	}
	for _, d := range c.oldOnly {
		c.report.oldOnly = append(c.report.oldOnly, d.at()+": "+d.kind+" "+d.name())
	}
	for _, d := range c.newOnly {
		c.report.newOnly = append(c.report.newOnly, d.at()+": "+d.kind+" "+d.name())
	}
	c.files(oldFiles, newFiles)
	return &c.report, nil
}

// match pairs declarations: those with equal hashes first, then by name, then by similarity.
func (c *comparison) match() {
	groups := map[uint64]*[2][]*decl{}
	for side, t := range []*tree{c.before, c.after} {
		for _, d := range t.decls {
			if groups[d.hash] == nil {
				groups[d.hash] = &[2][]*decl{}
			}
			groups[d.hash][side] = append(groups[d.hash][side], d)
		}
	}
	hashes := slices.SortedFunc(maps.Keys(groups), func(a, b uint64) int {
		return first(groups[a]) - first(groups[b])
	})
	// Votes say what a name, file or folder became in pairs that are certain.
	votes := map[string]map[string]int{}
	vote := func(a, b string) {
		if votes[a] == nil {
			votes[a] = map[string]int{}
		}
		votes[a][b]++
	}
	accept := func(p pair) {
		c.pairs = append(c.pairs, p)
		vote("file "+p.before.file, p.after.file)
		vote("dir "+p.before.dir, p.after.dir)
		for i, x := range p.before.toks {
			if y := p.after.toks[i]; x.class == global && y.class == global {
				vote(x.text, y.text)
			}
		}
	}
	// take pairs what has the same key on both sides, in order.
	take := func(g *[2][]*decl, key func(d *decl, side int) string, use func(pair)) {
		waiting := map[string][]*decl{}
		for _, d := range g[1] {
			if k := key(d, 1); k != "" {
				waiting[k] = append(waiting[k], d)
			}
		}
		used := map[*decl]bool{}
		for _, d := range g[0] {
			if k := key(d, 0); k != "" && len(waiting[k]) > 0 {
				use(pair{d, waiting[k][0]})
				used[d], used[waiting[k][0]] = true, true
				waiting[k] = waiting[k][1:]
			}
		}
		for side := range g {
			g[side] = slices.DeleteFunc(g[side], func(d *decl) bool { return used[d] })
		}
	}
	became := func(kind, name string) string {
		best, most := name, 0
		for b, n := range votes[kind+name] {
			if n > most || n == most && b < best {
				best, most = b, n
			}
		}
		return best
	}
	dir := func(d *decl, side int) string {
		if side == 0 {
			return became("dir ", d.dir)
		}
		return d.dir
	}
	file := func(d *decl, side int) string {
		if side == 0 {
			return became("file ", d.file)
		}
		return d.file
	}
	for _, h := range hashes {
		g := groups[h]
		take(g, func(d *decl, _ int) string { return d.file + " " + d.name() }, accept)
	}
	for _, h := range hashes {
		if g := groups[h]; len(g[0]) == 1 && len(g[1]) == 1 {
			take(g, func(*decl, int) string { return "only" }, accept)
		}
	}
	usedAs := func(d *decl, side int) string {
		id := d.dir + "." + d.names[0]
		if side == 0 {
			if votes[id] == nil {
				return ""
			}
			id = became("", id)
		}
		return id
	}
	byName := func(d *decl, side int) string { return dir(d, side) + "." + d.name() }
	for _, key := range []func(*decl, int) string{
		usedAs, byName,
		func(d *decl, side int) string { return file(d, side) + " " + d.name() },
		func(d *decl, _ int) string { return d.name() },
		file, dir,
		func(*decl, int) string { return "any" },
	} {
		for _, h := range hashes {
			take(groups[h], key, accept)
		}
	}
	var rest [2][]*decl
	for _, h := range hashes {
		for side := range rest {
			rest[side] = append(rest[side], groups[h][side]...)
		}
	}
	for side := range rest {
		slices.SortFunc(rest[side], func(a, b *decl) int { return a.order - b.order })
	}
	change := func(p pair) { c.changed = append(c.changed, p) }
	kinded := func(key func(*decl, int) string) func(*decl, int) string {
		return func(d *decl, side int) string {
			if k := key(d, side); k != "" && d.name() != "_" {
				return d.kind + " " + k
			}
			return ""
		}
	}
	take(&rest, kinded(func(d *decl, _ int) string { return d.file + " " + d.name() }), change)
	take(&rest, kinded(usedAs), change)
	take(&rest, kinded(byName), change)
	c.similar(&rest, func(a, b *decl) bool { return file(a, 0) == b.file }, change)
	c.similar(&rest, func(a, b *decl) bool { return dir(a, 0) == b.dir || len(rest[0])*len(rest[1]) < 100_000 }, change)
	take(&rest, kinded(func(d *decl, _ int) string { return d.name() }), change)
	c.oldOnly, c.newOnly = rest[0], rest[1]
	c.folders = map[string]string{}
	for d := range votes {
		if d, ok := strings.CutPrefix(d, "dir "); ok {
			c.folders[d] = became("dir ", d)
		}
	}
}

func first(g *[2][]*decl) int {
	if len(g[0]) > 0 {
		return g[0][0].order
	}
	return 1<<30 + g[1][0].order
}

// similar pairs declarations that have most tokens in common.
func (c *comparison) similar(rest *[2][]*decl, near func(a, b *decl) bool, use func(pair)) {
	bags := map[*decl]map[tok]int{}
	bag := func(d *decl) map[tok]int {
		if bags[d] == nil {
			bags[d] = map[tok]int{}
			for _, x := range d.toks {
				if x.class == local || x.class == global || x.class == text {
					x.text = ""
				}
				bags[d][tok{x.class, x.text, 0}]++
			}
		}
		return bags[d]
	}
	used := map[*decl]bool{}
	for _, a := range rest[0] {
		var best *decl
		most := 0.6
		for _, b := range rest[1] {
			n := max(len(a.toks), len(b.toks))
			if used[b] || a.kind != b.kind || !near(a, b) || float64(min(len(a.toks), len(b.toks))) < most*float64(n) {
				continue
			}
			common := 0
			for x, k := range bag(a) {
				common += min(k, bag(b)[x])
			}
			if s := float64(common) / float64(n); s > most {
				best, most = b, s
			}
		}
		if best != nil {
			use(pair{a, best})
			used[a], used[best] = true, true
		}
	}
	for side := range rest {
		rest[side] = slices.DeleteFunc(rest[side], func(d *decl) bool { return used[d] })
	}
}

// learn collects what each name became.
func (c *comparison) learn() {
	c.globals, c.members = map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(m map[string]map[string]bool, a, b string) {
		if m[a] == nil {
			m[a] = map[string]bool{}
		}
		m[a][b] = true
	}
	for _, p := range slices.Concat(c.pairs, c.changed) {
		a, b := p.before, p.after
		if len(a.names) == len(b.names) && a.kind != "method" && a.kind != "import" {
			for i := range a.names {
				add(c.globals, a.dir+"."+a.names[i], b.dir+"."+b.names[i])
				if a.kind == "type" { // also the name of an embedded field
					add(c.members, a.names[i], b.names[i])
				}
			}
		}
		for _, xy := range align(a, b) {
			if x, y := xy[0], xy[1]; x.class == memberDef && y.class == memberDef {
				add(c.members, x.text, y.text)
			}
		}
	}
	for _, d := range c.after.decls {
		for _, x := range d.toks {
			if x.class == memberDef {
				c.newDefs[x.text] = true
			}
		}
	}
}

// align returns the tokens that correspond in two declarations.
func align(a, b *decl) [][2]tok {
	var list [][2]tok
	if a.hash == b.hash && len(a.toks) == len(b.toks) {
		for i := range a.toks {
			list = append(list, [2]tok{a.toks[i], b.toks[i]})
		}
		return list
	}
	// Members that both have are taken to be the same, so that an added field shifts none.
	const onlyA, onlyB = 1, 2
	defined := map[string]int{}
	for side, toks := range [][]tok{a.toks, b.toks} {
		for _, x := range toks {
			if x.class == memberDef {
				defined[x.text] |= onlyA << side
			}
		}
	}
	shape := func(x tok) string {
		if x.class == exact || x.class == memberDef && defined[x.text] == onlyA|onlyB {
			return x.text
		}
		return string(x.class)
	}
	for _, e := range edits(a.toks, b.toks, shape, shape) {
		if e.equal {
			for i := range e.a {
				list = append(list, [2]tok{e.a[i], e.b[i]})
			}
		}
	}
	return list
}

// agrees reports whether one token of the old tree corresponds to one of the new tree.
func (c *comparison) agrees(x, y tok) bool {
	if x.class != y.class {
		return false
	}
	switch x.class {
	case local, text:
		return true
	case global:
		return c.globals[x.text][y.text]
	case folder:
		return c.folders[x.text] == y.text || x.text == y.text
	case member, memberDef:
		if x.text == y.text {
			return c.members[x.text] == nil || c.members[x.text][y.text] || !c.newDefs[y.text]
		}
		return c.members[x.text][y.text]
	}
	return x.text == y.text
}

// check walks a pair that is equal but for names.
func (c *comparison) check(p pair) {
	r := &c.report
	a, b := p.before, p.after
	seen := map[[2]tok]bool{}
	for i, x := range a.toks {
		y := b.toks[i]
		if x.class == text {
			r.text(a.file, x, b.file, y)
		}
		key := [2]tok{{x.class, x.text, 0}, {y.class, y.text, 0}}
		if !c.agrees(x, y) && !seen[key] {
			seen[key] = true
			r.names = append(r.names, fmt.Sprintf("%s:%d -> %s:%d: in %s: %s -> %s%s",
				a.file, x.line, b.file, y.line, b.name(), x.text, y.text, c.elsewhere(x, y)))
		}
	}
	r.directives(a, b)
	moved := a.file != b.file
	renamed := a.name() != b.name()
	switch {
	case moved && renamed:
		r.movedRenamed++
	case moved:
		r.moved++
	case renamed:
		r.renamed++
	default:
		r.equal++
	}
}

// elsewhere says what else a name became.
func (c *comparison) elsewhere(x, y tok) string {
	m := c.globals[x.text]
	if x.class == member || x.class == memberDef {
		m = c.members[x.text]
	}
	if len(m) == 0 || m[y.text] {
		return ""
	}
	names := slices.Sorted(maps.Keys(m))
	if len(names) > 3 {
		names = append(names[:3], "…")
	}
	return " (became " + strings.Join(names, ", ") + ")"
}

// difference describes what changed in a pair.
func (c *comparison) difference(p pair) string {
	a, b := p.before, p.after
	c.report.directives(a, b)
	oldKey := func(x tok) string {
		switch x.class {
		case local, text:
			return string(x.class)
		case global, member, memberDef:
			m := c.globals[x.text]
			if x.class != global {
				m = c.members[x.text]
			}
			if len(m) > 0 && !m[x.text] {
				x.text = slices.Min(slices.Collect(maps.Keys(m)))
			}
		}
		return string(x.class|32) + x.text
	}
	newKey := func(x tok) string {
		if x.class == local || x.class == text {
			return string(x.class)
		}
		return string(x.class|32) + x.text
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s -> %s: %s %s", a.at(), b.at(), b.kind, b.name())
	if a.name() != b.name() {
		fmt.Fprintf(&s, " (was %s)", a.name())
	}
	hunks := 0
	for _, e := range edits(a.toks, b.toks, oldKey, newKey) {
		if e.equal {
			for i, x := range e.a {
				if x.class == text {
					c.report.text(a.file, x, b.file, e.b[i])
				}
			}
			continue
		}
		if hunks++; hunks == 6 {
			s.WriteString("\n    …")
			break
		}
		fmt.Fprintf(&s, "\n    - %s\n    + %s", join(e.a), join(e.b))
	}
	if hunks == 0 {
		s.WriteString("\n    names of locals are used in another order")
	}
	return s.String()
}

func join(toks []tok) string {
	var s strings.Builder
	for i, x := range toks {
		if i > 0 {
			s.WriteByte(' ')
		}
		if x.class == text {
			fmt.Fprintf(&s, "%q", x.text)
		} else {
			s.WriteString(x.text)
		}
		if s.Len() > 160 {
			return s.String() + " …"
		}
	}
	return s.String()
}

var symbol = regexp.MustCompile(`[\w./∕]*·\w+`)

// assembly normalises an assembly file: comments and blank lines go, symbols are renamed.
func (c *comparison) assembly(name string, content []byte, rename bool) string {
	var s strings.Builder
	comment := false
	for line := range strings.SplitSeq(string(content), "\n") {
		if comment {
			_, after, ok := strings.Cut(line, "*/")
			if comment = !ok; comment {
				continue
			}
			line = after
		}
		if !strings.HasPrefix(line, "//go:build") {
			line, _, _ = strings.Cut(line, "//")
		}
		if before, after, ok := strings.Cut(line, "/*"); ok {
			_, rest, closed := strings.Cut(after, "*/")
			line, comment = before+" "+rest, !closed
		}
		line = strings.Join(strings.Fields(line), " ")
		if rename {
			line = symbol.ReplaceAllStringFunc(line, func(sym string) string {
				pkg, id, _ := strings.Cut(sym, "·")
				m := c.globals[path.Dir(name)+"."+id]
				if pkg != "" || len(m) != 1 {
					return sym
				}
				for b := range m {
					sym = "·" + b[strings.LastIndexByte(b, '.')+1:]
				}
				return sym
			})
		}
		if line != "" {
			s.WriteString(line + "\n")
		}
	}
	return s.String()
}

// ignored reports whether a file holds no code of the program: pages, settings, documents.
func ignored(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") || strings.HasSuffix(name, ".md") ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "web/") || strings.HasPrefix(name, "docs/")
}

// files compares assembly and data files.
func (c *comparison) files(before, after map[string][]byte) {
	r := &c.report
	sums := map[[32]byte][]string{}
	sum := func(name string, content []byte, rename bool) [32]byte {
		if strings.HasSuffix(name, ".s") {
			suffix := path.Base(name)
			suffix = suffix[max(0, strings.LastIndexByte(suffix, '_')):] // _amd64.s is a constraint
			return sha256.Sum256([]byte(suffix + "\n" + c.assembly(name, content, rename)))
		}
		return sha256.Sum256(content)
	}
	left := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if ignored(name) {
			r.ignored++
			continue
		}
		left[name] = true
		s := sum(name, after[name], false)
		sums[s] = append(sums[s], name)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if ignored(name) {
			continue
		}
		if left[name] && bytes.Equal(before[name], after[name]) {
			delete(left, name)
			r.files++
			continue
		}
		missing = append(missing, name)
	}
	var gone []string
	for _, name := range missing {
		i := slices.IndexFunc(sums[sum(name, before[name], true)], func(n string) bool { return left[n] })
		if i < 0 {
			gone = append(gone, name)
			continue
		}
		delete(left, sums[sum(name, before[name], true)][i])
		r.filesMoved++
	}
	for _, name := range gone {
		to := ""
		if left[name] {
			to = name
		} else if there := path.Join(c.folders[path.Dir(name)], path.Base(name)); left[there] {
			to = there
		}
		if to == "" {
			r.oldOnly = append(r.oldOnly, name+": file")
			continue
		}
		delete(left, to)
		r.changed = append(r.changed, fmt.Sprintf("%s -> %s: file: content differs", name, to))
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		r.newOnly = append(r.newOnly, name+": file")
	}
}
