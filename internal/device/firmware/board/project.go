package board

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/firmware"
)

// Names of the project's files in addition to the program's.
const (
	scriptFile = "board.ld"
	elfFile    = "model.elf"
)

// handlerStack is the space beside the stack, in bytes: for the handlers' stack and a guard of 32
// bytes.
const handlerStack = 1<<10 + 32

// Project adds to a model's program the files that a board needs to run it, and a Makefile. The
// given map is not changed; a name in both is an error.
func Project(program map[string][]byte, b *Board) (map[string][]byte, error) {
	all := make(map[string][]byte, len(program)+8)
	for name, data := range program {
		all[name] = data
	}
	add := func(name string, data []byte) error {
		if _, twice := all[name]; twice && name != "opmeter.h" {
			return fmt.Errorf("the program has a file %s of its own", name)
		}
		all[name] = data
		return nil
	}
	for _, from := range []string{"opmeter.h", "boards/board.c", "boards/memory.c", "boards/main.c"} {
		data, err := firmware.Files.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := add(path.Base(from), data); err != nil {
			return nil, err
		}
	}
	if err := add("board.h", header(b)); err != nil {
		return nil, err
	}
	if err := add(scriptFile, script(b)); err != nil {
		return nil, err
	}
	if err := add("Makefile", makefile(b, all)); err != nil {
		return nil, err
	}
	return all, nil
}

// header writes board.h.
func header(b *Board) []byte {
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	p("/* %s: made from the description of the board. */", b.Name)
	p("#ifndef BOARD_H\n#define BOARD_H\n\n#include <stddef.h>\n#include <stdint.h>\n")
	p("#define BOARD_NAME %q\n", b.Name)
	u := &b.UART
	p("/* The UART: a byte may be written when (status & mask) == ready. */")
	p("#define BOARD_UART_DATA 0x%08Xu", uint32(u.Base+u.Data.Offset))
	p("#define BOARD_UART_STATUS 0x%08Xu", uint32(u.Base+u.Status.Offset))
	p("#define BOARD_UART_WIDTH %d", u.Width)
	p("#define BOARD_UART_MASK 0x%Xu", uint32(u.Status.Mask))
	p("#define BOARD_UART_READY 0x%Xu\n", uint32(u.Status.Ready))
	c := &b.Counter
	hz, num, den, unit := uint32(min(int64(c.Hz), math.MaxUint32)), uint32(1), uint32(1), "OPMETER_CYCLES"
	switch {
	case b.Emulator != nil:
		// Instructions have no rate: they cannot be converted to time.
		hz, unit = 0, "OPMETER_INSTRUCTIONS"
		num, den = b.Scale()
		p("/* Under the emulator the counter's ticks stand for instructions. */")
	case c.Kind == "register":
		unit = "OPMETER_TICKS"
	}
	p("#define BOARD_COUNTER_UNIT %s", unit)
	p("#define BOARD_COUNTER_HZ %du", hz)
	p("#define BOARD_COUNTER_NUM %du", num)
	p("#define BOARD_COUNTER_DEN %du", den)
	if c.Kind == "register" {
		down := 0
		if c.Down {
			down = 1
		}
		p("#define BOARD_COUNTER_ADDRESS 0x%08Xu", uint32(c.Address))
		p("#define BOARD_COUNTER_DOWN %d", down)
		if r := c.Rounds; r != nil {
			p("#define BOARD_ROUNDS_ADDRESS 0x%08Xu", uint32(r.Address))
			p("#define BOARD_ROUNDS_RATIO %du", c.Hz/r.Hz)
		}
	}
	p("\n/* Set-up of clocks, pins and UART: address, bits kept, bits set, wait, width. */")
	p("#define BOARD_STEPS \\")
	for _, st := range b.steps() {
		p("  {0x%08Xu, 0x%08Xu, 0x%08Xu, %d, %d}, \\", st.address, st.keep, st.bits, st.wait, st.width)
	}
	p("  {0, 0, 0, 0, 0}\n")
	p("void board_write(void *user, const uint8_t *data, size_t size);")
	p("uint64_t board_now(void *user);")
	p("uint32_t board_stack_bytes(void);")
	p("uint32_t board_stack_used(void);")
	p("\n#endif")
	return []byte(s.String())
}

// step is an action of board.c at start-up.
type step struct {
	address, keep, bits uint32
	wait, width         int
}

// steps returns the set-up in order: the board's, the UART's speed, the UART's own.
func (b *Board) steps() []step {
	var all []step
	add := func(list []Step) {
		for _, s := range list {
			st := step{address: uint32(s.Address), width: int(s.Width)}
			switch {
			case s.Wait != 0:
				st.wait, st.keep, st.bits = 1, uint32(s.Wait), uint32(s.Ready)
			case s.Value != nil:
				st.bits = uint32(*s.Value)
			default:
				st.keep, st.bits = ^uint32(s.Clear|s.Set), uint32(s.Set)
			}
			all = append(all, st)
		}
	}
	add(b.Setup)
	if u := &b.UART; u.Divisor != nil {
		all = append(all, step{address: uint32(u.Base + u.Divisor.Offset), bits: uint32(u.divisor()), width: int(u.Width)})
	}
	add(b.UART.Writes)
	return all
}

// script writes the linker script.
func script(b *Board) []byte {
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	p("/* %s: made from the description of the board. */", b.Name)
	p("ENTRY(board_reset)\n\nMEMORY\n{")
	for _, m := range b.Memories {
		p("  %s : ORIGIN = 0x%08X, LENGTH = %d", m.Name, uint32(m.Origin), m.Size)
	}
	p("}\n\nSECTIONS\n{")
	in := func(role string) string { return b.memory(role).Name }
	// If two roles share a memory, this is their order in it. Vectors come first. The stack is at
	// the start of its memory, so that an overflow leaves the memory and faults instead of
	// overwriting variables.
	p("  .vectors : { KEEP(*(.vectors)) } > %s", in("code"))
	p("  .stack (NOLOAD) : ALIGN(32)\n  {\n    board_guard = .;\n    . += 32;\n    board_stack_start = .;\n    . += %d;\n    board_stack_end = .;\n    . += %d;\n    board_handlers_end = .;\n  } > %s", b.Stack, handlerStack-32, in("stack"))
	p("  .text : ALIGN(4) { *(.text .text.*) *(EXCLUDE_FILE(*model_data.o) .rodata EXCLUDE_FILE(*model_data.o) .rodata.*) } > %s", in("code"))
	p("  .weights : ALIGN(16) { *model_data.o(.rodata .rodata.*) } > %s", in("weights"))
	p("  .data : ALIGN(4)\n  {\n    board_data_start = .;\n    *(.data .data.*)\n    . = ALIGN(4);\n    board_data_end = .;\n  } > %s AT > %s", in("data"), in("code"))
	p("  board_data_load = LOADADDR(.data);")
	p("  .bss (NOLOAD) : ALIGN(16)\n  {\n    board_bss_start = .;\n    *(EXCLUDE_FILE(*model.o) .bss EXCLUDE_FILE(*model.o) .bss.* COMMON)\n    . = ALIGN(4);\n    board_bss_end = .;\n  } > %s", in("data"))
	p("  .arena (NOLOAD) : ALIGN(16)\n  {\n    board_arena_start = .;\n    *model.o(.bss .bss.*)\n    . = ALIGN(4);\n    board_arena_end = .;\n  } > %s", in("arena"))
	p("  /DISCARD/ : { *(.ARM.exidx* .ARM.extab* .eh_frame*) }")
	p("}")
	return []byte(s.String())
}

// flagList returns the compiler flags for every file of a project.
func (b *Board) flagList() []string {
	f := []string{"-mcpu=" + b.CPU, "-mthumb"}
	f = append(f, b.Flags...)
	return append(f, "-std=c99", "-O2", "-g", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections", "-fno-common",
		"-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-I.")
}

// linkFlags returns the linker flags; libraries come last.
func (b *Board) linkFlags() (flags, libraries []string) {
	return []string{"-nostartfiles", "-nodefaultlibs", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-T", scriptFile},
		[]string{"-Wl,--start-group", "-lm", "-lc", "-lgcc", "-Wl,--end-group"}
}

// sources returns the C files of a project in order.
func sources(files map[string][]byte) []string {
	var list []string
	for name := range files {
		if path.Ext(name) == ".c" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func objectOf(source string) string { return strings.TrimSuffix(source, ".c") + ".o" }

// makefile writes a Makefile that does the same as [Build].
func makefile(b *Board, files map[string][]byte) []byte {
	var s strings.Builder
	link, libs := b.linkFlags()
	fmt.Fprintf(&s, "# Builds the program for %s: make\n", b.Name)
	s.WriteString("CC = arm-none-eabi-gcc\n")
	fmt.Fprintf(&s, "CFLAGS = %s\n", strings.Join(b.flagList(), " "))
	fmt.Fprintf(&s, "LDFLAGS = %s\n", strings.Join(link, " "))
	fmt.Fprintf(&s, "LDLIBS = %s\n", strings.Join(libs, " "))
	s.WriteString("OBJECTS =")
	for _, f := range sources(files) {
		s.WriteString(" " + objectOf(f))
	}
	fmt.Fprintf(&s, "\n\n%s: $(OBJECTS) %s\n\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)\n", elfFile, scriptFile)
	s.WriteString("\n%.o: %.c board.h model.h model_data.h kernels.h opmeter.h\n\t$(CC) $(CFLAGS) -c -o $@ $<\n")
	if b.Emulator != nil {
		fmt.Fprintf(&s, "\nrun: %s\n\t%s\n", elfFile, strings.Join(b.emulatorArgs(elfFile), " "))
	}
	fmt.Fprintf(&s, "\nclean:\n\trm -f $(OBJECTS) %s\n\n.PHONY: clean run\n", elfFile)
	return []byte(s.String())
}

// emulatorArgs returns the command line that runs a program.
func (b *Board) emulatorArgs(elf string) []string {
	// Without -nic the machine would open a network interface.
	return []string{
		"qemu-system-arm", "-M", b.Emulator.Machine, "-nic", "none", "-display", "none", "-monitor", "none",
		"-chardev", "stdio,id=uart,signal=off", "-serial", "chardev:uart",
		"-icount", fmt.Sprintf("shift=%d", b.Emulator.Shift), "-kernel", elf,
	}
}
