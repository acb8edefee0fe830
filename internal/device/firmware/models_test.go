package firmware_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

var checked = []string{"-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// TestModels compares whole models with the engine. OPMETER_MODELS names other files, below
// models/ and without their ending; bench/firmware takes any.
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
			flags := checked
			if m.FileBytes > 60000 { // the checks would take most of the time
				flags = []string{"-O1"}
			}
			p := compare(t, m, []uint64{0, 1, 2}, flags...)
			t.Logf("%d operators, %d bytes of weights, %d bytes of memory", len(p.Ops), p.WeightBytes, p.ArenaBytes)
		})
	}
}
