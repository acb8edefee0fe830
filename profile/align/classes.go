package align

import "strings"

// role says how an operator takes part in the alignment.
type role uint8

const (
	// core operators are aligned with each other first.
	core role = iota
	// satellite operators follow a core operator, which exporters and optimisers fuse them into.
	satellite
	// conversion operators change types, and belong to the layers that they convert for.
	conversion
	// layout operators change shapes, and are listed by themselves.
	layout
)

// classes gives operators of all formats that compute the same the same name. Keys are lower case
// without separators.
var classes = func() map[string]string {
	out := map[string]string{}
	for class, ops := range map[string]string{
		"conv":          "conv conv1d conv2d conv3d depthwiseconv2d convinteger qlinearconv fusedconv convolution groupconvolution nhwcconv nhwcfusedconv qconv2d",
		"convtranspose": "convtranspose transposeconv convolutionbackpropdata groupconvolutionbackpropdata qlinearconvtranspose conv2dtranspose",
		"matmul": "matmul gemm fullyconnected batchmatmul matmulinteger qlinearmatmul qgemm fusedmatmul fusedgemm matmulnbits dynamicquantizematmul matmulintegertofloat " +
			"linear innerproduct dense",
		"add":            "add qlinearadd",
		"sub":            "sub subtract",
		"mul":            "mul multiply qlinearmul",
		"div":            "div divide",
		"relu":           "relu relu6 relun1to1 clip clamp",
		"sigmoid":        "sigmoid logistic qlinearsigmoid",
		"leakyrelu":      "leakyrelu qlinearleakyrelu",
		"gelu":           "gelu fastgelu biasgelu quickgelu",
		"averagepool":    "averagepool averagepool2d globalaveragepool mean reducemean qlinearaveragepool qlinearglobalaveragepool avgpool nhwcaveragepool qlinearreducemean",
		"maxpool":        "maxpool maxpool2d globalmaxpool nhwcmaxpool",
		"concat":         "concat concatenation qlinearconcat",
		"softmax":        "softmax qlinearsoftmax",
		"resize":         "resize upsample resizebilinear resizenearestneighbor interpolate",
		"gather":         "gather embeddinglookup",
		"slice":          "slice stridedslice",
		"pad":            "pad padv2 mirrorpad",
		"lstm":           "lstm dynamicquantizelstm unidirectionalsequencelstm lstmsequence",
		"gru":            "gru grusequence",
		"norm":           "layernormalization skiplayernormalization simplifiedlayernormalization skipsimplifiedlayernormalization rmsnormalization",
		"attention":      "attention multiheadattention groupqueryattention qattention scaleddotproductattention",
		"batchnorm":      "batchnormalization batchnorminference",
		"quantize":       "quantizelinear quantize dequantizelinear dequantize fakequantize dynamicquantizelinear",
		"cast":           "cast convert castlike",
		"constant":       "constant constantofshape",
		"identity":       "identity dropout copy memcpyfromhost memcpytohost result",
		"reshape":        "reshape flatten squeeze unsqueeze expanddims shape",
		"transpose":      "transpose permute reorderinput reorderoutput reorder reformat",
		"spacetodepth":   "spacetodepth",
		"depthtospace":   "depthtospace pixelshuffle",
		"hardswish":      "hardswish hswish",
		"silu":           "silu swish quickswish",
		"prelu":          "prelu",
		"instancenorm":   "instancenormalization groupnormalization mvn",
		"argmax":         "argmax topk",
		"reducesum":      "sum reducesum",
		"split":          "split splitv variadicsplit",
		"squaredmean":    "squareddifference",
		"rotaryembed":    "rotaryembedding",
		"embedlayernorm": "embedlayernormalization",
	} {
		for _, op := range strings.Fields(ops) {
			out[op] = class
		}
	}
	return out
}()

var roles = map[string]role{
	"relu": satellite, "sigmoid": satellite, "leakyrelu": satellite, "gelu": satellite, "hardswish": satellite, "silu": satellite, "prelu": satellite, "tanh": satellite,
	"elu": satellite, "selu": satellite, "hardsigmoid": satellite, "erf": satellite, "batchnorm": satellite, "pad": satellite, "spacetobatchnd": satellite, "batchtospacend": satellite,
	"quantize": conversion, "cast": conversion, "identity": conversion, "constant": conversion,
	"reshape": layout, "transpose": layout,
}

// arithmetic operators with one operand that is not constant are satellites: they add a bias or
// apply a scale.
var arithmetic = map[string]bool{"add": true, "sub": true, "mul": true, "div": true}

// commutative operators compute the same in any order of their operands.
var commutative = map[string]bool{"add": true, "mul": true}

// Class returns the name of all operators that compute the same, in any format: "conv" for Conv,
// QLinearConv and CONV_2D.
func Class(op string) string { return classOf(op) }

// Heavy reports whether an operator holds most weights or work of models: convolutions, matrix
// multiplications, recurrent layers, attention, normalisation.
func Heavy(op string) bool { return heavy[classOf(op)] }

// classOf returns the class of an operator.
func classOf(op string) string {
	var b strings.Builder
	if i := strings.LastIndexAny(op, ".:"); i >= 0 {
		op = op[i+1:]
	}
	for _, r := range strings.ToLower(op) {
		if r != '_' && r != '-' && r != ' ' {
			b.WriteRune(r)
		}
	}
	if c, ok := classes[b.String()]; ok {
		return c
	}
	return b.String()
}
