package study

import "strconv"

// Layer is a constant of a model that an operator multiplies with: what can be pruned and
// quantised. An operator with several, such as an LSTM, is several layers; a constant that
// several operators read is one.
type Layer struct {
	// Graph is the graph that positions of operators count in: 0 is the main one, others are bodies of If, Loop, Scan or
	// WHILE, by their position in the model. The names of operators in bodies lead with those of the operators around them.
	Graph int `json:"graph,omitzero"`
	// Node is the position of the first operator that reads the weights.
	Node int `json:"node"`
	// Nodes are the positions of all operators that read them, Node first.
	Nodes []int `json:"nodes,omitzero"`
	// Input is the operand of Node that they are.
	Input int `json:"input"`
	// ID is the name of the operator's first output, which names it in other tools.
	ID string `json:"id"`
	// Name is the operator's own name, or that of its first output, Op the operator's
	// type with its domain.
	Name string `json:"name"`
	Op   string `json:"op"`
	// Weight is the name of the constant, Shape its shape and Type its element type, as
	// the file has them.
	Weight string `json:"weight"`
	Shape  []int  `json:"shape"`
	Type   string `json:"type"`
	// Rows and Cols are those of the weights as a matrix that takes inputs to outputs: an
	// output of all groups a row, an input of one group at one place of the window a column.
	Rows int `json:"rows"`
	Cols int `json:"cols"`
	// Taps is the number of places of the window, 1 where there is none; Groups that of
	// groups of channels.
	Taps   int `json:"taps"`
	Groups int `json:"groups"`
	// Params are the elements of weights and bias, Zeros the weights that are zero already.
	Params int64 `json:"params"`
	Zeros  int64 `json:"zeros"`
	// MACs are the multiply-accumulates of its operators in an inference; nil if unknown.
	MACs *int64 `json:"macs,omitzero"`
	// Fixed says why the weights cannot be changed, "" if they can.
	Fixed Cause `json:"fixed,omitzero"`
}

// Weights is the number of weights.
func (l *Layer) Weights() int64 { return int64(l.Rows) * int64(l.Cols) }

// Cause is a code for why something is not so. Texts are made where they are shown.
type Cause string

// Causes.
const (
	// NoZero: it is not known which code stands for zero.
	NoZero Cause = "no_zero"
	// Shared: the weights are read in ways that do not fit together.
	Shared Cause = "shared"
	// AllZero: all weights are zero already.
	AllZero Cause = "all_zero"
	// NoKernel: no kernel gains anything from the change here.
	NoKernel Cause = "no_kernel"
	// NoRoom: the structure does not fit the shape, such as blocks of four in rows of three.
	NoRoom Cause = "no_room"
	// Coupled: channels cannot be taken out, since what reads or shares them cannot follow.
	Coupled Cause = "coupled"
	// NoFormat: the file's format has no such numbers for this operator.
	NoFormat Cause = "no_format"
	// Excluded: the user left the layer out.
	Excluded Cause = "excluded"
	// First: the first layer, which plans leave as it is unless told otherwise.
	First Cause = "first"
	// Head: a layer that makes an output of the model.
	Head Cause = "head"
	// Unrun: the layer did not run, so that nothing could be measured.
	Unrun Cause = "unrun"
	// NoMemory: what the layer reads takes more memory than the limit.
	NoMemory Cause = "no_memory"
	// Unsettled: measurements hold both a gain and none.
	Unsettled Cause = "unsettled"
	// NoData: there is no figure of a change of the layer.
	NoData Cause = "no_data"
	// NoGain: no change of the layer costs less than the layer as it is.
	NoGain Cause = "no_gain"
	// Spent: what the layer would gain is worth less than what others gain for the same loss.
	Spent Cause = "spent"
)

// Causes lists all of them.
func Causes() []Cause {
	return []Cause{NoZero, Shared, AllZero, NoKernel, NoRoom, Coupled, NoFormat, Excluded, First, Head, Unrun, NoMemory, Unsettled, NoData, NoGain, Spent}
}

// Structure says which weights become zero together.
type Structure string

// Structures. Blocks count over the matrix of rows and columns of [Layer].
const (
	// Dense leaves all weights.
	Dense Structure = ""
	// Unstructured takes weights one by one.
	Unstructured Structure = "unstructured"
	// TwoOfFour leaves at most two of four neighbouring inputs of an output. Its only level is 0.5.
	TwoOfFour Structure = "2:4"
	// Block4 takes blocks of four neighbouring input channels of an output at one place of the window.
	Block4 Structure = "block4"
	// Block1x4 takes blocks of four neighbouring columns of a row.
	Block1x4 Structure = "1x4"
	// Block4x1 takes blocks of four neighbouring rows of a column.
	Block4x1 Structure = "4x1"
	// Block16 takes blocks of sixteen neighbouring rows of a column.
	Block16 Structure = "block16"
	// Channel takes all weights of an input channel, so that it need not be computed.
	Channel Structure = "channel"
	// Filter takes all weights of an output, so that it need not be computed.
	Filter Structure = "filter"
)

// Removes reports whether what a structure takes can be left out of the model, which gets smaller shapes: channels and filters.
func (s Structure) Removes() bool { return s == Channel || s == Filter }

// Structures lists those that take weights, finest first.
func Structures() []Structure {
	return []Structure{Unstructured, TwoOfFour, Block4, Block1x4, Block4x1, Block16, Channel, Filter}
}

// Format is how weights are stored, and with [Int8] what layers compute with.
type Format string

// Formats.
const (
	// Same leaves the numbers of the file.
	Same Format = ""
	// Int8 has weights and activations of 8 bits.
	Int8 Format = "int8"
	// Weight8 has weights of 8 bits and activations as they are.
	Weight8 Format = "w8"
	// Weight4 has weights of 4 bits, with a scale for each row or block, and activations as they are.
	Weight4 Format = "w4"
	// Half has weights of float16.
	Half Format = "float16"
)

// Formats lists those that change numbers, widest first.
func Formats() []Format { return []Format{Half, Int8, Weight8, Weight4} }

// Change is what happens to the weights of a layer.
type Change struct {
	Structure Structure `json:"structure,omitzero"`
	// Level is the share of weights that are zero afterwards, 0 to 1.
	Level  float64 `json:"level,omitzero"`
	Format Format  `json:"format,omitzero"`
}

// IsZero reports whether nothing changes.
func (c Change) IsZero() bool { return c.Structure == Dense && c.Format == Same }

// Called reports whether a name means the layer, which stands at a position of the list: its own, that of its operator, of its
// weights or of its output, or the position.
func (l *Layer) Called(name string, at int) bool {
	return name == l.Name || name == l.Op || name == l.Weight || name == l.ID || name == strconv.Itoa(at)
}
