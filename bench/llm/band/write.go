package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// elementType is a type of GGUF. half are the offsets of 16-bit floats in a block, whose upper byte
// is high: it keeps activations near 1.
type elementType struct {
	number       uint32
	block, bytes int
	half         []int
	high         uint16
}

var elementTypes = map[string]elementType{
	"F32": {0, 1, 4, nil, 0}, "F16": {1, 1, 2, []int{0}, 0x2000},
	"Q4_0": {2, 32, 18, []int{0}, 0x1400}, "Q8_0": {8, 32, 34, []int{0}, 0x0400},
	"Q4_K": {12, 256, 144, []int{0, 2}, 0}, "Q6_K": {14, 256, 210, []int{208}, 0},
}

// size of a language model.
type size struct {
	Arch, Type                                      string
	Layers, Width, Heads, KVHeads, Wide, Vocabulary int
	Experts, Used                                   int
}

func (s size) String() string {
	t := fmt.Sprintf("%s %s %d×%d, %d/%d heads, %d, %d words", s.Arch, s.Type, s.Layers, s.Width, s.Heads, s.KVHeads, s.Wide, s.Vocabulary)
	if s.Experts > 0 {
		t += fmt.Sprintf(", %d of %d experts", s.Used, s.Experts)
	}
	return t
}

// tensor is a matrix or vector with random elements.
type tensor struct {
	name  string
	of    elementType
	shape []int // slowest first
}

func (t tensor) len() int {
	n := t.of.bytes
	for _, d := range t.shape {
		n *= d
	}
	return n / t.of.block
}

// tensors lists those of the model.
func (s size) tensors() (list []tensor) {
	add := func(of, name string, shape ...int) {
		list = append(list, tensor{name + ".weight", elementTypes[of], shape})
	}
	vector := func(name string, n int) { list = append(list, tensor{name, elementTypes["F32"], []int{n}}) }
	head := s.Width / s.Heads
	narrow := head * s.KVHeads
	add(s.Type, "token_embd", s.Vocabulary, s.Width)
	add(s.Type, "output", s.Vocabulary, s.Width)
	vector("output_norm.weight", s.Width)
	for l := range s.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		vector(p+"attn_norm.weight", s.Width)
		vector(p+"ffn_norm.weight", s.Width)
		if s.Arch == "phi3" {
			add(s.Type, p+"attn_qkv", s.Width+2*narrow, s.Width)
		} else {
			for name, n := range map[string]int{"q": s.Width, "k": narrow, "v": narrow} {
				add(s.Type, p+"attn_"+name, n, s.Width)
				switch {
				case strings.HasPrefix(s.Arch, "qwen2"):
					vector(p+"attn_"+name+".bias", n)
				case s.Arch == "qwen3" && name != "v":
					vector(p+"attn_"+name+"_norm.weight", head)
				}
			}
		}
		add(s.Type, p+"attn_output", s.Width, s.Width)
		if s.Arch == "gemma2" {
			vector(p+"post_attention_norm.weight", s.Width)
			vector(p+"post_ffw_norm.weight", s.Width)
		}
		switch {
		case s.Experts > 0:
			add("F32", p+"ffn_gate_inp", s.Experts, s.Width)
			add(s.Type, p+"ffn_gate_exps", s.Experts, s.Wide, s.Width)
			add(s.Type, p+"ffn_up_exps", s.Experts, s.Wide, s.Width)
			add(s.Type, p+"ffn_down_exps", s.Experts, s.Width, s.Wide)
		case s.Arch == "phi3":
			add(s.Type, p+"ffn_up", 2*s.Wide, s.Width)
			add(s.Type, p+"ffn_down", s.Width, s.Wide)
		default:
			add(s.Type, p+"ffn_gate", s.Wide, s.Width)
			add(s.Type, p+"ffn_up", s.Wide, s.Width)
			add(s.Type, p+"ffn_down", s.Width, s.Wide)
		}
	}
	return list
}

const alignment = 32

// write writes a GGUF file with random weights.
func (s size) write(path string) error {
	list := s.tensors()
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			if t, ok := x.(string); ok {
				_ = binary.Write(&b, binary.LittleEndian, uint64(len(t)))
				b.WriteString(t)
				continue
			}
			_ = binary.Write(&b, binary.LittleEndian, x)
		}
	}
	const kindUint32, kindFloat32, kindString = uint32(4), uint32(6), uint32(8)
	meta := []struct {
		key   string
		value int
	}{
		{"block_count", s.Layers},
		{"embedding_length", s.Width},
		{"context_length", 8192},
		{"feed_forward_length", s.Wide},
		{"attention.head_count", s.Heads},
		{"attention.head_count_kv", s.KVHeads},
		{"attention.sliding_window", 4096},
		{"expert_count", s.Experts},
		{"expert_used_count", s.Used},
	}
	put([]byte("GGUF"), uint32(3), uint64(len(list)), uint64(len(meta)+2), "general.architecture", kindString, s.Arch, s.Arch+".attention.layer_norm_rms_epsilon", kindFloat32, float32(1e-5))
	for _, m := range meta {
		put(s.Arch+"."+m.key, kindUint32, uint32(m.value))
	}
	at := 0
	for _, t := range list {
		put(t.name, uint32(len(t.shape)))
		for i := range t.shape {
			put(uint64(t.shape[len(t.shape)-1-i]))
		}
		put(t.of.number, uint64(at))
		at += (t.len() + alignment - 1) / alignment * alignment
	}
	b.Write(make([]byte, -b.Len()&(alignment-1)))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := rand.NewChaCha8([32]byte{1})
	for _, t := range list {
		if _, err := b.WriteTo(f); err != nil {
			return err
		}
		b.Write(make([]byte, (t.len()+alignment-1)/alignment*alignment))
		data := b.Bytes()[:t.len()]
		if t.of.number == 0 {
			for i := 0; i < len(data); i += 4 {
				binary.LittleEndian.PutUint32(data[i:], 0x3f800000|uint32(r.Uint64()>>48)) // 1 and a little
			}
			continue
		}
		_, _ = r.Read(data)
		for i := 0; i < len(data); i += t.of.bytes {
			for _, h := range t.of.half {
				sign := uint16(0)
				if t.of.block == 1 {
					sign = uint16(data[i+h+1]&0x80) << 8
				}
				binary.LittleEndian.PutUint16(data[i+h:], t.of.high|uint16(data[i+h])|sign)
			}
		}
	}
	if _, err := b.WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}
