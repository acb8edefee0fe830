package gguf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// describe sums up the weights that the graph reads, and the caches.
func (b *builder) describe() {
	by := map[Type]*graph.Coded{}
	active := 0.0
	for _, t := range b.f.Tensors {
		if !b.used[t.Name] {
			continue
		}
		c := by[t.Type]
		if c == nil {
			c = &graph.Coded{Type: t.Type.String()}
			by[t.Type] = c
		}
		n := int64(t.Len())
		c.Weights, c.Bytes = c.Weights+n, c.Bytes+int64(len(t.Data))
		if experts := b.language.Experts; experts > 0 && strings.Contains(t.Name, "_exps.") {
			n = n / experts * b.language.UsedExperts
		}
		active += float64(n)
	}
	for _, c := range by {
		b.language.Types = append(b.language.Types, *c)
	}
	slices.SortFunc(b.language.Types, func(x, y graph.Coded) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), strings.Compare(x.Type, y.Type))
	})
	if b.language.Experts > 0 {
		b.language.ActiveParams = int64(active)
	}
	b.caches()
}

// caches counts what a token adds to the caches of keys and values.
func (b *builder) caches() {
	var first string
	same := true
	for l := range b.layers {
		var n int
		var formula string
		switch {
		case b.recurrent:
			return
		case b.latentKV:
			h, err := b.latent(l)
			if err != nil {
				return
			}
			n, formula = h.rank+h.rope, fmt.Sprintf("(%d latent + %d rotated)", h.rank, h.rope)
		default:
			h, err := b.heads(l)
			if err != nil {
				return
			}
			n, formula = 2*h.kv*h.size, fmt.Sprintf("2 × %d heads × %d", h.kv, h.size)
		}
		b.language.CacheElements += int64(n)
		if l == 0 {
			first = formula
		}
		same = same && formula == first
	}
	b.language.CacheFormula = fmt.Sprintf("sum over %d layers", b.layers)
	if same {
		b.language.CacheFormula = fmt.Sprintf("%d layers × %s", b.layers, first)
	}
}
