package fit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// terms makes a table of figures with a different one for each kind of work.
func terms(from float64) (t chip.Terms) {
	for i := range t {
		t[i] = from + float64(i)
	}
	return t
}

// whole has something in every place that a target file can have.
func whole() *chip.Target {
	return &chip.Target{
		ID: "my-board", Name: "My \"board\"", Vendor: "maker", Description: "A sentence: with signs.",
		Core:  chip.Core{Name: "Cortex-M4", Arch: "armv7e-m", SIMD: "dsp", FPU: "single", Cores: 2, PeakMACs: 2, LoadBytes: 4},
		Clock: chip.Clock{Min: 1e6, Max: 120e6, Default: 80.5e6},
		Memories: []chip.Memory{
			{Name: "ram", Role: "ram", Size: 64 << 10},
			{Name: "flash", Role: "external-flash", Size: 3 << 20, WaitStates: new(int64(4)), Cache: 1000, ReadCyclesPerByte: new(0.25)},
		},
		Supply:      &chip.Supply{Volts: 1.8, Regulator: "switching"},
		Energy:      &chip.Energy{Reference: "above-idle", Watts: 0.5, ElapsedCycle: 1.5e-10, CPUCycle: 2e-10, MAC: 3e-12, Band: &[2]float64{0.5, 2}, Calibration: &chip.Calibration{On: []string{"a meter"}, Rows: 3, Sources: 1}},
		Accelerator: &chip.Accelerator{Name: "mvp", Clock: 40e6, PeakMACs: 8, Description: "a unit"},
		Runtimes: []chip.Runtime{
			{
				Name: "structural", Title: "One", Versions: "all", Arena: "cmsis-nn", Release: 2023, Code: &[2]chip.Bytes{65 << 10, 1 << 20},
				Cortexm: &chip.Structural{
					Family: "tflm-cmsis-nn", Tier: "dsp", Pruned: true,
					Integer: chip.Integer{Cycles: terms(1), Near: 0.25, Far: 0.5, Layer: 0.75, Overhead: 1.125, Bands: terms(2)},
					Int16:   &chip.Typed{From: "elsewhere", Measured: "dense", Near: 0.125, Far: 0.375, Overhead: 0.5, Cycles: terms(3)},
					Float:   &chip.Typed{From: "there", Measured: "both", Near: 0.625, Far: 0.875, Cycles: terms(4)},
					Seen:    []chip.Terms{{cortexm.ConvMAC: 0.75, cortexm.DenseMAC: 0.25}, {cortexm.PointMAC: 1}},
				},
				Builds: []chip.Build{{Name: "small", Title: "Small", From: "a table", Integer: terms(5), Int16: terms(6), Float: terms(7), Band: 0.25}},
				Calibration: &chip.Calibration{
					On: []string{"one", "two"}, From: "cortex-m3", Method: "by hand", Rows: 7, Sources: 2, MedianError: new(0.125), P90Error: new(0.25), Band: &[2]float64{0.75, 1.5}, Coverage: new(0.9),
					Errors: []chip.ErrorRow{{Group: "a", Rows: 5, MedianError: 0.125, P90Error: 0.25, Bias: -0.0625}},
				},
			},
			{
				Name: "counted", MVP: &chip.Counted{
					Library: "first", Processor: "cortex-m33", Cycles: map[string]float64{"conv.program": 3.5, "add.pair": 2},
					Operators: map[string]map[string]chip.Operator{"ADD": {"any": {Fixed: 1, Element: 2, Input: 3, Padded: 4, Byte: 5, MAC: 6, Tap: 7}}, "MEAN": {"int8": {Fixed: 8}, "float32": {Element: 9}}},
				},
			},
		},
		Sources: []string{"https://example.org/a", "a book"},
	}
}

// TestEncodeWhole reads back everything that a target can have.
func TestEncodeWhole(t *testing.T) {
	t.Parallel()
	want := whole()
	file := fit.Encode(want, "made\n\nby hand\n")
	got, err := chip.Parse(file, "my-board.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	want.File, want.SHA256 = got.File, got.SHA256
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-written +read:\n%s", d)
	}
	for _, s := range []string{
		"# made\n# by hand\nid: \"my-board\"\nname: \"My \\\"board\\\"\"\n",
		"clock:\n  min: 1MHz\n  max: 120MHz\n  default: 80.5MHz\n",
		"  - name: \"ram\"\n    role: ram\n    size: 64KiB\n", "    size: 3MiB\n    wait_states: 4\n    cache: 1000\n    read_cycles_per_byte: 0.25\n",
		"    code: [65KiB, 1MiB]\n",
		"      seen:\n        - {conv_mac: 0.75, dense_mac: 0.25}\n        - {point_mac: 1}\n",
		"    calibration:\n      on:\n        - \"one\"\n        - \"two\"\n      from: \"cortex-m3\"\n",
		"      errors:\n        - group: \"a\"\n          rows: 5\n          median_error: 0.125\n          p90_error: 0.25\n          bias: -0.0625\n",
		"      operators:\n        ADD:\n          any:\n            fixed: 1\n            element: 2\n",
	} {
		if !strings.Contains(string(file), s) {
			t.Errorf("the file has no\n%s", s)
		}
	}
	one := string(fit.EncodeRuntime(&want.Runtimes[1]))
	if !strings.HasPrefix(one, "  - name: \"counted\"\n    mvp:\n      library: \"first\"\n") || !strings.HasSuffix(string(file), one+"sources:\n  - \"https://example.org/a\"\n  - \"a book\"\n") {
		t.Errorf("one runtime:\n%s", one)
	}
}

// TestEncodeLittle leaves out what is not known: what is zero by its nature is written.
func TestEncodeLittle(t *testing.T) {
	t.Parallel()
	s := &chip.Structural{Family: "f", Tier: "dsp", Int16: &chip.Typed{Measured: "conv"}, Seen: []chip.Terms{{cortexm.ConvMAC: 0.996, cortexm.DenseMAC: 0.004, cortexm.PointMAC: 0.006}}}
	s.Integer.Cycles[cortexm.ConvMAC], s.Integer.Cycles[cortexm.PlainMove] = 2, 3
	tg := &chip.Target{ID: "x", Name: "X", Core: chip.Core{Name: "c", SIMD: "none", Cores: 1}, Clock: chip.Clock{Max: 1e6, Default: 1e6}, Runtimes: []chip.Runtime{{Name: "r", Cortexm: s}}}
	want := `id: "x"
name: "X"
core:
  name: "c"
  simd: "none"
clock:
  max: 1MHz
  default: 1MHz
runtimes:
  - name: "r"
    cortexm:
      family: "f"
      tier: "dsp"
      integer:
        band_near: 0
        band_far: 0
        band_layer: 0
        cycles:
          call: 0
          op: 0
          conv_mac: 2
          conv_gather: 0
          conv_window: 0
          conv_output: 0
          point_mac: 0
          point_gather: 0
          point_output: 0
          depthwise_mac: 0
          depthwise_output: 0
          dense_mac: 0
          dense_output: 0
          pool_element: 0
          element: 0
          table_element: 0
          move_element: 0
          plain_move: 3
      int16:
        measured: "conv"
        band_near: 0
        band_far: 0
      seen:
        - {conv_mac: 1, point_mac: 0.01}
`
	if d := cmp.Diff(want, string(fit.Encode(tg, ""))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
