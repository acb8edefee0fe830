// Package board makes the C program of a model one for a board: it reads descriptions
// of boards, writes what start-up code and linker need to know, builds with a compiler
// for Arm and says how an emulator runs what came of it. docs/reference/board-files.md describes the
// format of descriptions.
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
)

// Board is a board by its description.
type Board struct {
	// Name is what --board takes: lower-case letters, digits and dashes.
	Name string `yaml:"name"`
	// Title is the name for people.
	Title string `yaml:"title"`
	// Aliases are other names.
	Aliases []string `yaml:"aliases"`
	// Untested says that the description has not been tried on the board.
	Untested bool `yaml:"untested"`
	// CPU is the processor as the compiler's -mcpu has it.
	CPU string `yaml:"cpu"`
	// Flags are more flags of the compiler: -m…, -O…, -D… only.
	Flags []string `yaml:"flags"`
	// Memories say what lies where.
	Memories []Memory `yaml:"memories"`
	// Stack is the room kept for the stack, in bytes.
	Stack Size `yaml:"stack"`
	// Setup is done before the UART is set up: clocks, pins.
	Setup []Step `yaml:"setup"`
	// UART is what the agent writes to.
	UART UART `yaml:"uart"`
	// Counter is what operators are timed with.
	Counter Counter `yaml:"counter"`
	// Emulator says how QEMU runs the board, nil where it does not.
	Emulator *Emulator `yaml:"emulator"`
}

// Memory is a region of addresses.
type Memory struct {
	Name   string  `yaml:"name"`
	Origin Address `yaml:"origin"`
	Size   Size    `yaml:"size"`
	// Holds lists what the linker puts there: code, weights, stack, data, arena.
	Holds []string `yaml:"holds"`
}

// Roles are what memories hold; each has one memory.
var Roles = []string{"code", "weights", "stack", "data", "arena"}

// Step is a write to a register, or a wait for one.
type Step struct {
	Address Address  `yaml:"address"`
	Offset  *Address `yaml:"offset"` // from the UART's base, in its own writes
	// Value is written whole; Clear and Set change bits and leave the others.
	Value *Address `yaml:"value"`
	Clear Address  `yaml:"clear"`
	Set   Address  `yaml:"set"`
	// Wait waits until the register's bits under Wait are Ready, for a bounded time.
	Wait  Address `yaml:"wait"`
	Ready Address `yaml:"ready"`
	Width Width   `yaml:"width"`
}

// UART is a serial port that takes a byte whenever a status register says so.
type UART struct {
	// Kind is "registers", or "cmsdk" which fills in all but base, clock and speed.
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

// Rate says how the divisor of the speed is written: clock * Factor / speed - Minus,
// rounded to the nearest.
type Rate struct {
	Offset Address `yaml:"offset"`
	Factor Ratio   `yaml:"factor"` // 1 where absent; 0.0625 where the UART samples 16 times
	Minus  Size    `yaml:"minus"`
}

// Data is the register that a byte is written to.
type Data struct {
	Offset Address `yaml:"offset"`
}

// Status is the register that says when: (value & Mask) == Ready.
type Status struct {
	Offset Address `yaml:"offset"`
	Mask   Address `yaml:"mask"`
	Ready  Address `yaml:"ready"`
}

// Counter is what counts time or instructions.
type Counter struct {
	// Kind is "dwt", "systick" or "register".
	Kind    string  `yaml:"kind"`
	Hz      Hertz   `yaml:"hz"`
	Address Address `yaml:"address"` // of a counter of kind register, which has 32 bits
	Down    bool    `yaml:"down"`
	// Rounds is a slow counter that tells how often the fast one went round, nil for none.
	Rounds *Rounds `yaml:"rounds"`
}

// Rounds is a counter of 32 bits that counts up slowly.
type Rounds struct {
	Address Address `yaml:"address"`
	Hz      Hertz   `yaml:"hz"`
}

// Emulator is QEMU's machine for a board.
type Emulator struct {
	Machine string `yaml:"machine"`
	// Shift makes an instruction take 2^Shift ns of the emulator's time.
	Shift Size `yaml:"shift"`
}

// maxFile bounds a description, in bytes.
const maxFile = 64 << 10

// Shipped returns the boards that the program carries, by name.
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
	slices.SortFunc(all, func(a, b *Board) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// ErrUnknown is what [Find] returns for a name that is neither a board nor a file.
var ErrUnknown = errors.New("is no board that is known")

// Find returns the board of a name or of a file that ends in .yaml or .yml.
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

// Scale returns the factor num/den that makes instructions of the counter's ticks under
// the emulator: a tick takes 1/Hz seconds and an instruction 2^shift ns. Both are 0
// where the fraction does not fit.
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
