package board

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// ran are the models that run on every board, int8 and of different kinds.
var ran = []string{
	"mlperf_kws_ref_model", "mlperf_ad01_int8", "tflm_hello_world_int8", "mlperf_pretrainedResnet_quant", "mlperf_vww_96_int8", "tflm_person_detect",
}

// From end to end, with nothing but the wire replaced: each model becomes a program for each
// board, which is built, runs in the emulator and is profiled over its UART. The outputs are those
// of the engine here bit for bit, every layer has its figure, and two runs count the same.
func TestModelsOnBoards(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	for _, name := range ran {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := openModel(t, name)
			program, want := made(t, m)
			for _, name := range slices.Sorted(maps.Keys(emulated)) {
				b := find(t, name)
				built := build(t, b, program.Files)
				one, out := measure(t, m, b, built.ELF)
				if len(out) != len(want) {
					t.Errorf("%s: %d outputs, expected %d", b.Name, len(out), len(want))
				}
				for i := range want {
					if !bytes.Equal(out[i], want[i]) {
						t.Errorf("%s: output %d differs from the engine's: %d bytes, expected %d", b.Name, i, len(out[i]), len(want[i]))
					}
				}
				two, _ := measure(t, m, b, built.ELF)
				sameCounts(t, b, program.Layers, one, two)
			}
		})
	}
}

func openModel(t *testing.T, name string) *opmeter.Model {
	t.Helper()
	m, err := opmeter.Open(material.Path(t, "models", "mcu", name+".tflite"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// made is the program of a model, and what the engine here makes of the same inputs.
func made(t *testing.T, m *opmeter.Model) (*device.Program, [][]byte) {
	t.Helper()
	in := opmeter.Inputs{Seed: 7}
	p, err := device.NewProgram(m, device.ProgramOptions{Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want [][]byte
	for _, o := range s.Outputs() {
		want = append(want, bytes.Clone(o.Data))
	}
	return p, want
}

// measure profiles a program in the emulator.
func measure(t *testing.T, m *opmeter.Model, b *Board, elf string) (*profile.Profile, map[int][]byte) {
	t.Helper()
	args, err := b.Emulate(elf)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int][]byte{}
	p, err := device.Measure(t.Context(), m, device.Options{
		// the computer may have much else to do
		Port: "exec:" + Command(args), Runs: 2, Discard: -1, Timeout: time.Minute,
		Output: func(_ string, index int, data []byte) { out[index] = bytes.Clone(data) },
	})
	if err != nil {
		t.Fatalf("%s: %v", b.Name, err)
	}
	if len(p.Incomplete) > 0 {
		t.Errorf("%s: something is missing: %v", b.Name, p.Incomplete)
	}
	if p.Totals.Latency != nil {
		t.Errorf("%s: instructions have become time", b.Name)
	}
	return p, out
}

// instructions are those of a layer, or of the whole, where its inferences agree.
func instructions(f map[string]*profile.Metric, spread float64) (float64, bool) {
	x := f["instructions"]
	if x == nil || x.Kind != profile.Measured {
		return 0, false
	}
	if x.Min == nil || x.Max == nil || *x.Max-*x.Min > spread {
		return 0, false
	}
	return x.Best()
}

// sameCounts compares two runs of a program. Nothing but the program runs in the emulator: each
// operator takes the same instructions.
func sameCounts(t *testing.T, b *Board, layers []int, one, two *profile.Profile) {
	t.Helper()
	sum := 0.0
	for _, i := range layers {
		x, ok := instructions(one.Layers[i].Figures, 0)
		y, ok2 := instructions(two.Layers[i].Figures, 0)
		if !ok || !ok2 || x != y {
			t.Errorf("%s: layer %d (%s) took %v and %v instructions", b.Name, i, one.Layers[i].Op, x, y)
		}
		sum += x
	}
	// The agent's own time is taken off the whole, read from a clock whose tick is a fifth
	// of an instruction, some ten times an operator.
	slack := float64(2 * len(layers))
	x, ok := instructions(one.Totals.Figures, slack)
	y, ok2 := instructions(two.Totals.Figures, slack)
	if !ok || !ok2 || !(x-y <= slack && y-x <= slack) {
		t.Errorf("%s: inferences took %v and %v instructions", b.Name, x, y)
	}
	// Between operators there is next to nothing: calls, and what the calibration does not see.
	const most = 20
	if d := x - sum; !(d >= -most*float64(len(layers)) && d <= most*float64(len(layers))) {
		t.Errorf("%s: the inference took %v instructions, its %d operators %v", b.Name, x, len(layers), sum)
	}
}

// What the agent costs: a program with it against the same one without, in instructions of
// the inference as the board tells them, the time of sending taken off by the agent.
func TestAgentOverhead(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	m := openModel(t, "mlperf_ad01_int8")
	program, _ := made(t, m)
	for _, name := range slices.Sorted(maps.Keys(emulated)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := find(t, name)
			num, den := b.Scale()
			whole := func() float64 {
				var counts float64
				emulate(t, b, build(t, b, program.Files).ELF, func(f frame) bool {
					if f.kind == kindEnd {
						n := f.numbers()
						counts = float64(n[1]-n[2]) * float64(num) / float64(den)
					}
					return f.kind == kindEnd
				})
				return counts
			}
			with := whole()
			b.Flags = append(slices.Clone(b.Flags), "-DMODEL_NO_AGENT")
			without := whole()
			each := (with - without) / float64(len(program.Layers))
			t.Logf("%.1f instructions an operator, of %.0f in all", each, with)
			// A limit of the agent.
			if !(each >= 0 && each < 200) {
				t.Errorf("the agent takes %.1f instructions an operator (%.0f with it, %.0f without), expected less than 200", each, with, without)
			}
		})
	}
}

// The words of a command for a port come apart as they were.
func TestCommand(t *testing.T) {
	t.Parallel()
	got := Command([]string{"qemu-system-arm", "-kernel", "/a b/it's.elf", ""})
	if want := `qemu-system-arm -kernel '/a b/it'"'"'s.elf' ''`; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}

// What is not a program of the board is not started.
func TestChecked(t *testing.T) {
	t.Parallel()
	b := find(t, "mps2-an505")
	if err := b.Checked(material.Root() + "/go.mod"); err == nil || !strings.Contains(err.Error(), "not an Arm program") {
		t.Error(err)
	}
	need(t, compilerName)
	elf := build(t, b, standIn("")).ELF
	if err := b.Checked(elf); err != nil {
		t.Error(err)
	}
	if err := find(t, "mps2-an385").Checked(elf); err == nil || !strings.Contains(err.Error(), "mps2-an385 has no memory at 0x10000000") {
		t.Error(err)
	}
}
