package profile

import "github.com/opmeter/opmeter/profile/timeline"

// SchemaV1 is the value of [Profile.Schema].
const SchemaV1 = "opmeter/profile/v1"

// Profile is the result of profiling one model on one target.
type Profile struct {
	// Schema names the format of the data, [SchemaV1].
	Schema string `json:"schema"`
	// Created is the time of the run, RFC 3339 in UTC.
	Created string `json:"created,omitzero"`
	// Incomplete says what is missing and why: the run ended early, layers have no
	// figure. Everything known is here all the same. Empty for complete profiles.
	Incomplete []Missing `json:"incomplete,omitzero"`
	// Model is what was profiled.
	Model Model `json:"model"`
	// Target is what it ran on, or was estimated for.
	Target Target `json:"target"`
	// Settings is what was asked for, enough to repeat the run.
	Settings Settings `json:"settings"`
	// Host is the machine that ran or estimated it.
	Host *Host `json:"host,omitzero"`
	// Totals holds the figures of the whole model.
	Totals Totals `json:"totals"`
	// Phases separates loading, the first run and warming up from steady state.
	Phases *Phases `json:"phases,omitzero"`
	// Reconcile compares the sum of the layers with the wall clock.
	Reconcile *Reconcile `json:"reconcile,omitzero"`
	// Trust says how far the measured latency can be relied upon.
	Trust *Trust `json:"trust,omitzero"`
	// Memory is the memory plan and what was observed.
	Memory *Memory `json:"memory,omitzero"`
	// Layers lists the operators in the order in which they run, those of
	// control-flow bodies after their owner.
	Layers []Layer `json:"layers"`
	// Bounds divides the time of the layers among what bounds them, empty where no layer
	// has a bound. The shares add up to 1.
	Bounds []BoundPart `json:"bounds,omitzero"`
	// Blocks are the repeated blocks of layers, in reports that group by block.
	Blocks []Block `json:"blocks,omitzero"`
	// Quantities describes figures that the table of known quantities lacks.
	Quantities []Quantity `json:"quantities,omitzero"`
	// Timeline says when things happened, for sources that recorded it.
	Timeline *timeline.Timeline `json:"timeline,omitzero"`
	// Differences compares the model's outputs with those of another engine.
	Differences []Difference `json:"differences,omitzero"`
	// Other summarises what another engine takes for the model, where one was measured too.
	Other *OtherEngine `json:"other_engine,omitzero"`
	// Language describes a language model and its phases, where these were measured.
	Language *LanguageModel `json:"language_model,omitzero"`
	// Findings says in plain words what a reader should know first.
	Findings []Finding `json:"findings,omitzero"`
}

// Missing says what a profile lacks.
type Missing struct {
	// Cause says why.
	Cause CauseCode `json:"cause"`
	// Text says more, for people: the error that ended a run.
	Text string `json:"text,omitzero"`
	// Layers are the indices of the layers that it is about, absent for the whole.
	Layers []int64 `json:"layers,omitzero"`
	// Got and Want count what is there and what was expected, such as inferences,
	// where that is known.
	Got  *int64 `json:"got,omitzero"`
	Want *int64 `json:"want,omitzero"`
}

// Model describes a model file.
type Model struct {
	// Name is the file's base name without its ending, or a name given by the user.
	Name string `json:"name"`
	// Path is the file as the user named it.
	Path string `json:"path,omitzero"`
	// Format is "tflite" or "onnx", or that of an imported record.
	Format string `json:"format,omitzero"`
	// SHA256 is the hash of the model file, 64 lower-case hexadecimal digits.
	SHA256 string `json:"sha256,omitzero"`
	// StructureSHA256 is a hash of the graphs: operators, options, connections,
	// types and shapes, names and constants left out. Models with the same one differ
	// in names and weights only.
	StructureSHA256 string `json:"structure_sha256,omitzero"`
	// WeightsSHA256 is a hash of all constants, those in files beside the model
	// included.
	WeightsSHA256 string `json:"weights_sha256,omitzero"`
	// FileBytes is the size of the model file and of its files with external data. It is absent if
	// one of these is missing.
	FileBytes *int64 `json:"file_bytes,omitzero"`
	// Signature is the signature of a TFLite file that the profile is of, of those in Signatures.
	// Both are absent for files without, or with only one graph that has signatures.
	Signature  string   `json:"signature,omitzero"`
	Signatures []string `json:"signatures,omitempty"`
	// Producer is the program that wrote the model, as the file says.
	Producer string `json:"producer,omitzero"`
	// Description is the file's own text about the model.
	Description string `json:"description,omitzero"`
	// FormatVersion is the ONNX IR version or the TFLite schema version.
	FormatVersion *int64 `json:"format_version,omitzero"`
	// Opsets holds ONNX operator-set versions by domain, "ai.onnx" for the default.
	Opsets map[string]int64 `json:"opsets,omitzero"`
	// Inputs lists the inputs of the main graph with the shapes of this run.
	Inputs []Tensor `json:"inputs,omitzero"`
	// Outputs lists the outputs of the main graph with the shapes of this run.
	Outputs []Tensor `json:"outputs,omitzero"`
	// Warnings is what the reader of the file got over, one sentence each.
	Warnings []string `json:"warnings,omitzero"`
}

// Tensor describes an input or output.
type Tensor struct {
	// Name is the tensor's name in the model.
	Name string `json:"name,omitzero"`
	// DType is the element type in lower case, such as "float32" or "int8".
	DType string `json:"dtype,omitzero"`
	// Shape lists the dimensions, -1 for those that are not known. Empty for a
	// scalar, absent when even the rank is not known.
	Shape []int64 `json:"shape,omitzero"`
	// Declared is the shape that the file states where dimensions are open there and
	// Shape is what was taken for them. Only of the model's inputs.
	Declared []int64 `json:"declared,omitzero"`
	// DimNames are the names that the file gives to the dimensions of Declared, empty
	// where it gives none; absent where none has one.
	DimNames []string `json:"dim_names,omitzero"`
	// Assumed lists the positions of open dimensions that no one gave: 1 was taken for
	// them, or what follows from that. Only of the model's inputs.
	Assumed []int64 `json:"assumed,omitzero"`
	// Made says how the elements were made where the model uses them for something
	// that drawn numbers would not do for. Only of the model's inputs.
	Made *Made `json:"made,omitzero"`
	// Bytes is the size of the elements.
	Bytes *int64 `json:"bytes,omitzero"`
	// Constant marks weights and other constants of the file.
	Constant bool `json:"constant,omitzero"`
	// Absent marks an optional input that was not given: a place holder.
	Absent bool `json:"absent,omitzero"`
	// Scale and ZeroPoint are the affine quantisation real = scale*(q-zero_point)
	// of tensors that have one for all channels.
	Scale     *float64 `json:"scale,omitzero"`
	ZeroPoint *int64   `json:"zero_point,omitzero"`
	// ChannelScales are the smallest and the largest scale of tensors that have one for each
	// channel, and ChannelAxis is the dimension of the channels, from 0.
	ChannelScales *[2]float64 `json:"channel_scales,omitzero"`
	ChannelAxis   *int64      `json:"channel_axis,omitzero"`
}

// Made says how the elements of an input were made.
type Made struct {
	// Use is what the model uses them for.
	Use InputUse `json:"use"`
	// Values are the elements where there are few.
	Values []int64 `json:"values,omitzero"`
	// Fill is the value of all elements where it is one.
	Fill *int64 `json:"fill,omitzero"`
	// Below bounds elements that were drawn from 0 on.
	Below *int64 `json:"below,omitzero"`
}

// InputUse says what a model uses the elements of an input for.
type InputUse string

// Uses of inputs.
const (
	UseShape    InputUse = "shape"    // dimensions of a result
	UseBounds   InputUse = "bounds"   // where a part begins or ends, and its size
	UsePaddings InputUse = "paddings" // elements added at the edges
	UseAxes     InputUse = "axes"     // axes of a tensor
	UseIndices  InputUse = "indices"  // places in a table or along an axis
	UseMask     InputUse = "mask"     // which positions count
	UseLength   InputUse = "length"   // how much of a sequence counts
	UseCount    InputUse = "count"    // a number of things to make
	UseChoice   InputUse = "choice"   // compared with a constant, such as a sample rate
)

// TargetKind says what sort of thing the figures are for.
type TargetKind string

// Kinds of targets.
const (
	TargetHost      TargetKind = "host"      // this computer
	TargetSimulator TargetKind = "simulator" // a model of a chip
	TargetDevice    TargetKind = "device"    // hardware behind a cable
	TargetImport    TargetKind = "import"    // another tool's record
)

// Target is what the model ran on, or was estimated for.
type Target struct {
	// ID names the target, "host" for this computer.
	ID string `json:"id"`
	// Kind says what sort of thing the target is.
	Kind TargetKind `json:"kind"`
	// ClockHz is the clock that cycles are converted with.
	ClockHz *float64 `json:"clock_hz,omitzero"`
	// Accelerator names an accelerator beside the processor.
	Accelerator string `json:"accelerator,omitzero"`
	// Engine names the program that executes the operators.
	Engine string `json:"engine,omitzero"`
	// PeakOpsPerSecond is the most arithmetic operations a second that the target
	// can do: the flat part of the roofline.
	PeakOpsPerSecond *float64 `json:"peak_ops_per_second,omitzero"`
	// PeakBytesPerSecond is the rate of the memory that layers read and write: the
	// slope of the roofline.
	PeakBytesPerSecond *float64 `json:"peak_bytes_per_second,omitzero"`
	// PeakMethod says where the peaks come from.
	PeakMethod string `json:"peak_method,omitzero"`
	// Peaks holds the rates of arithmetic by element type where they are known, the
	// fastest of which is PeakOpsPerSecond.
	Peaks []Peak `json:"peaks,omitzero"`
	// Levels holds the rates of the levels of memory, the fastest first; the last one
	// is PeakBytesPerSecond.
	Levels []Level `json:"levels,omitzero"`
	// Description is the target's name for people.
	Description string `json:"description,omitzero"`
}

// Totals holds figures of the whole model, by one rule whatever the source. A count
// of work is the sum over the layers, each as often as it is called, those that
// follow from constants alone left out; layers fused into others or without support
// count. Parameters and weights count once, however many layers read them. The
// fields uncounted_layers and unsupported_layers say how many layers a count leaves
// out or could not run.
type Totals struct {
	// Layers is the number of layers.
	Layers *int64 `json:"layers,omitzero"`
	// Ops is the number of arithmetic operations of one inference.
	Ops *int64 `json:"ops,omitzero"`
	// MACs is the number of multiply-accumulates, padding taps included.
	MACs *int64 `json:"macs,omitzero"`
	// MACsExecuted is MACs without padding taps.
	MACsExecuted *int64 `json:"macs_executed,omitzero"`
	// MLTKOps and MLTKMACs are the counts by the convention of the Silicon Labs
	// MLTK profiler, its omissions included.
	MLTKOps  *int64 `json:"mltk_ops,omitzero"`
	MLTKMACs *int64 `json:"mltk_macs,omitzero"`
	// Params is the number of constant elements, each counted once.
	Params *int64 `json:"params,omitzero"`
	// WeightsBytes is the size of the constants as stored.
	WeightsBytes *int64 `json:"weights_bytes,omitzero"`
	// ComputedParams is the number of elements that layers read as constants and that
	// are not in the file: they are computed of other constants once, such as weights
	// that the file fills with one value. Params, WeightsBytes and FlashBytes leave them
	// out. Absent if absent.
	ComputedParams *int64 `json:"computed_params,omitzero"`
	// BytesRead and BytesWritten sum what the layers read and write, each
	// operand once a layer.
	BytesRead    *int64 `json:"bytes_read,omitzero"`
	BytesWritten *int64 `json:"bytes_written,omitzero"`
	// UncountedLayers is the number of layers whose operations are not known, absent
	// where the source does not say.
	UncountedLayers *int64 `json:"uncounted_layers,omitzero"`
	// UnsupportedLayers is the number of layers that the engine or accelerator
	// cannot run.
	UnsupportedLayers *int64 `json:"unsupported_layers,omitzero"`
	// RAMBytes is the memory that the runtime plans for an inference beside the model:
	// the arena of activations, scratch memory of operators, and what lasts between
	// inferences, with the graphs of control flow. On this computer the caller owns the
	// inputs, which are left out, except in models with control flow.
	RAMBytes *int64 `json:"ram_bytes,omitzero"`
	// FlashBytes is the storage that the model needs on the target.
	FlashBytes *int64 `json:"flash_bytes,omitzero"`
	// CodeBytes is the smallest and largest program code that comes on top of
	// FlashBytes, in measured images. Absent if unknown.
	CodeBytes *[2]int64 `json:"code_bytes,omitzero"`
	// Latency is the time of one inference, from the plain pass where there is one.
	Latency *Metric `json:"latency_s,omitzero"`
	// CPUCycles is processor cycles of one inference.
	CPUCycles *Metric `json:"cpu_cycles,omitzero"`
	// AcceleratorCycles is cycles in which the accelerator ran.
	AcceleratorCycles *Metric `json:"accelerator_cycles,omitzero"`
	// SimulatorCycles is the same by the accelerator maker's simulator, for
	// comparison with its reports.
	SimulatorCycles *Metric `json:"simulator_cycles,omitzero"`
	// Energy of one inference.
	Energy *Metric `json:"energy_j,omitzero"`
	// LatencySamples holds times of plain inferences, seconds, in the order in which
	// they were taken: all of them, or a random choice of some thousand where there
	// were more (latency_s says of how many).
	LatencySamples []float64 `json:"latency_samples_s,omitzero"`
	// Figures holds figures without a field of their own by the key of their
	// quantity, which is known or stands in [Profile.Quantities].
	Figures map[string]*Metric `json:"figures,omitzero"`
}

// Phases separates what happens once from steady state.
type Phases struct {
	// LoadS is the time to open and parse the model file.
	LoadS *float64 `json:"load_s,omitzero"`
	// PlanS is the time to infer shapes, prepare kernels and place memory.
	PlanS *float64 `json:"plan_s,omitzero"`
	// FirstRunS is the time of the first inference.
	FirstRunS *float64 `json:"first_run_s,omitzero"`
	// PeaksS is the time to measure the peaks of [Target], after the runs.
	PeaksS *float64 `json:"peaks_s,omitzero"`
	// Warmup tells how steady state was reached.
	Warmup *Warmup `json:"warmup,omitzero"`
}

// Warmup tells how steady state was reached.
type Warmup struct {
	// TimeS is the time spent.
	TimeS *float64 `json:"time_s,omitzero"`
	// Count is the number of inferences, the first one included.
	Count *int64 `json:"count,omitzero"`
	// Steady says whether the measured runs passed the checks for drift and
	// change points. Absent when there were too few runs to tell.
	Steady *bool `json:"steady,omitzero"`
	// Reason says why it is not steady, or why nothing can be said.
	Reason string `json:"reason,omitzero"`
}

// Reconcile compares sums with the wall clock. All times are of one inference;
// the first three divide the median latency by the parts of the instrumented pass
// and operators_s + gaps_s = wall_s, operators_s being the sum of the layers' times.
type Reconcile struct {
	// WallS is the latency that is divided; of a record, the duration of an inference.
	WallS *float64 `json:"wall_s,omitzero"`
	// OperatorsS is the sum of the layers' times.
	OperatorsS *float64 `json:"operators_s,omitzero"`
	// GapsS is the time between operators.
	GapsS *float64 `json:"gaps_s,omitzero"`
	// PlainS is the median of the plain pass.
	PlainS *float64 `json:"plain_s,omitzero"`
	// ProfiledS is the median of the instrumented pass.
	ProfiledS *float64 `json:"profiled_s,omitzero"`
	// OverheadS is the cost of the instruments per inference: profiled minus plain,
	// paired, with its interval.
	OverheadS *Metric `json:"overhead_s,omitzero"`
	// OverheadPerOperatorS is the measured cost of recording one operator.
	OverheadPerOperatorS *Metric `json:"overhead_per_operator_s,omitzero"`
	// Unassigned is the fraction of wall_s that neither operators nor gaps explain.
	Unassigned *float64 `json:"unassigned,omitzero"`
}

// Memory is the memory plan and what was observed.
type Memory struct {
	// ArenaBytes is the size of the block that holds all activations.
	ArenaBytes *int64 `json:"arena_bytes,omitzero"`
	// PeakBytes is the largest sum of activations live at the same time, with the
	// inputs and outputs of the model and the graphs of control flow: what a perfect
	// plan would need.
	PeakBytes *int64 `json:"peak_bytes,omitzero"`
	// WeightsBytes is the memory of the weights as the engine has them: in the form that it computes
	// with, and beside it what stays in memory of the form of the file.
	WeightsBytes *int64 `json:"weights_bytes,omitzero"`
	// PersistentBytes is memory held between inferences: variables, packed weights.
	PersistentBytes *int64 `json:"persistent_bytes,omitzero"`
	// ScratchBytes is working memory of operators beside their tensors: the sum where
	// each keeps its own, the largest where they share it in the arena.
	ScratchBytes *int64 `json:"scratch_bytes,omitzero"`
	// ProcessPeakBytes is the largest resident size of the process.
	ProcessPeakBytes *int64 `json:"process_peak_bytes,omitzero"`
	// AllocatedPerRunBytes is heap memory taken by one inference in steady state.
	AllocatedPerRunBytes *int64 `json:"allocated_per_run_bytes,omitzero"`
	// TFLMArenaBytes is the planned part of the arena that TensorFlow Lite Micro
	// would take with its reference kernels: tensors and scratch, without the
	// persistent part, which depends on the build.
	TFLMArenaBytes *int64 `json:"tflm_arena_bytes,omitzero"`
	// Planner names the method that placed the buffers.
	Planner string `json:"planner,omitzero"`
	// AlignBytes is the alignment of placed buffers.
	AlignBytes *int64 `json:"align_bytes,omitzero"`
	// StepLayers is the layer that runs at each step of the plan, -1 before the
	// first one. Absent where steps are the indices of layers.
	StepLayers []int64 `json:"step_layers,omitzero"`
	// Plan lists the placed buffers.
	Plan []Buffer `json:"plan,omitzero"`
}

// Buffer is one place of a memory plan.
type Buffer struct {
	// Name is the tensor's name, or says what the scratch is for.
	Name string `json:"name,omitzero"`
	// Bytes is the size asked for.
	Bytes int64 `json:"bytes"`
	// Offset from the start of the arena, in bytes.
	Offset int64 `json:"offset_bytes"`
	// First and Last are the first and last step at which it is needed: nodes of
	// the main graph for the engine's own plan, allocation scopes for "tflm".
	// [Profile.LayerAt] returns their layers.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Scratch marks an operator's working memory.
	Scratch bool `json:"scratch,omitzero"`
}

// LayerAt returns the index of the layer that runs at a step of the memory plan.
// It is absent before the first layer and after the last one.
func (p *Profile) LayerAt(step int64) (layer int64, ok bool) {
	if p.Memory == nil || step < 0 {
		return 0, false
	}
	layer = step
	if s := p.Memory.StepLayers; s != nil {
		if step >= int64(len(s)) {
			return 0, false
		}
		layer = s[step]
	}
	return layer, layer >= 0 && layer < int64(len(p.Layers))
}

// Severity orders findings.
type Severity string

// Severities of findings.
const (
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // a figure needs care
	Problem Severity = "problem" // a figure is missing or must not be relied upon
)

// Finding is one remark on the result.
type Finding struct {
	// ID names the rule, in lower case with dots, such as "measure.unstable".
	ID string `json:"id"`
	// Severity orders findings.
	Severity Severity `json:"severity"`
	// Text is one or two plain sentences with the figures.
	Text string `json:"text"`
	// Layers are the indices of the layers that it is about.
	Layers []int64 `json:"layers,omitzero"`
}
