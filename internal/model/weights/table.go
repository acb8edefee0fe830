package weights

import (
	"github.com/opmeter/opmeter/internal/model/graph"
)

// operand is a place of weights among an operator's inputs.
type operand struct {
	input int
	// data is the input that is multiplied with the weights, bias that which is added, -1
	// for none.
	data, bias int
	// scale and zero are the inputs with the weights' quantisation, 0 for none; axis is
	// that of scales for channels, counted from the end where negative. A zero point without
	// a scale serves where the operator leaves the scale to others.
	scale, zero, axis int
	lay               layout
	times             times
}

// times says what tells how many inferences of a matrix an inference of the model has.
type times uint8

const (
	// perOutput: elements of the output by rows; perInput: elements of the data by
	// columns of all groups; perStep: elements of the data by its last dimension.
	perOutput times = iota
	perInput
	perStep
	never // elements are only fetched
)

// places lists where an operator has weights, the usual place first.
var places = map[string][]operand{
	"Conv":                         {{input: 1, bias: 2, lay: convolution}},
	"FusedConv":                    {{input: 1, bias: 2, lay: convolution}},
	"NhwcConv":                     {{input: 1, bias: 2, lay: channelsLast}},
	"NhwcFusedConv":                {{input: 1, bias: 2, lay: channelsLast}},
	"ConvTranspose":                {{input: 1, bias: 2, lay: transposed, times: perInput}},
	"ConvTransposeWithDynamicPads": {{input: 1, bias: 3, lay: transposed, times: perInput}},
	"QLinearConv":                  {{input: 3, bias: 8, scale: 4, zero: 5, lay: convolution}},
	"ConvInteger":                  {{input: 1, bias: -1, zero: 3, lay: convolution}},
	"Gemm":                         {{input: 1, bias: 2, lay: right}, {input: 0, data: 1, bias: 2, lay: left}},
	"FusedGemm":                    {{input: 1, bias: 2, lay: right}, {input: 0, data: 1, bias: 2, lay: left}},
	"GemmFastGelu":                 {{input: 1, bias: 2, lay: right}},
	"QGemm":                        {{input: 3, bias: 6, scale: 4, zero: 5, axis: -1, lay: right}},
	"MatMul":                       {{input: 1, bias: -1, lay: right}, {input: 0, data: 1, bias: -1, lay: left}},
	"FusedMatMul":                  {{input: 1, bias: -1, lay: right}, {input: 0, data: 1, bias: -1, lay: left}},
	"FusedMatMulActivation":        {{input: 1, bias: -1, lay: right}, {input: 0, data: 1, bias: -1, lay: left}},
	"QLinearMatMul":                {{input: 3, bias: -1, scale: 4, zero: 5, axis: -1, lay: right}, {input: 0, data: 3, bias: -1, scale: 1, zero: 2, axis: -2, lay: left}},
	"MatMulInteger":                {{input: 1, bias: -1, zero: 3, axis: -1, lay: right}, {input: 0, data: 1, bias: -1, zero: 2, axis: -2, lay: left}},
	"MatMulIntegerToFloat":         {{input: 1, bias: 6, scale: 3, zero: 5, axis: -1, lay: right}},
	"DynamicQuantizeMatMul":        {{input: 1, bias: 4, scale: 2, zero: 3, axis: -1, lay: right}},
	"MatMulNBits":                  {{input: 1, bias: 5, scale: 2, zero: 3, lay: blocks}},
	"Attention":                    {{input: 1, bias: 2, lay: right, times: perStep}},
	"PackedAttention":              {{input: 1, bias: 2, lay: right, times: perStep}},
	"DecoderMaskedSelfAttention":   {{input: 1, bias: 2, lay: right, times: perStep}},
	"LongformerAttention":          {{input: 1, bias: 2, lay: right, times: perStep}, {input: 4, bias: 5, lay: right, times: perStep}},
	"QAttention":                   {{input: 1, bias: 2, scale: 4, zero: 7, axis: -1, lay: right, times: perStep}},
	"LSTM":                         {{input: 1, bias: 3, lay: inputGates, times: perStep}, {input: 2, bias: -1, lay: stateGates, times: perStep}},
	"GRU":                          {{input: 1, bias: 3, lay: inputGates, times: perStep}, {input: 2, bias: -1, lay: stateGates, times: perStep}},
	"RNN":                          {{input: 1, bias: 3, lay: inputGates, times: perStep}, {input: 2, bias: -1, lay: stateGates, times: perStep}},
	"DynamicQuantizeLSTM":          {{input: 1, bias: 3, scale: 8, zero: 9, axis: -1, lay: inputGatesLast, times: perStep}, {input: 2, bias: -1, scale: 10, zero: 11, axis: -1, lay: stateGatesLast, times: perStep}},
	"Gather":                       {{input: 0, data: -1, bias: -1, lay: lookup, times: never}},
	"EmbedLayerNormalization":      {{input: 2, data: -1, bias: -1, lay: lookup, times: never}, {input: 3, data: -1, bias: -1, lay: lookup, times: never}, {input: 4, data: -1, bias: -1, lay: lookup, times: never}},
	"QEmbedLayerNormalization":     {{input: 2, data: -1, bias: -1, scale: 8, zero: 13, lay: lookup, times: never}, {input: 3, data: -1, bias: -1, scale: 9, zero: 14, lay: lookup, times: never}, {input: 4, data: -1, bias: -1, scale: 10, zero: 15, lay: lookup, times: never}},
	"GatherBlockQuantized":         {{input: 0, data: -1, bias: -1, scale: 2, zero: 3, lay: lookup, times: never}},

	"CONV_2D":                      {{input: 1, bias: 2, lay: channelsLast}},
	"DEPTHWISE_CONV_2D":            {{input: 1, bias: 2, lay: depthwise}},
	"CONV_3D":                      {{input: 1, bias: 2, lay: filtersLast}},
	"TRANSPOSE_CONV":               {{input: 1, data: 2, bias: 3, lay: channelsLast, times: perInput}},
	"CONV_3D_TRANSPOSE":            {{input: 1, data: 2, bias: 3, lay: channelsEnd, times: perInput}},
	"FULLY_CONNECTED":              {{input: 1, bias: 2, lay: channelsLast, times: perInput}},
	"BATCH_MATMUL":                 {{input: 1, bias: -1, lay: right}, {input: 0, data: 1, bias: -1, lay: left}},
	"SVDF":                         {{input: 1, bias: 3, lay: channelsLast, times: perInput}, {input: 2, data: -1, bias: -1, lay: channelsLast, times: perStep}},
	"RNN lite":                     gates(1, 1, 2, 3),
	"UNIDIRECTIONAL_SEQUENCE_RNN":  gates(1, 1, 2, 3),
	"BIDIRECTIONAL_SEQUENCE_RNN":   append(gates(1, 1, 2, 3), gates(1, 5, 6, 7)...),
	"LSTM lite":                    append(gates(4, 1, 5, 12), projection(16)),
	"UNIDIRECTIONAL_SEQUENCE_LSTM": append(gates(4, 1, 5, 12), projection(16)),
	"BIDIRECTIONAL_SEQUENCE_LSTM":  append(append(gates(4, 1, 5, 12), projection(16)), append(gates(4, 18, 22, 29), projection(33))...),
	"GATHER":                       {{input: 0, data: -1, bias: -1, lay: lookup, times: never}},
	"EMBEDDING_LOOKUP":             {{input: 1, data: -1, bias: -1, lay: lookup, times: never}},
	"EMBEDDING_LOOKUP_SPARSE":      {{input: 3, data: -1, bias: -1, lay: lookup, times: never}},
}

// gates are the weights of so many gates of a recurrent operator of TFLite: those of inputs,
// those of the state, the biases.
func gates(n, in, state, bias int) (list []operand) {
	for k := range n {
		list = append(list, operand{input: in + k, bias: bias + k, lay: channelsLast, times: perStep})
	}
	for k := range n {
		list = append(list, operand{input: state + k, data: -1, bias: -1, lay: channelsLast, times: perStep})
	}
	return list
}

func projection(input int) operand {
	return operand{input: input, data: -1, bias: input + 1, lay: channelsLast, times: perStep}
}

// placesOf are the places of a node's weights.
func placesOf(n *graph.Node) []operand {
	switch n.Domain {
	case graph.TFLite:
		if n.Op == "LSTM" || n.Op == "RNN" {
			return places[n.Op+" lite"]
		}
		return places[n.Op]
	case graph.ONNX, graph.Microsoft:
		if n.Domain == graph.ONNX && n.Op == "Attention" { // takes no weights
			return nil
		}
		return places[n.Op]
	}
	return nil
}

// Inputs lists the inputs at which a product of matrices or a convolution takes weights, the usual one first: one
// of them holds them. nil for other operators.
func Inputs(n *graph.Node) []int {
	list := placesOf(n)
	if len(list) > 1 && !either[n.Op] {
		return nil
	}
	var out []int
	for _, p := range list {
		if p.times != never {
			out = append(out, p.input)
		}
	}
	return out
}
