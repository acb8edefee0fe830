// Package capture reads a Sophgo profile directory: which chip it is of, what its
// engines recorded, which command each record is of, and when it ran on one axis.
// What a profile makes of it is package tpu's.
package capture

import (
	"iter"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/axis"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

// Recording is what a directory holds.
type Recording struct {
	// Chip is the processor, ChipFrom what says so: "option", "global.profile",
	// "final.mlir" or "records".
	Chip     *command.Chip
	ChipFrom string
	// Says holds what each source says of the chip where they disagree.
	Says []string

	Log       *compiler.Log       // never nil
	Estimate  *compiler.Estimate  // nil if absent
	Locations *compiler.Locations // nil if absent
	Program   *compiler.Program   // nil if absent

	// Steps are the subnets' runs in order.
	Steps []*Step
	// Missing are numbers of steps between those that are there.
	Missing []int
	// Drivers are recordings of the driver.
	Drivers []*Driver
	// Clock says how times were made of cycles.
	Clock Clock
	// Files is the number of files that were read.
	Files int
	// Dropped counts what was left out, Guesses tells what had to be assumed.
	Dropped runlog.Dropped
	Guesses []string

	streams  map[StreamKey]*record.File
	byEngine map[logKey][]int32
}

// Clock says how the counters became seconds.
type Clock struct {
	// TIU and DMA are the clocks in hertz, TIUMethod and DMAMethod where they come from.
	TIU, DMA             float64
	TIUMethod, DMAMethod string
	// Given says that the user gave both.
	Given bool
	// Ratio is TIU over DMA.
	Ratio axis.Ratio
	// NominalTIU and NominalDMA are what the chip's documents or the file state.
	NominalTIU, NominalDMA float64
}

// Step is one run of a subnet.
type Step struct {
	// Number of the step in its launch.
	Number int
	// Info is what the runtime says of it; absent where HasInfo is false.
	Info    block.Step
	HasInfo bool
	// Cores in the order of their blocks.
	Cores []*Core
	// Base is where the step's axis begins on that of the recording, Length how long its
	// records last, seconds.
	Base, Length float64
	// Iteration numbers the inference.
	Iteration int
	// CoresFound is false where the blocks do not tell which core they are of.
	CoresFound bool
}

// Dynamic reports whether the firmware issued the subnet's commands.
func (s *Step) Dynamic() bool {
	return s.HasInfo && s.Info.Kind == block.OnTPU && s.Info.Extra == 1
}

// Subnet returns the number of the subnet, 0 if it is unknown.
func (s *Step) Subnet() int32 {
	if !s.HasInfo {
		return 0
	}
	return int32(s.Info.Subnet)
}

// Core is what one core recorded.
type Core struct {
	// Index is its place among the step's cores, Number the core's own.
	Index, Number int
	Streams       block.Streams
	HasStreams    bool
	Engines       []*Engine
	Firmware      Firmware
	// Offset is the tensor engine's place on the axis of the copies, as package axis
	// found it; Shift is what was added to the core's times, seconds, and ShiftMethod
	// how that was found.
	Offset      axis.Offset
	Shift       float64
	ShiftMethod string
	// Aligned is false where nothing tells how the engines' counters stand to each other.
	Aligned bool
}

// Engine returns the core's engine of a kind, nil where it has none.
func (c *Core) Engine(k command.Engine) *Engine {
	for _, e := range c.Engines {
		if e.Kind == k {
			return e
		}
	}
	return nil
}

// Unit is an engine of a recording with the step and the core that it belongs to.
type Unit struct {
	Step *Step
	Core *Core
	*Engine
}

// Cores yields the cores of all steps.
func (r *Recording) Cores() iter.Seq2[*Step, *Core] {
	return func(yield func(*Step, *Core) bool) {
		for _, s := range r.Steps {
			for _, c := range s.Cores {
				if !yield(s, c) {
					return
				}
			}
		}
	}
}

// Units yields the engines of all steps and cores.
func (r *Recording) Units() iter.Seq[Unit] {
	return func(yield func(Unit) bool) {
		for s, c := range r.Cores() {
			for _, e := range c.Engines {
				if !yield(Unit{s, c, e}) {
					return
				}
			}
		}
	}
}

// Firmware is what the firmware of a core recorded.
type Firmware struct {
	Records []block.Dyn
	Issues  []block.Issue
	Extras  map[uint32][]block.Extra
	// TickS is the length of a tick, seconds; Valid is false where the record does not
	// say and it was assumed.
	TickS float64
	Valid bool
}

// Class says what a record is of.
type Class uint8

// Classes of records.
const (
	Work    Class = iota // a command of the model
	Sync                 // a command that orders engines: messages, ends
	Runtime              // a copy of inputs or outputs by the runtime
)

// Engine is what the monitor of one engine recorded. Slices have an entry for each
// record unless they are nil.
type Engine struct {
	Kind command.Engine
	// Port of a chip-to-chip engine.
	Port int
	// ID is the number of the command from 0, wraps of the counter undone.
	ID []uint32
	// Start and End are cycles, wraps undone.
	Start, End []int64
	// Useful is the cycles of useful work of tensor commands, Conflicts those of bank
	// conflicts, Stall those in which the engine waited for memory.
	Useful, Conflicts, Stall []int64
	// Bytes that went through the ports, by memory.
	DDRWrite, DDRRead, LocalWrite, LocalRead, L2Write, L2Read []int64
	// ReadBursts and WriteBursts are numbers of requests to DDR.
	ReadBursts, WriteBursts []int64
	// Thread is the hardware thread.
	Thread []uint8

	// Program is what the engine was to do, empty where that is not known.
	Program Program
	// Issued are the commands that the firmware gave it.
	Issued []Issued
	// Command is the place in Program of each record, Issue that in Issued, -1 for none.
	Command, Issue []int32
	Class          []Class
	// Begin and Finish are seconds on the axis of the step.
	Begin, Finish []float64
	// Record is the record of each command of Program, -1 for none.
	Record []int32
	// Lost counts commands of the model without a record.
	Lost int
	// Matched says that records were matched with a program.
	Matched bool
	// Repeats says that the counters of useful cycles and stalls repeat the length of each
	// command, and were left out.
	Repeats bool
}

// Len is the number of records.
func (e *Engine) Len() int { return len(e.Start) }

// Program is what an engine was to do, by its command stream or the compiler's log.
type Program struct {
	// Commands are decoded commands, fewer than the program has where decoding ended early
	// and none where only the log tells.
	Commands []command.Command
	// Dep is the number of the other engine's command that each one waits for, counted
	// from 1, wraps undone; 0 for none.
	Dep []uint32
	// Func is the code of each command's function, System marks those that order
	// engines.
	Func   []uint8
	System []bool
	// Sections are the places at which numbering begins again, the first one 0.
	Sections []int
	// Lines are the lines of the log by command, nil where there is no log of it.
	Lines []int32
	// Agree and Disagree count commands whose function in the log and in the stream are
	// the same, or not.
	Agree, Disagree int
	// Stop says where decoding ended early.
	Stop *command.Stop
	// FromLog says that there is no stream.
	FromLog bool
}

// Len is the number of commands.
func (p *Program) Len() int { return len(p.Dep) }

// section returns the bounds of the section that a command is in.
func (p *Program) section(i int) int {
	for s := len(p.Sections) - 1; s > 0; s-- {
		if i >= p.Sections[s] {
			return s
		}
	}
	return 0
}

func (p *Program) bounds(s int) (lo, hi int) {
	hi = p.Len()
	if s+1 < len(p.Sections) {
		hi = p.Sections[s+1]
	}
	return p.Sections[s], hi
}

// Issued is a command that the firmware gave to an engine.
type Issued struct {
	// Number of the command from 1, Func and Sub its codes (-1 where the record does not
	// say).
	Number    uint32
	Func, Sub int
	// Dep is the number of the other engine's command that it waits for, 0 for none.
	Dep uint32
	// Cmd is the command itself where the firmware noted it.
	Cmd *command.Command
	// At is the record of the firmware.
	At int
	// Layer is what the firmware says of the layer that the command is of; nil for
	// none.
	Layer *block.Func
}

// Driver is a recording of the driver, or of a program that called it.
type Driver struct {
	File   string
	Calls  block.Driver
	Extras []block.Extra
}
