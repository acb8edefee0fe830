package cortexm_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestAgainstManifest compares all and live multiply-accumulates with the counts
// that came with the model files.
func TestAgainstManifest(t *testing.T) {
	t.Parallel()
	f, err := os.Open(material.Path(t, "models", "mcu", "MANIFEST.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		if !strings.HasSuffix(r[0], ".tflite") || r[10] == "" {
			continue
		}
		m, err := modelfile.Open(material.Path(t, "models", "mcu", r[0]))
		if err != nil {
			t.Errorf("%s: %v", r[0], err)
			continue
		}
		all, live := 0.0, 0.0
		for i, l := range cortexm.Layers(m, m.Main(), cortexm.Kernels{}) {
			all += l.MACs
			v := l.Live
			live += v[cortexm.ConvMAC] + v[cortexm.PointMAC] + v[cortexm.DepthwiseMAC] + v[cortexm.DenseMAC]
			if l.Missing != nil {
				t.Logf("%s: node %d: %s", r[0], i, l.Missing.Text)
			}
		}
		if want, _ := strconv.ParseFloat(r[10], 64); want != all {
			t.Logf("%s: %v MACs, want %v", r[0], all, want)
		}
		if want, _ := strconv.ParseFloat(r[11], 64); math.Abs(want-live) > 0.01*want {
			t.Logf("%s: %v live MACs, want %v", r[0], live, want)
		}
	}
}
