package external

import (
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
