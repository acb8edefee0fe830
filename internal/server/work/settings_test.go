package work

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/server/queue"
)

func TestDivide(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                                {"", ""},
		"opmeter":                         {"opmeter", ""},
		"opmeter threads=1":               {"opmeter", "threads=1"},
		"ONNX Runtime threads=1 batch=2":  {"ONNX Runtime", "threads=1 batch=2"},
		"ONNX Runtime":                    {"ONNX Runtime", ""},
		"batch=2":                         {"", "batch=2"},
		"TensorRT (FP16 mode) threads=12": {"TensorRT (FP16 mode)", "threads=12"},
	} {
		if engine, settings := divide(text); engine != want[0] || settings != want[1] {
			t.Errorf("%q: engine %q, settings %q, want %q", text, engine, settings, want)
		}
	}
}

// Jobs whose figures do not compare have other settings, those that do have the same.
func TestSettingsOf(t *testing.T) {
	of := func(kind, format string, options map[string]string) string {
		return settingsOf(&queue.Job{Kind: kind, Options: options}, "threads=1", format)
	}
	for _, c := range []struct {
		kind, format string
		options      map[string]string
		want         string
	}{
		{Profile, "onnx", nil, "threads=1 format=onnx"},
		{Profile, "", map[string]string{"threads": "1", "time": "2s", "runs": "5", "engine": "opmeter"}, "threads=1"},
		{Profile, "tflite", map[string]string{"shape": "x=1x8,a=2", "clock": "64MHz", "dim": "n=2"}, "threads=1 clock=64MHz shape=a=2,x=1x8 dim=n=2 format=tflite"},
		{Profile, "tflite", map[string]string{"shape": "a=2,x=1x8", "clock": "64MHz", "dim": "n=2"}, "threads=1 clock=64MHz shape=a=2,x=1x8 dim=n=2 format=tflite"},
		{Import, "", map[string]string{"arch": "bm1684x"}, "threads=1 arch=bm1684x"},
		{Compress, "", map[string]string{"shape": "a=2"}, "threads=1"},
		{Saved, "onnx", nil, "threads=1 format=onnx"},
	} {
		if got := of(c.kind, c.format, c.options); got != c.want {
			t.Errorf("%s %s %v: %q, want %q", c.kind, c.format, c.options, got, c.want)
		}
	}
	// Long ones stay apart within the bound.
	long := func(last string) string {
		return of(Profile, "onnx", map[string]string{"shape": strings.Repeat("x", 199) + "=1," + strings.Repeat("y", 199) + "=1," + strings.Repeat("z", 199) + "=" + last})
	}
	if a, b := long("1"), long("2"); a == b || len(a) > longest || len(b) > longest {
		t.Errorf("long settings: %d bytes %q, %d bytes %q", len(a), a, len(b), b)
	}
}
