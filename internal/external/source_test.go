package external

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestCoverage says by hand how much of the time leads to the model.
func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how      []profile.Confidence
		latency  []float64
		text     string
		severity profile.Severity
	}{
		{[]profile.Confidence{profile.Exact, profile.ByTensor}, []float64{3, 1}, "100.0 % of the time was found in the model exactly or by tensors.", profile.Info},
		{[]profile.Confidence{profile.Exact, profile.ByName, profile.Unknown}, []float64{8, 1, 1}, "80.0 % of the time was found in the model exactly or by tensors, 10.0 % by name; 10.0 % is of operators that the engine put in.", profile.Info},
		{[]profile.Confidence{profile.ByOrder, ""}, []float64{1, 3}, "0.0 % of the time was found in the model exactly or by tensors, 25.0 % by order; 75.0 % is of operators that the engine put in.", profile.Warning},
	} {
		f := (&Source{covered: c.how, latency: c.latency}).coverage()
		if f == nil || strings.ReplaceAll(f.Text, "_", " ") != c.text || f.Severity != c.severity {
			t.Errorf("%+v, want %s %q", f, c.severity, c.text)
		}
	}
	if f := (&Source{covered: make([]profile.Confidence, 2), latency: make([]float64, 2)}).coverage(); f != nil {
		t.Errorf("of no time: %+v", f)
	}
}

// TestLastWords finds signal and last words in what a dying process prints.
func TestLastWords(t *testing.T) {
	t.Parallel()
	lines := strings.Split("loading\n  terminate called: bad_alloc  \nSIGABRT: abort\nPC=0x7f\n\ngoroutine 1\nmain()", "\n")
	if got := goSignal(lines); got != "SIGABRT" {
		t.Errorf("signal %q", got)
	}
	if got := saying(lines); got != "; its last words: terminate called: bad_alloc" {
		t.Errorf("words %q", got)
	}
	lines = strings.Split("fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x1]", "\n")
	if got := goSignal(lines) + saying(lines); got != "SIGSEGV" {
		t.Errorf("%q", got)
	}
	if got := goSignal([]string{"no SIGnal here"}) + saying(nil); got != "" {
		t.Errorf("%q", got)
	}
	long := saying([]string{strings.Repeat("ä", 1000)})
	if n := len([]rune(long)); n > 330 || !strings.HasSuffix(long, "…") {
		t.Errorf("%d characters: %q", n, long)
	}
}

// TestUnreportedOperators takes for an engine without operators one branch and not both, and says
// which.
func TestUnreportedOperators(t *testing.T) {
	t.Parallel()
	layers := func(states ...profile.State) (ls []profile.Layer) {
		for i, s := range states {
			l := profile.Layer{Index: int64(i), Op: "Abs", State: s, MACs: new(int64(100))}
			if s == profile.NotReached {
				l.Cause = &profile.Cause{Code: profile.ByData, Text: "not counted: another branch costs more"}
			}
			ls = append(ls, l)
		}
		return ls
	}
	made := func(ls []profile.Layer, ids ...string) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Created: "2026-01-01T00:00:00Z", Model: profile.Model{Name: "m", Format: "onnx"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}, Layers: ls}
		for _, id := range ids {
			p.Findings = append(p.Findings, profile.Finding{ID: id, Severity: profile.Info, Text: id})
		}
		return p
	}
	all := made(layers(profile.Ran, profile.Ran))
	one := made(layers(profile.Ran, profile.NotReached), "model.branches", "arena.large")
	for _, c := range []struct {
		assumed *profile.Profile
		macs    float64
		found   []string
	}{{one, 100, []string{"model.branches"}}, {nil, 200, nil}} {
		b := profile.NewBuilder()
		s := New(Options{Model: all, Assumed: c.assumed, Request: Request{Task: &Task{}}})
		s.to = b
		if err := s.described(&profile.Profile{}, nil); err != nil {
			t.Fatal(err)
		}
		p := b.Profile()
		var found []string
		for _, f := range p.Findings {
			found = append(found, f.ID)
		}
		if sum := p.Totals.MACs; sum == nil || float64(*sum) != c.macs || !slices.Equal(found, c.found) {
			t.Errorf("%v MACs, findings %v, want %v and %v", p.Totals.MACs, found, c.macs, c.found)
		}
	}
}
