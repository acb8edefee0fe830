package text

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func run(t *testing.T, op string, attrs graph.Attrs, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), optest.Node{Op: op, Version: 20, Attrs: attrs, Outputs: 2}, in...)
	if err != nil {
		t.Fatalf("%s %v: %v", op, attrs, err)
	}
	return out
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: 20, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", op, err, want)
	}
}

// TestPatternBounds takes patterns of 64 KiB and of 50,000 instructions, and none larger. A
// literal has an instruction for each letter, one for its end and one that always fails.
func TestPatternBounds(t *testing.T) {
	t.Parallel()
	class := func(n int) string { return "[" + strings.Repeat("a", n-2) + "]" }
	for _, tt := range []struct {
		name, pattern, text string
	}{
		{"64 KiB", class(64 << 10), ""},
		{"a byte more", class(64<<10 + 1), "has 65537 bytes, at most 65536 are taken"},
		{"50,000 instructions", strings.Repeat("a", 49_998), ""},
		{"one more", strings.Repeat("a", 49_999), "takes 50001 instructions, at most 50000 are taken"},
		{"many by few bytes", "((a{40}){40}){40}", "invalid repeat count"},
		{"unknown syntax", `a(?!b)`, "invalid or unsupported Perl syntax"},
		{"no end", "(", "missing closing ): `(`"},
		{"60 letters", "(" + strings.Repeat("a", 59), "missing closing ): `(" + strings.Repeat("a", 59) + "`"},
		{"61 letters are cut", "(" + strings.Repeat("a", 60), "missing closing ): `(" + strings.Repeat("a", 59) + "…`"},
	} {
		re, err := pattern(tt.pattern)
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) || (re != nil) != (err == nil) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.text)
		}
	}
	refuse(t, "pattern: error parsing regexp: missing closing", "RegexFullMatch", graph.Attrs{"pattern": "("}, strs([]int{1}, "a"))
}

// TestPatternGroups matches whole texts; groups change nothing and are not kept.
func TestPatternGroups(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern   string
		yes, none []string
	}{
		{"((a)(b))*", []string{"", "ab", "abab"}, []string{"a", "aab", "ab\n"}},
		{"(?P<name>a)|(b(c)?)", []string{"a", "b", "bc"}, []string{"c", "ab", ""}},
		{"(a|b)+?", []string{"a", "ba"}, []string{"", "c"}},
		{"(?i)(A)b", []string{"ab", "AB"}, []string{"a"}},
		{"^a$", []string{"a"}, []string{"a\n", "\na", "aa"}},
		{".", []string{"a", "é"}, []string{"\n", "ab"}},
		{"", []string{""}, []string{"a"}},
	} {
		re, err := pattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if re.NumSubexp() != 0 {
			t.Errorf("%q keeps %d groups", tt.pattern, re.NumSubexp())
		}
		for want, list := range map[bool][]string{true: tt.yes, false: tt.none} {
			for _, s := range list {
				if re.MatchString(s) != want {
					t.Errorf("%q matches %q: %v", tt.pattern, s, !want)
				}
			}
		}
	}
	out := run(t, "RegexFullMatch", nil, strs([]int{1, 2}, "", "a"))[0]
	if !cmp.Equal(out.Data, []byte{1, 0}) || !cmp.Equal(out.Shape, []int{1, 2}) {
		t.Errorf("%v of shape %v", out.Data, out.Shape)
	}
}

func TestSplits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s, by string
		limit int
		want  []string
	}{
		{"a,b,c", ",", -1, []string{"a", "b", "c"}},
		{"a,b,c", ",", 0, []string{"a,b,c"}},
		{"a,b,c", ",", 1, []string{"a", "b,c"}},
		{"a,b,c", ",", 2, []string{"a", "b", "c"}},
		{"a,b,c", ",", 9, []string{"a", "b", "c"}},
		{",", ",", -1, []string{"", ""}},
		{"", ",", -1, []string{""}},
		{"a--b", "--", -1, []string{"a", "b"}},
		{" a\tb \n c ", "", -1, []string{"a", "b", "c"}},
		{" a\tb \n c ", "", 0, []string{"a\tb \n c "}},
		{" a\tb \n c ", "", 1, []string{"a", "b \n c "}},
		{" a b c", "", 2, []string{"a", "b", "c"}},
		{" a b c", "", 3, []string{"a", "b", "c"}},
		{"a ", "", 1, []string{"a"}},
		{"  ", "", -1, nil},
		{"  ", "", 5, nil},
	} {
		got := split(tt.s, tt.by, tt.limit)
		if diff := cmp.Diff(tt.want, append([]string(nil), got...)); diff != "" {
			t.Errorf("%q by %q, at most %d cuts: %s", tt.s, tt.by, tt.limit, diff)
		}
		if n := count(tt.s, tt.by); n < len(got) || tt.limit < 0 && n != len(got) {
			t.Errorf("%q by %q has %d parts, %d are counted", tt.s, tt.by, len(got), n)
		}
	}
	out := run(t, "StringSplit", graph.Attrs{"delimiter": "-"}, strs([]int{2, 1}, "a-b", "c"))
	if !cmp.Equal(out[0].Shape, []int{2, 1, 2}) || !cmp.Equal(out[0].Strings, []string{"a", "b", "c", ""}) || !cmp.Equal(out[1].Shape, []int{2, 1}) {
		t.Errorf("%v %q, %v", out[0].Shape, out[0].Strings, out[1].Shape)
	}
	none := run(t, "StringSplit", nil, strs([]int{0}))
	if !cmp.Equal(none[0].Shape, []int{0, 0}) {
		t.Errorf("nothing is split to %v", none[0].Shape)
	}
}

// TestTextLimits asks for as much text as there may be and a byte more: 16 bytes for each
// text and its letters.
func TestTextLimits(t *testing.T) {
	t.Parallel()
	a, b := strs([]int{2, 1}, "ab", ""), strs([]int{2}, "x", "yz")
	// Four texts: abx, abyz, x and yz, together 10 letters.
	for limit, ok := range map[int]bool{4*16 + 10: true, 4*16 + 9: false} {
		c := &op.Call{Node: &graph.Node{}, In: []*tensor.Tensor{a, b}, Out: []*tensor.Tensor{tensor.New(tensor.String, 2, 2)}, Limit: limit}
		err := runConcat(c)
		if le := (*op.LimitError)(nil); (err == nil) != ok || err != nil && (!errors.As(err, &le) || le.Want != 74) {
			t.Errorf("limit of %d: %v", limit, err)
		}
		if ok && !cmp.Equal(c.Out[0].Strings, []string{"abx", "abyz", "x", "yz"}) {
			t.Errorf("%q", c.Out[0].Strings)
		}
	}
	for limit, ok := range map[int]bool{3 * 16: true, 3*16 - 1: false} {
		c := &op.Call{Node: &graph.Node{Attrs: graph.Attrs{"delimiter": ","}}, In: []*tensor.Tensor{strs([]int{1}, "a,b,c")}, Out: []*tensor.Tensor{{}}, Limit: limit}
		if err := runSplit(c); (err == nil) != ok {
			t.Errorf("limit of %d: %v", limit, err)
		}
	}
}

func TestTextRefused(t *testing.T) {
	t.Parallel()
	s := strs([]int{1}, "a")
	refuse(t, "input 1 is int64, not string", "StringConcat", nil, s, i64([]int{1}, 1))
	refuse(t, "input 0 is int64, not string", "StringSplit", nil, i64([]int{1}, 1))
	refuse(t, "input 1 is missing", "StringConcat", nil, s)
	refuse(t, "input is 2x1, not C or 1xC", "StringNormalizer", nil, strs([]int{2, 1}, "a", "b"))
	refuse(t, "input is 1x1x1", "StringNormalizer", nil, strs([]int{1, 1, 1}, "a"))
	refuse(t, `case_change_action is "TITLE"`, "StringNormalizer", graph.Attrs{"case_change_action": "TITLE"}, s)
	if _, err := optest.Run(Defs(), optest.Node{Op: "StringConcat", Version: 20}, strs([]int{2}, "a", "b"), strs([]int{3}, "a", "b", "c")); err == nil {
		t.Error("2 and 3 texts are put together")
	}
	lower := run(t, "StringNormalizer", graph.Attrs{"case_change_action": "LOWER", "stopwords": []string{"B"}}, strs([]int{1, 3}, "A", "b", "C"))[0]
	if !cmp.Equal(lower.Strings, []string{"a", "c"}) || !cmp.Equal(lower.Shape, []int{1, 2}) {
		t.Errorf("%q of shape %v", lower.Strings, lower.Shape)
	}
	if same := run(t, "StringNormalizer", nil, strs([]int{2}, "A", "b"))[0]; !cmp.Equal(same.Strings, []string{"A", "b"}) {
		t.Errorf("%q", same.Strings)
	}
}

// TestGrams counts n-grams of 1 2 1 2 3 by hand.
func TestGrams(t *testing.T) {
	t.Parallel()
	of := func(change graph.Attrs) graph.Attrs {
		a := graph.Attrs{
			"mode": "TF", "min_gram_length": int64(1), "max_gram_length": int64(3), "max_skip_count": int64(0),
			"ngram_counts": []int64{0, 2, 6}, "ngram_indexes": []int64{0, 1, 2, 3, 5}, "pool_int64s": []int64{1, 3, 1, 2, 2, 1, 1, 2, 3},
		}
		for k, v := range change {
			a[k] = v
		}
		return a
	}
	x := i64([]int{5}, 1, 2, 1, 2, 3)
	w := []float32{10, 20, 30, 40, 50}
	for _, tt := range []struct {
		name   string
		change graph.Attrs
		x      *tensor.Tensor
		want   []float64
	}{
		{"1, 3, 12, 21, 123", nil, x, []float64{2, 1, 2, 1, 0, 1}},
		{"pairs and more", graph.Attrs{"min_gram_length": int64(2)}, x, []float64{0, 0, 2, 1, 0, 1}},
		{"pairs at most", graph.Attrs{"max_gram_length": int64(2)}, x, []float64{2, 1, 2, 1, 0, 0}},
		{"single ones", graph.Attrs{"max_gram_length": int64(1)}, x, []float64{2, 1, 0, 0, 0, 0}},
		// 1_1, 1_3, 1_1_3
		{"over a gap", graph.Attrs{"max_skip_count": int64(1), "pool_int64s": []int64{1, 3, 1, 1, 1, 3, 1, 1, 3}}, x, []float64{2, 1, 1, 1, 0, 1}},
		{"over two gaps", graph.Attrs{"max_skip_count": int64(2), "pool_int64s": []int64{1, 3, 1, 2, 2, 3, 9, 9, 9}}, x, []float64{2, 1, 3, 2, 0, 0}},
		{"long gaps", graph.Attrs{"max_skip_count": int64(100)}, i64([]int{2}, 1, 2), []float64{1, 0, 1, 0, 0, 0}},
		{"weights do not count for TF", graph.Attrs{"weights": w}, x, []float64{2, 1, 2, 1, 0, 1}},
		{"IDF", graph.Attrs{"weights": w, "mode": "IDF"}, x, []float64{10, 20, 30, 40, 0, 50}},
		{"IDF without weights", graph.Attrs{"mode": "IDF"}, x, []float64{1, 1, 1, 1, 0, 1}},
		{"TFIDF", graph.Attrs{"weights": w, "mode": "TFIDF"}, x, []float64{20, 20, 60, 40, 0, 50}},
		{"rows", nil, i64([]int{2, 2}, 1, 2, 3, 3), []float64{1, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0}},
		{"int32", nil, tensor.From(tensor.Int32, []int{2}, []int32{2, 1}), []float64{1, 0, 0, 1, 0, 0}},
		{"one", nil, i64([]int{}, 3), []float64{0, 1, 0, 0, 0, 0}},
		{"places in common", graph.Attrs{"ngram_indexes": []int64{0, 0, 1, 1, 1}}, x, []float64{3, 4}},
	} {
		got := run(t, "TfIdfVectorizer", of(tt.change), tt.x)[0]
		if why := optest.Differ(got, tt.want, 0, 0); why != "" {
			t.Errorf("%s: %s", tt.name, why)
		}
	}
	for want, change := range map[string]graph.Attrs{
		"ngram_indexes are missing":                   {"ngram_indexes": []int64{}},
		"ngram_indexes has a negative index":          {"ngram_indexes": []int64{0, -1, 2, 3, 4}},
		"no n-grams for input of type int64":          {"pool_int64s": []int64{}},
		"n-grams of length 0 to 3 with 0 skips":       {"min_gram_length": int64(0)},
		"n-grams of length 1 to 0":                    {"max_gram_length": int64(0)},
		"with -1 skips":                               {"max_skip_count": int64(-1)},
		`mode is "X"`:                                 {"mode": "X"},
		"ngram_counts [0 2 6] do not cut a pool of 8": {"pool_int64s": []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		"ngram_counts [0 3 6] do not cut a pool of 9": {"ngram_counts": []int64{0, 3, 6}},
		"ngram_counts [-1 2 6]":                       {"ngram_counts": []int64{-1, 2, 6}},
		"ngram_counts [2 0 6]":                        {"ngram_counts": []int64{2, 0, 6}},
		"ngram_counts [0 10]":                         {"ngram_counts": []int64{0, 10}},
		"pool has more n-grams than the 4 indexes":    {"ngram_indexes": []int64{0, 1, 2, 3}},
		"4 weights for 5 n-grams":                     {"weights": []float32{1, 2, 3, 4}},
	} {
		refuse(t, want, "TfIdfVectorizer", of(change), x)
	}
	refuse(t, "input has rank 3", "TfIdfVectorizer", of(nil), i64([]int{1, 1, 1}, 1))
	refuse(t, "no n-grams for input of type string", "TfIdfVectorizer", of(nil), strs([]int{1}, "a"))
	refuse(t, "TfIdfVectorizer of float32", "TfIdfVectorizer", of(nil), f32([]int{1}, 1))
}
