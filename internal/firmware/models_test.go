package firmware_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

var checked = []string{"-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// TestModels compares whole models with the engine. OPMETER_MODELS names other files.
func TestModels(t *testing.T) {
	t.Parallel()
	compiler(t, "cc")
	files := []string{
		"mcu/tflm_hello_world_int8", "mcu/mlperf_ad01_int8", "mcu/mlperf_kws_ref_model", "mcu/mlperf_pretrainedResnet_quant",
		"mcu/mlperf_vww_96_int8", "mcu/tflm_person_detect",
	}
	if all := os.Getenv("OPMETER_MODELS"); all != "" {
		files = strings.Split(all, ",")
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			m := open(t, material.Path(t, "models", f+".tflite"))
			p := compare(t, m, []uint64{0, 1, 2}, checked...)
			t.Logf("%d operators, %d bytes of weights, %d bytes of memory", len(p.Ops), p.WeightBytes, p.ArenaBytes)
		})
	}
}
