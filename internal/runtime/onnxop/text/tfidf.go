package text

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// edge leads from a node of the n-gram tree to the next one by a token.
type edge[T comparable] struct {
	node int
	tok  T
}

// grams is the tree of the n-grams of a TfIdfVectorizer. Node 0 is its root; gram holds, by node,
// one plus the number of the n-gram that ends there.
type grams[T comparable] struct {
	next           map[edge[T]]int
	gram           []int
	shortest, most int
	skips          int
	coords         []int
	weights        []float32
	mode           string
	width          int
}

func inferTfIdf(c *op.Call) error {
	x := c.In[0]
	coords := c.Node.Attrs.Ints("ngram_indexes")
	if len(coords) == 0 {
		return errors.New("ngram_indexes are missing")
	}
	width := slices.Max(coords) + 1
	if slices.Min(coords) < 0 {
		return errors.New("ngram_indexes has a negative index")
	}
	switch {
	case x.Rank() == 2:
		c.SetOut(0, tensor.Float32, []int{x.Shape[0], width})
	case x.Rank() == 1, x.Rank() == 0:
		c.SetOut(0, tensor.Float32, []int{width})
	default:
		return fmt.Errorf("input has rank %d, not 1 or 2", x.Rank())
	}
	return nil
}

func prepareTfIdf(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	switch c.In[0].Type {
	case tensor.String:
		g, err := treeOf(c, a.Strs("pool_strings"))
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error { g.run(c, c.In[0].Strings); return nil }, nil
	case tensor.Int32, tensor.Int64:
		pool, _ := a["pool_int64s"].([]int64)
		g, err := treeOf(c, pool)
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error {
			v := make([]int64, c.In[0].Len())
			tensor.Read(v, c.In[0], 0)
			g.run(c, v)
			return nil
		}, nil
	}
	return nil, op.Unsupported("TfIdfVectorizer of %v", c.In[0].Type)
}

func treeOf[T comparable](c *op.Call, pool []T) (*grams[T], error) {
	a := c.Node.Attrs
	g := &grams[T]{
		next: map[edge[T]]int{}, gram: []int{0},
		shortest: a.Int("min_gram_length", 1), most: a.Int("max_gram_length", 1), skips: a.Int("max_skip_count", 0),
		coords: a.Ints("ngram_indexes"), weights: a.Floats("weights"), mode: a.Str("mode", ""),
	}
	if len(pool) == 0 {
		return nil, fmt.Errorf("no n-grams for input of type %v", c.In[0].Type)
	}
	if g.shortest < 1 || g.most < g.shortest || g.skips < 0 {
		return nil, fmt.Errorf("n-grams of length %d to %d with %d skips", g.shortest, g.most, g.skips)
	}
	if g.mode != "TF" && g.mode != "IDF" && g.mode != "TFIDF" {
		return nil, fmt.Errorf("mode is %q", g.mode)
	}
	g.width = slices.Max(g.coords) + 1
	starts := a.Ints("ngram_counts")
	n := 0
	for k, from := range starts {
		to := len(pool)
		if k+1 < len(starts) {
			to = starts[k+1]
		}
		if from < 0 || from > to || to > len(pool) || (to-from)%(k+1) != 0 {
			return nil, fmt.Errorf("ngram_counts %v do not cut a pool of %d", starts, len(pool))
		}
		for ; from < to; from += k + 1 {
			if n++; n > len(g.coords) {
				return nil, fmt.Errorf("pool has more n-grams than the %d indexes", len(g.coords))
			}
			at := 0
			for _, tok := range pool[from : from+k+1] {
				e := edge[T]{at, tok}
				if at = g.next[e]; at == 0 {
					at = len(g.gram)
					g.next[e], g.gram = at, append(g.gram, 0)
				}
			}
			g.gram[at] = n
		}
	}
	if g.weights != nil && len(g.weights) != len(g.coords) {
		return nil, fmt.Errorf("%d weights for %d n-grams", len(g.weights), len(g.coords))
	}
	return g, nil
}

func (g *grams[T]) run(c *op.Call, tokens []T) {
	y := tensor.Of[float32](c.Out[0])
	clear(y)
	rows := len(y) / g.width
	if rows == 0 {
		return
	}
	per := len(tokens) / rows
	counts := make([]int, len(g.coords))
	for r := range rows {
		clear(counts)
		g.count(counts, tokens[r*per:(r+1)*per])
		out := y[r*g.width : (r+1)*g.width]
		for i, n := range counts {
			if n == 0 {
				continue
			}
			w := float32(1)
			if g.weights != nil && g.mode != "TF" {
				w = g.weights[i]
			}
			if g.mode == "IDF" {
				out[g.coords[i]] = w
			} else {
				out[g.coords[i]] += w * float32(n)
			}
		}
	}
}

// count walks the tree from every token, at every distance between tokens. Single tokens have no
// distance and count once.
func (g *grams[T]) count(counts []int, tokens []T) {
	for dist := 1; dist <= g.skips+1; dist++ {
		for start := range tokens {
			at := 0
			for n := 1; n <= g.most; n++ {
				i := start + (n-1)*dist
				if i >= len(tokens) {
					break
				}
				if at = g.next[edge[T]{at, tokens[i]}]; at == 0 {
					break
				}
				if k := g.gram[at]; k > 0 && n >= g.shortest && (n > 1 || dist == 1) {
					counts[k-1]++
				}
			}
		}
		if dist >= len(tokens) {
			break // larger distances find single tokens only
		}
	}
}
