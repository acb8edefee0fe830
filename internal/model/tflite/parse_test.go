package tflite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// refused lists the files of the material that are not valid models, with what
// the error must say.
var refused = map[string]string{
	"litert_0_subgraphs.tflite":   "Model.subgraphs at byte 24: the model has no subgraph",
	"litert_invalid_model.tflite": `Model at byte 4: identifier is " is ", not "TFL3"`,
	// An older schema that keeps its weights elsewhere; the TFLite runtimes refuse it too.
	"litert_transpose.tflite":          "Model.version at byte 24: schema version 2, only 3 can be read",
	"litert_add_shared_tensors.tflite": `tensor 1 "input", is an input of the graph or already written`,
	// The runtimes load these and read memory that nothing has written.
	"litert_blockwise_quantized.tflite":        `input 1 of ADD, tensor 2 "quantized_tensor", has no data`,
	"litert_segment_sum_invalid_buffer.tflite": `input 1 of SEGMENT_SUM, tensor 2 "pyx/y", has no data`,
}

func modelFiles(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{"real", "mltk", "mcu", "tflite_ops"} {
		list, err := filepath.Glob(filepath.Join(material.Path(t, "models", dir), "*.tflite"))
		if err != nil || len(list) == 0 {
			t.Fatalf("no models in %s (%v)", dir, err)
		}
		files = append(files, list...)
	}
	return files
}

func TestOpenAll(t *testing.T) {
	t.Parallel()
	loaded, turned := 0, 0
	for _, file := range modelFiles(t) {
		name := filepath.Base(file)
		m, err := Open(file)
		want, bad := refused[name]
		switch {
		case err == nil && bad:
			t.Errorf("%s: loaded, must be refused with %q", name, want)
		case err == nil:
			loaded++
			for _, w := range m.Warnings {
				t.Logf("%s: %s", name, w)
			}
			if err := m.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !bad:
			t.Errorf("%v", err)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s: error %q does not say %q", name, err, want)
		default:
			turned++
		}
	}
	t.Logf("%d models loaded, %d refused", loaded, turned)
}
