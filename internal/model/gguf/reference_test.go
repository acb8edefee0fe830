package gguf_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/gguf"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// Sizes of the models of this file.
const (
	width, heads, kvHeads, headSize, wide, words = 64, 4, 2, 16, 96, 50
	experts, used, expertWide, sharedWide        = 4, 2, 32, 64
	rank, queryRank, rotated, unrotated, valued  = 32, 32, 8, 16, 16
	inner, stateSize, convSize, stepRank         = 64, 8, 4, 4
)

// small is a model with its weights as a reference reads them.
type small struct {
	arch string
	w    writer
	of   map[string][]float64
	n    int
	tiny bool // sizes are those of tinySizes
}

// tinySizes replaces the sizes of a small model for a file of a few kilobytes.
var tinySizes = map[int]int{width: 8, headSize: 4, wide: 12, words: 3, heads: 2, kvHeads: 1, rank: 4, rotated: 2, rank + rotated: 6, unrotated + rotated: 6, 2 * inner: 16, stepRank + 2*stateSize: 6}

// tinyKeys are metadata with one of these sizes.
var tinyKeys = regexp.MustCompile(`embedding_length|feed_forward|head_count|expert_count|used_count|lora|dimension|_length$|^ssm`)

// meta sets metadata of the architecture.
func (s *small) meta(values map[string]any) {
	for k, v := range values {
		if n, ok := v.(uint32); ok && s.tiny && tinySizes[int(n)] > 0 && tinyKeys.MatchString(k) {
			v = uint32(tinySizes[int(n)])
		}
		s.w.key(s.arch+"."+k, v)
	}
}

// add adds a tensor whose type is 0 (F32), 2 (Q4_0), 3 (Q4_1), 7 (Q5_1), 8 (Q8_0) or 39 (MXFP4).
func (s *small) add(kind uint32, base float64, name string, shape ...int) {
	n := 1
	shape = slices.Clone(shape)
	for i, d := range shape {
		if s.tiny {
			shape[i] = tinySizes[d]
		}
		n *= shape[i]
	}
	s.n++
	raw := floats(s.n, n, base)
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	if kind != 0 && !s.tiny {
		block, size := gguf.Type(kind).Block()
		raw = make([]byte, n/block*size)
		for i := range raw {
			raw[i] = byte(i*37 + s.n*11)
		}
		for i := 0; i < len(raw); i += size {
			if kind == 39 {
				raw[i] = 122 // 2^-5
			} else {
				binary.LittleEndian.PutUint16(raw[i:], 0x1800) // 2^-9
			}
			if kind == 3 || kind == 7 {
				binary.LittleEndian.PutUint16(raw[i+2:], 0xa000|uint16(raw[i+2])) // -2^-7 or less
			}
		}
		for i, x := range gguf.Type(kind).Floats(raw) {
			values[i] = float64(x)
		}
	}
	if s.tiny {
		kind = 0 // rows are shorter than a block
	}
	s.w.tensor(name, kind, raw, shape...)
	s.of[name] = values
}

// newSmall makes a model of two layers. kind is the type of the matrices of the experts.
func newSmall(arch string, kind uint32) *small { return (&small{arch: arch}).fill(kind) }

func (s *small) fill(kind uint32) *small {
	arch := s.arch
	s.of = map[string][]float64{}
	s.w.key("general.architecture", arch)
	s.meta(map[string]any{"block_count": uint32(2), "embedding_length": uint32(width), "context_length": uint32(128), "attention.layer_norm_rms_epsilon": float32(1e-5)})
	s.add(0, 0, "token_embd.weight", words, width)
	s.add(0, 1, "output_norm.weight", width)
	s.add(0, 0, "output.weight", words, width)
	if arch == "mamba" {
		s.mambaLayers()
		return s
	}
	s.meta(map[string]any{
		"feed_forward_length": uint32(wide), "attention.head_count": uint32(heads), "expert_count": uint32(experts), "expert_used_count": uint32(used), "expert_feed_forward_length": uint32(expertWide),
	})
	if arch == "deepseek2" {
		s.meta(map[string]any{
			"attention.kv_lora_rank": uint32(rank), "rope.dimension_count": uint32(rotated), "attention.key_length": uint32(unrotated + rotated), "attention.value_length": uint32(valued),
			"leading_dense_block_count": uint32(1), "expert_weights_scale": float32(2.5), "expert_gating_func": uint32(2), "expert_weights_norm": true,
		})
	} else {
		s.meta(map[string]any{"attention.head_count_kv": uint32(kvHeads), "attention.sliding_window": uint32(4)})
	}
	for l := range 2 {
		s.layer(fmt.Sprintf("blk.%d.", l), l, kind)
	}
	return s
}

func (s *small) layer(p string, l int, kind uint32) {
	s.add(0, 1, p+"attn_norm.weight", width)
	switch s.arch {
	case "deepseek2":
		s.add(0, 0, p+"attn_q_a.weight", queryRank, width)
		s.add(0, 1, p+"attn_q_a_norm.weight", queryRank)
		s.add(0, 0, p+"attn_q_b.weight", heads*(unrotated+rotated), queryRank)
		s.add(0, 0, p+"attn_kv_a_mqa.weight", rank+rotated, width)
		s.add(0, 1, p+"attn_kv_a_norm.weight", rank)
		if l == 0 { // older files have one matrix
			s.add(0, 0, p+"attn_kv_b.weight", heads*(unrotated+valued), rank)
		} else {
			s.add(0, 0, p+"attn_k_b.weight", heads, rank, unrotated)
			s.add(8, 0, p+"attn_v_b.weight", heads, valued, rank)
		}
		s.add(0, 0, p+"attn_output.weight", width, heads*valued)
	default:
		s.add(0, 0, p+"attn_q.weight", heads*headSize, width)
		s.add(0, 0, p+"attn_k.weight", kvHeads*headSize, width)
		s.add(0, 0, p+"attn_v.weight", kvHeads*headSize, width)
		s.add(0, 0, p+"attn_output.weight", width, heads*headSize)
		if s.arch == "gpt-oss" {
			s.add(0, 0, p+"attn_q.bias", heads*headSize)
			s.add(0, 0, p+"attn_output.bias", width)
			s.add(0, 0, p+"attn_sinks.weight", heads)
		}
	}
	norm := "ffn_norm"
	if s.arch == "gpt-oss" {
		norm = "post_attention_norm"
	}
	s.add(0, 1, p+norm+".weight", width)
	if s.arch == "deepseek2" && l == 0 {
		s.add(0, 0, p+"ffn_gate.weight", wide, width)
		s.add(0, 0, p+"ffn_up.weight", wide, width)
		s.add(0, 0, p+"ffn_down.weight", width, wide)
		return
	}
	s.add(0, 0, p+"ffn_gate_inp.weight", experts, width)
	for name, shape := range map[string][2]int{"gate": {expertWide, width}, "up": {expertWide, width}} {
		s.add(kind, 0, p+"ffn_"+name+"_exps.weight", experts, shape[0], shape[1])
	}
	s.add(kind, 0, p+"ffn_down_exps.weight", experts, width, expertWide)
	switch s.arch {
	case "gpt-oss":
		s.add(0, 0, p+"ffn_gate_inp.bias", experts)
		s.add(0, 0, p+"ffn_gate_exps.bias", experts, expertWide)
		s.add(0, 0, p+"ffn_up_exps.bias", experts, expertWide)
		s.add(0, 0, p+"ffn_down_exps.bias", experts, width)
	case "qwen2moe", "deepseek2":
		s.add(0, 0, p+"ffn_gate_shexp.weight", sharedWide, width)
		s.add(0, 0, p+"ffn_up_shexp.weight", sharedWide, width)
		s.add(0, 0, p+"ffn_down_shexp.weight", width, sharedWide)
		if s.arch == "qwen2moe" {
			s.add(0, 0, p+"ffn_gate_inp_shexp.weight", width)
		} else {
			s.add(0, 0, p+"exp_probs_b.bias", experts)
		}
	}
}

func (s *small) mambaLayers() {
	s.meta(map[string]any{"ssm.conv_kernel": uint32(convSize), "ssm.inner_size": uint32(inner), "ssm.state_size": uint32(stateSize), "ssm.time_step_rank": uint32(stepRank)})
	for l := range 2 {
		p := fmt.Sprintf("blk.%d.", l)
		s.add(0, 1, p+"attn_norm.weight", width)
		s.add(0, 0, p+"ssm_in.weight", 2*inner, width)
		s.add(0, 0, p+"ssm_conv1d.weight", inner, convSize)
		s.add(0, 0, p+"ssm_conv1d.bias", inner)
		s.add(0, 0, p+"ssm_x.weight", stepRank+2*stateSize, inner)
		s.add(0, 0, p+"ssm_dt.weight", inner, stepRank)
		s.add(0, 0, p+"ssm_dt.bias", inner)
		s.add(0, -1, p+"ssm_a", inner, stateSize)
		s.add(0, 1, p+"ssm_d", inner)
		s.add(0, 0, p+"ssm_out.weight", width, inner)
	}
}

// The reference computes in float64 by plain loops over all tokens.

// times multiplies rows of x with the matrix [out, in] of a tensor from an offset, and adds its
// bias.
func (s *small) times(name string, out, from int, x [][]float64) [][]float64 {
	w, bias := s.of[name+".weight"], s.of[name+".bias"]
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, out)
		for o := range out {
			for i, v := range x[t] {
				y[t][o] += v * w[(from*out+o)*len(x[t])+i]
			}
			if bias != nil {
				y[t][o] += bias[from*out+o]
			}
		}
	}
	return y
}

func (s *small) norm(name string, x [][]float64) [][]float64 {
	y := make([][]float64, len(x))
	for t := range x {
		sum := 0.0
		for _, v := range x[t] {
			sum += v * v
		}
		r := 1 / math.Sqrt(sum/float64(len(x[t]))+1e-5)
		for i, v := range x[t] {
			y[t] = append(y[t], v*r*s.of[name+".weight"][i])
		}
	}
	return y
}

// turn rotates the elements of a head at a position.
func turn(x []float64, at int, interleaved bool) {
	n := len(x) / 2
	for i := range n {
		a, b := i, i+n
		if interleaved {
			a, b = 2*i, 2*i+1
		}
		sin, cos := math.Sincos(float64(at) * math.Pow(10000, -2*float64(i)/float64(len(x))))
		x[a], x[b] = x[a]*cos-x[b]*sin, x[a]*sin+x[b]*cos
	}
}

// mix returns the weighted values of the keys that query t sees.
func mix(t, window int, sink *float64, score func(j int) float64, value func(j int) []float64) []float64 {
	from := 0
	if window > 0 {
		from = max(0, t+1-window)
	}
	var sum float64
	if sink != nil {
		sum = math.Exp(*sink)
	}
	for j := from; j <= t; j++ {
		sum += math.Exp(score(j))
	}
	var out []float64
	for j := from; j <= t; j++ {
		p := math.Exp(score(j)) / sum
		for i, v := range value(j) {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] += p * v
		}
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func (s *small) attention(p string, l int, x [][]float64) [][]float64 {
	q, k, v := s.times(p+"attn_q", heads*headSize, 0, x), s.times(p+"attn_k", kvHeads*headSize, 0, x), s.times(p+"attn_v", kvHeads*headSize, 0, x)
	window := 0
	if s.arch == "gpt-oss" && l%2 == 0 {
		window = 4
	}
	y := make([][]float64, len(x))
	for t := range x {
		for h := range kvHeads {
			turn(k[t][h*headSize:][:headSize], t, s.arch == "llama")
		}
	}
	for t := range x {
		for h := range heads {
			query := q[t][h*headSize:][:headSize]
			turn(query, t, s.arch == "llama")
			at := h / (heads / kvHeads) * headSize
			var sink *float64
			if sinks := s.of[p+"attn_sinks.weight"]; sinks != nil {
				sink = &sinks[h]
			}
			y[t] = append(y[t], mix(t, window, sink, func(j int) float64 { return dot(query, k[j][at:][:headSize]) / math.Sqrt(headSize) }, func(j int) []float64 { return v[j][at:][:headSize] })...)
		}
	}
	return s.times(p+"attn_output", width, 0, y)
}

func (s *small) latentAttention(p string, x [][]float64) [][]float64 {
	q := s.times(p+"attn_q_b", heads*(unrotated+rotated), 0, s.norm(p+"attn_q_a_norm", s.times(p+"attn_q_a", queryRank, 0, x)))
	kv := s.times(p+"attn_kv_a_mqa", rank+rotated, 0, x)
	var c [][]float64
	for t := range kv {
		turn(kv[t][rank:], t, true)
		c = append(c, kv[t][:rank])
	}
	c = s.norm(p+"attn_kv_a_norm", c)
	y := make([][]float64, len(x))
	for h := range heads {
		var k, v [][]float64
		if s.of[p+"attn_kv_b.weight"] != nil {
			for _, both := range s.times(p+"attn_kv_b", unrotated+valued, h, c) {
				k, v = append(k, both[:unrotated]), append(v, both[unrotated:])
			}
		} else {
			v = s.times(p+"attn_v_b", valued, h, c)
			for t := range c { // k_b is stored transposed
				key := make([]float64, unrotated)
				for r, x := range c[t] {
					for i := range key {
						key[i] += x * s.of[p+"attn_k_b.weight"][(h*rank+r)*unrotated+i]
					}
				}
				k = append(k, key)
			}
		}
		for t := range x {
			query := q[t][h*(unrotated+rotated):][:unrotated+rotated]
			turn(query[unrotated:], t, true)
			y[t] = append(y[t], mix(t, 0, nil, func(j int) float64 {
				return (dot(query[:unrotated], k[j]) + dot(query[unrotated:], kv[j][rank:])) / math.Sqrt(unrotated+rotated)
			}, func(j int) []float64 { return v[j] })...)
		}
	}
	return s.times(p+"attn_output", width, 0, y)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func (s *small) mlp(gate, up, down string, wide, e int, x []float64) []float64 {
	g, u := s.times(gate, wide, e, [][]float64{x})[0], s.times(up, wide, e, [][]float64{x})[0]
	for i := range g {
		if s.arch == "gpt-oss" {
			a := min(g[i], 7)
			g[i] = a * sigmoid(1.702*a) * (max(-7, min(u[i], 7)) + 1)
		} else {
			g[i] *= sigmoid(g[i]) * u[i]
		}
	}
	return s.times(down, width, e, [][]float64{g})[0]
}

func softmax(x []float64) []float64 {
	sum, y := 0.0, make([]float64, len(x))
	for _, v := range x {
		sum += math.Exp(v)
	}
	for i, v := range x {
		y[i] = math.Exp(v) / sum
	}
	return y
}

func (s *small) mixture(p string, x []float64) []float64 {
	scores := s.times(p+"ffn_gate_inp", experts, 0, [][]float64{x})[0]
	if s.arch == "deepseek2" {
		for i := range scores {
			scores[i] = sigmoid(scores[i])
		}
	} else if s.arch != "gpt-oss" {
		scores = softmax(scores)
	}
	var order []int
	for i := range scores {
		order = append(order, i)
	}
	by := func(i int) float64 {
		if b := s.of[p+"exp_probs_b.bias"]; b != nil {
			return scores[i] + b[i]
		}
		return scores[i]
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, by(b)-by(a))) })
	var w []float64
	sum := 0.0
	for _, e := range order[:used] {
		w = append(w, scores[e])
		sum += scores[e]
	}
	switch s.arch {
	case "gpt-oss":
		w = softmax(w)
	case "deepseek2":
		for i := range w {
			w[i] *= 2.5 / sum
		}
	case "llama", "qwen3moe":
		for i := range w {
			w[i] /= sum
		}
	}
	y := make([]float64, width)
	add := func(by float64, v []float64) {
		for i := range y {
			y[i] += by * v[i]
		}
	}
	for i, e := range order[:used] {
		add(w[i], s.mlp(p+"ffn_gate_exps", p+"ffn_up_exps", p+"ffn_down_exps", expertWide, e, x))
	}
	if s.of[p+"ffn_up_shexp.weight"] != nil {
		open := 1.0
		if v := s.of[p+"ffn_gate_inp_shexp.weight"]; v != nil {
			open = sigmoid(dot(v, x))
		}
		add(open, s.mlp(p+"ffn_gate_shexp", p+"ffn_up_shexp", p+"ffn_down_shexp", sharedWide, 0, x))
	}
	return y
}

func (s *small) stateSpace(p string, x [][]float64) [][]float64 {
	both := s.times(p+"ssm_in", 2*inner, 0, x)
	state := make([]float64, inner*stateSize)
	y := make([][]float64, len(x))
	for t := range x {
		u := make([]float64, inner)
		for c := range u {
			sum := s.of[p+"ssm_conv1d.bias"][c]
			for k := range convSize {
				if j := t - convSize + 1 + k; j >= 0 {
					sum += both[j][c] * s.of[p+"ssm_conv1d.weight"][c*convSize+k]
				}
			}
			u[c] = sum * sigmoid(sum)
		}
		sel := s.times(p+"ssm_x", stepRank+2*stateSize, 0, [][]float64{u})[0]
		dt := s.times(p+"ssm_dt", inner, 0, [][]float64{sel[:stepRank]})[0]
		row := make([]float64, inner)
		for c := range u {
			step := math.Log1p(math.Exp(dt[c]))
			for i := range stateSize {
				h := &state[c*stateSize+i]
				*h = *h*math.Exp(step*s.of[p+"ssm_a"][c*stateSize+i]) + step*sel[stepRank+i]*u[c]
				row[c] += *h * sel[stepRank+stateSize+i]
			}
			z := both[t][inner+c]
			row[c] = (row[c] + s.of[p+"ssm_d"][c]*u[c]) * z * sigmoid(z)
		}
		y[t] = row
	}
	return s.times(p+"ssm_out", width, 0, y)
}

// logits are those of the last token.
func (s *small) logits(ids ...int64) []float64 {
	var x [][]float64
	for _, id := range ids {
		x = append(x, slices.Clone(s.of["token_embd.weight"][id*width:][:width]))
	}
	add := func(y [][]float64) {
		for t := range x {
			for i := range x[t] {
				x[t][i] += y[t][i]
			}
		}
	}
	for l := range 2 {
		p := fmt.Sprintf("blk.%d.", l)
		n := s.norm(p+"attn_norm", x)
		switch s.arch {
		case "mamba":
			add(s.stateSpace(p, n))
			continue
		case "deepseek2":
			add(s.latentAttention(p, n))
		default:
			add(s.attention(p, l, n))
		}
		norm := p + "ffn_norm"
		if s.arch == "gpt-oss" {
			norm = p + "post_attention_norm"
		}
		var y [][]float64
		for _, row := range s.norm(norm, x) {
			if s.of[p+"ffn_gate_inp.weight"] == nil {
				y = append(y, s.mlp(p+"ffn_gate", p+"ffn_up", p+"ffn_down", wide, 0, row))
			} else {
				y = append(y, s.mixture(p, row))
			}
		}
		add(y)
	}
	return s.times("output", words, 0, s.norm("output_norm", x[len(x)-1:]))[0]
}

// generate runs a model on tokens after the caches or states of an earlier run of before tokens.
func generate(t *testing.T, exact bool, file []byte, past []*tensor.Tensor, before int, ids ...int64) (logits []float32, caches []*tensor.Tensor) {
	t.Helper()
	m, err := gguf.Parse(file, "small.gguf")
	if err == nil {
		err = m.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{"batch_size": 1, "sequence_length": len(ids), "past_sequence_length": before, "total_sequence_length": before + len(ids)}
	var in []*tensor.Tensor
	g := m.Main()
	for _, id := range g.Inputs {
		v := g.Values[id]
		shape := slices.Clone(v.Shape)
		for i := range shape {
			if shape[i] < 0 {
				shape[i] = sizes[v.DimNames[i]]
			}
		}
		x := tensor.New(v.Type, shape...)
		switch v.Name {
		case "input_ids":
			copy(tensor.Of[int64](x), ids)
		case "attention_mask":
			for i := range tensor.Of[int64](x) {
				tensor.Of[int64](x)[i] = 1
			}
		case "position_ids":
			for i := range ids {
				tensor.Of[int64](x)[i] = int64(before + i)
			}
		default:
			if past != nil {
				x, past = past[0], past[1:]
			}
		}
		in = append(in, x)
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Exact: exact})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range g.Outputs[1:] {
		c := *s.Output(1 + i)
		c.Data = bytes.Clone(c.Data)
		caches = append(caches, &c)
	}
	return bytesOf(s.Output(0)), caches
}

// families are the architectures of small.
var families = []string{"llama", "qwen2moe", "qwen3moe", "deepseek2", "gpt-oss", "mamba"}

// TestReference compares architectures with a reference in float64, at once and in two parts.
func TestReference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arch string
		kind uint32
	}{{"llama", 0}, {"llama", 2}, {"llama", 3}, {"llama", 7}, {"qwen2moe", 8}, {"qwen3moe", 0}, {"deepseek2", 2}, {"gpt-oss", 39}, {"mamba", 0}} {
		t.Run(fmt.Sprintf("%s/%v", c.arch, gguf.Type(c.kind)), func(t *testing.T) {
			t.Parallel()
			s := newSmall(c.arch, c.kind)
			file := s.w.file()
			want := s.logits(3, 17, 20, 5, 9, 40)
			for _, exact := range []bool{true, false} {
				whole, _ := generate(t, exact, file, nil, 0, 3, 17, 20, 5, 9, 40)
				_, caches := generate(t, exact, file, nil, 0, 3, 17, 20, 5)
				last, _ := generate(t, exact, file, caches, 4, 9, 40)
				near := 1e-5 // sums of float32 depend on their order
				if !exact {
					// Activations rounded to 8 bits differ by up to 0.4 % of the largest.
					near = 0.02 * max(slices.Max(want), -slices.Min(want))
				}
				for i, w := range want {
					if math.Abs(float64(whole[i])-w) > near || math.Abs(float64(last[i])-w) > near || math.Abs(float64(whole[i]-last[i])) > 1e-5 {
						t.Fatalf("exact %t: logit %d is %v at once and %v in two parts, want %v", exact, i, whole[i], last[i], w)
					}
				}
			}
		})
	}
}

// TestLanguage: bits of a weight by type, active parameters and the caches, to the byte.
func TestLanguage(t *testing.T) {
	t.Parallel()
	for arch, want := range map[string]graph.Language{
		"llama": {
			CacheElements: 2 * 2 * kvHeads * headSize, CacheFormula: "2 layers × 2 × 2 heads × 16", Experts: experts, UsedExperts: used,
			Types: []graph.Coded{{Type: "F32"}, {Type: "Q4_0", Weights: 2 * 3 * experts * expertWide * width, Bytes: 2 * 3 * experts * expertWide * width / 32 * 18}},
		},
		"deepseek2": {
			CacheElements: 2 * (rank + rotated), CacheFormula: "2 layers × (32 latent + 8 rotated)", Experts: experts, UsedExperts: used,
			Types: []graph.Coded{{Type: "F32"}, {Type: "Q4_0", Weights: 3 * experts * expertWide * width, Bytes: 3 * experts * expertWide * width / 32 * 18}, {Type: "Q8_0", Weights: heads * valued * rank, Bytes: heads * valued * rank / 32 * 34}},
		},
		"mamba": {StateElements: 2 * inner * (convSize - 1 + stateSize), Types: []graph.Coded{{Type: "F32"}}},
	} {
		s := newSmall(arch, 2)
		m, err := gguf.Parse(s.w.file(), "x.gguf")
		if err != nil {
			t.Fatal(err)
		}
		all, inExperts := int64(0), int64(0)
		for name, values := range s.of {
			all += int64(len(values))
			if strings.Contains(name, "_exps.") {
				inExperts += int64(len(values))
			}
		}
		others := int64(0)
		for _, c := range want.Types[1:] {
			others += c.Weights
		}
		want.Types[0].Weights, want.Types[0].Bytes = all-others, 4*(all-others)
		if want.Experts > 0 {
			want.ActiveParams = all - inExperts/experts*(experts-used)
		}
		if d := cmp.Diff(&want, m.Language); d != "" {
			t.Errorf("%s (-want +got):\n%s", arch, d)
		}
	}
}
