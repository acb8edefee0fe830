package cortexm_test

import (
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestAllModels estimates whatever there is: every layer has a figure or a reason,
// and bands hold their figures.
func TestAllModels(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("rp2350")
	if err != nil {
		t.Fatal(err)
	}
	n, layers, missing := 0, 0, 0
	for _, dir := range []string{"mcu", "mltk", "real", "tflite_ops"} {
		err := filepath.WalkDir(material.Path(t, "models", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".tflite") && !strings.HasSuffix(path, ".onnx") {
				return err
			}
			m, err := modelfile.Open(path)
			if err != nil {
				return nil // unreadable files are the business of the readers
			}
			if m.Close != nil {
				defer m.Close() //nolint:errcheck // only read
			}
			c, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{})
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			n++
			for i := range c.Layers {
				layers++
				l := &c.Layers[i]
				if l.Missing != nil {
					missing++
				}
				if f := l.Latency; (f == nil) != (l.Missing != nil) || f != nil && !(f.Low <= f.Value && f.Value <= f.High && !math.IsInf(f.High, 0)) {
					t.Errorf("%s: layer %d: %+v, missing %+v", path, i, f, l.Missing)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d models, %d layers, %d without an estimate", n, layers, missing)
}
