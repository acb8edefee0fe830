package profile

// Layer is one executed operator.
type Layer struct {
	// Index is the layer's position in [Profile.Layers], from 0.
	Index int64 `json:"index"`
	// Name is the node's name in the model, or made from its output.
	Name string `json:"name,omitzero"`
	// Op is the operator as the model names it, such as "CONV_2D" or "Conv".
	Op string `json:"op"`
	// Domain is the operator's domain: empty for ONNX's default and for TFLite
	// builtin operators, "custom" for custom ones.
	Domain string `json:"domain,omitzero"`
	// Version is the operator's version or operator-set version.
	Version *int64 `json:"version,omitzero"`
	// Scope is the path of the block that the layer belongs to, parts separated by
	// "/", as far as names or functions tell.
	Scope string `json:"scope,omitzero"`
	// Graph names the control-flow body that the layer is in, empty in the main
	// graph.
	Graph string `json:"graph,omitzero"`
	// Parent is the index of the control-flow layer whose body this one is in.
	Parent *int64 `json:"parent,omitzero"`
	// Options is the operator's options, in the order of the format. Strides and
	// filters are width x height.
	Options []Option `json:"options,omitzero"`
	// OptionTable is the name of the option table in a TFLite file, such as
	// ReshapeOptions, absent where the operator has none.
	OptionTable string `json:"option_table,omitzero"`
	// Inputs lists the inputs in the operator's order, absent ones included.
	Inputs []Tensor `json:"inputs,omitzero"`
	// Outputs lists the outputs in the operator's order.
	Outputs []Tensor `json:"outputs,omitzero"`

	// State says what became of the layer.
	State State `json:"state"`
	// Cause says why the layer did not run or has no figure, absent where it did.
	Cause *Cause `json:"cause,omitzero"`
	// FusedInto is the index of the layer that does this one's work.
	FusedInto *int64 `json:"fused_into,omitzero"`
	// Placement says which unit of the target does the work, where it has several.
	Placement *Placement `json:"placement,omitzero"`
	// Kernel names the implementation that ran, such as "conv2d/im2col".
	Kernel string `json:"kernel,omitzero"`
	// Computes is the element type of the operands that the implementation multiplied, where it
	// is not that of the inputs: int8 of a float32 convolution between DequantizeLinear and
	// QuantizeLinear that ran as one of 8-bit numbers.
	Computes string `json:"computes,omitzero"`
	// Constant marks a layer whose results follow from constants and shapes alone.
	// An engine may compute it once; it is not work of an inference, and totals leave
	// it out whatever the engine does.
	Constant bool `json:"constant,omitzero"`

	// Ops is the number of arithmetic operations of one inference by the
	// convention of docs/explanation/counting.md. Like the other counts of work and traffic it
	// is over all calls, and of one call where calls are not known.
	Ops *int64 `json:"ops,omitzero"`
	// MACs is the number of multiply-accumulates, padding taps included.
	MACs *int64 `json:"macs,omitzero"`
	// MACsExecuted is MACs without padding taps.
	MACsExecuted *int64 `json:"macs_executed,omitzero"`
	// MLTKOps and MLTKMACs are the counts by the convention of the Silicon Labs
	// MLTK profiler, its omissions included.
	MLTKOps  *int64 `json:"mltk_ops,omitzero"`
	MLTKMACs *int64 `json:"mltk_macs,omitzero"`
	// Params is the number of constant elements that the layer reads as weights.
	Params *int64 `json:"params,omitzero"`
	// WeightsBytes is the size of these constants as stored.
	WeightsBytes *int64 `json:"weights_bytes,omitzero"`
	// SharedParams and SharedWeightsBytes are the part of Params and WeightsBytes that another
	// layer reads too and counts. Sums over layers leave them out. Absent for none.
	SharedParams       *int64 `json:"shared_params,omitzero"`
	SharedWeightsBytes *int64 `json:"shared_weights_bytes,omitzero"`
	// BytesRead and BytesWritten are the sizes of the operands, each once a call.
	BytesRead    *int64 `json:"bytes_read,omitzero"`
	BytesWritten *int64 `json:"bytes_written,omitzero"`
	// LiveBytes is the size of the activations that are needed while the layer runs,
	// its own results included, whatever the runtime. The largest of them is the
	// least that any plan needs.
	LiveBytes *int64 `json:"live_bytes,omitzero"`

	// Latency is the time in the layer itself in one inference, summed over its
	// calls and without the layers of its bodies, so that layers add up.
	Latency *Metric `json:"latency_s,omitzero"`
	// Total is the same with the layers of its bodies. Only set for control flow.
	Total *Metric `json:"total_s,omitzero"`
	// Calls is the mean number of calls in one inference, absent when it is one.
	Calls *float64 `json:"calls,omitzero"`
	// CPUCycles is processor cycles.
	CPUCycles *Metric `json:"cpu_cycles,omitzero"`
	// AcceleratorCycles is cycles in which the accelerator ran.
	AcceleratorCycles *Metric `json:"accelerator_cycles,omitzero"`
	// SimulatorCycles is the same by the accelerator maker's simulator, for
	// comparison with its reports.
	SimulatorCycles *Metric `json:"simulator_cycles,omitzero"`
	// Expected is an estimate of latency_s made before or apart from it: by the
	// model's compiler, or by another profile of the same model.
	Expected *Metric `json:"expected_s,omitzero"`
	// Energy used by the layer.
	Energy *Metric `json:"energy_j,omitzero"`
	// Share is the layer's fraction of the sum of all layers' times, 0 to 1.
	Share *float64 `json:"share,omitzero"`
	// ShareCI95 is a 95 % confidence interval of the share, that of latency_s as a
	// fraction of the same sum. Only measured times have one.
	ShareCI95 *[2]float64 `json:"share_ci95,omitzero"`
	// Rank is the first and last place that the layer may have by time, from 1 for the
	// slowest: [2, 3] says that it is the second or third, since its interval overlaps
	// that of another layer. Absent unless all times are measured and have intervals.
	Rank *[2]int64 `json:"rank,omitzero"`
	// Roof is the layer's place under the roofline of the target.
	Roof *Roof `json:"roof,omitzero"`
	// Samples holds times of the layer in instrumented inferences, seconds, in the
	// order in which they were taken: all of them, or a random choice of some
	// thousand where there were more (latency_s says of how many).
	Samples []float64 `json:"samples_s,omitzero"`
	// Figures holds figures without a field of their own by the key of their
	// quantity, which is known or stands in [Profile.Quantities].
	Figures map[string]*Metric `json:"figures,omitzero"`

	// Check says what came of measuring the layer's time in a second way, absent where
	// nobody did.
	Check *Check `json:"check,omitzero"`
	// Provenance leads back to the model's own operators.
	Provenance *Provenance `json:"provenance,omitzero"`
	// Weights is the constant that the layer multiplies with, absent for layers without.
	Weights *Weights `json:"weights,omitzero"`
	// Sparsity of weights and activations.
	Sparsity *Sparsity `json:"sparsity,omitzero"`
}

// Option is one option of an operator.
type Option struct {
	// Key names it in lower case, such as "padding".
	Key string `json:"key"`
	// Value is its value as text, such as "same" or "2x2".
	Value string `json:"value"`
}

// OpText is the operator as the model names it, with its domain where that is not the format's own.
func (l *Layer) OpText() string {
	switch l.Domain {
	case "", "ai.onnx":
		return l.Op
	}
	return l.Domain + ":" + l.Op
}

// Option returns the value of the layer's option with a key, "" when it has none.
func (l *Layer) Option(key string) string {
	for _, o := range l.Options {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}

// State says what became of a layer.
type State string

// States of layers.
const (
	// it takes part in an inference: it ran, or would where nothing was run
	Ran         State = "ran"
	Folded      State = "folded"      // computed once while planning
	Fused       State = "fused"       // another layer does its work
	Unsupported State = "unsupported" // the runtime lacks the operator, or this use of it
	Skipped     State = "skipped"     // an input could not be computed
	Failed      State = "failed"      // it contradicts its inputs, or failed while running
	NotReached  State = "not_reached" // never called in these inferences: a branch not taken
	Lost        State = "lost"        // it ran, and the record of it is lost
	// it would run, and nothing is known about its time on the target
	NoEstimate State = "no_estimate"
)

// Idle reports whether the layer could not run, for whatever reason.
func (s State) Idle() bool { return s == Unsupported || s == Skipped || s == Failed }

// Elsewhere reports whether the layer takes no time of its own in an inference: it
// was computed before, or another layer does its work.
func (s State) Elsewhere() bool { return s == Folded || s == Fused }

// Blank reports whether the layer takes part in an inference, or should, and its
// figures are missing: it could not run, its record is lost, or nothing is known.
func (s State) Blank() bool { return s.Idle() || s == Lost || s == NoEstimate }

// Cause says why something is as it is.
type Cause struct {
	// Code names the cause.
	Code CauseCode `json:"code"`
	// Text is the detail for readers: a limit, a type, an error.
	Text string `json:"text,omitzero"`
}

// CauseCode names a cause.
type CauseCode string

// Causes.
const (
	ByOperator CauseCode = "operator" // the kind of operator
	ByType     CauseCode = "type"     // an element type
	ByLimit    CauseCode = "limit"    // a size or option beyond what a kernel takes
	ByUse      CauseCode = "use"      // options or a mixture of types that the runtime lacks
	ByInput    CauseCode = "input"    // an input that could not be computed
	ByShape    CauseCode = "shape"    // shapes that are not known or contradict each other
	ByData     CauseCode = "data"     // what depends on the data
	ByMemory   CauseCode = "memory"   // more memory than there is or may be used
	ByBodies   CauseCode = "bodies"   // what the layer runs has no figure
	ByError    CauseCode = "error"    // an error that the text tells
	ByCancel   CauseCode = "canceled" // the user stopped it
	ByDeadline CauseCode = "deadline" // the time for it was over
	// the source ended without a word: killed, crashed, unplugged
	ByEnd       CauseCode = "end"
	ByRecord    CauseCode = "record"  // a record that was lost on the way
	ByNoFigures CauseCode = "figures" // figures that no one has measured
	// a time below the smallest that its profiler can tell
	ByResolution CauseCode = "resolution"
	ByLoop       CauseCode = "loop" // a loop that had not ended within its limit
	// most of the work did not run, so that no figure of the whole is one
	ByWork CauseCode = "work"
)

// Placement says which unit of the target does a layer's work.
type Placement struct {
	// On names the unit: the accelerator's name, or "cpu".
	On string `json:"on"`
	// Cause is why an accelerator does not take the layer. Where it does, another of
	// its kernels refused the layer first, which some reports show.
	Cause CauseCode `json:"cause,omitzero"`
	// Text says more about the cause, for people.
	Text string `json:"text,omitzero"`
}

// CPU is [Placement.On] of layers that the processor does.
const CPU = "cpu"

// Accelerated reports whether an accelerator does the layer's work; known is false
// where the target has none, or the source does not say.
func (l *Layer) Accelerated() (yes, known bool) {
	if l.Placement == nil {
		return false, false
	}
	return l.Placement.On != CPU, true
}

// Confidence says how an executed operator was matched with the model's.
type Confidence string

// Levels of confidence.
const (
	Exact    Confidence = "exact"     // the engine says so
	ByTensor Confidence = "by tensor" // same tensor names
	ByName   Confidence = "by name"   // same name of the node, less what the engine adds to it
	ByOrder  Confidence = "by order"  // same order and kind
	Unknown  Confidence = "unknown"   // not matched
)

// Provenance leads from an executed operator to the model's.
type Provenance struct {
	// SourceNodes are the nodes of the model, empty when none could be found. The
	// first is the one that the layer is named after.
	SourceNodes []SourceNode `json:"source_nodes,omitzero"`
	// Confidence says how they were found; a source node may have one of its own.
	Confidence Confidence `json:"confidence"`
	// Inserted marks an operator that the engine put in by itself, such as a change of
	// layout. Its source nodes are those whose tensor it brings into another form; their work
	// is not its work.
	Inserted bool `json:"inserted,omitzero"`
}

// SourceNode points at a node of the model file.
type SourceNode struct {
	// Graph and Node are positions in the file, from 0.
	Graph int64 `json:"graph"`
	Node  int64 `json:"node"`
	// Name of the node, as far as it has one.
	Name string `json:"name,omitzero"`
	// Op of the node.
	Op string `json:"op,omitzero"`
	// Confidence says how this node was found where that differs from the
	// provenance's.
	Confidence Confidence `json:"confidence,omitzero"`
	// Share is the part of the layer's figures that is this node's, 0 to 1, where
	// it is known.
	Share *float64 `json:"share,omitzero"`
}

// Weights is a constant that a layer multiplies with, as the file stores it: also where
// Transpose, DequantizeLinear and the like stand between the two.
type Weights struct {
	// Name is the constant's name.
	Name string `json:"name,omitzero"`
	// DType is the type of its elements, such as "int8".
	DType string `json:"dtype"`
	// Shape is its shape. Where the layer reads it as a matrix it is that of the matrix, which
	// [Sparsity.Blocks] is about.
	Shape []int64 `json:"shape"`
	// Input is the position of the operand of the model's operator that it becomes, from 0.
	Input int64 `json:"input"`
	// Min, Max, Mean and StdDev (of the population) are of the elements as stored: of quantised
	// weights of the quantised values. Only models that are counted and not run have them.
	Min    *float64 `json:"min,omitzero"`
	Max    *float64 `json:"max,omitzero"`
	Mean   *float64 `json:"mean,omitzero"`
	StdDev *float64 `json:"stddev,omitzero"`
}

// Sparsity is the share of zeros.
type Sparsity struct {
	// Weights is the fraction of zero weights, 0 to 1.
	Weights *float64 `json:"weights,omitzero"`
	// Blocks holds, of weights that are one constant matrix, the fraction of its
	// blocks that are all zero, 0 to 1, by the block's rows x columns as stored:
	// "1x4", "4x1", "1x16", "4x16", and "rows" and "columns" for whole ones. Ragged
	// edges are left out; a block that does not fit has no entry. "2:4" is the
	// fraction of groups of four in a row with two zeros or more. Quantised weights
	// count as zero where they stand for zero.
	Blocks map[string]float64 `json:"blocks,omitzero"`
	// Activations is the fraction of zeros among the output elements, 0 to 1.
	Activations *float64 `json:"activations,omitzero"`
	// Encoded says that the file stores the weights in a sparse encoding.
	Encoded bool `json:"encoded,omitzero"`
	// StoredBytes is the size of the encoded weights.
	StoredBytes *int64 `json:"stored_bytes,omitzero"`
	// Pattern names a regular pattern of zeros, such as "2:4" or "block 4x1".
	Pattern string `json:"pattern,omitzero"`
}
