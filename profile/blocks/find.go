package blocks

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// Find returns the repeated blocks of a profile, in the order of their first layers, with their
// figures. In models with attention, layers outside of the blocks are blocks of their own by part;
// those of other models are in no block. No layer is in two blocks.
func Find(p *profile.Profile) []profile.Block {
	var out []profile.Block
	fused := map[int64][]*profile.Layer{}
	for i := range p.Layers {
		if f := p.Layers[i].FusedInto; f != nil {
			fused[*f] = append(fused[*f], &p.Layers[i])
		}
	}
	for _, body := range bodies(p) {
		out = append(out, find(body, fused)...)
	}
	owners := attach(p, out)
	for i := range out {
		b := &out[i]
		for k := range b.Layers {
			b.Layers[k].With = owners[[2]int{i, k}]
		}
		figures(p, b)
	}
	sorting.Stable(out, func(a, b profile.Block) int { return int(a.Layers[0].Layers[0] - b.Layers[0].Layers[0]) })
	return out
}

// bodies returns the layers that take time of their own, for each body of control flow.
func bodies(p *profile.Profile) (out []profile.Layers) {
	type key struct {
		parent int64
		graph  string
	}
	at := map[key]int{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.State.Elsewhere() {
			continue
		}
		k := key{-1, l.Graph}
		if l.Parent != nil {
			k.parent = *l.Parent
		}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k], out = n, append(out, nil)
		}
		out[n] = append(out[n], l)
	}
	return out
}

// unit is a number of equal blocks: for each the positions of its layers in a body, equal layers at
// equal places.
type unit [][]int

// find returns the blocks of a body. Of the ways to divide it the one with the fewest rows counts:
// a row for each layer of a block and one for the block itself.
func find(body profile.Layers, fused map[int64][]*profile.Layer) []profile.Block {
	signs, known := signatures(body)
	best := bySequence(body, signs, known)
	rows := rowsOf(best, len(body))
	for level := range maxLevels {
		// With as many rows names know better where a block begins.
		if units := byName(body, signs, level); len(units) > 0 && rowsOf(units, len(body)) <= rows {
			best, rows = units, rowsOf(units, len(body))
		}
	}
	var out []profile.Block
	parted, norm := false, stepwise(body, fused)
	for _, u := range best {
		b := profile.Block{Count: int64(len(u))}
		for k := range u[0] {
			l := profile.BlockLayer{}
			for _, block := range u {
				l.Layers = append(l.Layers, body[block[k]].Index)
			}
			b.Layers = append(b.Layers, l)
		}
		if ps := parts(body, norm, u); ps != nil {
			parted = true
			for k := range b.Layers {
				b.Layers[k].Part = ps[k]
			}
		}
		out = append(out, b)
	}
	if parted {
		out = append(out, outside(body, norm, best)...)
	}
	return out
}

// rowsOf is the number of rows of a table of units and of the layers outside of them.
func rowsOf(units []unit, layers int) int {
	rows := layers
	for _, u := range units {
		rows -= len(u)*len(u[0]) - len(u[0]) - 1
	}
	return rows
}

// attach returns the layers without a time of their own by the block and the place of those that do
// their work or first read their results.
func attach(p *profile.Profile, bs []profile.Block) map[[2]int][]int64 {
	place := make([][2]int, len(p.Layers))
	for i := range place {
		place[i] = [2]int{-1, -1}
	}
	for i := range bs {
		for k := range bs[i].Layers {
			for _, x := range bs[i].Layers[k].Layers {
				place[x] = [2]int{i, k}
			}
		}
	}
	type tensor struct{ graph, name string }
	reader := map[tensor]int{}
	for i := range p.Layers {
		for k := range p.Layers[i].Inputs {
			if t := (tensor{p.Layers[i].Graph, p.Layers[i].Inputs[k].Name}); t.name != "" {
				if _, ok := reader[t]; !ok {
					reader[t] = i
				}
			}
		}
	}
	out := map[[2]int][]int64{}
	for i := len(p.Layers) - 1; i >= 0; i-- { // readers come later
		l := &p.Layers[i]
		if !l.State.Elsewhere() {
			continue
		}
		to := -1
		if f := l.FusedInto; f != nil && *f >= 0 && *f < int64(len(place)) {
			to = int(*f)
		} else if len(l.Outputs) > 0 {
			if r, ok := reader[tensor{l.Graph, l.Outputs[0].Name}]; ok {
				to = r
			}
		}
		if to < 0 || place[to][0] < 0 {
			continue
		}
		place[i] = place[to]
		out[place[i]] = append(out[place[i]], l.Index)
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}
