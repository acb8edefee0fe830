package board

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/firmware"
)

// emulated are the boards that QEMU runs, with what the processor is.
var emulated = map[string]string{
	"mps2-an385": "cortex-m3", "mps2-an386": "cortex-m4", "mps2-an500": "cortex-m7", "mps2-an505": "cortex-m33", "mps3-an547": "cortex-m55",
}

func find(t *testing.T, name string) *Board {
	t.Helper()
	b, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestShipped(t *testing.T) {
	t.Parallel()
	all, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, b := range all {
		for _, n := range append([]string{b.Name}, b.Aliases...) {
			if names[n] {
				t.Errorf("two boards are named %s", n)
			}
			names[n] = true
		}
		if _, err := fs.Stat(firmware.Files, "boards/"+b.Name+".yaml"); err != nil {
			t.Errorf("%s is in a file of another name", b.Name)
		}
		if b.Title == "" {
			t.Errorf("%s has no title", b.Name)
		}
	}
	for name, cpu := range emulated {
		if b := find(t, name); b.CPU != cpu || b.Emulator == nil {
			t.Errorf("%s: %s, %v", name, b.CPU, b.Emulator)
		}
	}
	if b := find(t, "mps2-an547"); b.Name != "mps3-an547" {
		t.Errorf("mps2-an547 is %s", b.Name)
	}
	if _, err := Find("mps2-an999"); err == nil || !strings.Contains(err.Error(), "mps2-an505") {
		t.Errorf("an unknown board: %v", err)
	}
	if _, err := Find(filepath.Join(t.TempDir(), "absent.yaml")); err == nil {
		t.Error("an absent file is a board")
	}
}

// A tick of 25 MHz is 40 ns and an instruction 256 ns, so 6.4 ticks: 5 instructions are
// 32 ticks. At 20 MHz it is 50 ns: 25 instructions are 128 ticks.
func TestScale(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]uint32{"mps2-an385": {5, 32}, "mps2-an505": {25, 128}, "mps3-an547": {25, 128}} {
		if num, den := find(t, name).Scale(); num != want[0] || den != want[1] {
			t.Errorf("%s: %d/%d, expected %v", name, num, den, want)
		}
	}
}

// write puts a project into a new folder.
func write(t *testing.T, b *Board, program map[string][]byte) (dir string, files map[string][]byte) {
	t.Helper()
	files, err := Project(program, b)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, files
}

func build(t *testing.T, b *Board, program map[string][]byte) *Built {
	t.Helper()
	dir, files := write(t, b, program)
	built, err := Build(t.Context(), b, dir, files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// standIn is a program in place of a model's: its inference is loops of known length.
// More is put where an operator would be.
func standIn(more string) map[string][]byte {
	return map[string][]byte{
		"model.h": []byte(standInHeader), "model.c": fmt.Appendf(nil, standInSource, more), "kernels.h": nil,
		"model_data.h": []byte("extern const uint32_t weights[2];\n"),
		"model_data.c": []byte("#include <stdint.h>\n#include \"model_data.h\"\nconst uint32_t weights[2] = {0x01020304, 0x05060708};\n"),
	}
}

const standInHeader = `#include <stdint.h>
extern const char model_name[], model_sha256[];
extern const uint32_t model_arena_bytes, model_weights_bytes, model_ops;
void model_set_inputs(void);
void model_run(void);
uint32_t model_outputs(void);
const void *model_output(uint32_t i, uint32_t *bytes);
const char *model_output_name(uint32_t i);
`

const standInSource = `#include "model.h"
#include "model_data.h"
#include "opmeter.h"
const char model_name[] = "stand-in", model_sha256[] = "00";
const uint32_t model_arena_bytes = 1000, model_weights_bytes = 8, model_ops = 4;
static uint8_t arena[1000];
static uint32_t live = 77;
static void __attribute__((noinline)) loop(uint32_t n) { __asm volatile("1: subs %%0, #1\n bne 1b\n" : "+r"(n)::"cc"); }
void model_set_inputs(void) { arena[0] = 5; }
void model_run(void) {
  opmeter_op_begin(0, "empty"); opmeter_op_end(0);
  opmeter_op_begin(1, "ten"); loop(10); opmeter_op_end(1);
  opmeter_op_begin(2, "thousand"); loop(1000); opmeter_op_end(2);
  opmeter_op_begin(3, "million"); loop(1000000); opmeter_op_end(3);
  %s;
  arena[1] = (uint8_t)live++;
  arena[999] = (uint8_t)weights[live & 1];
}
uint32_t model_outputs(void) { return 1; }
const void *model_output(uint32_t i, uint32_t *bytes) { (void)i; *bytes = 1000; return arena; }
const char *model_output_name(uint32_t i) { (void)i; return "out"; }
`

// counts runs the stand-in for some inferences and returns what each told of its four
// operators, the whole and the agent's own, in ticks.
func counts(t *testing.T, b *Board, inferences int) (hello []uint64, all [][]uint64) {
	t.Helper()
	built := build(t, b, standIn(""))
	var one []uint64
	emulate(t, b, built.ELF, func(f frame) bool {
		switch f.kind {
		case 0:
			t.Errorf("%s: not a frame: %q", b.Name, f.text)
		case kindHello:
			if hello == nil {
				h := frame{content: f.content[3:]}
				hello = h.numbers()
			}
		case kindOp:
			one = append(one, f.numbers()[2])
		case kindEnd:
			n := f.numbers()
			all, one = append(all, append(one, n[1], n[2])), nil
		}
		return len(all) == inferences
	})
	return hello, all
}

// Each board counts instructions and nothing but: loops of two instructions a round, of
// 10, 1000 and 1000000 rounds, differ from each other by exactly that, in every
// inference. What is around a loop is the same each time.
func TestCountsAreInstructions(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	for _, name := range slices.Sorted(maps.Keys(emulated)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := find(t, name)
			num, den := b.Scale()
			hello, all := counts(t, b, 3)
			if hello[1] != uint64(num) || hello[2] != uint64(den) || hello[0] != 0 {
				t.Errorf("the hello has %v, expected no rate and %d/%d", hello, num, den)
			}
			for i, c := range all {
				// To the nearest, since a reading falls between two ticks.
				whole := make([]uint64, len(c))
				for k, v := range c {
					whole[k] = (v*uint64(num) + uint64(den)/2) / uint64(den)
				}
				if whole[2]-whole[1] != 2*990 || whole[3]-whole[1] != 2*999990 {
					t.Errorf("inference %d: operators took %v instructions, expected 1980 and 1999980 more than the second", i, whole[:4])
				}
				// What the agent adds to an operator, and to the inference for one:
				// a limit of the agent, in instructions.
				const most = 200
				if whole[0] > most {
					t.Errorf("an empty operator takes %d instructions, expected at most %d", whole[0], most)
				}
				if rest := whole[4] - whole[5] - whole[0] - whole[1] - whole[2] - whole[3]; rest > 4*most {
					t.Errorf("beside its operators the inference takes %d instructions, expected at most %d", rest, 4*most)
				}
				if first := all[0]; i > 0 {
					for k := range 4 {
						// a tick is a part of an instruction
						if d := int64(c[k]) - int64(first[k]); d < -1 || d > 1 {
							t.Errorf("operator %d took %d ticks and %d", k, first[k], c[k])
						}
					}
				}
			}
		})
	}
}

// An operator may take longer than the counter of 32 bits, which goes round after 168 and 210
// million instructions when each takes 2^10 ns.
func TestRounds(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	for _, name := range []string{"mps2-an385", "mps3-an547"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := find(t, name)
			b.Emulator.Shift = 10
			num, den := b.Scale()
			const loops = 150000000
			built := build(t, b, standIn(fmt.Sprintf(`opmeter_op_begin(4, "long"); loop(%d); opmeter_op_end(4)`, loops)))
			var c []uint64
			emulate(t, b, built.ELF, func(f frame) bool {
				if f.kind == kindOp {
					c = append(c, f.numbers()[2])
				}
				return len(c) == 5
			})
			got := ((c[4]-c[1])*uint64(num) + uint64(den)/2) / uint64(den)
			// Reading across rounds takes the counter's code some instructions more.
			if want := uint64(2 * (loops - 10)); got < want || got > want+10 {
				t.Errorf("%d instructions, expected %d and at most 10 more", got, want)
			}
		})
	}
}

// The agent's own counters do as well: QEMU's DWT does not count, which the agent sees,
// and SysTick then needs its interrupt, which board.c has.
func TestSysTick(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	b := find(t, "mps2-an386")
	b.Counter = Counter{Kind: "systick", Hz: b.Counter.Hz}
	num, den := b.Scale()
	_, all := counts(t, b, 3)
	for i, c := range all {
		got := (c[3] - c[1]) * uint64(num) / uint64(den)
		// The interrupt comes every 2^24 ticks, which are 2.6 million instructions, and
		// takes some tens.
		if got < 1999979 || got > 1999980+100 {
			t.Errorf("inference %d: %d instructions, expected 1999980 and at most an interrupt", i, got)
		}
	}
}

// What lies where: the first values of variables, the arena, the stack.
func TestMemory(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	for _, name := range slices.Sorted(maps.Keys(emulated)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := find(t, name)
			built := build(t, b, standIn(""))
			for _, u := range built.Uses {
				if u.Used <= 0 || u.Used > u.Size {
					t.Errorf("%s: %d bytes of %d", u.Memory, u.Used, u.Size)
				}
			}
			var data []byte
			told := map[string]uint64{}
			emulate(t, b, built.ELF, func(f frame) bool {
				c := f.content
				switch f.kind {
				case kindData:
					h := frame{content: c[4:]} // behind the name "out"
					data = append(data, h.content[len(h.content)-dataBytes(t, h.content):]...)
				case kindMemory:
					h := frame{content: c[1+c[0]:]}
					told[string(c[1:1+c[0]])] = h.numbers()[0]
				}
				return len(told) == 3
			})
			if len(data) != 1000 || data[0] != 5 || data[1] != 77 || data[999] != 0x04 && data[999] != 0x08 {
				t.Errorf("the output has %d bytes: % x", len(data), data[:min(len(data), 4)])
			}
			if told["arena"] != 1000 || told["weights"] != 8 || told["stack"] < 100 || told["stack"] > uint64(b.Stack)/4 {
				t.Errorf("memory is %v", told)
			}
		})
	}
}

// dataBytes reads how many bytes a piece of data has: the fourth number.
func dataBytes(t *testing.T, c []byte) int {
	t.Helper()
	for range 3 { // index, size, offset
		for c[0] >= 0x80 {
			c = c[1:]
		}
		c = c[1:]
	}
	if c[0] >= 0x80 {
		t.Fatal("a piece of more than 127 bytes")
	}
	return int(c[0])
}

// A program that goes wrong says so, also where its stack has run over.
func TestFault(t *testing.T) {
	t.Parallel()
	need(t, compilerName, emulatorName)
	for what, code := range map[string]string{
		"pc 0x":              `__asm volatile("udf #1")`,
		"the stack ran over": `__asm volatile("1: push {r0-r7}\n b 1b")`,
	} {
		// One of each architecture: they know different means against a stack that runs over.
		for _, name := range []string{"mps2-an386", "mps2-an505"} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				b := find(t, name)
				built := build(t, b, standIn(code))
				emulate(t, b, built.ELF, func(f frame) bool {
					if f.kind == kindEnd {
						t.Fatal("the inference came to its end")
					}
					return strings.Contains(f.text, "opmeter: fault of the processor: ") && strings.Contains(f.text, what)
				})
			})
		}
	}
}

// The shipped Makefile builds what Build builds.
func TestMakefile(t *testing.T) {
	t.Parallel()
	need(t, compilerName, "make")
	b := find(t, "mps2-an385")
	dir, files := write(t, b, standIn(""))
	c := exec.CommandContext(t.Context(), "make")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := os.ReadFile(filepath.Join(dir, elfFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), b, dir, files, Options{}); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(dir, elfFile)); err != nil || !bytes.Equal(made, again) {
		t.Errorf("make and Build differ: %d bytes and %d, %v", len(made), len(again), err)
	}
}

// Every board's program builds, those that no one can run here too.
func TestAllBuild(t *testing.T) {
	t.Parallel()
	need(t, compilerName)
	all, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if emulated[b.Name] == "" {
			build(t, b, standIn(""))
		}
	}
}

// TestImage compares the sizes of a program with those of the toolchain's own tool, which counts
// the stack as bss.
func TestImage(t *testing.T) {
	t.Parallel()
	need(t, compilerName)
	size, err := exec.LookPath("arm-none-eabi-size")
	if err != nil {
		t.Skip("arm-none-eabi-size is not installed")
	}
	b := find(t, "mps2-an385")
	path := build(t, b, standIn("")).ELF
	i, err := ReadImage(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(size, path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var text, data, bss int64
	_, line, _ := strings.Cut(string(out), "\n")
	if _, err := fmt.Sscan(line, &text, &data, &bss); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	stack := int64(b.Stack) + handlerStack
	if !strings.HasPrefix(i.Compiler, "GCC: (") {
		t.Errorf("compiler %q", i.Compiler)
	}
	if *i != (Image{text, data, bss - stack, stack, i.Compiler}) || i.Flash() != text+data || i.RAM() != data+bss {
		t.Errorf("%+v, want text %d, data %d, bss %d with a stack of %d", i, text, data, bss, stack)
	}
	if _, err := ReadImage("board_test.go"); err == nil {
		t.Error("sizes of a file that is not a program")
	}
}
