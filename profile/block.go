package profile

import (
	"fmt"
	"slices"
)

// Block is a group of layers that repeats, such as the layers of a transformer, or layers outside
// of such groups that belong together, such as those of the embedding. [blocks.Find] finds them.
//
// [blocks.Find]: https://pkg.go.dev/github.com/opmeter/opmeter/profile/blocks#Find
type Block struct {
	// Count is the number of equal blocks, 1 for layers that do not repeat.
	Count int64 `json:"count"`
	// Part is what the layers of a single block are for, absent for blocks that repeat.
	Part BlockPartName `json:"part,omitzero"`
	// Layers are those of a block, in the order of the first one.
	Layers []BlockLayer `json:"layers"`
	// Parts divides the layers by what they are for, absent where that is unknown.
	Parts []BlockPart `json:"parts,omitzero"`
	// Figures has the times of one block by their keys: median, mean, least and greatest over
	// the blocks. Every layer of each block has the figure.
	Figures map[string]*Metric `json:"figures,omitzero"`
}

// BlockPart is layers of a block that belong together.
type BlockPart struct {
	// Name says what they are for.
	Name BlockPartName `json:"name"`
	// Figures is like that of [Block].
	Figures map[string]*Metric `json:"figures,omitzero"`
	// ActiveParams is the number of parameters of one block that a token uses, where that is
	// less than all: those of the chosen experts.
	ActiveParams *int64 `json:"active_params,omitzero"`
}

// BlockLayer is a layer of a block, with its equals in the other blocks.
type BlockLayer struct {
	// Layers are the indices of the layers, one for each block.
	Layers []int64 `json:"layers"`
	// With are the layers that have no time of their own and belong to these: fused into them,
	// or computed for them while planning.
	With []int64 `json:"with,omitzero"`
	// Part is the part of the block that the layer belongs to.
	Part BlockPartName `json:"part,omitzero"`
	// Figures is like that of [Block].
	Figures map[string]*Metric `json:"figures,omitzero"`
}

// BlockPartName says what layers of a block are for.
type BlockPartName string

// Parts of blocks.
const (
	PartEmbedding   BlockPartName = "embedding"
	PartNorm        BlockPartName = "norm"
	PartAttention   BlockPartName = "attention"
	PartStateSpace  BlockPartName = "state space"
	PartConvolution BlockPartName = "convolution"
	PartMLP         BlockPartName = "MLP"
	PartRouter      BlockPartName = "router"  // chooses experts
	PartExperts     BlockPartName = "experts" // an MLP of which a token uses some matrices
	PartHead        BlockPartName = "head"    // scores of the next token, or classes
	PartOther       BlockPartName = "other"
)

// PartNames lists the parts in the order of a model.
var PartNames = []BlockPartName{
	PartEmbedding, PartNorm, PartAttention, PartStateSpace, PartConvolution, PartMLP, PartRouter, PartExperts, PartHead, PartOther,
}

// blocks checks that indices are those of layers, and that no layer is in two blocks.
func (c *checker) blocks(bs []Block, layers int) {
	seen := map[int64]bool{}
	part := func(at string, name BlockPartName) {
		if name != "" && !slices.Contains(PartNames, name) {
			c.fail(at, "is %q, want one of %q", name, PartNames)
		}
	}
	for i := range bs {
		b, at := &bs[i], fmt.Sprintf("blocks[%d]", i)
		if b.Count < 1 {
			c.fail(at+".count:", "%d is below 1", b.Count)
		}
		part(at+".part", b.Part)
		c.figures(at, b.Figures)
		for k := range b.Parts {
			p, at := &b.Parts[k], fmt.Sprintf("%s.parts[%d]", at, k)
			part(at+".name", p.Name)
			c.figures(at, p.Figures)
			c.counts(at, named{"active_params", p.ActiveParams})
		}
		for k := range b.Layers {
			l, at := &b.Layers[k], fmt.Sprintf("%s.layers[%d]", at, k)
			part(at+".part", l.Part)
			c.figures(at, l.Figures)
			if int64(len(l.Layers)) != b.Count {
				c.fail(at+".layers:", "has %d layers, expected %d, one for each block", len(l.Layers), b.Count)
			}
			for _, list := range [][]int64{l.Layers, l.With} {
				for _, x := range list {
					c.ref(at, &x, layers)
					if seen[x] {
						c.fail(at+":", "layer %d is in two places", x)
					}
					seen[x] = true
				}
			}
		}
	}
}
