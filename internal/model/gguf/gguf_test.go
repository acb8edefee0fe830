package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/gguf"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// writer makes files.
type writer struct {
	keys, tensors, data bytes.Buffer
	numKeys, numTensors uint64
}

func put(b *bytes.Buffer, v ...any) {
	for _, x := range v {
		if s, ok := x.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		_ = binary.Write(b, binary.LittleEndian, x) // into memory
	}
}

func (w *writer) key(name string, v any) {
	w.numKeys++
	put(&w.keys, name)
	switch v := v.(type) {
	case uint32:
		put(&w.keys, uint32(4), v)
	case float32:
		put(&w.keys, uint32(6), v)
	case bool:
		put(&w.keys, uint32(7), v)
	case string:
		put(&w.keys, uint32(8), v)
	case []string:
		put(&w.keys, uint32(9), uint32(8), uint64(len(v)))
		for _, s := range v {
			put(&w.keys, s)
		}
	}
}

// tensor adds a tensor; shape has the slowest dimension first.
func (w *writer) tensor(name string, kind uint32, data []byte, shape ...int) {
	w.numTensors++
	put(&w.tensors, name, uint32(len(shape)))
	for i := len(shape) - 1; i >= 0; i-- {
		put(&w.tensors, uint64(shape[i]))
	}
	put(&w.tensors, kind, uint64(w.data.Len()))
	w.data.Write(data)
	for w.data.Len()%32 != 0 {
		w.data.WriteByte(0)
	}
}

func (w *writer) file() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3), w.numTensors, w.numKeys)
	b.Write(w.keys.Bytes())
	b.Write(w.tensors.Bytes())
	for b.Len()%32 != 0 {
		b.WriteByte(0)
	}
	b.Write(w.data.Bytes())
	return b.Bytes()
}

// floats are the elements of tensor k: a sequence that a reference in another language makes too.
func floats(k, n int, base float64) []byte {
	var b bytes.Buffer
	for i := range n {
		v := float64((i*7919+k*104729)%2003)/2003 - 0.5
		put(&b, float32(base+v*0.2))
	}
	return b.Bytes()
}

// model makes a decoder of two layers with 64 elements, 4 heads, 2 of keys, and 50 words.
func model(arch string) []byte {
	const width, heads, keys, wide, words, size = 64, 4, 2, 96, 50, 16
	w := &writer{}
	w.key("general.architecture", arch)
	w.key("general.name", "small")
	for name, v := range map[string]uint32{"block_count": 2, "embedding_length": width, "feed_forward_length": wide, "attention.head_count": heads, "attention.head_count_kv": keys, "context_length": 128} {
		w.key(arch+"."+name, v)
	}
	w.key(arch+".attention.layer_norm_rms_epsilon", float32(1e-5))
	w.key("tokenizer.ggml.tokens", []string{"a", "b"})
	k := 0
	add := func(name string, base float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		w.tensor(name, 0, floats(k, n, base), shape...)
		k++
	}
	add("token_embd.weight", 0, words, width)
	add("output_norm.weight", 1, width)
	if arch != "qwen3" {
		add("output.weight", 0, words, width)
	}
	for i := range 2 {
		p := fmt.Sprintf("blk.%d.", i)
		add(p+"attn_norm.weight", 1, width)
		add(p+"ffn_norm.weight", 1, width)
		add(p+"attn_q.weight", 0, heads*size, width)
		add(p+"attn_k.weight", 0, keys*size, width)
		add(p+"attn_v.weight", 0, keys*size, width)
		add(p+"attn_output.weight", 0, width, heads*size)
		switch arch {
		case "qwen2":
			add(p+"attn_q.bias", 0, heads*size)
			add(p+"attn_k.bias", 0, keys*size)
			add(p+"attn_v.bias", 0, keys*size)
		case "qwen3":
			add(p+"attn_q_norm.weight", 1, size)
			add(p+"attn_k_norm.weight", 1, size)
		}
		add(p+"ffn_gate.weight", 0, wide, width)
		add(p+"ffn_up.weight", 0, wide, width)
		add(p+"ffn_down.weight", 0, width, wide)
	}
	return w.file()
}

// decode runs a model on tokens after the caches of an earlier run, and returns logits and caches.
func decode(t *testing.T, file []byte, past []*tensor.Tensor, ids ...int64) (logits []float32, caches []*tensor.Tensor) {
	t.Helper()
	m, err := gguf.Parse(file, "small.gguf")
	if err == nil {
		err = m.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	before := 0
	if past != nil {
		before = past[0].Shape[2]
	}
	ints := func(n int, at func(i int) int64) *tensor.Tensor {
		x := tensor.New(tensor.Int64, 1, n)
		for i := range n {
			tensor.Of[int64](x)[i] = at(i)
		}
		return x
	}
	in := []*tensor.Tensor{
		ints(len(ids), func(i int) int64 { return ids[i] }),
		ints(before+len(ids), func(int) int64 { return 1 }),
		ints(len(ids), func(i int) int64 { return int64(before + i) }),
	}
	for i := range 4 {
		if past == nil {
			in = append(in, tensor.New(tensor.Float32, 1, 2, 0, 16))
		} else {
			in = append(in, past[i])
		}
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		c := *s.Output(1 + i)
		c.Data = bytes.Clone(c.Data)
		caches = append(caches, &c)
	}
	return bytesOf(s.Output(0)), caches
}

// TestPhases detects the caches, and compares decode after a prefill with a longer prefill.
func TestPhases(t *testing.T) {
	t.Parallel()
	file := model("llama")
	m, err := gguf.Parse(file, "small.gguf")
	if err == nil {
		err = m.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := llm.Detect(m, llm.Setup{})
	if err != nil || l == nil || l.Layers != 2 || l.Heads != 2 || l.HeadSize != 16 || l.Context != 128 || l.Vocabulary != 50 || l.CacheBytes(1, 10) != 2*2*10*2*16*4 {
		t.Fatalf("%+v, %v", l, err)
	}
	ids := []int64{3, 17, 20, 5, 9, 40}
	want, _ := decode(t, file, nil, ids...)
	_, caches := decode(t, file, nil, ids[:5]...)
	for name, p := range map[string]llm.Phase{"prefill": {Batch: 1, Tokens: 6}, "decode": {Batch: 1, Tokens: 1, Depth: 5}} {
		o, err := l.Feed(inputs.Options{}, p)
		if err != nil {
			t.Fatal(err)
		}
		in, _, err := inputs.Inputs(m, o)
		if err != nil {
			t.Fatal(err)
		}
		copy(tensor.Of[int64](in[0]), ids[p.Depth:])
		if p.Depth > 0 {
			copy(in[3:], caches)
		}
		s, err := engine.New(m, in, engine.Options{Registry: operators.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := bytesOf(s.Output(0))
		for i, w := range want {
			if !(math.Abs(float64(got[i]-w)) <= 1e-4) {
				t.Errorf("%s: logit %d is %v, want %v", name, i, got[i], w)
			}
		}
	}
}

func bytesOf(x *tensor.Tensor) []float32 { return append([]float32(nil), tensor.Of[float32](x)...) }

// TestDecode compares with logits of a reference in float64, and a prompt at once with the same
// prompt in two parts.
func TestDecode(t *testing.T) {
	t.Parallel()
	for arch, want := range map[string][]float64{
		"llama": {-1.410206, -1.24633, -0.898066, -0.798009}, "qwen2": {-0.436024, -0.609651, -0.668372, -0.501595},
		"qwen3": {0.364687, 0.464637, 0.466256, 0.645667},
	} {
		file := model(arch)
		whole, _ := decode(t, file, nil, 3, 17, 20, 5, 9, 40)
		for i, w := range want {
			if math.Abs(float64(whole[i])-w) > 2e-6 { // the reference has six decimals
				t.Errorf("%s: logit %d is %v, expected %v", arch, i, whole[i], w)
			}
		}
		_, caches := decode(t, file, nil, 3, 17, 20, 5, 9)
		last, _ := decode(t, file, caches, 40)
		for i := range whole {
			if math.Abs(float64(whole[i]-last[i])) > 1e-5 { // other sizes of sums
				t.Fatalf("%s: logit %d is %v at once and %v after a cache", arch, i, whole[i], last[i])
			}
		}
	}
}

// TestTypes converts a block of each type. The references are of the format's own Python package:
// an element, and the sum of all weighted by their positions.
func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind        uint32
		halves      []int // offsets of numbers in float16
		second, sum float64
	}{
		{2, []int{0}, 0.125, -32.375},
		{3, []int{0, 2}, 0.0, 116.9375},
		{6, []int{0}, -0.125, 7.0},
		{7, []int{0, 2}, 1.25, 361.8125},
		{8, []int{0}, 7.625, -505.0},
		{10, []int{80, 82}, 0.0, 80267.875},
		{11, []int{108}, -6.75, 11071.5625},
		{12, []int{0, 2}, 12.75, 740890.5},
		{13, []int{0, 2}, 12.75, 1269303.5},
		{14, []int{208}, 106.0, 49026.25},
		{20, []int{0}, 1.5625, -432.4375},
		{23, []int{0}, -0.0625, -130695.875},
		{39, nil, 0.75, 79.75},
	} {
		n, size := gguf.Type(c.kind).Block()
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(i*37 + 11)
		}
		for k, at := range c.halves {
			binary.LittleEndian.PutUint16(raw[at:], []uint16{0x2c00, 0xb400}[k]) // 0.0625, -0.25
		}
		if c.kind == 39 {
			raw[0] = 125
		}
		got := gguf.Type(c.kind).Floats(raw)
		sum := 0.0
		for i, x := range got {
			sum += float64(x) * float64(i+1)
		}
		// Zero points are quotients: their products are rounded.
		if len(got) != n || math.Abs(float64(got[1])-c.second) > 1e-5 || math.Abs(sum-c.sum) > 1e-6*math.Abs(c.sum) {
			t.Errorf("%v: %d elements, the second %v, sum %v, expected %v and %v", gguf.Type(c.kind), len(got), got[1], sum, c.second, c.sum)
		}
	}
}

// TestCountedOnly opens a table of tokens of a type that cannot run, and refuses to run it.
func TestCountedOnly(t *testing.T) {
	t.Parallel()
	const width, words, iq3s = 256, 10, 21
	w := &writer{}
	w.key("general.architecture", "llama")
	for name, v := range map[string]uint32{"block_count": 1, "embedding_length": width, "feed_forward_length": width, "attention.head_count": 4} {
		w.key("llama."+name, v)
	}
	w.tensor("token_embd.weight", iq3s, make([]byte, 110*words), words, width)
	for _, name := range []string{"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"} {
		w.tensor(name+".weight", 0, make([]byte, 4*width), width)
	}
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up"} {
		w.tensor("blk.0."+name+".weight", 0, make([]byte, 4*width*width), width, width)
	}
	w.tensor("blk.0.ffn_down.weight", 2, make([]byte, 18*width*width/32), width, width)
	w.tensor("output.weight", 0, make([]byte, 4*width*words), words, width)
	m, err := gguf.Parse(w.file(), "x.gguf")
	if err != nil {
		t.Fatal(err)
	}
	// Profiles report attributes that no operator has as faults of the file.
	for _, n := range m.Main().Nodes {
		if odd := operators.Registry().UnknownAttributes(n); odd != nil {
			t.Errorf("node %s: unknown attributes %q", n.Name, odd)
		}
	}
	if err := m.Complete(); err == nil || !strings.Contains(err.Error(), "type IQ3_S can be counted but not run") {
		t.Errorf("error %v", err)
	}
}

// TestErrors gives one line for each defect.
func TestErrors(t *testing.T) {
	t.Parallel()
	head := func(version uint32, tensors, keys uint64, rest ...any) []byte {
		var b bytes.Buffer
		b.WriteString("GGUF")
		put(&b, version, tensors, keys)
		put(&b, rest...)
		return b.Bytes()
	}
	nested := []any{"k", uint32(9)}
	for range 8 {
		nested = append(nested, uint32(9), uint64(1))
	}
	nested = append(nested, make([]byte, 256))
	for want, file := range map[string][]byte{
		"must begin":              []byte("GGML"),
		"big-endian":              head(3<<24, 0, 0),
		"version 1":               head(1, 0, 0),
		"tensors are declared":    head(3, 1e18, 0),
		"keys are declared":       head(3, 0, 1e18),
		"nests more than":         head(3, 0, 1, nested...),
		"values of k":             head(3, 0, 1, "k", uint32(9), uint32(4), uint64(1e18)),
		"kind 77":                 head(3, 0, 1, "k", uint32(77), uint64(0)),
		"occurs twice":            head(3, 0, 2, "k", uint32(7), uint8(1), "k", uint32(7), uint8(1)),
		"cannot hold":             head(3, 1, 0, "t", uint32(2), uint64(1<<40), uint64(1<<40), uint32(0), uint64(0)),
		"5 dimensions":            head(3, 1, 0, "t", uint32(5), make([]byte, 64)),
		"type 4,":                 head(3, 1, 0, "t", uint32(1), uint64(1), uint32(4), uint64(0)),
		"not a multiple of 32":    head(3, 1, 0, "t", uint32(1), uint64(8), uint32(2), uint64(0)),
		"ends before":             head(3, 1, 0, "t", uint32(1), uint64(8), uint32(0), uint64(1<<62), make([]byte, 64)),
		"expected a multiple":     head(3, 1, 0, "t", uint32(1), uint64(8), uint32(0), uint64(1), make([]byte, 64)),
		"overlap":                 head(3, 2, 0, "t", uint32(1), uint64(16), uint32(0), uint64(0), "u", uint32(1), uint64(8), uint32(0), uint64(32), make([]byte, 256)),
		"dimension 0 is 42":       head(3, 1, 0, "t", uint32(3), uint64(1<<32), uint64(1<<32), uint64(1<<32), uint32(0), uint64(0)),
		"dimension 0 is 18":       head(3, 1, 0, "t", uint32(1), uint64(math.MaxUint64), uint32(0), uint64(0)),
		"bytes are declared":      head(3, 0, 1, uint64(3), []byte("abc"), uint32(8), uint64(math.MaxUint64)),
		"at offset 9223372036854": head(3, 1, 0, "t", uint32(1), uint64(8), uint32(0), uint64(math.MaxUint64)&^31, make([]byte, 64)),
		"expected a power":        head(3, 0, 1, "general.alignment", uint32(4), uint32(3)),
		"architecture is missing": head(3, 0, 0),
		`"bert" is not`:           head(3, 0, 1, "general.architecture", uint32(8), "bert"),
		"block_count is missing":  head(3, 0, 1, "general.architecture", uint32(8), "llama"),
		"block_count is 0,":       head(3, 0, 2, "general.architecture", uint32(8), "llama", "llama.block_count", uint32(4), uint32(0)),
		"block_count is not a n":  head(3, 0, 2, "general.architecture", uint32(8), "llama", "llama.block_count", uint32(8), "two"),
		"from 1 to 1099511627776": head(3, 0, 4, "general.architecture", uint32(8), "llama", "llama.block_count", uint32(4), uint32(1), "llama.embedding_length", uint32(4), uint32(8), "llama.context_length", uint32(4), uint32(0)),
	} {
		_, err := gguf.Parse(file, "x.gguf")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.gguf: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", want, err)
		}
	}
	// A file that ends anywhere gives an error.
	whole := model("llama")
	for n := range whole {
		if n > 4096 && n%997 != 0 {
			continue
		}
		if _, err := gguf.ParseFile(whole[:n]); err == nil {
			t.Fatalf("%d of %d bytes are taken for the whole", n, len(whole))
		} else if _, ok := errors.AsType[*gguf.Error](err); !ok {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(model("llama")[:2048])
	f.Add(model("qwen3")[:1500])
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	for _, arch := range families {
		s := (&small{arch: arch, tiny: true}).fill(0)
		file := s.w.file()
		if _, err := gguf.Parse(file, "f.gguf"); err != nil {
			f.Fatalf("%s: %v", arch, err)
		}
		f.Add(file)
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = gguf.Parse(data, "f.gguf") })
}
