package estimate

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// Every model gives a valid profile on chips with and without accelerator,
// whatever operators it has.
func TestAllModels(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("hundreds of estimates")
	}
	n, whole := 0, 0
	err := filepath.WalkDir(material.Path(t, "models"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".tflite") && !strings.HasSuffix(path, ".onnx") {
			return err
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 {
			return err
		}
		m, err := modelfile.Open(path)
		if err != nil {
			return nil //nolint:nilerr // the reader's business
		}
		for _, id := range []string{"efr32xg24-mvp", "efr32xg24", "stm32l4r5", "stm32h743", "rp2040"} {
			p, err := Estimate(m, find(t, id), chip.Options{})
			if err != nil {
				t.Errorf("%s on %s: %v", path, id, err)
				continue
			}
			if err := p.Validate(); err != nil {
				t.Errorf("%s on %s: %v", path, id, err)
			}
			sumsHold(t, p)
			n++
			if p.Incomplete == nil {
				whole++
			}
		}
		if m.Close != nil {
			return m.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d profiles, %d of them complete", n, whole)
}
