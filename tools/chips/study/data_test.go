package study_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

// TestLoad counts what the tables give. The second has 224 rows, of which 168
// are used: 40 are of tools whose kernels have no model, 8 of hybrid networks, which the
// runtime does not take, and 8 of builds that are doubtful.
func TestLoad(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][3]int{
		"mcu_measured.csv":          {271, 0, 96},
		"mcu_measured_edgemark.csv": {70, 27, 71},
		"mcu_measured_2026.csv":     {15, 0, 1},
	} {
		ms, skipped, err := study.Load(material.Path(t, "data", file), material.Path(t))
		if err != nil {
			t.Fatal(err)
		}
		var got [3]int
		for _, m := range ms {
			got[study.TypeOf(m)]++
			if !(m.Cycles > 0) || m.Work[cortexm.Call] != 1 || m.Core == "" || m.Family == "" {
				t.Errorf("%s: %+v", file, m)
			}
		}
		if got != want {
			t.Errorf("%s: %v rows of int8, int16 and float, want %v; left out: %v", file, got, want, skipped)
		}
	}
}

// TestBoards reads a table that names boards instead of chips, with options of the build.
func TestBoards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "models", "net.yaml")
	const net = "name: net\ntype: int8\ninput: {name: x, shape: [1, 8, 8, 1]}\nlayers:\n  - {op: conv, filters: 4, kernel: 3}\n"
	if err := os.MkdirAll(filepath.Dir(model), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model, []byte(net), 0o644); err != nil {
		t.Fatal(err)
	}
	const table = "source,board,core,clock_mhz,runtime,runtime_version,model_name,model_file,dtype,latency_ms,cycles,notes,doubtful\n" +
		"a/b@1234567,FRDM-MCXN947,Cortex-M33,150,TFLM + CMSIS-NN,Zephyr 4.3,net,shared/models/net.yaml,int8,,150000,-Os,\n" +
		"a/b@1234567,Arduino Nano 33 BLE,Cortex-M4,64,TFLM (Arduino),2023,net,models/net.yaml,int8,2,,,\n" +
		"a/b@1234567,Arduino Nano 33 BLE,Cortex-M4,64,TFLM (Arduino),2023,net,models/net.yaml,int8,2,,,yes\n"
	file := filepath.Join(dir, "boards.csv")
	if err := os.WriteFile(file, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	ms, skipped, err := study.Load(file, dir)
	if err != nil || len(ms) != 2 || skipped["doubtful by the table"] != 1 {
		t.Fatalf("%d rows, %v, %v", len(ms), skipped, err)
	}
	// Zephyr compiles the kernels for speed whatever the option.
	if m := ms[0]; m.Chip != "MCXN947" || m.Era != "" || m.Build != "size" || m.Cycles != 150000 {
		t.Errorf("%+v", m)
	}
	if m := ms[1]; m.Chip != "nRF52840" || m.Era != "small" || m.Cycles != 128000 {
		t.Errorf("%+v", m)
	}
}
