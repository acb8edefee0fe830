// Package external measures models with external engines: ONNX Runtime, LiteRT, TensorFlow Lite,
// OpenVINO. It starts a child process (the program opmeter-engine) that opens the engine's
// library. The child does what internal/measure/host does with opmeter's own engine; the parent
// joins the executed operators with the operators of the model.
//
// The child is a separate process because libraries crash, hang, leak and print, and because a
// program that opens them is no longer statically linked. This package imports no engine; only
// opmeter-engine imports the packages below it that do.
package external

import (
	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Library is an engine's library opened in this process. One goroutine at a time calls its
// methods, locked to its thread.
type Library interface {
	// About describes the library and its capabilities.
	About() About
	// Load prepares a model to run. Errors are an [Error].
	Load(t *Task) (Session, error)
}

// About describes an engine's library and its capabilities.
type About struct {
	// Engine is the engine's name on the command line, Title its display name.
	Engine string `json:"engine"`
	Title  string `json:"title"`
	// Version is the version that the library reports, Build its build information.
	Version string `json:"version,omitzero"`
	Build   string `json:"build,omitzero"`
	// Formats lists the model formats that it reads: "onnx", "tflite".
	Formats []string `json:"formats,omitzero"`
	// Providers lists what can execute nodes: execution providers, delegates, devices. The first
	// one is the default.
	Providers []string `json:"providers,omitzero"`
	// Options lists the options that [Task].Options accepts.
	Options []OptionInfo `json:"options,omitzero"`
	// Gives lists the quantities that its profiler reports, as [record.Format].Gives does.
	Gives []string `json:"gives,omitzero"`
}

// OptionInfo describes an option of an engine.
type OptionInfo struct {
	// Key is the name, Values describes the accepted values and Doc the effect, for display.
	Key    string `json:"key"`
	Values string `json:"values,omitzero"`
	Doc    string `json:"doc,omitzero"`
}

// Task is a model and how to run it.
type Task struct {
	// Model is the file, Format is "onnx" or "tflite".
	Model  string `json:"model"`
	Format string `json:"format"`
	// Inputs are the input tensors, in the model's order. Their shapes apply where the model has
	// dynamic dimensions or another size was requested.
	Inputs []Tensor `json:"-"`
	// Carry maps output indices to the indices of the inputs that they become in the next run.
	Carry map[int]int `json:"carry,omitzero"`
	// InPlace maps output indices to the indices of the inputs whose memory they are written to, such
	// as caches. Engines that cannot do this leave it out of their facts.
	InPlace map[int]int `json:"in_place,omitzero"`
	// Threads is the number of compute threads, 1 or more.
	Threads int `json:"threads"`
	// Options are engine options, in the order given.
	Options []Option `json:"options,omitzero"`
	// Profiled enables the engine's profiler.
	Profiled bool `json:"profiled,omitzero"`
	// Folder is an empty folder for files of this session. Its creator removes it.
	Folder string `json:"folder"`
}

// Option is an option of an engine: KEY=VALUE.
type Option struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Tensor is an input or output. DType is the element type as in [profile.Tensor]. Data is
// little-endian; Strings holds the elements of type "string".
type Tensor struct {
	Name    string
	DType   string
	Shape   []int
	Data    []byte
	Strings []string
}

// Session is a model that is ready to run.
type Session interface {
	// Run computes one inference on the inputs of the task. Run is what is timed: it waits for
	// the results, copies nothing that a normal caller of the engine would not copy, and
	// allocates nothing itself.
	Run() error
	// Outputs returns copies of the outputs of the last run, in the model's order.
	Outputs() ([]Tensor, error)
	// Clone creates another session of the same task that can run concurrently on another
	// thread. It shares with this session whatever the engine can share.
	Clone() (Session, error)
	// Facts returns the settings in effect, once the model has run.
	Facts() Facts
	Close() error
}

// Facts are the settings in effect in a session.
type Facts struct {
	// Settings holds the options in effect, including defaults as far as the engine reports them,
	// and whatever is needed to repeat a run: provider, optimisation level, arena.
	Settings map[string]string `json:"settings,omitzero"`
	// ArenaBytes is the memory of the engine's arena, nil if the engine does not report it.
	ArenaBytes *int64 `json:"arena_bytes,omitzero"`
	// InPlace has the names of outputs that are written to the memory of inputs, and of these.
	InPlace map[string]string `json:"in_place,omitzero"`
	// Half says that the engine computes in 16-bit floating point where the model has 32 bits.
	Half bool `json:"half,omitzero"`
	// Notes are sentences for the user, for example that a provider was skipped.
	Notes []string `json:"notes,omitzero"`
}

// Profiled is a session with the engine's profiler enabled. Its Run is a profiled inference.
type Profiled interface {
	Session
	// AfterRun is called after each Run, outside of timed regions, with the wall time of the run in
	// nanoseconds, less than 0 if unknown, and whether the system reported a disturbance during it.
	// Engines whose profiler keeps only the last run are read here.
	AfterRun(wall int64, disturbed bool) error
	// Remaining is how many more runs the profiler can hold, less than 0 for no limit. At 0,
	// Records must be called before the next run.
	Remaining() int
	// Reset drops the records.
	Reset() error
	// Records returns what was recorded since the session was loaded or since Reset, in the
	// form of a profile of that engine. Layers are in execution order under the engine's names,
	// with hints about the model's operators. Figures are computed by [runlog.Tally], so that all
	// cover the same runs. Runs may continue afterwards; the next call returns all of them. The
	// result is nil if nothing was recorded.
	Records() (*runlog.Run, error)
}
