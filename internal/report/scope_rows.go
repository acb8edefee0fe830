package report

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// maxScopeDepth bounds the levels of scopes.
const maxScopeDepth = 64

// scopeNode is a scope with its layers, those of inner scopes included.
type scopeNode struct {
	path  string
	row   row
	own   bool // a layer belongs to the scope itself
	inner []*scopeNode
	known map[string]*scopeNode
}

// child returns an inner scope by its path.
func (n *scopeNode) child(path string) *scopeNode {
	c := n.known[path]
	if c == nil {
		c = &scopeNode{path: path}
		if n.known == nil {
			n.known = map[string]*scopeNode{}
		}
		n.known[path] = c
		n.inner = append(n.inner, c)
	}
	return c
}

// scopeRows makes a row for each scope, with inner scopes after the scope that contains them.
// Each level is sorted on its own. The outermost scopes hold every layer once.
func scopeRows(p *profile.Profile, ls profile.Layers, o Options) ([]row, error) {
	root := &scopeNode{}
	for _, l := range ls {
		at, scope := root, strings.Trim(l.Scope, "/")
		for i := range maxScopeDepth {
			path, more := scopePrefix(scope, i)
			at = at.child(path)
			at.row.Layers = append(at.row.Layers, l)
			if !more {
				break
			}
		}
		at.own = true
	}
	var out []row
	if err := root.list(p, o, &out); err != nil {
		return nil, err
	}
	if o.Top > 0 && o.Top < len(out) {
		if err := largestFirst(p, o, out); err != nil {
			return nil, err
		}
	}
	addShares(out)
	return out, nil
}

// scopePrefix returns the first n+1 parts of a scope, and whether there are more.
func scopePrefix(scope string, n int) (path string, more bool) {
	if scope == "" {
		return "(none)", false
	}
	end := 0
	for ; n >= 0; n-- {
		i := strings.IndexByte(scope[end:], '/')
		if i < 0 {
			return scope, false
		}
		if end += i; n > 0 {
			end++
		}
	}
	return scope[:end], true
}

// list appends the rows of inner scopes. A scope with the same layers as its only inner scope is
// left out.
func (n *scopeNode) list(p *profile.Profile, o Options, out *[]row) error {
	rs := make([]row, len(n.inner))
	nodes := map[*profile.Layer]*scopeNode{} // by first layer, which scopes of a level do not share
	for i, c := range n.inner {
		for !c.own && len(c.inner) == 1 {
			c = c.inner[0]
		}
		rs[i] = row{Layers: c.row.Layers, group: &c.path, inner: n.path != ""}
		nodes[c.row.Layers[0]] = c
	}
	if err := sortRows(rs, o.groupOrder(), p.AllQuantities()); err != nil {
		return err
	}
	for i := range rs {
		*out = append(*out, rs[i])
		if err := nodes[rs[i].Layers[0]].list(p, o, out); err != nil {
			return err
		}
	}
	return nil
}

// largestFirst moves the rows that come first when all are sorted together to the front, in the
// order that they have.
func largestFirst(p *profile.Profile, o Options, rs []row) error {
	sorted := slices.Clone(rs)
	if err := sortRows(sorted, o.groupOrder(), p.AllQuantities()); err != nil {
		return err
	}
	first := map[*string]bool{}
	for _, r := range sorted[:o.Top] {
		first[r.group] = true
	}
	sorting.Stable(rs, func(a, b row) int {
		switch {
		case first[a.group] == first[b.group]:
			return 0
		case first[a.group]:
			return -1
		}
		return 1
	})
	return nil
}
