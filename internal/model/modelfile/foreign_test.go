package modelfile

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archive is a ZIP archive with a member.
func archive(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create(name); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestForeign has a file of every kind: the error says what it is and what to do.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, want string }{
		{"m.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer and not the file itself: run git lfs pull"},
		{"m.tflite", "\n<!DOCTYPE html><html>", "an HTML page: download"},
		{"m.onnx", "\x89OPM\r\n\x1a\n\x01", "a saved profile: show it with opmeter report"},
		{"m.h5", "\x89HDF\r\n\x1a\n\x00", "an HDF5 file, as Keras writes: convert it with tf.lite.TFLiteConverter"},
		{"m.pt", archive(t, "archive/data.pkl"), "a PyTorch checkpoint: export it with torch.onnx.export"},
		{"m.bin", "\x80\x02\x8a\x0al\xfc", "a PyTorch checkpoint or another Python pickle: export"},
		{"m.keras", archive(t, "metadata.json"), "a Keras archive: convert"},
		{"m.zip", archive(t, "m.mlpackage/Data/x"), "a Core ML model: profile"},
		{"m.npz", archive(t, "x.npy"), "a NumPy archive"},
		{"m.npy", "\x93NUMPY\x01\x00", "a NumPy array: give a model"},
		{"m.safetensors", "\x10\x00\x00\x00\x00\x00\x00\x00{\"a\":{}}", "a safetensors file, which has weights and no graph: export"},
		{"m.bin", "ptrt\x00\x00", "a TensorRT engine: profile it with trtexec"},
		{"m.engine", "\xff\x00\x00", "a TensorRT engine: "},
		{"m.xml", "<?xml version=\"1.0\"?>\n<net name=\"m\" version=\"11\">", "an OpenVINO IR file: profile"},
		{"m.gz", "\x1f\x8b\x08", "a gzip file: unpack it first"},
		{"m.pb", "\x08\x01\x12\xff\xff\xff\xff\xff", "a TensorFlow graph: convert"},
	} {
		_, err := Parse(c.name, []byte(c.data))
		if err == nil || !strings.HasPrefix(err.Error(), c.name+": is "+c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.HasPrefix(err.Error(), path+": is "+c.want) {
			t.Errorf("%s: %v, want %s", path, err, c.want)
		}
		if got := Describe(path); !strings.HasPrefix(got, c.want) && c.name != "m.onnx" {
			t.Errorf("%s: %q, want %s", path, got, c.want)
		}
	}
	for _, data := range []string{"", "hello", "<?xml version=\"1.0\"?><svg>", archive(t, "readme")} {
		if got := foreign("m.bin", []byte(data)); got != "" {
			t.Errorf("%q: %s", data, got)
		}
	}
	if got := Describe("/none"); got != "" {
		t.Errorf("no file: %q", got)
	}
}
