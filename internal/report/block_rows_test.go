package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/profile"
)

// repeated is a profile of four equal blocks of a mixture of experts between a table of embeddings
// and a head: 2 of 8 experts are chosen, and an activation is fused.
func repeated() *profile.Profile {
	p := fixed()
	p.Layers, p.Findings = nil, nil
	add := func(op, name string, us float64, l profile.Layer, ins ...profile.Tensor) {
		l.Index, l.Op, l.Name, l.Inputs = int64(len(p.Layers)), op, name, ins
		if l.State == "" {
			l.State, l.Latency, l.Share = profile.Ran, measured(us/(1<<20)), new(us/1000)
		}
		l.Outputs = []profile.Tensor{tensorOf(name, 1, 1, 64)}
		p.Layers = append(p.Layers, l)
	}
	weights := func(dims ...int64) profile.Tensor {
		return profile.Tensor{Name: "w", DType: "float32", Shape: dims, Constant: true}
	}
	x := tensorOf("x", 1, 1, 64)
	add("Gather", "embed", 20, profile.Layer{Params: new(int64(6400))}, weights(100, 64), tensorOf("ids", 1, 1))
	for i := range 4 {
		at := fmt.Sprintf("model/layers.%d/", i)
		more := float64(i * i)
		add("Attention", at+"attention", 100+more, profile.Layer{Params: new(int64(16384)), MACs: new(int64(16384))}, x, weights(64, 256))
		add("RMSNormalization", at+"norm", 4, profile.Layer{}, x, weights(64))
		add("TopK", at+"choose", 5, profile.Layer{}, tensorOf("scores", 1, 1, 8))
		add("ExpertMatMul", at+"up", 80, profile.Layer{
			Params: new(int64(8 * 64 * 64)), MACs: new(int64(2 * 64 * 64)), Options: []profile.Option{{Key: "N", Value: "64"}, {Key: "K", Value: "64"}},
		}, x, weights(8, 64, 64), x, x, x, x, tensorOf("ids", 1, 1, 2))
		add("Relu", at+"relu", 0, profile.Layer{State: profile.Fused, FusedInto: new(int64(len(p.Layers) - 1)), Params: new(int64(1))}, x)
	}
	add("MatMul", "logits", 226, profile.Layer{Params: new(int64(6400)), MACs: new(int64(6400))}, x, weights(64, 100))
	return p
}

// TestBlockRows: rows of blocks, their parts and layers; the outermost rows add up to the layers.
func TestBlockRows(t *testing.T) {
	t.Parallel()
	p := repeated()
	var out bytes.Buffer
	if err := Write(&out, p, "csv", Options{By: "block"}); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(line []string, key string) string { return line[slices.Index(lines[0], key)] }
	units := func(line []string, key string) string { // of measured
		v, err := strconv.ParseFloat(at(line, key), 64)
		if err != nil {
			return ""
		}
		return strconv.FormatFloat(v*(1<<20), 'g', -1, 64)
	}
	var got []string
	for _, l := range lines[1:] {
		got = append(got, strings.Join([]string{at(l, "level"), at(l, "op"), at(l, "layers"), units(l, "block_median_s"), units(l, "block_max_s"), at(l, "active_params"), at(l, "name")}, " "))
	}
	want := []string{
		"0 4 × block of 4 layers 20 191.5 198  ",
		"1 attention 4 102.5 109  ",
		"2 Attention 4 102.5 109  model/layers.*/attention",
		"1 experts 8 80 80 32768 ",
		"2 ExpertMatMul 8 80 80  model/layers.*/up",
		"1 router 4 5 5  ",
		"2 TopK 4 5 5  model/layers.*/choose",
		"1 norm 4 4 4  ",
		"2 RMSNormalization 4 4 4  model/layers.*/norm",
		"0 head 1    ",
		"1 MatMul 1    logits",
		"0 embedding 1    ",
		"1 Gather 1    embed",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	rs, err := rows(p, Options{By: "block", All: true})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for i := range rs {
		for _, key := range []string{"latency_s", "share", "macs", "params"} {
			if v, ok := rs[i].value(key); ok && rs[i].level == 0 {
				sums[key] += v
			}
		}
	}
	all := p.Select(func(*profile.Layer) bool { return true })
	for key, got := range sums {
		if want, _ := all.Sum(key); got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%s: rows add up to %v, layers to %v", key, got, want)
		}
	}
}

// TestBlocksOfFormats: JSON and YAML have the blocks where they are asked for.
func TestBlocksOfFormats(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{"": false, "block": true} {
		for _, format := range []string{"json", "yaml"} {
			var out bytes.Buffer
			if err := Write(&out, repeated(), format, Options{By: by}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "active_params"); got != want {
				t.Errorf("--by %q: blocks in %s: %v", by, format, got)
			}
			if format != "json" {
				continue
			}
			var back profile.Profile
			if err := jsonx.Unmarshal(out.Bytes(), &back); err != nil {
				t.Fatal(err)
			}
			if err := back.Validate(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCommon(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"layers.0/up", "layers.1/up", "layers.*/up"},
		{"layers.*/up_3", "layers.2/up_9", "layers.*/up_*"},
		{"a7/b1", "a7/b2", "a7/b*"},
		{"up", "up", "up"},
		{"up", "down", "up"},
		{"", "x1", ""},
		{"größe_9", "größe_10", "größe_*"},
	} {
		if got := common(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
