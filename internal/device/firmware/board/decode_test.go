package board

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/firmware"
)

// good is a description with everything in it.
const good = `name: my-board
title: A board
cpu: cortex-m4
flags: [-mfloat-abi=hard]
memories:
  - {name: flash, origin: 0x08000000, size: 1MiB, holds: [code, weights]}
  - {name: ram, origin: 0x20000000, size: 128KiB, holds: [stack, data, arena]}
stack: 8KiB
setup:
  - {address: 0x40021058, set: 0x10000000}
  - {address: 0x40021000, wait: 0x2, ready: 0x2}
  - {address: 0x4002100C, value: 7, width: 16}
uart:
  kind: registers
  base: 0x40008000
  clock: 4MHz
  speed: 9600
  width: 16
  divisor: {offset: 0x0C, factor: 0.0625, minus: 1}
  writes:
    - {offset: 0, value: 9}
    - {offset: 4, clear: 0xF0, set: 0x50}
  data: {offset: 0x28}
  status: {offset: 0x1C, mask: 0x80, ready: 0x80}
counter: {kind: register, address: 0x40000024, down: true, hz: 1MHz, rounds: {address: 0x40000100, hz: 32}}
`

// What a description comes to in board.h, worked out by hand: the divisor is
// 4000000/16/9600 - 1 = 25.04, rounded before the 1 is taken off.
func TestHeader(t *testing.T) {
	t.Parallel()
	b, err := Parse([]byte(good), "dir/my-board.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := string(header(b))
	for _, want := range []string{
		`#define BOARD_NAME "my-board"`,
		"#define BOARD_UART_DATA 0x40008028u", "#define BOARD_UART_STATUS 0x4000801Cu", "#define BOARD_UART_WIDTH 16",
		"#define BOARD_UART_MASK 0x80u", "#define BOARD_UART_READY 0x80u",
		"#define BOARD_COUNTER_UNIT OPMETER_TICKS", "#define BOARD_COUNTER_HZ 1000000u", "#define BOARD_COUNTER_NUM 1u",
		"#define BOARD_COUNTER_ADDRESS 0x40000024u", "#define BOARD_COUNTER_DOWN 1",
		"#define BOARD_ROUNDS_ADDRESS 0x40000100u", "#define BOARD_ROUNDS_RATIO 31250u",
		`#define BOARD_STEPS \
  {0x40021058u, 0xEFFFFFFFu, 0x10000000u, 0, 32}, \
  {0x40021000u, 0x00000002u, 0x00000002u, 1, 32}, \
  {0x4002100Cu, 0x00000000u, 0x00000007u, 0, 16}, \
  {0x4000800Cu, 0x00000000u, 0x00000019u, 0, 16}, \
  {0x40008000u, 0x00000000u, 0x00000009u, 0, 16}, \
  {0x40008004u, 0xFFFFFF0Fu, 0x00000050u, 0, 16}, \
  {0, 0, 0, 0, 0}
`,
	} {
		if !strings.Contains(h, want) {
			t.Errorf("board.h lacks %s\n%s", want, h)
		}
	}
}

// Each fault is told with its line and with what was expected.
func TestFaultsOfDescriptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		line     int
		key, say string
	}{
		{"name: my-board", "name: My Board", 1, "name", "lower-case"},
		{"cpu: cortex-m4", "cpu: cortex m4", 3, "cpu", "-mcpu"},
		{"cpu: cortex-m4", "gpu: cortex-m4", 3, "gpu", "not a key"},
		{"[-mfloat-abi=hard]", "[-fplugin=x.so]", 4, "flags[0]", "-m, -O or -D"},
		{"[-mfloat-abi=hard]", "[-mx;y]", 4, "flags[0]", "-m, -O or -D"},
		{"size: 1MiB", "size: 1MB5", 6, "memories[0].size", "integer"},
		{"size: 1MiB", "size: 1.5B", 6, "memories[0].size", "integer"},
		{"size: 1MiB", "size: -1", 6, "memories[0].size", "integer"},
		{"size: 1MiB", "size: 4GiB", 6, "memories[0].size", "32-bit addresses"},
		{"name: ram", "name: flash", 7, "memories[1].name", "a name of its own"},
		{"stack, data, arena", "stack, data", 5, "memories", "no memory holds arena"},
		{"stack, data, arena", "stack, data, arena, code", 7, "memories[1].holds", "flash holds too"},
		{"stack, data, arena", "stack, data, arenas", 7, "memories[1].holds", "code, weights"},
		{"stack: 8KiB", "stack: 128KiB", 8, "stack", "fits into ram"},
		{"set: 0x10000000}", "set: 1, value: 2}", 10, "setup[0]", "one of"},
		{"address: 0x40021000, wait", "wait", 11, "setup[1]", "no address"},
		{"0x4002100C, value", "0x4002100D, value", 12, "setup[2]", "no register of 16 bits"},
		{"value: 7, width: 16", "value: 7, width: 24", 12, "setup[2].width", "8, 16 or 32"},
		{"kind: registers", "kind: uarte", 14, "uart.kind", "DMA"},
		{"base: 0x40008000", "base: 0x140008000", 15, "uart.base", "32-bit"},
		{"clock: 4MHz", "clock: 4kHz", 19, "uart.divisor", "1 to 2^32 - 1"},
		{"clock: 4MHz", "clock: fast", 16, "uart.clock", "25MHz"},
		{"speed: 9600", "speed: 12", 17, "uart.speed", "300"},
		{"  data: {offset: 0x28}\n", "", 13, "uart.data", "missing"},
		{"mask: 0x80, ready: 0x80", "mask: 0x80, ready: 0x40", 24, "uart.status.mask", "bits"},
		{"kind: register,", "kind: hpet,", 25, "counter.kind", "dwt, systick or register"},
		{"hz: 32}", "hz: 1MHz}", 25, "counter.rounds", "half of counter.hz"},
		{"down: true", "down: yes", 25, "counter.down", "true or false"},
		{"title: A board", "title: A board\ntitle: B", 3, "title", "twice"},
		{"title: A board", "title: {a: b}", 2, "title", "a text"},
		{"title: A board", "title: A board\nemulator: {machine: m, shift: 11}", 3, "emulator.shift", "at most 10"},
		{"hz: 32}}", "hz: 32}}\nemulator: {machine: m, shift: 3}", 26, "emulator.shift", "at least 2"},
		{"title: A board", "title: A board\nemulator: {machine: 'm -monitor', shift: 1}", 3, "emulator.machine", "qemu-system-arm"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Fatalf("%q is not in the description", c.from)
		}
		_, err := Parse([]byte(text), "b.yaml")
		e, ok := errors.AsType[*FileError](err)
		if !ok || e.Line != c.line || e.Key != c.key || !strings.Contains(e.Text, c.say) {
			t.Errorf("%q instead of %q: %v; expected line %d, %s, %q", c.to, c.from, err, c.line, c.key, c.say)
		}
	}
	for _, text := range []string{"", "[]", "a: [", "- x", strings.Repeat("a", maxFile+1), "name: &a x\ntitle: *a\n"} {
		if _, err := Parse([]byte(text), "b.yaml"); err == nil {
			t.Errorf("%.20q is a board", text)
		}
	}
}

// The same board gives the same files.
func TestProjectIsDeterministic(t *testing.T) {
	t.Parallel()
	b := find(t, "mps2-an505")
	one, err := Project(standIn(""), b)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Project(standIn(""), b)
	if err != nil || !maps.EqualFunc(one, two, slices.Equal[[]byte]) {
		t.Errorf("two projects differ: %v", err)
	}
	if _, err := Project(map[string][]byte{"board.c": nil}, b); err == nil {
		t.Error("a program's own board.c was replaced")
	}
}

// A model that is too large is refused with numbers, before the build where they are known.
func TestFits(t *testing.T) {
	t.Parallel()
	b := find(t, "nucleo-l4r5zi")
	const flash, ram = 2 << 20, 640 << 10
	if err := b.Fits(flash, ram-16<<10-handlerStack); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		weights, arena int64
		say            string
	}{
		{flash + 1, 0, "its memory flash has 2097152 bytes, needed are at least 2097153 (weights 2097153)"},
		{0, ram, "its memory ram has 655360 bytes, needed are at least 672800 (stack 17440, arena 655360)"},
	} {
		if err := b.Fits(c.weights, c.arena); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v; expected %s", err, c.say)
		}
	}
	need(t, compilerName)
	for i := range b.Memories {
		b.Memories[i].Size = 2 << 10
	}
	b.Stack = 1 << 10
	dir, files := write(t, b, standIn(""))
	_, err := Build(t.Context(), b, dir, files, Options{})
	if err == nil || !strings.Contains(err.Error(), "the model does not fit nucleo-l4r5zi: its memory flash has 2048 bytes, needed are ") ||
		!strings.Contains(err.Error(), "its memory ram has 2048 bytes, needed are ") {
		t.Error(err)
	}
}

// What is missing is named with what to install.
func TestMissing(t *testing.T) {
	t.Parallel()
	b := find(t, "mps2-an385")
	_, err := Build(t.Context(), b, t.TempDir(), nil, Options{GCC: "no-such-compiler"})
	if e, ok := errors.AsType[*MissingError](err); !ok || !strings.Contains(e.Error(), "gcc-arm-none-eabi") {
		t.Error(err)
	}
	if _, err := find(t, "nucleo-l4r5zi").Emulate("x"); err == nil || !strings.Contains(err.Error(), "no emulator") {
		t.Error(err)
	}
}

// Whatever a description says, it is refused or gives C, a linker's script and a Makefile in
// which nothing stands that a description could smuggle in.
func FuzzParse(f *testing.F) {
	names, err := fs.Glob(firmware.Files, "boards/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range names {
		data, err := firmware.Files.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Parse(data, "b.yaml")
		if err != nil {
			return
		}
		files, err := Project(standIn(""), b)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"board.h", scriptFile, "Makefile"} {
			if i := strings.IndexFunc(string(files[name]), func(r rune) bool { return r > '~' || r < ' ' && r != '\n' && r != '\t' }); i >= 0 {
				t.Errorf("%s has %q", name, files[name][i:min(i+20, len(files[name]))])
			}
			if strings.ContainsAny(string(files[name]), "`;&") && name == "Makefile" {
				t.Errorf("the Makefile has signs of a shell:\n%s", files[name])
			}
		}
		for _, role := range Roles {
			if b.memory(role) == nil {
				t.Errorf("no memory holds %s", role)
			}
		}
	})
}
