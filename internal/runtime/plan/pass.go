package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// Pass is a transformation of a graph's nodes.
type Pass struct {
	Name string
	Doc  string // one sentence
	// Rounds says that results may differ in rounding from those of the file's operators run one
	// by one: see [Options.Exact].
	Rounds bool
	Run    func(*Graph)
}

// Passes lists the passes in the order in which they run.
func Passes() []Pass {
	return []Pass{
		{"fold", "Infer types and shapes, and compute nodes that read only constants once.", false, (*Graph).InferAll},
		{"unused-outputs", "Drop optional outputs that nothing reads, and Dropout nodes in inference mode.", false, dropUnused},
		{"set-row", "Replace SLICE and CONCATENATION that set one row of a list by an in-place row update.", false, fuseSetRow},
		{"batch-rows", "Batch matrix multiplications of the rows of one value that share their weights.", false, batchRows},
		{"qdq", "Lower operators between DequantizeLinear and QuantizeLinear to 8-bit integer arithmetic.", true, qdq},
		{"widen-float16", "Keep float16 values in float32 between operators that compute in float32.", true, widenFloat16},
		{"functions", "Fuse the operators of an activation function such as SiLU or GELU.", true, fuseFunctions},
		{"logistic-product", "Multiply a LOGISTIC by its input in the same pass over memory.", false, fuseLogisticProducts},
		{"transposes", "Run an element-wise operator between a Transpose and its inverse without both.", false, cancelTransposes},
		{"normalisation", "Fuse the operators of a LayerNormalization or RMSNormalization.", true, fuseNorms},
		{"sum-of-squares", "Fuse the operators of a sum of squares (ReduceSumSquare) or an L2 norm (ReduceL2).", true, fuseSumsOfSquares},
		{"attention", "Fuse MatMul, softmax and MatMul into attention that is computed block by block.", true, fuseAttentions},
		{"softmax-axis", "Compute a SOFTMAX along the axis that the file transposes to the end and back.", false, fuseSoftmaxAxis},
		{"pointwise-conv", "Replace Transpose, MatMul over the channels and Transpose by a 1×1 convolution.", true, pointwiseConvs},
		{"bias", "Fuse the addition of a constant into the convolution or MatMul before it.", true, fuseBiases},
		{"integer-products", "Fuse a MatMulInteger, the Cast of its sums, their scales and a bias.", false, fuseIntegerProducts},
		{"quantised-weights", "Let MatMul read constant weights in their quantised form instead of dequantising them.", true, readQuantisedWeights},
		{"batchnorm", "Fold a batch normalisation into the weights of the convolution before it.", true, fuseBatchNorms},
		{"padding", "Fuse a zero padding operator into the convolution after it.", true, fusePadding},
		{"activation", "Fuse a clamp (ReLU, Clip) into the operator before it.", false, fuseActivations},
		{"channels-last", "Keep 8-bit quantised feature maps in channels-last (NHWC) order where that is faster.", false, channelsLast},
	}
}

// readers counts the readers of each value among the tasks that run or fold. Graph outputs and
// captured values count two more, because they must keep their own memory.
func (g *Graph) readers() []int {
	uses := make([]int, len(g.Values))
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		for _, id := range t.Node.Inputs {
			if id >= 0 {
				uses[id]++
			}
		}
		for _, id := range g.Captured(t.Node) {
			uses[id] += 2
		}
	}
	for _, id := range g.File.Outputs {
		if id >= 0 {
			uses[id] += 2
		}
	}
	return uses
}

// any reports whether so holds for at least one task.
func (g *Graph) any(so func(*Task) bool) bool {
	for i := range g.Tasks {
		if so(&g.Tasks[i]) {
			return true
		}
	}
	return false
}

// replace makes task i run node n and fuses the tasks of with into it. Infer the tasks
// afterwards.
func (g *Graph) replace(i int, n *graph.Node, with ...int) {
	t := &g.Tasks[i]
	t.Node, t.settled, t.Ready = n, false, false
	for _, j := range with {
		u := &g.Tasks[j]
		if u.State == Fused {
			continue
		}
		u.State, u.Into, u.Err, u.Ready = Fused, i, nil, false
		t.Fused = append(t.Fused, j)
	}
	slices.Sort(t.Fused)
}

// Revert restores the nodes of the file for a lowered task, for the tasks fused into it and for
// conversions that it needs again. It returns the first task that has changed.
func (g *Graph) Revert(i int) int {
	first := i
	var back func(j int)
	back = func(j int) {
		u := &g.Tasks[j]
		if u.final {
			return
		}
		fused, pair := u.Fused, u.pair
		if u.State == Fused {
			o := &g.Tasks[u.Into]
			o.Fused = slices.DeleteFunc(slices.Clone(o.Fused), func(k int) bool { return k == j })
		}
		u.Node, u.State, u.settled, u.final, u.Ready = g.File.Nodes[j], Runs, false, true, false
		wide := u.wide
		u.Fused, u.Lowered, u.wide, u.pair, u.act = nil, false, false, 0, activation.Clamp{}
		first = min(first, j)
		for _, k := range fused {
			back(k)
		}
		if pair > 0 {
			back(pair - 1)
		}
		for _, id := range u.Node.Inputs {
			if id >= 0 && g.maker[id] > 0 && g.Tasks[g.maker[id]-1].State == Fused {
				back(g.maker[id] - 1)
			}
		}
		if !wide {
			return
		}
		// Other tasks read and write float32 twins that depend on this one.
		for k := range g.Tasks {
			if g.Tasks[k].wide {
				back(k)
			}
		}
	}
	back(i)
	g.InferAll()
	return min(first, g.chooseNHWC())
}
