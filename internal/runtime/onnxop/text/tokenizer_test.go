package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func TestTokenizer(t *testing.T) {
	t.Parallel()
	words := graph.Attrs{"mark": int64(0), "mincharnum": int64(1), "pad_value": "#", "tokenexp": "[a-zA-Z0-9_]+"}
	with := func(set graph.Attrs) graph.Attrs {
		a := graph.Attrs{"mark": int64(0), "mincharnum": int64(1), "pad_value": "#"}
		for k, v := range set {
			a[k] = v
		}
		return a
	}
	for _, tt := range []struct {
		name     string
		attrs    graph.Attrs
		in, want *tensor.Tensor
	}{
		{"words", words, strs([]int{2}, "the cat, sat", "on"), strs([]int{2, 3}, "the", "cat", "sat", "on", "#", "#")},
		{"none", words, strs([]int{1, 2}, "", "..."), strs([]int{1, 2, 0})},
		{"characters", with(graph.Attrs{"tokenexp": "."}), strs([]int{1}, "aü"), strs([]int{1, 2}, "a", "ü")},
		{"cut everywhere", with(graph.Attrs{"separators": []string{""}}), strs([]int{1}, "aü"), strs([]int{1, 2}, "a", "ü")},
		{"separators", with(graph.Attrs{"separators": []string{",", " +"}, "mincharnum": int64(2)}), strs([]int{1}, "ab,c  de,,fg"), strs([]int{1, 3}, "ab", "de", "fg")},
		{"groups", with(graph.Attrs{"tokenexp": "(a)(b)"}), strs([]int{1}, "abab"), strs([]int{1, 2}, "ab", "ab")},
		{"marks", with(graph.Attrs{"mark": int64(1), "tokenexp": "[a-z]+"}), strs([]int{2}, "a b", "c"), strs([]int{2, 4}, "\x02", "a", "b", "\x03", "\x02", "c", "\x03", "#")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := optest.Run(Defs(), optest.Node{Op: "Tokenizer", Domain: graph.Microsoft, Version: 1, Attrs: tt.attrs}, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got[0]); d != "" {
				t.Error(d)
			}
		})
	}
	for _, a := range []graph.Attrs{with(nil), with(graph.Attrs{"tokenexp": "("}), with(graph.Attrs{"tokenexp": "a", "separators": []string{"b"}})} {
		if _, err := optest.Run(Defs(), optest.Node{Op: "Tokenizer", Domain: graph.Microsoft, Version: 1, Attrs: a}, strs([]int{1}, "a")); err == nil {
			t.Errorf("%v: no error", a)
		}
	}
}
