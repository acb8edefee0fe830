package blocks

import (
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// method says how figures of blocks come about.
const method = "times of the equal blocks"

// figures sets what one block takes, its parts and its layers, over all blocks.
func figures(p *profile.Profile, b *profile.Block) {
	keys := []string{"latency_s"}
	if p.Language != nil {
		for i := range p.Language.Phases {
			if k := p.Language.Phases[i].Quantity; k != "latency_s" {
				keys = append(keys, k)
			}
		}
	}
	for _, part := range profile.PartNames {
		x := profile.BlockPart{Name: part}
		var ls []*profile.BlockLayer
		for k := range b.Layers {
			if b.Layers[k].Part == part {
				ls = append(ls, &b.Layers[k])
			}
		}
		if ls == nil || b.Part != "" || len(ls) == len(b.Layers) { // nothing to divide
			continue
		}
		x.Figures, x.ActiveParams = over(p, keys, ls), active(p, ls)
		b.Parts = append(b.Parts, x)
	}
	var all []*profile.BlockLayer
	for k := range b.Layers {
		l := &b.Layers[k]
		all = append(all, l)
		if b.Count > 1 {
			l.Figures = over(p, keys, []*profile.BlockLayer{l})
		}
	}
	b.Figures = over(p, keys, all)
}

// over returns for each key the sums of the layers of a block, summarised over the blocks; a key
// for which a layer that takes part in an inference has no figure is left out.
func over(p *profile.Profile, keys []string, ls []*profile.BlockLayer) map[string]*profile.Metric {
	out := map[string]*profile.Metric{}
	for _, key := range keys {
		sums := make([]float64, len(ls[0].Layers))
		var kind profile.Kind
		whole := true
		for _, l := range ls {
			for n, x := range l.Layers {
				m := p.Layers[x].Figure(key)
				v, ok := m.Best()
				if ok {
					sums[n], kind = sums[n]+v, m.Kind
				} else {
					whole = whole && p.Layers[x].State == profile.NotReached
				}
			}
		}
		if whole && kind != "" {
			m := profile.Summarize(kind, sums, method)
			out[key] = &profile.Metric{Kind: kind, Method: method, N: m.N, Median: m.Median, Mean: m.Mean, Min: m.Min, Max: m.Max}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// active returns the parameters of one block that a token uses, nil where it uses all of them or
// where that is unknown.
func active(p *profile.Profile, ls []*profile.BlockLayer) *int64 {
	var sum int64
	some := false
	for _, bl := range ls {
		l := &p.Layers[bl.Layers[0]]
		if l.Params == nil {
			continue
		}
		n := *l.Params
		if used, of := chosen(l); of > 0 && bl.Part == profile.PartExperts {
			n, some = n/of*used, true
		}
		sum += n
	}
	if !some {
		return nil
	}
	return &sum
}

// chosen returns how many experts of how many a token uses, 0 of 0 for layers without experts or
// where that is unknown.
func chosen(l *profile.Layer) (used, of int64) {
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	shape := func(input int) []int64 {
		if input >= len(l.Inputs) {
			return nil
		}
		return l.Inputs[input].Shape
	}
	slots := func(s []int64) int64 {
		if len(s) == 0 {
			return 0
		}
		return s[len(s)-1]
	}
	switch strings.ToLower(l.Op) {
	case "expertmatmul":
		used = slots(shape(6))
		// Matrices of the experts, or rows of all of them with quantised weights.
		if s, rows := shape(1), number(l.Option("N")); len(s) == 3 && s[1] == rows && s[2] == number(l.Option("K")) {
			of = s[0]
		} else if len(s) > 0 && rows > 0 {
			of = s[0] / rows
		}
	case "gather":
		if s := shape(0); len(s) > 1 && l.Inputs[0].Constant {
			used, of = slots(shape(1)), s[0]
		}
	case "moe", "qmoe":
		used = number(l.Option("k"))
		if s := shape(2); len(s) > 0 {
			of = s[0]
		}
	}
	if used < 1 || of < used {
		return 0, 0
	}
	return used, of
}
