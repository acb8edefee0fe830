package study

import "strconv"

// Layer is a constant of a model that an operator multiplies with: what can be pruned and
// quantised. An operator with several such constants, such as an LSTM, gives several layers. A
// constant read by several operators is one layer.
type Layer struct {
	// Graph is the graph that node positions refer to: 0 is the main graph, others are subgraphs
	// of If, Loop, Scan or WHILE, by their position in the model. Names of operators in subgraphs
	// start with the names of the operators around them.
	Graph int `json:"graph,omitzero"`
	// Node is the position of the first operator that reads the weights.
	Node int `json:"node"`
	// Nodes are the positions of all operators that read the weights, Node first.
	Nodes []int `json:"nodes,omitzero"`
	// Input is the operand index of the weights at Node.
	Input int `json:"input"`
	// ID is the name of the operator's first output, which other tools use as its name.
	ID string `json:"id"`
	// Name is the operator's name, or that of its first output if it has none. Op is the operator
	// type with its domain.
	Name string `json:"name"`
	Op   string `json:"op"`
	// Weight is the name of the constant, Shape its shape and Type its element type, as in the
	// file.
	Weight string `json:"weight"`
	Shape  []int  `json:"shape"`
	Type   string `json:"type"`
	// Rows and Cols are the dimensions of the weights as a matrix from inputs to outputs. Each
	// row is an output (of all groups); each column is an input of one group at one position of
	// the kernel window.
	Rows int `json:"rows"`
	Cols int `json:"cols"`
	// Taps is the number of positions of the kernel window, 1 without a window. Groups is the
	// number of channel groups.
	Taps   int `json:"taps"`
	Groups int `json:"groups"`
	// Params counts the elements of weights and bias, Zeros the weights that are already zero.
	Params int64 `json:"params"`
	Zeros  int64 `json:"zeros"`
	// MACs are the multiply-accumulates of its operators per inference; nil if unknown.
	MACs *int64 `json:"macs,omitzero"`
	// Fixed says why the weights cannot be changed, "" if they can.
	Fixed Cause `json:"fixed,omitzero"`
}

// Weights is the number of weights.
func (l *Layer) Weights() int64 { return int64(l.Rows) * int64(l.Cols) }

// Cause is the code of a reason. Reports turn it into text.
type Cause string

// Causes.
const (
	// NoZero: the quantised value that stands for zero is unknown.
	NoZero Cause = "no_zero"
	// Shared: several operators read the weights in incompatible ways.
	Shared Cause = "shared"
	// AllZero: all weights are already zero.
	AllZero Cause = "all_zero"
	// NoKernel: no kernel on this machine benefits from the change.
	NoKernel Cause = "no_kernel"
	// ShapeMismatch: the structure does not fit the shape, such as blocks of four in rows of
	// three.
	ShapeMismatch Cause = "no_room"
	// Coupled: channels cannot be removed, because other layers that read or share them cannot
	// follow.
	Coupled Cause = "coupled"
	// NoFormat: the file format has no such number type for this operator.
	NoFormat Cause = "no_format"
	// Excluded: the user excluded the layer.
	Excluded Cause = "excluded"
	// First: the first layer, which plans leave unchanged by default.
	First Cause = "first"
	// Head: a layer that produces a model output.
	Head Cause = "head"
	// NotRun: the layer did not run, so nothing could be measured.
	NotRun Cause = "unrun"
	// NoMemory: the inputs of the layer need more memory than the limit.
	NoMemory Cause = "no_memory"
	// Unsettled: the interval of the measurement includes both a gain and no gain.
	Unsettled Cause = "unsettled"
	// NoData: no change of the layer has a figure.
	NoData Cause = "no_data"
	// NoGain: no change of the layer costs less than the unchanged layer.
	NoGain Cause = "no_gain"
	// Spent: the loss budget is used up; other layers gain more for the same loss. If no layer of
	// the plan changes, no cheaper change was found within the bound.
	Spent Cause = "spent"
)

// Causes lists all causes.
func Causes() []Cause {
	return []Cause{NoZero, Shared, AllZero, NoKernel, ShapeMismatch, Coupled, NoFormat, Excluded, First, Head, NotRun, NoMemory, Unsettled, NoData, NoGain, Spent}
}

// Structure is a pruning pattern: which weights become zero together.
type Structure string

// Structures. Blocks refer to the matrix of rows and columns of [Layer].
const (
	// Dense keeps all weights.
	Dense Structure = ""
	// Unstructured prunes unstructured weights.
	Unstructured Structure = "unstructured"
	// TwoOfFour keeps at most two of four neighbouring inputs of an output. Its only level is
	// 0.5.
	TwoOfFour Structure = "2:4"
	// Block4 prunes blocks of four neighbouring input channels of an output at one kernel
	// position.
	Block4 Structure = "block4"
	// Block1x4 prunes blocks of four neighbouring columns of a row.
	Block1x4 Structure = "1x4"
	// Block4x1 prunes blocks of four neighbouring rows of a column.
	Block4x1 Structure = "4x1"
	// Block16 prunes blocks of sixteen neighbouring rows of a column.
	Block16 Structure = "block16"
	// Channel prunes all weights of an input channel, so that it need not be computed.
	Channel Structure = "channel"
	// Filter prunes all weights of an output, so that it need not be computed.
	Filter Structure = "filter"
)

// Removes reports whether pruned units can be removed from the model, which makes shapes smaller:
// channels and filters.
func (s Structure) Removes() bool { return s == Channel || s == Filter }

// Structures lists the pruning structures, finest first.
func Structures() []Structure {
	return []Structure{Unstructured, TwoOfFour, Block4, Block1x4, Block4x1, Block16, Channel, Filter}
}

// Format is how weights are stored, and with [Int8] and [Dynamic8] also what layers compute with.
type Format string

// Formats.
const (
	// OriginalFormat keeps the number format of the file.
	OriginalFormat Format = ""
	// Int8 has 8-bit weights and activations.
	Int8 Format = "int8"
	// Dynamic8 has 8-bit weights, and activations that are quantised to 8 bits over their range
	// in each run (dynamic quantisation).
	Dynamic8 Format = "dynamic8"
	// Weight8 has 8-bit weights and unchanged activations.
	Weight8 Format = "w8"
	// Weight4 has 4-bit weights with a scale for each row or block, and unchanged activations.
	Weight4 Format = "w4"
	// Half has float16 weights.
	Half Format = "float16"
)

// Formats lists the formats other than the original, widest first.
func Formats() []Format { return []Format{Half, Int8, Dynamic8, Weight8, Weight4} }

// Change is what happens to the weights of a layer.
type Change struct {
	Structure Structure `json:"structure,omitzero"`
	// Level is the share of weights that are zero afterwards, 0 to 1.
	Level  float64 `json:"level,omitzero"`
	Format Format  `json:"format,omitzero"`
}

// IsZero reports whether nothing changes.
func (c Change) IsZero() bool { return c.Structure == Dense && c.Format == OriginalFormat }

// HasName reports whether a name refers to the layer at the given position of the list: its own
// name, that of its operator, its weights or its output, or the position.
func (l *Layer) HasName(name string, at int) bool {
	return name == l.Name || name == l.Op || name == l.Weight || name == l.ID || name == strconv.Itoa(at)
}
