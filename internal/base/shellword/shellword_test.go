package shellword

import (
	"os/exec"
	"testing"
)

// TestQuote: plain words stay, and a shell reads the others back as they were.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"model.onnx", "a/b-c_1.onnx", "input=1x3", "x:0,1@2%+"} {
		if got := Quote(s); got != s {
			t.Errorf("%q: %s", s, got)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is missing")
	}
	for _, s := range []string{"", "with space é.onnx", "it's", "$HOME", "`x`", "a\nb", "*", "~", `back\slash`} {
		out, err := exec.Command(sh, "-c", "printf %s "+Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q: %q, %v", s, out, err)
		}
	}
}
