package names_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/names"
)

// TestOf looks up names at the ends of the lists and where numbers leave a gap.
func TestOf(t *testing.T) {
	for _, x := range []struct {
		kind names.Kind
		n    uint64
		want string
	}{
		{names.Layer, 0, "CONV"},
		{names.Layer, 164, "SUBM_SPARSE_CONV3D"},
		{names.CPU, 0, "SSD_DETECTION_OUTPUT"},
		{names.CPU, 88888, "DEBUG"},
		{names.CPU, 777, "cpu 777"},
		{names.Call, 1, "MEM_SET"},
		{names.Call, 2415919108, "A53LITE_UNLOAD_LIB"},
		{names.Firmware, 10006, "PPL_FW_CHUNK_GATED_DELTA_RULE"},
		{names.Copy, 13, "LD_ITM_EXTEND_NEURON"},
	} {
		if got := names.Of(x.kind, x.n); got != x.want {
			t.Errorf("%s %d is %q, want %q", x.kind, x.n, got, x.want)
		}
	}
}
