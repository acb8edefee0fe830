package report

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

func timedModel(hash string, layers ...profile.Layer) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m", SHA256: hash}, Target: profile.Target{ID: "t"}}
	for i, l := range layers {
		l.Index = int64(i)
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
	for _, c := range []struct {
		name     string
		have     *profile.Profile
		from     *profile.Profile
		want     []float64 // milliseconds, 0 for none
		err      string
		findings []string
	}{
		{"same", timedModel("1", a("x"), a("y")), timedModel("1", a("x"), a("y")), []float64{1, 2}, "", []string{"3.00 ms in 2 layers"}},
		{"moved", timedModel("", a("x"), a("y"), a("z")), timedModel("1", a("y"), a("x")), []float64{2, 1, 0}, "", []string{"hash of one is not", "No expected time for 1 layer"}},
		{"twice", timedModel("1", a("x"), a("y"), a("z")), timedModel("1", a("x"), a("z"), a("z")), []float64{1, 0, 3}, "", nil},
		{"other", timedModel("1", a("x")), timedModel("2", a("x")), nil, "different models", nil},
		{"nothing", timedModel("1", a("x")), timedModel("1", a("y")), nil, "no layer of m agrees", nil},
		{"untimed", timedModel("1", a("x")), timedModel("1", profile.Layer{Op: "ADD", Latency: &profile.Metric{}}), nil, "has a time", nil},
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
			if v, _ := l.Expected.Best(); v*1000 != c.want[i] {
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
