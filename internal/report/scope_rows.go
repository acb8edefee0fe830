package report

import (
	"strings"

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

// scopeRows makes a row for each scope, with inner scopes inside the scope that contains them. The
// outermost scopes hold every layer once.
func scopeRows(_ *profile.Profile, ls profile.Layers, _ Options) []row {
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
	return root.rows()
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

// rows makes the rows of inner scopes. A scope with the same layers as its only inner scope is left
// out.
func (n *scopeNode) rows() (out []row) {
	for _, c := range n.inner {
		for !c.own && len(c.inner) == 1 {
			c = c.inner[0]
		}
		out = append(out, row{Layers: c.row.Layers, group: &c.path, inside: c.rows()})
	}
	return out
}
