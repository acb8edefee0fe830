package modelfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is text is told before a reader of messages finds a wrong byte in it, and what
// only begins like text is not.
func TestIsText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", headBytes) // the head ends within a character
	for _, tt := range []struct {
		name, head string
		want       bool
	}{
		{"word", "hi", true},
		{"lines", "root:x:0:0\r\n\tdaemon\n", true},
		{"other scripts", "層\nслой", true},
		{"cut within a character", long[:headBytes-1], true},
		{"a message", "\x08\x07\x12\x04opme", false},
		{"a message without version", ":\x10\n\x05Relu", false},
		{"bytes", "\xff\xfehi", false},
		{"zero", "abc\x00", false},
		{"deleted", "abc\x7f", false},
		{"wrong inside", "abc\xc3(", false},
	} {
		if got := isText([]byte(tt.head)); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// A file that is named like TFLite is told to be none, in place of what the other
// reader finds wrong with it; one that is sound for the other reader is read.
func TestNamedLikeTFLite(t *testing.T) {
	t.Parallel()
	_, err := Parse("x.tflite", []byte("\x08\x07:\x7f\x01\x02"))
	if err == nil || !strings.Contains(err.Error(), `neither a TFLite nor an ONNX model`) || !strings.Contains(err.Error(), "TFL3") {
		t.Errorf("error %v", err)
	}
	_, err = Parse("x.onnx", []byte("\x08\x07:\x7f\x01\x02"))
	if err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("error %v", err)
	}
}

// TestFile: a path may name a model inside a file, and a file may have "!" in its name.
func TestFile(t *testing.T) {
	t.Parallel()
	odd := filepath.Join(t.TempDir(), "a!b.onnx")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{odd: odd, "net.litertlm!decode": "net.litertlm", "net.tflite": "net.tflite"} {
		if got := File(path); got != want {
			t.Errorf("%s is in %s, want %s", path, got, want)
		}
	}
	if _, err := Open("absent.litertlm!decode"); err == nil || !strings.Contains(err.Error(), "absent.litertlm: no such file") {
		t.Errorf("error %v", err)
	}
}

// TestHasEnding: the ending decides, in any case.
func TestHasEnding(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"a.GGUF": true, "b.litertlm": true, "c.mltk.zip": true, "d.zip": false, "e.yaml": false, "onnx": false} {
		if HasEnding(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
