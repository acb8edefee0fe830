package align

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/profile"
)

// Rules by which exporters, converters and optimisers make names of the names of the model. What
// they add is taken off, so that the names of one layer in two files are equal.
var (
	// TensorFlow's savers put these before all names.
	namePrefixes = []string{"StatefulPartitionedCall/", "PartitionedCall/", "model/", "tfl.", "serving_default_", "graph/"}

	// Quantisers and graph optimisers add these, and ONNX exporters the ones of results.
	nameSuffixes = []string{
		"_quant", "_quantized", "_Quantized", "_QuantizeLinear", "_DequantizeLinear", "_QuantizeLinear_Output", "_DequantizeLinear_Output", "_quant_scale_mul",
		"_MatMul_quant_scale_mul", "_scale_mul", "_MatMul_quant_output_scale_mul", "_output_quantized_cast", "_output_scale_mul", "_quantized_cast", "_bias_add", "_bias",
		"_fused", "_Fused", "_fp16", "_nchwc", "_nhwc", "_token", "_prequant", "_reshape_bias", "_sums", "_sums_float", "_product",
		"_output_0", ":0", "/ReadVariableOp", "__quantized", "_cast_to_fp16", "_precision_cast",
	}

	// The last parts of names of TensorFlow operators, of which one layer has several.
	nameOperators = lazyregexp.New(`/(Conv[123]D|Conv2DBackpropInput|DepthwiseConv2dNative|depthwise|MatMul|BiasAdd|Relu6?|` +
		`FusedBatchNorm(V[123])?|add|Add|AddV2|mul|Conv|Gemm|MatMul_quant|kernel|weights?|conv[123]d_transpose|separable_conv2d)(_[0-9]+)?$`)

	// A program that makes names by counting gives another layer of another model the same name.
	numbered = lazyregexp.New(`^([^/.]*|input\.)[0-9]+$`)
)

// name is what a layer is named by.
type name struct {
	text string
	// numbered says that a program may have made it by counting.
	numbered bool
}

// namesOf lists what a layer is named by, the strongest first: node, results, weights.
func namesOf(l *profile.Layer) []name {
	var out []name
	add := func(kind, text string) {
		if text = plainName(text); text != "" {
			out = append(out, name{kind + text, numbered.MatchString(text)})
		}
	}
	add("n:", l.Name)
	if len(l.Outputs) > 0 {
		add("t:", l.Outputs[0].Name)
	}
	if l.Weights != nil {
		add("w:", l.Weights.Name)
	}
	return out
}

// plainName takes from a name what tools add.
func plainName(name string) string {
	// TFLite joins the names of what it fuses: the first that is not a bias counts.
	if parts := strings.Split(name, ";"); len(parts) > 1 {
		name = parts[0]
		for _, p := range parts {
			if strings.Contains(p, "Conv") || strings.Contains(p, "MatMul") || strings.Contains(p, "epthwise") {
				name = p
				break
			}
		}
	}
	for again := true; again; {
		again = false
		for _, p := range namePrefixes {
			if rest, ok := strings.CutPrefix(name, p); ok && rest != "" {
				name, again = rest, true
			}
		}
		for _, s := range nameSuffixes {
			if rest, ok := strings.CutSuffix(name, s); ok && rest != "" {
				name, again = rest, true
			}
		}
	}
	return nameOperators.ReplaceAllString(name, "")
}
