package guests_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	root "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// ONNX Runtime and OpenVINO themselves compute in streams and show their peaks.
// The newest ONNX Runtime keeps files of its own among the temporary ones, which [TestMain] does not allow.
func TestRealStreams(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	libs := map[string]string{"onnxruntime": "onnxruntime-1.20.*/onnxruntime/capi/libonnxruntime.so.1.*", "openvino": "openvino-*/openvino/libs/libopenvino_c.so*"}
	for name, pattern := range libs {
		list, _ := filepath.Glob(filepath.Join(dir, pattern))
		if dir == "" || len(list) == 0 {
			material.Skip(t, "no "+name+": set OPMETER_TEST_ENGINES to a folder of unpacked packages")
		}
		libs[name] = list[len(list)-1]
	}
	helper := filepath.Join(t.TempDir(), "opmeter-engine")
	if out, err := exec.Command("go", "build", "-o", helper, "github.com/opmeter/opmeter/cmd/opmeter-engine").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, bytes.TrimSpace(out))
	}
	m, err := root.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, lib := range libs {
		p, err := root.Profile(t.Context(), m, root.Options{Engine: &root.Engine{Name: name, Library: lib, Helper: helper}, Runs: 10, Warmup: -1, Streams: 2, Cold: "start"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rate, ok := p.Totals.Value("inferences_per_s")
		if cold := p.Totals.Figure("cold_start_s"); !ok || !(rate > 0) || cold == nil || *cold.N < 10 || p.Target.PeakOpsPerSecond == nil || !strings.HasPrefix(p.Target.PeakMethod, "measured here after the runs") {
			t.Errorf("%s: %v a second, %+v, %+v", name, rate, cold, p.Target)
		}
	}
}
