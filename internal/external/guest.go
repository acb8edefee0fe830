// Package external measures models with the engines that people ship: it finds their
// libraries, starts a child process that opens one (the program opmeter-engine), has it do
// what internal/measure/host does with opmeter's own engine, and joins what it executed with the
// model's operators.
//
// The child is a process of its own since libraries crash, hang, leak and print, and
// since a program that opens them is no longer static. This package imports none of them:
// packages below it do, and only opmeter-engine has these.
package external

import (
	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Library is an engine's library that was opened in this process. Methods are called by one
// goroutine at a time, which is locked to its thread.
type Library interface {
	// About says what it is and what it can.
	About() About
	// Load makes a model ready to run. Errors are an [Error].
	Load(t *Task) (Session, error)
}

// About says what an engine's library is and what it can.
type About struct {
	// Engine is the engine's name on the command line, Title the one for people.
	Engine string `json:"engine"`
	Title  string `json:"title"`
	// Version of the library as it tells itself, Build what else it says of how it was built.
	Version string `json:"version,omitzero"`
	Build   string `json:"build,omitzero"`
	// Formats lists the formats of models that it takes: "onnx", "tflite".
	Formats []string `json:"formats,omitzero"`
	// Providers lists what can execute nodes: execution providers, delegates, devices. The first
	// one is used where nothing is said.
	Providers []string `json:"providers,omitzero"`
	// Options lists what [Task].Options takes.
	Options []OptionInfo `json:"options,omitzero"`
	// Gives lists what its profiler can say, as [ingest.Format].Gives does.
	Gives []string `json:"gives,omitzero"`
}

// OptionInfo describes an option of an engine.
type OptionInfo struct {
	// Key is the name, Values says what it takes and Doc what it does, for people.
	Key    string `json:"key"`
	Values string `json:"values,omitzero"`
	Doc    string `json:"doc,omitzero"`
}

// Task is a model and how it is to run.
type Task struct {
	// Model is the file, Format "onnx" or "tflite".
	Model  string `json:"model"`
	Format string `json:"format"`
	// Inputs is what to feed, in the model's order. Their shapes count where the model
	// leaves dimensions open or another size was asked for.
	Inputs []Tensor `json:"-"`
	// Carry maps positions of outputs to those of inputs that they become in the next run.
	Carry map[int]int `json:"carry,omitzero"`
	// Threads that compute, 1 or more.
	Threads int `json:"threads"`
	// Options are the engine's own, in the order in which they were given.
	Options []Option `json:"options,omitzero"`
	// Profiled says that the engine's profiler is to be on.
	Profiled bool `json:"profiled,omitzero"`
	// Folder is an empty folder for files of this session. Who made it removes it.
	Folder string `json:"folder"`
}

// Option is an option of an engine: KEY=VALUE.
type Option struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Tensor is an input or output. DType is the element type as in [profile.Tensor], Data
// little-endian; Strings holds the elements where it is "string".
type Tensor struct {
	Name    string
	DType   string
	Shape   []int
	Data    []byte
	Strings []string
}

// Session is a model that is ready to run.
type Session interface {
	// Run computes one inference on the inputs of the task. It is what is timed: it waits for
	// the results, copies nothing that the engine's own callers would not copy, and
	// allocates nothing of its own.
	Run() error
	// Outputs returns copies of what the last run made, in the model's order.
	Outputs() ([]Tensor, error)
	// Beside makes another session of the same task that can run at the same time on another
	// thread, and shares with this one what the engine can share.
	Beside() (Session, error)
	// Facts says what is in effect, once the model has run.
	Facts() Facts
	Close() error
}

// Facts is what is in effect in a session.
type Facts struct {
	// Settings holds options in effect, those that nobody gave included as far as the engine
	// tells, and whatever a run needs to be repeated: provider, optimisation level, arena.
	Settings map[string]string `json:"settings,omitzero"`
	// ArenaBytes is the memory of the engine's arena, nil where it does not tell.
	ArenaBytes *int64 `json:"arena_bytes,omitzero"`
	// Half says that it computes in 16-bit floating point where the model has 32 bits.
	Half bool `json:"half,omitzero"`
	// Notes are sentences for a reader, such as that a provider was left out.
	Notes []string `json:"notes,omitzero"`
}

// Profiled is a session whose task asks for the engine's profiler. Its Run is an instrumented
// inference.
type Profiled interface {
	Session
	// After is called after each Run, outside of timed regions, with the time that it took
	// from outside, in nanoseconds: engines whose profiler tells of the last run only are
	// asked here.
	After(wall int64) error
	// Room is how many more runs the profiler can hold, less than 0 for any number. At 0
	// Recorded has to be called before the next run.
	Room() int
	// Forget drops what was recorded.
	Forget() error
	// Recorded returns what was recorded since the session was loaded or told to forget, as a
	// record of that engine would be read: layers in the order of execution, as the engine names
	// them, with what is known of the model's operators as hints; figures by
	// [ingest.Tally], so that they are over the same runs. Runs may go on afterwards, and
	// the next call returns all of them. nil where nothing was recorded.
	Recorded() (*runlog.Run, error)
}
