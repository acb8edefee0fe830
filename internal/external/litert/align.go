package litert

import (
	"slices"
	"strings"
)

// step is an executed operator. Steps are in execution order.
type step struct {
	node int    // of the interpreter, -1 for a delegate's operator
	name string // of a delegate's operator
}

// align returns the node of each step by its index in the list of nodes, -1 for steps whose node
// is ambiguous or that have none. sure says that the assignment is certain: all steps around it
// have a node, and all nodes that produce an operator have one.
//
// Both lists are in execution order. A delegate turns most nodes into one operator, some into
// several (an addition with activation into an add and a clamp), some into none (padding that a
// convolution applies). align scores what the operator names permit over the whole list (dynamic
// programming). Of all optimal alignments only what they agree on is used.
func align(nodes []string, steps []step, position func(node int) int) (out []int, sure []bool) {
	out, sure = make([]int, len(steps)), make([]bool, len(steps))
	for j := range out {
		out[j] = -1
	}
	// Steps of the interpreter are known and split the lists into pieces.
	from, begin := 0, 0
	for j := 0; j <= len(steps); j++ {
		to := len(nodes)
		if j < len(steps) {
			if steps[j].node < 0 {
				continue
			}
			p := position(steps[j].node)
			if p < 0 {
				continue
			}
			out[j], sure[j], to = p, true, p
		}
		if to >= from { // otherwise the order differs from the assumption: skip the piece
			if piece(nodes[from:to], steps[begin:j], out[begin:j], from) {
				for k := begin; k < j; k++ {
					sure[k] = true
				}
			}
			from = to + 1
		}
		begin = j + 1
	}
	return out, sure
}

// maxCells bounds the table of a piece.
const maxCells = 4 << 20

// longest is the maximum number of operators that one node can become.
const longest = 6

// piece aligns the lists between two known steps, and reports whether every step and node was
// matched.
func piece(nodes []string, steps []step, out []int, offset int) bool {
	n, m := len(nodes), len(steps)
	if n == 0 || m == 0 || (n+1) > maxCells/(m+1) {
		return false
	}
	w := m + 1
	const none = -1 << 30
	ahead, behind := make([]int32, (n+1)*w), make([]int32, (n+1)*w)
	for i := range ahead {
		ahead[i], behind[i] = none, none
	}
	ways := func(i, j int, use func(k int, score int32)) {
		if i < n {
			use(0, skip(nodes[i], steps[j:]))
			most := longest
			if kernels[nodes[i]].any {
				most = m
			}
			for k := 1; k <= most && j+k <= m; k++ {
				if s := fits(nodes[i], steps[j:j+k]); s > 0 {
					use(k, s)
				}
			}
		}
	}
	ahead[0] = 0
	for i := 0; i <= n; i++ {
		for j := 0; j <= m; j++ {
			v := ahead[i*w+j]
			if v == none {
				continue
			}
			if j < m {
				ahead[i*w+j+1] = max(ahead[i*w+j+1], v+alone)
			}
			ways(i, j, func(k int, s int32) { ahead[(i+1)*w+j+k] = max(ahead[(i+1)*w+j+k], v+s) })
		}
	}
	behind[n*w+m] = 0
	for i := n; i >= 0; i-- {
		for j := m; j >= 0; j-- {
			v := behind[i*w+j]
			if j < m {
				v = max(v, behind[i*w+j+1]+alone)
			}
			ways(i, j, func(k int, s int32) { v = max(v, behind[(i+1)*w+j+k]+s) })
			behind[i*w+j] = v
		}
	}
	best := ahead[n*w+m]
	whole := complete(n, m, func(i, j int) bool { return ahead[i*w+j] != none && ahead[i*w+j]+behind[i*w+j] == best }, ways, func(i, j, k, l int, s int32) bool {
		return ahead[i*w+j]+s == ahead[k*w+l]
	})
	const several = -2
	owner := make([]int, m)
	for j := range owner {
		owner[j] = -1
	}
	say := func(j, i int) {
		if owner[j] == -1 {
			owner[j] = i
		} else if owner[j] != i {
			owner[j] = several
		}
	}
	for i := 0; i <= n; i++ {
		for j := 0; j <= m; j++ {
			v := ahead[i*w+j]
			if v == none || v+behind[i*w+j] != best {
				continue
			}
			if j < m && v+alone+behind[i*w+j+1] == best {
				say(j, several)
			}
			ways(i, j, func(k int, s int32) {
				if v+s+behind[(i+1)*w+j+k] == best {
					for x := range k {
						say(j+x, i)
					}
				}
			})
		}
	}
	for j, i := range owner {
		if i >= 0 {
			out[j] = offset + i
		}
	}
	return whole
}

// complete follows one optimal alignment and reports whether it matches everything.
func complete(n, m int, on func(i, j int) bool, ways func(i, j int, use func(k int, score int32)), leads func(i, j, k, l int, s int32) bool) bool {
	for i, j := 0, 0; i < n || j < m; {
		k, l := -1, 0
		ways(i, j, func(d int, s int32) {
			if k < 0 && s > lost && on(i+1, j+d) && leads(i, j, i+1, j+d, s) {
				k, l = i+1, j+d
			}
		})
		if k < 0 {
			return false
		}
		i, j = k, l
	}
	return true
}

// alone is the score of an operator without a node.
const alone = -30

// skip returns the score of a node without an operator.
func skip(op string, next []step) int32 {
	switch {
	case folds[op]:
		return -1
	case len(next) > 0 && part(op, next[0].name):
		return -2 // part of the next one
	}
	return lost
}

// part reports whether a node can be executed by an operator that does several.
func part(op, name string) bool {
	kind, _, _ := strings.Cut(name, " (")
	switch kind {
	case scaled, "Mean Squared":
		return op == "MUL" || op == "SQUARE" // of the sum or mean behind it
	}
	return slices.Contains(fused, kind) && slices.Contains(kernels[op].main, fused[0])
}

// scaled is XNNPACK's name of a scaled sum of squares.
const scaled = "Normalize" //nolint:misspell // as the library spells it

// fused are the names of operators that execute several consecutive elementwise nodes.
var fused = []string{"Unary Elementwise", "Invalid Unary Op"}

// lost is the score of a node that should have an operator and has none.
const lost = -20

// folds are nodes for which delegates often have no operator: a neighbour does the work, it is
// done once when the model is prepared, or it is dropped.
var folds = map[string]bool{
	"PAD": true, "PADV2": true, "RELU": true, "RELU6": true, "RELU_N1_TO_1": true, "RELU_0_TO_1": true, "DEQUANTIZE": true, "DENSIFY": true, "RESHAPE": true, "SQUEEZE": true,
	"EXPAND_DIMS": true, "SHAPE": true, "QUANTIZE": true, "CAST": true, "STABLEHLO_COMPOSITE": true, "VAR_HANDLE": true, "TRANSPOSE": true, "BROADCAST_TO": true,
	"READ_VARIABLE": true, "ASSIGN_VARIABLE": true,
}

// fits scores how well consecutive operators match a node; 0 if they do not.
func fits(op string, steps []step) int32 {
	own, ok := kernels[op]
	switch {
	case !ok:
		return 0
	case own.any:
		return 50
	}
	main := 0
	for i := range steps {
		kind, _, _ := strings.Cut(steps[i].name, " (")
		switch {
		case steps[i].node >= 0:
			return 0
		case slices.Contains(own.main, kind):
			main++
		case !slices.Contains(own.beside, kind), main == 0 && kind == "Clamp", main > 0 && slices.Contains(before, kind):
			return 0
		case main > 0 && op == "FULLY_CONNECTED" && kind == "Static Reshape":
			return 0 // it makes rows of an operand, and leaves the result as it is
		}
	}
	switch {
	case main == 0:
		return 0
	case main > 1 && !own.many:
		return 0
	case op == "CONV_2D" && strings.HasSuffix(steps[0].name, "DWConv"), op == "DEPTHWISE_CONV_2D" && !strings.HasSuffix(steps[0].name, "DWConv"):
		return 80 // possible with groups, and with few channels
	}
	return 100 - 10*int32(len(steps)-main) - int32(main) //nolint:gosec // at most longest
}

// kernel describes the operators that XNNPACK creates for a kind of node.
type kernel struct {
	main   []string // the main operators
	beside []string // optional operators before or after
	many   bool     // several may do the work
	any    bool     // a graph of its own, with any contents
}

// moving are operators that change the place, shape or type of data for another operator, or
// clamp its result.
var moving = []string{"Static Reshape", "Copy", "Convert", "Transpose", "Clamp", "Pack LH", "Constant Pad", "Static Expand Dims", "Fuse Dims", "Split Dims"}

// before are the moving operators that prepare an operand: they come before the main operator.
var before = []string{"Convert", "Pack LH", "Constant Pad", "Static Expand Dims"}

func one(names ...string) kernel {
	return kernel{main: append(names, fused...), beside: []string{"Convert", "Copy"}}
}

func two(names ...string) kernel {
	return kernel{main: append(append(names, "Binary Elementwise"), fused...), beside: []string{"Clamp", "Convert", "Copy", "Static Reshape", "Negate"}}
}

// kernels maps the nodes that TensorFlow Lite's XNNPACK delegate takes to operator names. These
// are given by xnn_operator_type_to_string (XNNPACK) and XNNPACK's node types.
var kernels = map[string]kernel{
	"CONV_2D":           {main: []string{"Convolution", "Fully Connected"}, beside: moving},
	"DEPTHWISE_CONV_2D": {main: []string{"Convolution"}, beside: moving},
	"TRANSPOSE_CONV":    {main: []string{"Deconvolution"}, beside: moving},
	"FULLY_CONNECTED":   {main: []string{"Fully Connected", "Dynamic Fully Connected", "Batch Matrix Multiply", "Convolution"}, beside: moving},
	"BATCH_MATMUL":      {main: []string{"Batch Matrix Multiply", "Fully Connected", "Dynamic Fully Connected"}, beside: moving},
	"AVERAGE_POOL_2D":   {main: []string{"Average Pooling", "Mean"}, beside: moving},
	"MAX_POOL_2D":       {main: []string{"Max Pooling", "Clamp"}, beside: moving},
	"MEAN":              {main: []string{"Mean", "Average Pooling", "Sum", "Mean Squared", scaled}, beside: moving},
	"SUM":               {main: []string{"Sum", scaled, "Mean Squared"}, beside: moving},
	"REDUCE_MAX":        {main: []string{"Reduce Max"}, beside: moving},
	"REDUCE_MIN":        {main: []string{"Reduce Min"}, beside: moving},
	"ADD":               two("Add"), "SUB": two("Subtract"), "MUL": two("Multiply", "Square"), "DIV": two("Divide"), "MAXIMUM": two("Maximum"), "MINIMUM": two("Minimum"),
	"SQUARED_DIFFERENCE": two("Squared Difference"), "PRELU": two("PReLU"), "POW": two("Power"), "FLOOR_MOD": two("Modulus"), "ATAN2": two("ATan2"), "SIGN": one("Sign"),
	"ABS": one("Abs"), "CEIL": one("Ceiling"), "COS": one("Cosine"), "SIN": one("Sine"), "ELU": one("ELU"), "EXP": one("Exp"), "FLOOR": one("Floor"), "GELU": one("GELU", "ApproxGELU"),
	"HARD_SWISH": one("HardSwish"), "LEAKY_RELU": one("LeakyReLU"), "LOG": one("Log"), "LOGISTIC": one("Sigmoid"), "NEG": one("Negate"), "ROUND": one("Bankders Rounding", "Bankers Rounding"),
	"RSQRT": one("Reciprocal Square Root"), "SQRT": one("Square Root"), "SQUARE": one("Square", "Multiply"), "TANH": one("TanH"),
	"RELU": one("Clamp", "Maximum"), "RELU6": one("Clamp"), "RELU_N1_TO_1": one("Clamp"), "RELU_0_TO_1": one("Clamp"),
	"QUANTIZE": one("Convert", "Copy"), "DEQUANTIZE": one("Convert", "Copy"), "CAST": one("Convert", "Copy"),
	"RESHAPE": {main: []string{"Static Reshape", "Copy", "Fuse Dims", "Split Dims"}}, "SQUEEZE": {main: []string{"Static Reshape", "Copy", "Fuse Dims"}},
	"EXPAND_DIMS": {main: []string{"Static Reshape", "Copy", "Static Expand Dims", "Split Dims"}}, "TRANSPOSE": {main: []string{"Transpose", "Copy", "Static Reshape"}},
	"PAD": {main: []string{"Constant Pad"}}, "PADV2": {main: []string{"Constant Pad"}}, "BROADCAST_TO": {main: []string{"Static Broadcast", "Copy", "Add", "Multiply"}},
	"CONCATENATION": {main: []string{"Copy", "Concatenate"}, beside: []string{"Clamp"}, many: true}, "SPLIT": {main: []string{"Copy", "Slice", "Split"}, many: true}, "UNPACK": {main: []string{"Copy", "Slice"}, many: true},
	"SLICE": {main: []string{"Slice", "Copy"}}, "STRIDED_SLICE": {main: []string{"Slice", "Copy"}, beside: []string{"Static Reshape"}},
	"SOFTMAX": {main: []string{"Softmax"}, beside: moving}, "RESIZE_BILINEAR": {main: []string{"Resize Bilinear"}, beside: moving},
	"DEPTH_TO_SPACE": {main: []string{"Depth To Space"}}, "SPACE_TO_DEPTH": {main: []string{"Space To Depth"}},
	"ARG_MAX": {main: []string{"ArgMax Pooling"}},
	// Custom operators that the delegate takes by name.
	"MaxPoolingWithArgmax2D": {main: []string{"ArgMax Pooling"}}, "MaxUnpooling2D": {main: []string{"Unpooling"}}, "Convolution2DTransposeBias": {main: []string{"Deconvolution"}, beside: moving},
	"STABLEHLO_COMPOSITE": {any: true}, // run as the graph behind it
	"READ_VARIABLE":       {main: []string{"Copy"}}, "ASSIGN_VARIABLE": {main: []string{"Copy"}},
}
