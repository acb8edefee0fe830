package chip_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/estimate/chip"
)

const small = `id: my-board
name: My board
core: {name: Cortex-M4, simd: dsp, fpu: single}
clock: {max: 120MHz, default: 80MHz}
memories:
  - {name: ram, role: ram, size: 64KiB}
  - {name: flash, role: flash, size: 1MiB, wait_states: 4}
runtimes:
  - name: tflm-cmsis-nn
    arena: cmsis-nn
    mvp: {cycles: {conv.program: 3.5}}
    calibration: {on: [this board], band: [0.8, 1.3]}
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := chip.Parse([]byte(small), "my-board.yaml")
	if err != nil {
		t.Fatal(err)
	}
	four := int64(4)
	want := &chip.Target{
		ID: "my-board", Name: "My board", File: "my-board.yaml",
		Core:  chip.Core{Name: "Cortex-M4", SIMD: "dsp", FPU: "single", Cores: 1},
		Clock: chip.Clock{Max: 120e6, Default: 80e6},
		Memories: []chip.Memory{
			{Name: "ram", Role: "ram", Size: 64 << 10},
			{Name: "flash", Role: "flash", Size: 1 << 20, WaitStates: &four},
		},
		Runtimes: []chip.Runtime{{
			Name: "tflm-cmsis-nn", Arena: "cmsis-nn", MVP: &chip.Counted{Cycles: map[string]float64{"conv.program": 3.5}},
			Calibration: &chip.Calibration{On: []string{"this board"}, Band: &[2]float64{0.8, 1.3}},
		}},
	}
	if len(got.SHA256) != 64 {
		t.Errorf("hash %q of the file", got.SHA256)
	}
	want.SHA256 = got.SHA256
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Each fault is told with file, line, key and what was expected.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	change := func(old, now string) string { return strings.Replace(small, old, now, 1) }
	tests := []struct{ name, text, want string }{
		{"empty", "", "my-board.yaml: is empty; expected a target (id, name, core, clock, runtimes, …)"},
		{"list", "- a\n", "my-board.yaml:1: expected a mapping of keys to values, found a list"},
		{"missing", change("name: My board\n", ""), "my-board.yaml:1: name: is missing"},
		{"misspelt key", change("memories:", "memory:"), `my-board.yaml:5: memory: is not a key here; did you mean "memories"?`},
		{"word", change("simd: dsp", "simd: neon"), `my-board.yaml:3: core.simd: is "neon"; expected one of none, dsp, mve, pie, pext, xesppie`},
		{"size", change("64KiB", "64 apples"), `my-board.yaml:6: memories[0].size: expected a size such as 262144 or 256KiB, found "64 apples"`},
		{"frequency", change("120MHz", "fast"), `my-board.yaml:4: clock.max: expected a frequency such as 78000000 or 78MHz, found "fast"`},
		{"range", change("default: 80MHz", "default: 800MHz"), "my-board.yaml:4: clock.default: is 800000000 Hz, outside min 0 and max 120000000"},
		{"number", change("conv.program: 3.5", "conv.program: much"), `my-board.yaml:11: runtimes[0].mvp.cycles.conv.program: expected a number, found "much"`},
		{"band", change("[0.8, 1.3]", "[1.1, 1.3]"), "my-board.yaml:12: runtimes[0].calibration.band: is [1.1, 1.3]; expected factors around 1, such as [0.9, 1.1]"},
		{"band of three", change("[0.8, 1.3]", "[1, 2, 3]"), "my-board.yaml:12: runtimes[0].calibration.band: expected a list of 2, found one of 3"},
		{"id", change("id: my-board", "id: My Board"), `my-board.yaml:1: id: is "My Board"; expected lower-case letters, digits and single dashes`},
		{"reserved id", change("id: my-board", "id: host"), `my-board.yaml:1: id: is "host", which stands for this computer; expected another id`},
		{"twice", change("name: My board\n", "name: My board\nname: again\n"), "my-board.yaml:3: name: appears twice"},
		{"no value", change("name: My board", "name:"), "my-board.yaml:2: name: has no value"},
		{"no runtime", small[:strings.Index(small, "runtimes:")] + "runtimes: []\n", "my-board.yaml:8: runtimes: is empty; expected at least one runtime family"},
		{"two models", change("    mvp: {", "    cortexm: {}\n    mvp: {"), "my-board.yaml:11: runtimes[0].cortexm.family: is missing\nmy-board.yaml:11: runtimes[0].cortexm.integer: is missing\nmy-board.yaml:11: runtimes[0].cortexm.tier: is missing"},
		{"no model", change("    mvp: {cycles: {conv.program: 3.5}}\n", ""), "my-board.yaml:9: runtimes[0]: expected the figures of one cycle model: cortexm or mvp"},
		{"arena", change("arena: cmsis-nn", "arena: cmsis"), `my-board.yaml:10: runtimes[0].arena: is "cmsis"; expected one of reference, cmsis-nn, cmsis-nn-mve, mvp, mvp-first`},
		{"figure that is not known", change("conv.program: 3.5", "conv.programs: 3.5"), `my-board.yaml:11: runtimes[0].mvp.cycles.conv.programs: is not a key here; did you mean "conv.program"?`},
		{"type of operator", change("{cycles: {conv.program: 3.5}}", "{operators: {ADD: {int9: {fixed: 1}}}}"), `my-board.yaml:11: runtimes[0].mvp.operators.ADD.int9: is not an element type; expected one such as int8 or float32, or any`},
		{"feature of operator", change("{cycles: {conv.program: 3.5}}", "{operators: {ADD: {int8: {fixd: 1}}}}"), `my-board.yaml:11: runtimes[0].mvp.operators.ADD.int8.fixd: is not a key here; did you mean "fixed"?`},
		{"term", structural("conv_mac: 2", "conf_mac: 2"), `my-board.yaml:12: runtimes[0].cortexm.integer.cycles.conf_mac: is not a key here; did you mean "conv_mac"?` + "\n" + `my-board.yaml:12: runtimes[0].cortexm.integer.cycles.conv_mac: is missing`},
		{"negative cost", structural("conv_mac: 2", "conv_mac: -2"), `my-board.yaml:12: runtimes[0].cortexm.integer.cycles.conv_mac: is -2; a cost cannot be negative`},
		{"negative band", structural("band_near: 0.1", "band_near: -0.1"), `my-board.yaml:12: runtimes[0].cortexm.integer.band_near: is -0.1; a half-width cannot be negative`},
		{"mix", structural("dense_mac: 0.9}", "dense_mac: most}"), `my-board.yaml:13: runtimes[0].cortexm.seen[0].dense_mac: expected a number, found "most"`},
		{"pruned", structural("pruned: true", "pruned: sometimes"), `my-board.yaml:11: runtimes[0].cortexm.pruned: expected true or false, found "sometimes"`},
		{"alias", change("name: My board", "name: &a My board") + "vendor: *a\n", "my-board.yaml:13: vendor: aliases are not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := chip.Parse([]byte(tt.text), "my-board.yaml")
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

// structural is the board with the figures of a processor, changed once.
func structural(old, now string) string {
	terms := make([]string, len(chip.TermNames))
	for i, n := range chip.TermNames {
		terms[i] = n + ": 2"
	}
	figures := "    cortexm: {family: f, tier: dsp, pruned: true,\n      integer: {band_near: 0.1, cycles: {" + strings.Join(terms, ", ") + "}},\n      seen: [{dense_mac: 0.9}]}\n"
	figures = strings.Replace(figures, old, now, 1)
	return strings.Replace(small, "    mvp: {cycles: {conv.program: 3.5}}\n", figures, 1)
}

func TestShipped(t *testing.T) {
	t.Parallel()
	s, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for i, tg := range s.List() {
		if i > 0 && s.List()[i-1].ID >= tg.ID {
			t.Errorf("%s is out of order", tg.ID)
		}
		for _, r := range tg.Runtimes {
			if r.Calibration == nil || len(r.Calibration.On) == 0 && r.Calibration.From == "" {
				t.Errorf("%s: runtime %s does not say what it was calibrated on", tg.ID, r.Name)
			}
		}
		if got, err := s.Find(strings.ToUpper(tg.ID)); err != nil || got != tg {
			t.Errorf("%s is not found by its id: %v", tg.ID, err)
		}
	}
}

func TestFindSuggests(t *testing.T) {
	t.Parallel()
	s, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		id   string
		want []string
	}{
		{"efr32xg42", []string{"efr32xg24"}},
		{"efr32", []string{"efr32xg24", "efr32xg24-mvp", "esp32"}},
		{"something-else", nil},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			_, err := s.Find(tt.id)
			var u *chip.UnknownError
			if !errors.As(err, &u) {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, u.Nearest); d != "" {
				t.Errorf("(-want +got)\n%s\n%v", d, err)
			}
		})
	}
}

// A user's folder adds and replaces targets; a faulty file does not hide the rest.
func TestOverlay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("my-board.yaml", small)
	write("efr32xg24.yaml", strings.Replace(small, "id: my-board", "id: efr32xg24", 1))
	write("broken.yaml", "id: broken\n")
	write("notes.txt", "no target")
	s, err := chip.Load(dir)
	var fe *chip.FileError
	if !errors.As(err, &fe) || filepath.Base(fe.File) != "broken.yaml" {
		t.Errorf("error is %v", err)
	}
	for id, name := range map[string]string{"my-board": "My board", "efr32xg24": "My board", "efr32xg24-mvp": "EFR32xG24 with MVP"} {
		tg, err := s.Find(id)
		if err != nil || tg.Name != name {
			t.Errorf("%s: %v, %v", id, tg, err)
		}
	}
	// A shipped target does not stand in for a faulty file of its name, and what has two
	// files is neither of them.
	write("stm32l4r5.yaml", "id: stm32l4r5\n")
	write("my-board.yml", small)
	if s, err = chip.Load(dir); err == nil {
		t.Error("faulty files: no error")
	}
	for id, file := range map[string]string{"stm32l4r5": "stm32l4r5.yaml", "STM32L4R5": "stm32l4r5.yaml", "broken": "broken.yaml", "my-board": "my-board.yml"} {
		_, err := s.Find(id)
		if !errors.As(err, &fe) || filepath.Base(fe.File) != file {
			t.Errorf("%s: error is %v, want the fault of %s", id, err, file)
		}
	}
	listed := map[string]bool{}
	for _, tg := range s.List() {
		listed[tg.ID] = true
	}
	for id, want := range map[string]bool{"stm32l4r5": false, "my-board": false, "efr32xg24": true, "nrf52840": true} {
		if listed[id] != want {
			t.Errorf("%s is listed: %t, want %t", id, listed[id], want)
		}
	}
	if _, err := chip.Load(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent folder: %v", err)
	}
}

// TestFileNames reads files whatever their names: the id counts. A path names a file, too.
func TestFileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"my.yaml":    "id: \"stm32l4r5\" # mine\ninherits: stm32l4r5\nname: Slow\nclock: {default: 4MHz}\n",
		"other.yml":  "inherits: stm32l4r5\nid: second\nname: Second\n",
		"broken.yml": "name: x\nid: nrf52840\nclock: [\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := chip.Load(dir)
	if err == nil || !strings.Contains(err.Error(), "broken.yml") {
		t.Errorf("error is %v", err)
	}
	for id, name := range map[string]string{"stm32l4r5": "Slow", "second": "Second"} {
		if got, err := s.Find(id); err != nil || got.Name != name || got.Clock.Default != 4e6 {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	// The target that a faulty file states is not replaced by the shipped one.
	if _, err := s.Find("nrf52840"); err == nil || !strings.Contains(err.Error(), "broken.yml") {
		t.Errorf("nrf52840: %v", err)
	}
	shipped, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := shipped.Find(filepath.Join(dir, "other.yml")); err != nil || got.ID != "second" || got.Clock.Default != 4e6 {
		t.Errorf("by path: %+v, %v", got, err)
	}
	if _, err := shipped.Find(filepath.Join(dir, "absent.yaml")); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), filepath.Join(dir, "absent.yaml")+": ") {
		t.Errorf("absent: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("id: x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tg, err := chip.Parse(b, "")
		if err == nil && (tg.ID == "" || len(tg.Runtimes) == 0) {
			t.Error("a target without id or runtime was accepted")
		}
	})
}

// A file that inherits has what it says itself and everything else of the other target,
// of the binary or of the folder, and the other stays as it is.
func TestInherits(t *testing.T) {
	t.Parallel()
	write := func(files map[string]string) (*chip.Set, error) {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return chip.Load(dir)
	}
	shipped, err := (&chip.Set{}).Find("stm32l4r5")
	if err != nil {
		t.Fatal(err)
	}
	set, err := write(map[string]string{
		"mine.yaml":      "inherits: stm32l4r5\nid: mine\nname: Mine\nclock: {default: 80MHz}\nmemories:\n  - {name: sram, role: ram, size: 64KiB}\nsupply: {volts: 3.3}\n",
		"second.yaml":    "inherits: mine\nid: second\nname: Second\n",
		"stm32l4r5.yaml": "inherits: stm32l4r5\nid: stm32l4r5\nname: Slow\nclock: {default: 4MHz}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := set.Find("mine")
	if err != nil {
		t.Fatal(err)
	}
	if mine.Name != "Mine" || mine.Clock.Default != 80e6 || mine.Clock.Max != shipped.Clock.Max || len(mine.Memories) != 1 || mine.Memories[0].Size != 64<<10 {
		t.Errorf("%+v", mine)
	}
	if mine.Core != shipped.Core || len(mine.Runtimes) != len(shipped.Runtimes) || mine.Supply.Volts != 3.3 || mine.Supply.Regulator != shipped.Supply.Regulator {
		t.Errorf("not inherited: %+v, %+v", mine.Core, mine.Supply)
	}
	if second, err := set.Find("second"); err != nil || second.Name != "Second" || second.Clock.Default != 80e6 || second.SHA256 == mine.SHA256 {
		t.Errorf("%+v, %v", second, err)
	}
	if slow, err := set.Find("stm32l4r5"); err != nil || slow.Clock.Default != 4e6 || slow.Core != shipped.Core {
		t.Errorf("%+v, %v", slow, err)
	}
	if again, err := (&chip.Set{}).Find("stm32l4r5"); err != nil || again.Clock.Default != 120e6 || again.Supply.Volts != 1.8 {
		t.Errorf("the target of the binary was changed: %+v", again)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"unknown": {map[string]string{"a.yaml": "inherits: nothing-like-it\nid: a\nname: A\n"}, "inherits: no target"},
		"circle":  {map[string]string{"a.yaml": "inherits: b\nid: a\nname: A\n", "b.yaml": "inherits: a\nid: b\nname: B\n"}, "inherits from itself"},
		"a fault": {map[string]string{"a.yaml": "inherits: stm32l4r5\nid: a\nname: A\nclock: {default: 900MHz}\n"}, "clock.default"},
		"a path":  {map[string]string{"a.yaml": "inherits: ../../etc/passwd\nid: a\nname: A\n"}, "inherits: no target"},
	} {
		if _, err := write(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
