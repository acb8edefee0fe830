package count

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

const preamble = `# How work is counted

<!-- Generated from the rules in internal/model/count by go generate ./internal/model/count. Do not edit. -->

opmeter counts, for every operator and without running it, operations, multiply-accumulates (MACs), parameters and
bytes. All figures are of one execution with the given shapes, the batch included. A figure that cannot be known is
absent: it is never zero. Totals say how many layers they leave out.

## Conventions

**macs** is the number of multiply-accumulates of convolutions, matrix products, recurrent gates and attention, as
papers and vendors state it: taps that fall on padding count. Element-wise products, pooling and normalisation are no
MACs.

**macs_executed** is the same without the taps that fall on padding (for transposed convolutions: outside the output),
which a good kernel skips. It is never larger.

**ops** is the number of arithmetic operations. A MAC is two. An addition, product, division, comparison, root,
exponential, logarithm, sine or the like is one each; composed functions count what they are composed of (a sigmoid:
negate, exp, add, divide). A bias is one addition for every output element. A fused activation counts, for every output
element, one for RELU, TANH and SIGN_BIT and two for RELU6 and RELU_N1_TO_1. Moving data is no operation. Other programs
weigh functions differently (64 for a sigmoid, 32 for an exponential), so compare ops only with ops of the same
convention; macs compare everywhere.

**params** is the number of constant elements that are weights. Integer constants without quantisation (shapes, axes,
indices) are no weights, except as operands of integer products. A tensor that two layers read counts in both, and once
in the total. **weights_bytes** is their size as stored, sparse encodings without their indices.

**bytes_read** and **bytes_written** are the sizes of the operands, each once a layer whatever caches do; look-ups and
slices read what they return. Divided by the time they give the least bandwidth that the layer had.

**Control flow** is no work itself. The work of a body is that of its operators times the number of its executions, where
this follows from the model (a constant condition, trip count or scan length); otherwise the total leaves it out and
says so.

**Constant** operators (all they read is constant, or a shape) are counted for themselves and left out of totals: an
engine may compute them once, so they are no work of an inference.

## MLTK-compatible counts

**mltk_ops** and **mltk_macs** repeat the arithmetic of the Silicon Labs MLTK profiler for TFLite models, defects
included, to compare with its tables. With A(n) = 2n for a fused RELU, RELU6 or RELU_N1_TO_1 and 0 otherwise; the
batch is ignored:

| operator | mltk_macs | mltk_ops |
| --- | --- | --- |
| FULLY_CONNECTED | outputs·inputs | 2·MACs + outputs if bias + A(outputs) |
| CONV_2D | kh·kw·Cin·Hout·Wout·Cout | 2·MACs + Hout·Wout·Cout if bias + A(Hout·Wout·Cout) |
| DEPTHWISE_CONV_2D | kh·kw·Cin·multiplier·Hout·Wout | 2·MACs + Cin·multiplier·Hout·Wout if bias + A(Hout·Wout·Cout) |
| TRANSPOSE_CONV | kh·kw·Cout·Hin·Win·Cin | 2·MACs + h·w·Cout if bias, with h and w the size after *striding the input* |
| MAX_POOL_2D | 0 | kh·kw·Hout·Wout·C + A |
| AVERAGE_POOL_2D | 0 | (kh·kw + 1)·Hout·Wout·C + A |
| SOFTMAX | 0 | 5·N with N the second dimension for rank 2, else the *first* |
| ADD | 0 | elements of input 0 |
| MUL | 0 | elements of the output |
| QUANTIZE | 0 | 4·elements(input) |
| DEQUANTIZE, RELU, RELU6 | 0 | 2·elements(input) |
| PAD | 0 | 6·elements(output) |
| RESIZE_NEAREST_NEIGHBOR | 0 | Hout·(8 + 8·Wout) |
| all others | 0 | 0 |

## Rules

"elements(x)" is the product of the dimensions of x; kh and kw are the kernel's height and width, K the inner dimension of
a product.
`

// Markdown writes docs/counting.md from the rules.
func Markdown() []byte {
	var b bytes.Buffer
	b.WriteString(preamble)
	titles := map[string]string{
		graph.TFLite: "TFLite", graph.TFLiteCustom: "TFLite, custom operators", graph.ONNX: "ONNX", graph.ONNXML: "ONNX, ai.onnx.ml",
		graph.ONNXTraining: "ONNX, ai.onnx.preview.training", graph.Microsoft: "ONNX, com.microsoft", graph.Own: "What plans write in place of nodes of ONNX",
	}
	domain := "none"
	for _, r := range Rules() {
		if r.Domain != domain {
			domain = r.Domain
			fmt.Fprintf(&b, "\n### %s\n\n| group | operators | macs | ops |\n| --- | --- | --- | --- |\n", titles[domain])
		}
		names := slices.Clone(r.Names)
		slices.Sort(names)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Group, strings.Join(names, ", "), r.MACs, r.Ops)
	}
	return b.Bytes()
}
