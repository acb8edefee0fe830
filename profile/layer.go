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
	// Options is the operator's options in words: "padding:same stride:2x2
	// activation:relu". Strides and filters are width x height.
	Options string `json:"options,omitzero"`
	// Inputs lists the inputs in the operator's order, absent ones included.
	Inputs []Tensor `json:"inputs,omitzero"`
	// Outputs lists the outputs in the operator's order.
	Outputs []Tensor `json:"outputs,omitzero"`

	// Ops is the number of arithmetic operations of one inference by the
	// convention of docs/counting.md. Like the other counts of work and traffic it
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
	// Params is the number of constant elements that the layer reads.
	Params *int64 `json:"params,omitzero"`
	// WeightsBytes is the size of these constants as stored.
	WeightsBytes *int64 `json:"weights_bytes,omitzero"`
	// BytesRead and BytesWritten are the sizes of the operands, each once.
	BytesRead    *int64 `json:"bytes_read,omitzero"`
	BytesWritten *int64 `json:"bytes_written,omitzero"`
	// LiveBytes is the working memory in use while the layer runs: the tensors of
	// the memory plan that live then, and scratch as far as it is planned. The
	// largest of them is the least that any plan needs.
	LiveBytes *int64 `json:"live_bytes,omitzero"`

	// Latency is the time in the layer itself in one inference, summed over its
	// calls and without the layers of its bodies, so that layers add up.
	Latency *Metric `json:"latency_s,omitzero"`
	// Total is the same with the layers of its bodies. Only set for control flow.
	Total *Metric `json:"total_s,omitzero"`
	// Self repeats latency_s where total_s is set, so that both stand side by side.
	Self *Metric `json:"self_s,omitzero"`
	// Calls is the mean number of calls in one inference, absent when it is one.
	Calls *float64 `json:"calls,omitzero"`
	// CPUCycles is processor cycles.
	CPUCycles *Metric `json:"cpu_cycles,omitzero"`
	// AcceleratorCycles is cycles in which the accelerator ran.
	AcceleratorCycles *Metric `json:"accelerator_cycles,omitzero"`
	// SimulatorCycles is the same by the accelerator maker's simulator, for
	// comparison with its reports.
	SimulatorCycles *Metric `json:"simulator_cycles,omitzero"`
	// AcceleratorCounts is what the accelerator did for the layer beside cycles, by
	// name: for MVP "programs", "instructions", "stalls" and "no_ops".
	AcceleratorCounts map[string]int64 `json:"accelerator_counts,omitzero"`
	// Expected is an estimate of latency_s made before or apart from it: by the
	// model's compiler, or by another profile of the same model.
	Expected *Metric `json:"expected_s,omitzero"`
	// Energy used by the layer.
	Energy *Metric `json:"energy_j,omitzero"`
	// Share is the layer's fraction of the sum of all layers' times, 0 to 1.
	Share *float64 `json:"share,omitzero"`
	// Samples holds the instrumented pass's samples in order, seconds.
	Samples []float64 `json:"samples_s,omitzero"`

	// Kernel names the implementation that ran, such as "go/conv2d/im2col".
	Kernel string `json:"kernel,omitzero"`
	// Accelerated is "yes" or "no" where the target has an accelerator.
	Accelerated string `json:"accelerated,omitzero"`
	// Reason says why the layer is not accelerated, not supported or has no figure.
	Reason string `json:"reason,omitzero"`
	// Unsupported marks a layer that could not run; Reason says why.
	Unsupported bool `json:"unsupported,omitzero"`
	// Folded marks a layer that was computed once while planning and takes no
	// time in an inference.
	Folded bool `json:"folded,omitzero"`
	// FusedInto is the index of the layer that does this one's work.
	FusedInto *int64 `json:"fused_into,omitzero"`
	// Provenance leads back to the model's own operators.
	Provenance *Provenance `json:"provenance,omitzero"`
	// Sparsity of weights and activations.
	Sparsity *Sparsity `json:"sparsity,omitzero"`
}

// Confidence says how an executed operator was matched with the model's.
type Confidence string

// Levels of confidence.
const (
	Exact    Confidence = "exact"     // the engine says so
	ByTensor Confidence = "by tensor" // same tensor names
	ByOrder  Confidence = "by order"  // same order and kind
	Unknown  Confidence = "unknown"   // not matched
)

// Provenance leads from an executed operator to the model's.
type Provenance struct {
	// SourceNodes are the nodes of the model, empty when none could be found.
	SourceNodes []SourceNode `json:"source_nodes,omitzero"`
	// Confidence says how they were found.
	Confidence Confidence `json:"confidence"`
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
