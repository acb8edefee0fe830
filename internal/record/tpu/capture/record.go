// Package capture reads a Sophgo profile directory: the chip, the records of its engines, the
// command of each record, and the time of each record on one axis. Package tpu makes the profile.
package capture

import (
	"iter"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/axis"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

// Recording is the content of a directory.
type Recording struct {
	Chip *command.Chip
	// ChipFrom is the source of Chip: "option", "global.profile", "final.mlir" or "records".
	ChipFrom string
	Says     []string // contradicting statements of other sources

	Log       *compiler.Log       // never nil
	Estimate  *compiler.Estimate  // nil if absent
	Locations *compiler.Locations // nil if absent
	Program   *compiler.Program   // nil if absent

	Steps   []*Step   // the subnets' runs in order
	Missing []int     // numbers of steps without a file
	Drivers []*Driver // recordings of the driver
	Clock   Clock
	Files   int // number of files read
	// Dropped counts the parts that were left out, Guesses describes assumptions.
	Dropped runlog.Dropped
	Guesses []string

	raw      bool // keep the payloads of blocks
	streams  map[StreamKey]*record.File
	byEngine map[logKey][]int32
}

// Clock contains the clocks by which cycles became seconds.
type Clock struct {
	TIU, DMA               float64    // hertz
	TIUMethod, DMAMethod   string     // sources of the clocks
	Given                  bool       // the user gave both
	Ratio                  axis.Ratio // TIU over DMA
	NominalTIU, NominalDMA float64    // as stated by the chip's documents or the file
}

// Step is one run of a subnet.
type Step struct {
	Number       int // in its launch
	Info         block.Step
	HasInfo      bool
	Cores        []*Core // in the order of their blocks
	Base, Length float64 // begin on the axis of the recording, and duration of the records, in seconds
	Iteration    int     // number of the inference
	CoresFound   bool    // the blocks tell the core of each monitor
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

// Core contains the records of one core.
type Core struct {
	Index, Number int // place among the step's cores, and the core's own number
	Streams       block.Streams
	HasStreams    bool
	Engines       []*Engine
	Firmware      Firmware
	Offset        axis.Offset // place of the tensor engine on the axis of the copies
	Shift         float64     // seconds added to the core's times
	ShiftMethod   string
	Aligned       bool // dependencies tell the relation of the engines' counters
}

// Engine returns the core's engine of a kind, nil if it has none.
func (c *Core) Engine(k command.Engine) *Engine {
	if i := slices.IndexFunc(c.Engines, func(e *Engine) bool { return e.Kind == k }); i >= 0 {
		return c.Engines[i]
	}
	return nil
}

// engine returns the core's engine of a kind. It adds the engine if the core has none.
func (c *Core) engine(k command.Engine) *Engine {
	e := c.Engine(k)
	if e == nil {
		e = &Engine{Kind: k}
		c.Engines = append(c.Engines, e)
	}
	return e
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

// Firmware contains the records of the firmware of a core.
type Firmware struct {
	Records []block.Dyn
	Issues  []block.Issue
	Extras  map[uint32][]block.Extra
	Raw     []byte  // payload of DYN_DATA, only from [ReadRaw]
	TickS   float64 // length of a tick in seconds
	Valid   bool    // the record states the tick
}

// Class is the kind of a record.
type Class uint8

// Classes of records.
const (
	Work    Class = iota // a command of the model
	Sync                 // a command that orders engines: messages, ends
	Runtime              // a copy of inputs or outputs by the runtime
)

// Engine contains the records of the monitor of one engine. Slices are nil or have an element for
// each record.
type Engine struct {
	Kind       command.Engine
	Port       int      // of a chip-to-chip engine
	Raw        []byte   // payload of the block, only from [ReadRaw]
	ID         []uint32 // number of the command from 0, without wraps
	Start, End []int64  // cycles, without wraps
	// Useful are the cycles of useful work of tensor commands, Conflicts those of bank conflicts,
	// Stall those in which the engine waited for memory.
	Useful, Conflicts, Stall []int64
	// Bytes at the ports, by memory.
	DDRWrite, DDRRead, LocalWrite, LocalRead, L2Write, L2Read []int64
	ReadBursts, WriteBursts                                   []int64 // requests to DDR
	Thread                                                    []uint8 // hardware thread

	Program        Program  // empty if unknown
	Issued         []Issued // commands that the firmware issued
	Command, Issue []int32  // place of each record in Program and in Issued, -1 for none
	Class          []Class
	Begin, Finish  []float64 // seconds on the axis of the step
	Record         []int32   // record of each command of Program, -1 for none
	Lost           int       // commands of the model without a record
	Matched        bool      // records were matched with a program
	// Repeats means that the counters of useful cycles and stalls repeat the length of each command.
	// They are left out.
	Repeats bool
}

// Len returns the number of records.
func (e *Engine) Len() int { return len(e.Start) }

// Program contains the commands of an engine from its command stream or the compiler's log.
type Program struct {
	// Commands are the decoded commands: fewer than the program has if decoding ended early, none
	// for a program from the log.
	Commands []command.Command
	// Dep is the number of the other engine's command to wait for, from 1, without wraps, 0 for none.
	Dep      []uint32
	Func     []uint8 // number of the function
	System   []bool  // a command that orders engines
	Sections []int   // places where the numbers restart, the first one 0
	Lines    []int32 // lines of the log by command, nil without a log
	// Agree and Disagree count commands by the agreement of log and stream on the function.
	Agree, Disagree int
	Stop            *command.Stop // where decoding ended early
	Embedded        bool          // the file of records contains the stream
}

// Len returns the number of commands.
func (p *Program) Len() int { return len(p.Dep) }

func (p *Program) section(i int) int {
	s, found := slices.BinarySearch(p.Sections, i)
	if !found {
		s--
	}
	return s
}

// bounds returns the first command of a section and the end of the section.
func (p *Program) bounds(s int) (lo, hi int) {
	hi = p.Len()
	if s+1 < len(p.Sections) {
		hi = p.Sections[s+1]
	}
	return p.Sections[s], hi
}

// Issued is a command that the firmware issued to an engine.
type Issued struct {
	Number    uint32           // from 1
	Func, Sub int              // numbers of the function, -1 if unknown
	Dep       uint32           // number of the other engine's command to wait for, 0 for none
	Cmd       *command.Command // nil if the firmware did not record it
	At        int              // record of the firmware
	Layer     *block.Func      // layer of the command, nil if unknown
}

// Driver is a recording of the driver, or of a program that called it.
type Driver struct {
	File   string
	Calls  block.Driver
	Extras []block.Extra
}
