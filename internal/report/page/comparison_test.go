package page

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// compared is a comparison of profiles.
func compared(t *testing.T, ps ...*profile.Profile) *compare.Table {
	t.Helper()
	var runs []compare.Named
	for _, p := range ps {
		runs = append(runs, compare.Named{Profile: p})
	}
	out, err := compare.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWriteComparison looks for the table as it is, for what the page shows of layers, and that
// names stay data.
func TestWriteComparison(t *testing.T) {
	t.Parallel()
	a, b := small(), small()
	for k, p := range []*profile.Profile{a, b} {
		p.Settings.EngineVersion = string(rune('1' + k))
		p.Totals.Latency = profile.Value(profile.Measured, float64(k+1), "")
		p.Layers[0].Latency = profile.Value(profile.Measured, float64(k+1)/2, "")
		p.Layers[0].Name, p.Layers[0].Kernel = `</script><img src=x onerror="alert(1)">`, "k"
		p.Layers[0].Inputs = []profile.Tensor{{Name: "x", DType: "int8", Shape: []int64{1, 4}, Bytes: new(int64(4)), Scale: new(0.5), Constant: true}}
	}
	table := compared(t, a, b)
	var out bytes.Buffer
	if err := WriteComparison(&out, Comparison{Table: table, Title: "<b>", Answers: []string{"an answer"}, Limits: []string{}}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out.Bytes(), []byte("<img")) || bytes.Contains(out.Bytes(), []byte("<title><b>")) {
		t.Error("a name stands in the page as it is")
	}
	doc := decode(t, out.Bytes()).join(t)
	layer := doc["layers"].([]any)[1].([]any)[0].(map[string]any)
	want := []any{map[string]any{"name": "x", "dtype": "int8", "shape": []any{1.0, 4.0}, "constant": true}}
	if !reflect.DeepEqual(layer["inputs"], want) || layer["kernel"] != "k" || layer["name"] != a.Layers[0].Name || layer["op"] != "CONV_2D" {
		t.Errorf("the layer is %v", layer)
	}
	for _, key := range []string{"samples_s", "latency_s", "provenance"} {
		if layer[key] != nil {
			t.Errorf("the layer has %s, which the table has, or nobody sees", key)
		}
	}
	got := doc["comparison"].(map[string]any)
	if len(got["groups"].([]any)) != len(table.Groups) || got["waterfalls"].([]any)[0].(map[string]any)["to"] != 2.0 {
		t.Errorf("the table is %v", got)
	}
	if a.Layers[0].Inputs[0].Scale == nil || a.Layers[0].Samples == nil {
		t.Error("writing changed a profile")
	}
}

// TestSmallComparison: the page of two profiles of 100 layers takes at most 0.6 MB, with samples of
// every layer in the profiles.
func TestSmallComparison(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var ps []*profile.Profile
	for range 2 {
		p := small()
		p.Layers = nil
		total := 0.0
		for i := range 100 {
			s := make([]float64, profile.KeptSamples)
			for k := range s {
				s[k] = 1e-5 * (1 + random.Float64())
			}
			total += 1.5e-5
			p.Layers = append(p.Layers, profile.Layer{
				Index: int64(i), Op: "Conv", Name: string(rune('a'+i%26)) + "/convolution", State: profile.Ran,
				Latency: profile.Summarize(profile.Measured, s, "division"), Samples: s,
			})
		}
		p.Totals.Latency = profile.Value(profile.Measured, total, "")
		ps = append(ps, p)
	}
	var b bytes.Buffer
	if err := WriteComparison(&b, Comparison{Table: compared(t, ps...)}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 600_000 {
		t.Errorf("page of %d bytes, want at most 600000", b.Len())
	}
	t.Logf("%d bytes", b.Len())
}
