package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func strs(shape []int, v ...string) *tensor.Tensor {
	x := tensor.New(tensor.String, shape...)
	copy(x.Strings, v)
	return x
}

func i64(shape []int, v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, shape, v) }

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func TestOperators(t *testing.T) {
	t.Parallel()
	days := strs([]int{4}, "Monday", "tuesday", "MONDAY", "Friday")
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
		want []*tensor.Tensor
	}{
		{"concat", optest.Node{Op: "StringConcat"}, []*tensor.Tensor{strs([]int{2, 1}, "a", "b"), strs([]int{2}, "x", "y")}, []*tensor.Tensor{strs([]int{2, 2}, "ax", "ay", "bx", "by")}},
		{"split", optest.Node{Op: "StringSplit", Outputs: 2}, []*tensor.Tensor{strs([]int{2}, " a  b ", "")}, []*tensor.Tensor{strs([]int{2, 2}, "a", "b"), i64([]int{2}, 2, 0)}},
		{"split once", optest.Node{Op: "StringSplit", Outputs: 2, Attrs: graph.Attrs{"maxsplit": int64(1)}}, []*tensor.Tensor{strs([]int{1}, " a  b c ")}, []*tensor.Tensor{strs([]int{1, 2}, "a", "b c "), i64([]int{1}, 2)}},
		{"split commas", optest.Node{Op: "StringSplit", Outputs: 2, Attrs: graph.Attrs{"delimiter": ","}}, []*tensor.Tensor{strs([]int{2}, "a,,b", "")}, []*tensor.Tensor{strs([]int{2, 3}, "a", "", "b", "", "", ""), i64([]int{2}, 3, 1)}},
		{"stop words", optest.Node{Op: "StringNormalizer", Attrs: graph.Attrs{"stopwords": []string{"monday"}, "case_change_action": "UPPER"}}, []*tensor.Tensor{days}, []*tensor.Tensor{strs([]int{2}, "TUESDAY", "FRIDAY")}},
		{"case", optest.Node{Op: "StringNormalizer", Attrs: graph.Attrs{"stopwords": []string{"MONDAY"}, "is_case_sensitive": int64(1)}}, []*tensor.Tensor{days}, []*tensor.Tensor{strs([]int{3}, "Monday", "tuesday", "Friday")}},
		{"all stopped", optest.Node{Op: "StringNormalizer", Attrs: graph.Attrs{"stopwords": []string{"a"}}}, []*tensor.Tensor{strs([]int{1, 2}, "a", "A")}, []*tensor.Tensor{strs([]int{1, 1}, "")}},
		{"match", optest.Node{Op: "RegexFullMatch", Attrs: graph.Attrs{"pattern": "a|ab"}}, []*tensor.Tensor{strs([]int{3}, "a", "ab", "abc")}, []*tensor.Tensor{tensor.From(tensor.Bool, []int{3}, []uint8{1, 1, 0})}},
		{
			"n-grams",
			optest.Node{Op: "TfIdfVectorizer", Attrs: graph.Attrs{
				"mode": "TFIDF", "min_gram_length": int64(1), "max_gram_length": int64(2), "max_skip_count": int64(1), "ngram_counts": []int64{0, 2},
				"ngram_indexes": []int64{2, 0, 1}, "pool_int64s": []int64{5, 6, 5, 6}, "weights": []float32{1, 10, 100},
			}},
			[]*tensor.Tensor{i64([]int{2, 4}, 5, 6, 5, 6, 5, 5, 6, 9)},
			// 5-6 is found twice side by side in the first row; in the second once, and once over
			// a gap.
			[]*tensor.Tensor{f32([]int{2, 3}, 20, 200, 2, 10, 200, 2)},
		},
		{
			"words", optest.Node{Op: "TfIdfVectorizer", Attrs: graph.Attrs{
				"mode": "IDF", "min_gram_length": int64(1), "max_gram_length": int64(1), "max_skip_count": int64(0), "ngram_counts": []int64{0},
				"ngram_indexes": []int64{0, 1}, "pool_strings": []string{"a", "b"}, "weights": []float32{3, 4},
			}}, []*tensor.Tensor{strs([]int{3}, "b", "b", "c")}, []*tensor.Tensor{f32([]int{2}, 0, 4)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.node.Version = 20
			got, err := optest.Run(Defs(), tt.node, tt.in...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
	}{
		{"numbers", optest.Node{Op: "StringConcat"}, []*tensor.Tensor{i64([]int{1}, 1), strs([]int{1}, "a")}},
		{"pattern", optest.Node{Op: "RegexFullMatch", Attrs: graph.Attrs{"pattern": "("}}, []*tensor.Tensor{strs([]int{1}, "a")}},
		{"rank", optest.Node{Op: "StringNormalizer"}, []*tensor.Tensor{strs([]int{2, 1}, "a", "b")}},
		{"pool", optest.Node{Op: "TfIdfVectorizer", Attrs: graph.Attrs{"mode": "TF", "ngram_counts": []int64{0, 9}, "ngram_indexes": []int64{0}, "pool_int64s": []int64{1}}}, []*tensor.Tensor{i64([]int{1}, 1)}},
	} {
		tt.node.Version = 20
		if _, err := optest.Run(Defs(), tt.node, tt.in...); err == nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
}
