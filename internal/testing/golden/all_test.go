package golden

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestEveryModelRuns computes an inference of every TFLite model that is not
// operator-sized, whether or not somebody has recorded its result.
func TestEveryModelRuns(t *testing.T) {
	over := overrides(t)
	var bad table
	n := 0
	for _, dir := range []string{"real", "mltk", "mcu"} {
		files, _ := filepath.Glob(filepath.Join(material.Path(t, "models", dir), "*.tflite"))
		slices.Sort(files)
		for _, f := range files {
			n++
			name := filepath.Base(f)
			run, err := Open(f, over[name])
			if err != nil {
				bad.add(dir+"/"+name, errorText(err))
				continue
			}
			var wrong []string
			if err := run.Once(); err != nil {
				wrong = append(wrong, errorText(err))
			}
			if trouble := run.Trouble(); trouble != "" || len(wrong) > 0 {
				bad.add(dir+"/"+name, trouble, strings.Join(wrong, ""))
			}
			if err := run.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if n < 127 {
		t.Errorf("%d models found, 127 are known", n)
	}
	t.Logf("%d of %d models run", n-len(bad.rows), n)
	bad.report(t)
}
