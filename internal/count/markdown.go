package count

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
)

const preamble = `# Counting formulas of every operator

<!-- Generated from the rules in internal/model/count by go generate ./internal/model/count. Do not edit. -->

This page lists the MACs and operations of every operator that opmeter knows. What counts as a
MAC, an operation, a parameter or a byte is explained in
[How work is counted](../explanation/counting.md).

## MLTK-compatible counts

**mltk_ops** and **mltk_macs** repeat the arithmetic of the Silicon Labs MLTK profiler for TFLite
models, defects included. A(n) = 2n for a fused RELU, RELU6 or RELU_N1_TO_1, else 0. The batch is
ignored.

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

elements(x) is the product of the dimensions of x. kh and kw are the kernel's height and width. K is
the inner dimension of a matrix multiplication. Figures are of one execution with the given shapes,
the batch included.
`

// Markdown writes docs/reference/counting.md from the rules.
func Markdown() []byte {
	var b bytes.Buffer
	b.WriteString(preamble)
	titles := map[string]string{
		graph.TFLite: "TFLite", graph.TFLiteCustom: "TFLite, custom operators", graph.ONNX: "ONNX", graph.ONNXML: "ONNX, ai.onnx.ml",
		graph.ONNXTraining: "ONNX, ai.onnx.preview.training", graph.Microsoft: "ONNX, com.microsoft", graph.Own: "Operators of the execution plan that replace ONNX nodes",
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
