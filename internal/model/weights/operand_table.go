package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// operand is a weight operand of an operator.
type operand struct {
	input int
	// data is the input that is multiplied with the weights, bias the input that is added, -1 for
	// none.
	data, bias int
	// scale and zero are the inputs with the quantisation of the weights, 0 for none. axis is the
	// per-channel axis, counted from the end where negative. There is a zero point without a
	// scale where the operator leaves scaling to other operators.
	scale, zero, axis int
	layout            layoutFunc
	repeats           repeatRule
}

// repeatRule says how the number of matrix-vector products per inference is derived.
type repeatRule uint8

const (
	// perOutput: elements of the output divided by rows; perInput: elements of the data divided
	// by the columns of all groups; perStep: elements of the data divided by its last dimension.
	perOutput repeatRule = iota
	perInput
	perStep
	never // elements are only looked up
)

// weightOperands lists the weight operands of each operator, the usual one first.
var weightOperands = map[string][]operand{
	"Conv":                         {{input: 1, bias: 2, layout: convolution}},
	"FusedConv":                    {{input: 1, bias: 2, layout: convolution}},
	"NhwcConv":                     {{input: 1, bias: 2, layout: channelsLast}},
	"NhwcFusedConv":                {{input: 1, bias: 2, layout: channelsLast}},
	"ConvTranspose":                {{input: 1, bias: 2, layout: transposed, repeats: perInput}},
	"ConvTransposeWithDynamicPads": {{input: 1, bias: 3, layout: transposed, repeats: perInput}},
	"QLinearConv":                  {{input: 3, bias: 8, scale: 4, zero: 5, layout: convolution}},
	"ConvInteger":                  {{input: 1, bias: -1, zero: 3, layout: convolution}},
	"Gemm":                         {{input: 1, bias: 2, layout: rightOperand}, {input: 0, data: 1, bias: 2, layout: leftOperand}},
	"FusedGemm":                    {{input: 1, bias: 2, layout: rightOperand}, {input: 0, data: 1, bias: 2, layout: leftOperand}},
	"GemmFastGelu":                 {{input: 1, bias: 2, layout: rightOperand}},
	"QGemm":                        {{input: 3, bias: 6, scale: 4, zero: 5, axis: -1, layout: rightOperand}},
	"MatMul":                       {{input: 1, bias: -1, layout: rightOperand}, {input: 0, data: 1, bias: -1, layout: leftOperand}},
	"FusedMatMul":                  {{input: 1, bias: -1, layout: rightOperand}, {input: 0, data: 1, bias: -1, layout: leftOperand}},
	"FusedMatMulActivation":        {{input: 1, bias: -1, layout: rightOperand}, {input: 0, data: 1, bias: -1, layout: leftOperand}},
	"QLinearMatMul":                {{input: 3, bias: -1, scale: 4, zero: 5, axis: -1, layout: rightOperand}, {input: 0, data: 3, bias: -1, scale: 1, zero: 2, axis: -2, layout: leftOperand}},
	"MatMulInteger":                {{input: 1, bias: -1, zero: 3, axis: -1, layout: rightOperand}, {input: 0, data: 1, bias: -1, zero: 2, axis: -2, layout: leftOperand}},
	"MatMulIntegerToFloat":         {{input: 1, bias: 6, scale: 3, zero: 5, axis: -1, layout: rightOperand}},
	"DynamicQuantizeMatMul":        {{input: 1, bias: 4, scale: 2, zero: 3, axis: -1, layout: rightOperand}},
	"MatMulNBits":                  {{input: 1, bias: 5, scale: 2, zero: 3, layout: packedBlocks}},
	"Attention":                    {{input: 1, bias: 2, layout: rightOperand, repeats: perStep}},
	"PackedAttention":              {{input: 1, bias: 2, layout: rightOperand, repeats: perStep}},
	"DecoderMaskedSelfAttention":   {{input: 1, bias: 2, layout: rightOperand, repeats: perStep}},
	"LongformerAttention":          {{input: 1, bias: 2, layout: rightOperand, repeats: perStep}, {input: 4, bias: 5, layout: rightOperand, repeats: perStep}},
	"QAttention":                   {{input: 1, bias: 2, scale: 4, zero: 7, axis: -1, layout: rightOperand, repeats: perStep}},
	"LSTM":                         {{input: 1, bias: 3, layout: inputGates, repeats: perStep}, {input: 2, bias: -1, layout: stateGates, repeats: perStep}},
	"GRU":                          {{input: 1, bias: 3, layout: inputGates, repeats: perStep}, {input: 2, bias: -1, layout: stateGates, repeats: perStep}},
	"RNN":                          {{input: 1, bias: 3, layout: inputGates, repeats: perStep}, {input: 2, bias: -1, layout: stateGates, repeats: perStep}},
	"DynamicQuantizeLSTM":          {{input: 1, bias: 3, scale: 8, zero: 9, axis: -1, layout: inputGatesLast, repeats: perStep}, {input: 2, bias: -1, scale: 10, zero: 11, axis: -1, layout: stateGatesLast, repeats: perStep}},
	"Gather":                       {{input: 0, data: -1, bias: -1, layout: lookupTable, repeats: never}},
	"EmbedLayerNormalization":      {{input: 2, data: -1, bias: -1, layout: lookupTable, repeats: never}, {input: 3, data: -1, bias: -1, layout: lookupTable, repeats: never}, {input: 4, data: -1, bias: -1, layout: lookupTable, repeats: never}},
	"QEmbedLayerNormalization":     {{input: 2, data: -1, bias: -1, scale: 8, zero: 13, layout: lookupTable, repeats: never}, {input: 3, data: -1, bias: -1, scale: 9, zero: 14, layout: lookupTable, repeats: never}, {input: 4, data: -1, bias: -1, scale: 10, zero: 15, layout: lookupTable, repeats: never}},
	"GatherBlockQuantized":         {{input: 0, data: -1, bias: -1, scale: 2, zero: 3, layout: lookupTable, repeats: never}},

	"CONV_2D":                      {{input: 1, bias: 2, layout: channelsLast}},
	"DEPTHWISE_CONV_2D":            {{input: 1, bias: 2, layout: depthwise}},
	"CONV_3D":                      {{input: 1, bias: 2, layout: inputsThenOutputs}},
	"TRANSPOSE_CONV":               {{input: 1, data: 2, bias: 3, layout: channelsLast, repeats: perInput}},
	"CONV_3D_TRANSPOSE":            {{input: 1, data: 2, bias: 3, layout: outputsThenInputs, repeats: perInput}},
	"FULLY_CONNECTED":              {{input: 1, bias: 2, layout: channelsLast, repeats: perInput}},
	"BATCH_MATMUL":                 {{input: 1, bias: -1, layout: rightOperand}, {input: 0, data: 1, bias: -1, layout: leftOperand}},
	"SVDF":                         {{input: 1, bias: 3, layout: channelsLast, repeats: perInput}, {input: 2, data: -1, bias: -1, layout: channelsLast, repeats: perStep}},
	"RNN lite":                     gates(1, 1, 2, 3),
	"UNIDIRECTIONAL_SEQUENCE_RNN":  gates(1, 1, 2, 3),
	"BIDIRECTIONAL_SEQUENCE_RNN":   append(gates(1, 1, 2, 3), gates(1, 5, 6, 7)...),
	"LSTM lite":                    append(gates(4, 1, 5, 12), projection(16)),
	"UNIDIRECTIONAL_SEQUENCE_LSTM": append(gates(4, 1, 5, 12), projection(16)),
	"BIDIRECTIONAL_SEQUENCE_LSTM":  append(append(gates(4, 1, 5, 12), projection(16)), append(gates(4, 18, 22, 29), projection(33))...),
	"GATHER":                       {{input: 0, data: -1, bias: -1, layout: lookupTable, repeats: never}},
	"EMBEDDING_LOOKUP":             {{input: 1, data: -1, bias: -1, layout: lookupTable, repeats: never}},
	"EMBEDDING_LOOKUP_SPARSE":      {{input: 3, data: -1, bias: -1, layout: lookupTable, repeats: never}},
}

// gates returns the weights of n gates of a recurrent TFLite operator: of the inputs, of the
// state, and the biases.
func gates(n, in, state, bias int) (list []operand) {
	for k := range n {
		list = append(list, operand{input: in + k, bias: bias + k, layout: channelsLast, repeats: perStep})
	}
	for k := range n {
		list = append(list, operand{input: state + k, data: -1, bias: -1, layout: channelsLast, repeats: perStep})
	}
	return list
}

func projection(input int) operand {
	return operand{input: input, data: -1, bias: input + 1, layout: channelsLast, repeats: perStep}
}

// operandsOf returns the weight operands of a node.
func operandsOf(n *graph.Node) []operand {
	switch n.Domain {
	case graph.TFLite:
		if n.Op == "LSTM" || n.Op == "RNN" {
			return weightOperands[n.Op+" lite"]
		}
		return weightOperands[n.Op]
	case graph.ONNX, graph.Microsoft:
		if n.Domain == graph.ONNX && n.Op == "Attention" { // takes no weights
			return nil
		}
		return weightOperands[n.Op]
	}
	return nil
}

// Inputs lists the inputs that can hold the weights of a matrix multiplication or a convolution,
// the usual one first. It is nil for other operators.
func Inputs(n *graph.Node) []int {
	var out []int
	for _, p := range multiplied(n) {
		out = append(out, p.input)
	}
	return out
}

// multiplied lists the operands of [Inputs].
func multiplied(n *graph.Node) []operand {
	list := operandsOf(n)
	if len(list) > 1 && !eitherOperand[n.Op] {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(p operand) bool { return p.repeats == never })
}
