package report

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

func timedModel(hash string, layers ...profile.Layer) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m", SHA256: hash}, Target: profile.Target{ID: "t"}}
	for i, l := range layers {
		l.Index = int64(i)
		l.State = cmp.Or(l.State, profile.Ran)
		if l.Latency == nil {
			l.Latency = profile.Value(profile.Estimated, float64(i+1)/1000, "")
		}
		p.Layers = append(p.Layers, l)
	}
	return p
}

func TestExpect(t *testing.T) {
	t.Parallel()
	a := func(name string) profile.Layer { return profile.Layer{Op: "ADD", Name: name} }
	node := func(total *profile.Metric, nodes ...int64) profile.Layer {
		l := profile.Layer{Op: "CONV", Total: total, Provenance: &profile.Provenance{Confidence: profile.Exact}}
		for _, n := range nodes {
			l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, profile.SourceNode{Node: n})
		}
		return l
	}
	into := func(layer, n int64) profile.Layer {
		l := node(nil, n)
		l.State, l.FusedInto, l.Latency = profile.Fused, &layer, &profile.Metric{}
		return l
	}
	blank := func(n int64) profile.Layer {
		l := node(nil, n)
		l.State, l.Latency = profile.NoEstimate, &profile.Metric{}
		return l
	}
	structured := func(hash string) *profile.Profile {
		p := timedModel(hash, a("x"))
		p.Model.StructureSHA256 = "s"
		return p
	}
	for _, c := range []struct {
		name     string
		have     *profile.Profile
		from     *profile.Profile
		want     []float64 // milliseconds, 0 for none
		err      string
		findings []string
	}{
		{"same", timedModel("1", a("x"), a("y")), timedModel("1", a("x"), a("y")), []float64{1, 2}, "", []string{"3.00 ms in 2 layers"}},
		{"moved", timedModel("", a("x"), a("y"), a("z")), timedModel("1", a("y"), a("x")), []float64{2, 1, 0}, "", []string{"one has no hash", "No expected time for 1 layer", "Matched 2 layers by name."}},
		{"twice", timedModel("1", a("x"), a("y"), a("z")), timedModel("1", a("x"), a("z"), a("z")), []float64{1, 2, 3}, "", []string{"1 layer by name, 2 layers by order"}},
		{"other", timedModel("1", a("x")), timedModel("2", a("x")), nil, "different models", nil},
		{"nothing", timedModel("1", a("x")), timedModel("1", profile.Layer{Op: "MUL"}), nil, "no layer of m does the same", nil},
		{"untimed", timedModel("1", a("x")), timedModel("1", profile.Layer{Op: "ADD", Latency: &profile.Metric{}}), nil, "has a time", nil},
		{"fused there", timedModel("1", node(nil, 0), node(nil, 1), node(nil, 2)), timedModel("1", node(nil, 0, 1), node(nil, 2)), []float64{1. / 3, 2. / 3, 2}, "", nil},
		{"fused here", timedModel("1", node(nil, 0, 1), node(nil, 2)), timedModel("1", node(nil, 0), node(nil, 1), node(nil, 2)), []float64{3, 3}, "", nil},
		{"listed as fused", timedModel("1", node(nil, 0, 1), into(0, 1)), timedModel("1", node(nil, 0), node(nil, 1)), []float64{3, 0}, "", nil},
		{"a part has no estimate", timedModel("1", node(nil, 0, 1), node(nil, 2)), timedModel("1", node(nil, 0), blank(1), node(nil, 2)), []float64{0, 3}, "", []string{"only for a part of it"}},
		{"weights differ", structured("1"), structured("2"), []float64{1}, "", []string{"other names or weights"}},
		{
			"bodies", timedModel("1", node(profile.Value(profile.Measured, 1, ""), 0)), timedModel("1", node(profile.Value(profile.Estimated, 1, ""), 0)),
			[]float64{1},
			"", nil, // own times, without bodies on either side
		},
	} {
		err := Expect(c.have, c.from)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for i, l := range c.have.Layers {
			if v, _ := l.Expected.Best(); math.Abs(v*1000-c.want[i]) > 1e-12 {
				t.Errorf("%s: layer %d expects %v s, want %v ms", c.name, i, v, c.want[i])
			}
		}
		var text strings.Builder
		for _, f := range c.have.Findings {
			text.WriteString(f.Text + "\n")
		}
		for _, s := range c.findings {
			if !strings.Contains(text.String(), s) {
				t.Errorf("%s: %q is not in %s", c.name, s, text.String())
			}
		}
	}
}
