package graph

import "testing"

func TestShortName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ path, name, want string }{
		{"a/b/net.tflite", "", "net"},
		{"net.onnx", "inner", "net"},
		{"x.mltk.zip!net.tflite", "", "net"},
		{"examples/net.yaml", "", "net"},
		{"", "inner", "inner"},
		{"", "", "model"},
	} {
		if got := (&Model{Path: tt.path, Name: tt.name}).ShortName(); got != tt.want {
			t.Errorf("path %q, name %q: %q, want %q", tt.path, tt.name, got, tt.want)
		}
	}
}
