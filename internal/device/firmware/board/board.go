// Package board turns the C program of a model into firmware for a board. It reads board
// descriptions, writes the start-up configuration and linker script, builds with an Arm compiler,
// and returns the emulator's command line. The format of descriptions is in
// docs/reference/board-files.md.
package board

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/firmware"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Board is a board description.
type Board struct {
	// Name is the name for --board: lower-case letters, digits and dashes.
	Name string `yaml:"name"`
	// Title is the display name.
	Title string `yaml:"title"`
	// Aliases are other names.
	Aliases []string `yaml:"aliases"`
	// Untested says that the description was not tested on the board.
	Untested bool `yaml:"untested"`
	// CPU is the processor as named by the compiler's -mcpu.
	CPU string `yaml:"cpu"`
	// Flags are additional compiler flags: -m…, -O…, -D… only.
	Flags []string `yaml:"flags"`
	// Memories are the memory regions.
	Memories []Memory `yaml:"memories"`
	// Stack is the stack size in bytes.
	Stack Size `yaml:"stack"`
	// Setup is executed before the UART is set up: clocks, pins.
	Setup []Step `yaml:"setup"`
	// UART is the port that the agent writes to.
	UART UART `yaml:"uart"`
	// Counter is the counter that times operators.
	Counter Counter `yaml:"counter"`
	// Emulator configures QEMU for the board, nil if it is not supported.
	Emulator *Emulator `yaml:"emulator"`
}

// Memory is a region of addresses.
type Memory struct {
	Name   string  `yaml:"name"`
	Origin Address `yaml:"origin"`
	Size   Size    `yaml:"size"`
	// Holds lists what the linker places there: code, weights, stack, data, arena.
	Holds []string `yaml:"holds"`
}

// Roles are the possible contents of memories; each is in exactly one memory.
var Roles = []string{"code", "weights", "stack", "data", "arena"}

// Step is a write to a register, or a wait for one.
type Step struct {
	Address Address  `yaml:"address"`
	Offset  *Address `yaml:"offset"` // from the UART's base, in its own writes
	// Value replaces the register; Clear and Set change single bits.
	Value *Address `yaml:"value"`
	Clear Address  `yaml:"clear"`
	Set   Address  `yaml:"set"`
	// Wait polls, for a limited time, until the register's bits under Wait equal Ready.
	Wait  Address `yaml:"wait"`
	Ready Address `yaml:"ready"`
	Width Width   `yaml:"width"`
}

// UART is a serial port that accepts a byte when a status register says so.
type UART struct {
	// Kind is "registers", or "cmsdk", which sets everything but base, clock and speed.
	Kind    string  `yaml:"kind"`
	Base    Address `yaml:"base"`
	Clock   Hertz   `yaml:"clock"`
	Speed   Size    `yaml:"speed"` // baud
	Width   Width   `yaml:"width"` // of its registers, in bits
	Divisor *Rate   `yaml:"divisor"`
	Writes  []Step  `yaml:"writes"` // after the divisor
	Data    *Data   `yaml:"data"`
	Status  *Status `yaml:"status"`
}

// Rate describes how the baud rate divisor is written: clock * Factor / speed - Minus, rounded to
// the nearest.
type Rate struct {
	Offset Address `yaml:"offset"`
	Factor Ratio   `yaml:"factor"` // 1 where absent; 0.0625 where the UART samples 16 times
	Minus  Size    `yaml:"minus"`
}

// Data is the register that bytes are written to.
type Data struct {
	Offset Address `yaml:"offset"`
}

// Status is the register that says when a byte may be written: (value & Mask) == Ready.
type Status struct {
	Offset Address `yaml:"offset"`
	Mask   Address `yaml:"mask"`
	Ready  Address `yaml:"ready"`
}

// Counter is a counter of time or instructions.
type Counter struct {
	// Kind is "dwt", "systick" or "register".
	Kind    string  `yaml:"kind"`
	Hz      Hertz   `yaml:"hz"`
	Address Address `yaml:"address"` // of a counter of kind register, which has 32 bits
	Down    bool    `yaml:"down"`
	// Rounds is a slow counter that counts the wrap-arounds of the fast one, nil for none.
	Rounds *Rounds `yaml:"rounds"`
}

// Rounds is a slow 32-bit up-counter.
type Rounds struct {
	Address Address `yaml:"address"`
	Hz      Hertz   `yaml:"hz"`
}

// Emulator is QEMU's machine for a board.
type Emulator struct {
	Machine string `yaml:"machine"`
	// Shift sets the emulated time of an instruction to 2^Shift ns.
	Shift Size `yaml:"shift"`
}

// maxFile bounds a description, in bytes.
const maxFile = 64 << 10

// Shipped returns the boards embedded in the program, by name.
func Shipped() ([]*Board, error) {
	names, err := fs.Glob(firmware.Files, "boards/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Board
	for _, n := range names {
		data, err := firmware.Files.ReadFile(n)
		if err != nil {
			return nil, err
		}
		b, err := Parse(data, path.Base(n))
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	sorting.Func(all, func(a, b *Board) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// ErrUnknown is returned by [Find] for a name that is neither a board nor a file.
var ErrUnknown = errors.New("is not a known board")

// Find returns the board with a name, or from a file that ends in .yaml or .yml.
func Find(name string) (*Board, error) {
	if ext := strings.ToLower(filepath.Ext(name)); ext == ".yaml" || ext == ".yml" {
		data, err := infile.Read(name, maxFile)
		if err != nil {
			return nil, err
		}
		return Parse(data, name)
	}
	all, err := Shipped()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, b := range all {
		if b.Name == name || slices.Contains(b.Aliases, name) {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return nil, fmt.Errorf("%q %w; there are %s, or name a description FILE.yaml", name, ErrUnknown, strings.Join(names, ", "))
}

// memory returns the memory that holds a role.
func (b *Board) memory(role string) *Memory {
	for i := range b.Memories {
		if slices.Contains(b.Memories[i].Holds, role) {
			return &b.Memories[i]
		}
	}
	return nil
}

// Scale returns the factor num/den from the counter's ticks to instructions under the emulator: a
// tick takes 1/Hz seconds and an instruction 2^shift ns. Both are 0 if the fraction does not fit.
func (b *Board) Scale() (num, den uint32) {
	n, d := uint64(1e9), uint64(b.Counter.Hz)<<uint(b.Emulator.Shift)
	g := gcd(n, d)
	if d/g > math.MaxUint32 {
		return 0, 0
	}
	return uint32(n / g), uint32(d / g)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
