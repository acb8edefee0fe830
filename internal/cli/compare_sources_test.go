package cli

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/profile/compare"
)

// TestUnique names runs by files, with endings or folders only where these tell runs apart.
func TestUnique(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ files, want []string }{
		{[]string{"a.onnx", "b.onnx"}, []string{"a", "b"}},
		{[]string{"d/a.onnx", "e/b.onnx"}, []string{"a", "b"}},
		{[]string{"a.onnx", "a.tflite"}, []string{"a.onnx", "a.tflite"}},
		{[]string{"d1/model.onnx", "d2/model.onnx"}, []string{"d1/model", "d2/model"}},
		{[]string{"./model.onnx", "./d/model.onnx", "b.onnx"}, []string{"model", "d/model", "b"}},
		{[]string{"../x/model.onnx", "/y/x/model.onnx", "x/model.onnx"}, []string{"../x/model", "y/x/model", "x/model"}},
		{[]string{"d1/m.onnx", "d2/m.onnx", "d1/m.tflite"}, []string{"d1/m", "d2/m", "m.tflite"}},
		// Runs of one file have no file of their own.
		{[]string{"", "", "d/m.onnx"}, []string{"m", "m (2)", "m.onnx"}},
	} {
		var runs []compare.Named
		for _, f := range c.files {
			name := "m"
			if f != "" {
				name = plainName(f)
			}
			runs = append(runs, compare.Named{Name: name})
		}
		unique(runs, c.files)
		var got []string
		for _, r := range runs {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
	}
}
