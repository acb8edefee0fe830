package blocks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// named has the parts by words of names and scopes, the first that occurs counts. A word fits at
// the beginning of a part of the path.
var named = []struct {
	part  profile.BlockPartName
	words []string
}{
	{profile.PartRouter, []string{"router", "gating", "ffn_gate_inp", "block_sparse_moe.gate", "moe.gate", "moe/gate"}},
	{profile.PartExperts, []string{"experts", "shared_expert", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"}},
	{profile.PartStateSpace, []string{"state_space", "ssm", "mamba"}},
	{profile.PartAttention, []string{"attn", "attention", "self_attn", "mha"}},
	{profile.PartMLP, []string{"mlp", "ffn", "feed_forward", "intermediate"}},
	{profile.PartEmbedding, []string{"embed", "token_embd", "wte", "wpe"}},
	{profile.PartHead, []string{"lm_head", "logits"}},
}

// ops has the parts by operator or class of operators.
var ops = map[string]profile.BlockPartName{
	"norm": profile.PartNorm, "instancenorm": profile.PartNorm, "l2normalization": profile.PartNorm,
	"attention": profile.PartAttention, "linearattention": profile.PartAttention,
	"expertmatmul": profile.PartExperts, "moe": profile.PartExperts, "qmoe": profile.PartExperts,
	"embedlayernorm": profile.PartEmbedding,
}

// partOf returns the part that operator or names of a layer say, "" if they do not.
func partOf(l *profile.Layer) profile.BlockPartName {
	part := ops[align.Class(l.Op)]
	if part == profile.PartNorm {
		return part
	}
	return cmp.Or(byWord(strings.ToLower(l.Name)), byWord(strings.ToLower(l.Scope)), part)
}

// normOps are operators of norms that a file has as single steps, beside mean and square root.
var normOps = map[string]bool{"add": true, "sub": true, "mul": true, "div": true, "pow": true, "reciprocal": true, "squaredmean": true, "reshape": true, "cast": true, "averagepool": true}

// stepwise marks norms that consist of several operators: those that are fused, and sequences from
// a mean to what follows a square root.
func stepwise(body profile.Layers, fused map[int64][]*profile.Layer) []bool {
	norm := make([]bool, len(body))
	root := func(l *profile.Layer) bool {
		return strings.EqualFold(l.Op, "Sqrt") || strings.EqualFold(l.Op, "Rsqrt")
	}
	mean := func(l *profile.Layer) bool {
		return align.Class(l.Op) == "averagepool" && strings.HasSuffix(strings.ToLower(l.Op), "mean")
	}
	for i := 0; i < len(body); i++ {
		if with := append(fused[body[i].Index], body[i]); slices.ContainsFunc(with, root) && slices.ContainsFunc(with, mean) {
			norm[i] = true
			continue
		}
		if !mean(body[i]) {
			continue
		}
		end, rooted := i, false
		for end < len(body) && (root(body[end]) || normOps[align.Class(body[end].Op)]) {
			rooted = rooted || root(body[end])
			end++
		}
		if !rooted {
			continue
		}
		for k := i; k < end; k++ {
			norm[k] = true
		}
		if i > 0 && strings.EqualFold(body[i-1].Op, "Pow") {
			norm[i-1] = true
		}
		i = end - 1
	}
	return norm
}

func byWord(path string) profile.BlockPartName {
	for _, n := range named {
		for _, w := range n.words {
			for at := 0; ; {
				i := strings.Index(path[at:], w)
				if i < 0 {
					break
				}
				if i += at; i == 0 || strings.IndexByte("/._:", path[i-1]) >= 0 {
					return n.part
				}
				at = i + 1
			}
		}
	}
	return ""
}

// parts returns the part of each layer of a block, nil for a block without attention, a state space
// or experts. Layers that neither operator nor name tells belong to the part of their segment: what
// is between norms and places where a single tensor is live.
func parts(body profile.Layers, norm []bool, u unit) []profile.BlockPartName {
	block := u[0]
	out := make([]profile.BlockPartName, len(block))
	telling := false
	for k, i := range block {
		l := body[i]
		switch out[k] = partOf(l); {
		case norm[i]:
			out[k] = profile.PartNorm
		case out[k] == "" && ofActivations(l):
			out[k] = profile.PartAttention
		}
		switch out[k] {
		case profile.PartAttention, profile.PartStateSpace, profile.PartExperts:
			telling = true
		}
	}
	if !telling {
		return nil
	}
	layers := make(profile.Layers, len(block))
	for k, i := range block {
		layers[k] = body[i]
	}
	for _, s := range segments(layers, out) {
		fill(layers[s[0]:s[1]], out[s[0]:s[1]])
	}
	return out
}

// ofActivations reports whether a layer multiplies two tensors that are computed.
func ofActivations(l *profile.Layer) bool {
	if align.Class(l.Op) != "matmul" || len(l.Inputs) < 2 {
		return false
	}
	for k := range 2 {
		if t := &l.Inputs[k]; t.Constant || t.Absent || t.Name == "" {
			return false
		}
	}
	return l.Weights == nil
}

// segments divides a block, [begin, end) each: before each norm of the whole state, and where a
// single tensor is live.
func segments(block profile.Layers, parts []profile.BlockPartName) (out [][2]int) {
	live := liveAt(block, true)
	state := lastDim(block[len(block)-1])
	begin := 0
	for k := 1; k < len(block); k++ {
		if parts[k] == profile.PartNorm && lastDim(block[k]) == state || live[k] == 1 && parts[k] != profile.PartNorm && closed(parts[begin:k]) {
			out = append(out, [2]int{begin, k})
			begin = k
		}
	}
	return append(out, [2]int{begin, len(block)})
}

// closed reports whether a segment has something beside norms.
func closed(parts []profile.BlockPartName) bool {
	return slices.ContainsFunc(parts, func(p profile.BlockPartName) bool { return p != profile.PartNorm })
}

// lastDim is the last dimension of the first result, 0 if unknown.
func lastDim(l *profile.Layer) int64 {
	if len(l.Outputs) == 0 || len(l.Outputs[0].Shape) == 0 {
		return 0
	}
	s := l.Outputs[0].Shape
	return s[len(s)-1]
}

// fill gives the layers of a segment without a part that of the segment.
func fill(layers profile.Layers, parts []profile.BlockPartName) {
	has := func(p profile.BlockPartName) bool { return slices.Contains(parts, p) }
	heavy := func(class string) bool {
		return slices.ContainsFunc(layers, func(l *profile.Layer) bool { return align.Class(l.Op) == class })
	}
	whole := profile.PartOther
	switch {
	case has(profile.PartAttention):
		whole = profile.PartAttention
	case has(profile.PartStateSpace):
		whole = profile.PartStateSpace
	case has(profile.PartExperts):
		whole = profile.PartExperts
	case heavy("conv"):
		whole = profile.PartConvolution
	case heavy("matmul"), has(profile.PartMLP):
		whole = profile.PartMLP
	}
	// What precedes the choice of experts makes it.
	choice := -1
	if has(profile.PartExperts) {
		choice = slices.IndexFunc(layers, func(l *profile.Layer) bool { return strings.EqualFold(l.Op, "TopK") })
	}
	first := slices.Index(parts, profile.PartExperts)
	for k := range parts {
		free := parts[k] == "" || whole == profile.PartExperts && parts[k] == profile.PartMLP
		switch {
		case !free:
		case whole == profile.PartExperts && first >= 0 && k < first && (choice >= 0 || parts[first] == profile.PartExperts):
			parts[k] = profile.PartRouter
		default:
			parts[k] = whole
		}
	}
}

// table reports whether a layer reads rows of a table of weights.
func table(l *profile.Layer) bool {
	return align.Class(l.Op) == "gather" && len(l.Inputs) > 0 && l.Inputs[0].Constant && len(l.Inputs[0].Shape) > 1
}

// outside returns the layers outside of the blocks of a model with parts as blocks by part.
func outside(body profile.Layers, norm []bool, units []unit) []profile.Block {
	inside := make([]bool, len(body))
	last := -1
	for _, u := range units {
		for _, block := range u {
			for _, i := range block {
				inside[i] = true
				last = max(last, i)
			}
		}
	}
	// The head follows the last norm.
	headFrom := last + 1
	for i, l := range body {
		if i > last && (norm[i] || partOf(l) == profile.PartNorm) {
			headFrom = i + 1
		}
	}
	by := map[profile.BlockPartName][]profile.BlockLayer{}
	head := false
	for i := 0; i < len(body); i++ {
		if inside[i] {
			continue
		}
		var stretch []int // up to the next block
		for k := i; k < len(body) && !inside[k]; k++ {
			stretch = append(stretch, k)
		}
		of, from := parts(body, norm, unit{stretch}), headFrom
		if of != nil && from == last+1 { // without a norm before it
			for _, k := range stretch {
				if align.Heavy(body[k].Op) {
					from = max(from, k)
				}
			}
		}
		for k, i := range stretch {
			l := body[i]
			part := partOf(l)
			switch {
			case norm[i]:
				part = profile.PartNorm
			case part == profile.PartNorm || part == profile.PartEmbedding && i < last:
			case i >= from && (part == profile.PartHead || head || align.Heavy(l.Op)):
				part, head = profile.PartHead, true
			case i < last && table(l):
				part = profile.PartEmbedding
			case of != nil:
				part = of[k]
			case part == "" || part == profile.PartEmbedding || part == profile.PartHead:
				part = profile.PartOther
			}
			by[part] = append(by[part], profile.BlockLayer{Layers: []int64{l.Index}, Part: part})
		}
		i += len(stretch) - 1
	}
	var out []profile.Block
	for _, part := range profile.PartNames {
		if len(by[part]) > 0 {
			out = append(out, profile.Block{Count: 1, Part: part, Layers: by[part]})
		}
	}
	return out
}
