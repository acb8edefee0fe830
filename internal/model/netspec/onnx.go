package netspec

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// opset is the operator set of the ONNX models, irVersion the format that came with it.
const opset, irVersion = 17, 8

// ONNX returns a float32 model of [Model] as an ONNX model that computes the same. Images are
// NCHW, as exporters write them, also where they are inputs or outputs.
func ONNX(m *graph.Model) (*graph.Model, error) {
	from := m.Main()
	c := &converter{
		from: from, to: &graph.Graph{Name: from.Name}, ids: map[int]int{}, image: map[int]bool{}, names: map[string]bool{},
	}
	for _, v := range from.Values {
		if v.Type == tensor.Int8 {
			return nil, fmt.Errorf("type int8 is for TFLite files: write type: float32 for an ONNX file")
		}
		c.names[v.Name] = true
	}
	for _, id := range from.Inputs {
		v := from.Values[id]
		c.set(id, c.value(v.Name, c.stored(v.Shape, len(v.Shape) == 4)), len(v.Shape) == 4)
		c.to.Inputs = append(c.to.Inputs, c.ids[id])
	}
	for _, n := range from.Nodes {
		convert := converters[n.Op]
		if convert == nil {
			return nil, fmt.Errorf("layer %q: ONNX has no equal operator: build a .tflite file", from.Values[n.Outputs[0]].Name)
		}
		if err := convert(c, n); err != nil {
			return nil, fmt.Errorf("layer %q: %w", from.Values[n.Outputs[0]].Name, err)
		}
	}
	for _, id := range from.Outputs {
		c.to.Outputs = append(c.to.Outputs, c.ids[id])
	}
	out := &graph.Model{
		Format: "onnx", Name: m.Name, Description: m.Description, Producer: m.Producer, IRVersion: irVersion,
		Opsets: map[string]int{"": opset}, Graphs: []*graph.Graph{c.to},
	}
	return out, out.Validate()
}

// converter makes the nodes of an ONNX graph.
type converter struct {
	from, to *graph.Graph
	ids      map[int]int  // values of to by those of from
	image    map[int]bool // values of from that are NCHW in to
	names    map[string]bool
}

// stored is the shape of a value: that of an image with its channels first.
func (c *converter) stored(shape []int, image bool) []int {
	if image {
		return []int{shape[0], shape[3], shape[1], shape[2]}
	}
	return slices.Clone(shape)
}

func (c *converter) value(name string, shape []int) int {
	v := &graph.Value{ID: len(c.to.Values), Name: name, Type: tensor.Float32, Shape: shape, HasShape: true, Offset: -1}
	c.to.Values = append(c.to.Values, v)
	return v.ID
}

// own returns a name that no other value has.
func (c *converter) own(name string) string {
	for base, k := name, 2; c.names[name]; k++ {
		name = fmt.Sprintf("%s_%d", base, k)
	}
	c.names[name] = true
	return name
}

func (c *converter) set(from, to int, image bool) { c.ids[from], c.image[from] = to, image }

func (c *converter) constant(name string, t *tensor.Tensor) int {
	v := &graph.Value{ID: len(c.to.Values), Name: c.own(name), Type: t.Type, Shape: t.Shape, HasShape: true, Const: t, Offset: -1}
	c.to.Values = append(c.to.Values, v)
	return v.ID
}

func (c *converter) int64s(name string, list ...int) int {
	t := tensor.New(tensor.Int64, len(list))
	for i, x := range list {
		tensor.Of[int64](t)[i] = int64(x)
	}
	return c.constant(name, t)
}

func (c *converter) float(name string, x float32) int {
	t := tensor.New(tensor.Float32)
	tensor.Of[float32](t)[0] = x
	return c.constant(name, t)
}

// floats copies a constant of from in another order of its axes.
func (c *converter) floats(id int, perm ...int) *tensor.Tensor {
	x := c.from.Values[id].Const
	if perm == nil {
		return x
	}
	shape, step := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		shape[i], step[i] = x.Shape[p], tensor.Elements(x.Shape[p+1:])
	}
	out := tensor.New(tensor.Float32, shape...)
	src, dst, at := tensor.Of[float32](x), tensor.Of[float32](out), make([]int, len(perm))
	for i := range dst {
		from := 0
		for k := range at {
			from += at[k] * step[k]
		}
		dst[i] = src[from]
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < shape[k] {
				break
			}
			at[k] = 0
		}
	}
	return out
}

// node adds an operator with one output.
func (c *converter) node(op string, attrs graph.Attrs, out int, inputs ...int) {
	c.to.Nodes = append(c.to.Nodes, &graph.Node{
		Index: len(c.to.Nodes), Name: c.to.Values[out].Name, Op: op, Version: opset, Attrs: attrs, Inputs: inputs, Outputs: []int{out},
	})
}

// between adds a node whose output is not a value of from.
func (c *converter) between(name, op string, attrs graph.Attrs, shape []int, inputs ...int) int {
	out := c.value(c.own(name), shape)
	c.node(op, attrs, out, inputs...)
	return out
}

// in returns an operand in an order of its axes: NCHW for an image.
func (c *converter) in(id int, image bool) int {
	v := c.from.Values[id]
	switch {
	case v.Const != nil:
		return c.constant(v.Name, v.Const)
	case c.image[id] == image:
		return c.ids[id]
	}
	perm := []int64{0, 2, 3, 1}
	if image {
		perm = []int64{0, 3, 1, 2}
	}
	return c.between(v.Name+"/layout", "Transpose", graph.Attrs{"perm": perm}, c.stored(v.Shape, image), c.ids[id])
}

// clips are the bounds of activations.
var clips = map[string][2]float32{"RELU6": {0, 6}, "RELU_N1_TO_1": {-1, 1}}

// out adds the node for the output of n, and after it the activation that n fuses.
func (c *converter) out(n *graph.Node, image bool, op string, attrs graph.Attrs, inputs ...int) {
	v := c.from.Values[n.Outputs[0]]
	shape := c.stored(v.Shape, image)
	act, _ := n.Attrs["fused_activation_function"].(string)
	if act != "" && act != "NONE" {
		inputs = []int{c.between(v.Name+"/linear", op, attrs, shape, inputs...)}
		op, attrs = "Relu", nil
		if b, ok := clips[act]; ok {
			op = "Clip"
			inputs = append(inputs, c.float(v.Name+"/low", b[0]), c.float(v.Name+"/high", b[1]))
		}
	}
	to := c.value(v.Name, shape)
	c.node(op, attrs, to, inputs...)
	c.set(n.Outputs[0], to, image)
}

func attr(n *graph.Node, name string) int {
	x, _ := n.Attrs[name].(int64)
	return int(x)
}

// sliding returns the attributes of a window. Without dilations it has none.
func (c *converter) sliding(n *graph.Node, kernel [2]int, dilated bool) graph.Attrs {
	x, y := c.from.Values[n.Inputs[0]].Shape, c.from.Values[n.Outputs[0]].Shape
	stride, dilation := [2]int{attr(n, "stride_h"), attr(n, "stride_w")}, [2]int{1, 1}
	if dilated {
		dilation = [2]int{attr(n, "dilation_h_factor"), attr(n, "dilation_w_factor")}
	}
	pads := make([]int64, 4)
	for i := range 2 {
		if n.Attrs["padding"] == "SAME" {
			all := max(0, (y[1+i]-1)*stride[i]+(kernel[i]-1)*dilation[i]+1-x[1+i])
			pads[i], pads[2+i] = int64(all/2), int64(all-all/2)
		}
	}
	a := graph.Attrs{"kernel_shape": pair(kernel), "strides": pair(stride), "pads": pads}
	if dilated {
		a["dilations"] = pair(dilation)
	}
	return a
}

func pair(x [2]int) []int64 { return []int64{int64(x[0]), int64(x[1])} }

// converters make the nodes for each operator that layers make. They have no entry for operators
// without an equal.
var converters map[string]func(c *converter, n *graph.Node) error

func init() {
	converters = map[string]func(c *converter, n *graph.Node) error{
		"CONV_2D": onnxConv, "DEPTHWISE_CONV_2D": onnxConv, "TRANSPOSE_CONV": onnxTransposeConv, "FULLY_CONNECTED": onnxDense,
		"AVERAGE_POOL_2D": onnxPool("AveragePool"), "MAX_POOL_2D": onnxPool("MaxPool"), "MEAN": onnxMean,
		"ADD": onnxBinary("Add"), "SUB": onnxBinary("Sub"), "MUL": onnxBinary("Mul"), "CONCATENATION": onnxConcat,
		"RESHAPE": onnxReshape, "TRANSPOSE": onnxTranspose, "PAD": onnxPad, "BATCH_MATMUL": onnxMatMul, "RESIZE_BILINEAR": onnxResize,
		"SOFTMAX": onnxSoftmax, "LOGISTIC": onnxUnary("Sigmoid"), "TANH": onnxUnary("Tanh"), "RELU": onnxUnary("Relu"),
		"RELU6": onnxUnary("Clip"), "LEAKY_RELU": onnxUnary("LeakyRelu"), "HARD_SWISH": onnxUnary("HardSwish"), "RSQRT": onnxRsqrt,
	}
}

func onnxConv(c *converter, n *graph.Node) error {
	w := c.from.Values[n.Inputs[1]]
	a := c.sliding(n, [2]int{w.Shape[1], w.Shape[2]}, true)
	perm := []int{0, 3, 1, 2}
	if n.Op == "DEPTHWISE_CONV_2D" {
		a["group"] = int64(c.from.Values[n.Inputs[0]].Shape[3])
		perm = []int{3, 0, 1, 2}
	}
	c.out(n, true, "Conv", a, c.in(n.Inputs[0], true), c.constant(w.Name, c.floats(n.Inputs[1], perm...)), c.in(n.Inputs[2], false))
	return nil
}

func onnxTransposeConv(c *converter, n *graph.Node) error {
	w, x, y := c.from.Values[n.Inputs[1]], c.from.Values[n.Inputs[2]].Shape, c.from.Values[n.Outputs[0]].Shape
	kernel, stride := [2]int{w.Shape[1], w.Shape[2]}, [2]int{attr(n, "stride_h"), attr(n, "stride_w")}
	pads, more := make([]int64, 4), [2]int{}
	for i := range 2 {
		all := (x[1+i]-1)*stride[i] + kernel[i] - y[1+i]
		if all < 0 { // a kernel below the stride leaves gaps
			more[i], all = -all, 0
		}
		pads[i], pads[2+i] = int64(all/2), int64(all-all/2)
	}
	a := graph.Attrs{"kernel_shape": pair(kernel), "strides": pair(stride), "pads": pads, "output_padding": pair(more)}
	c.out(n, true, "ConvTranspose", a, c.in(n.Inputs[2], true), c.constant(w.Name, c.floats(n.Inputs[1], 3, 0, 1, 2)), c.in(n.Inputs[3], false))
	return nil
}

func onnxDense(c *converter, n *graph.Node) error {
	x, w := c.in(n.Inputs[0], false), c.from.Values[n.Inputs[1]]
	if len(c.from.Values[n.Inputs[0]].Shape) == 2 {
		inputs := []int{x, c.constant(w.Name, c.floats(n.Inputs[1]))}
		if n.Inputs[2] >= 0 {
			inputs = append(inputs, c.in(n.Inputs[2], false))
		}
		c.out(n, false, "Gemm", graph.Attrs{"transB": int64(1)}, inputs...)
		return nil
	}
	turned := c.constant(w.Name, c.floats(n.Inputs[1], 1, 0))
	if n.Inputs[2] < 0 {
		c.out(n, false, "MatMul", nil, x, turned)
		return nil
	}
	v := c.from.Values[n.Outputs[0]]
	product := c.between(v.Name+"/product", "MatMul", nil, slices.Clone(v.Shape), x, turned)
	c.out(n, false, "Add", nil, product, c.in(n.Inputs[2], false))
	return nil
}

func onnxPool(op string) func(c *converter, n *graph.Node) error {
	return func(c *converter, n *graph.Node) error {
		c.out(n, true, op, c.sliding(n, [2]int{attr(n, "filter_height"), attr(n, "filter_width")}, false), c.in(n.Inputs[0], true))
		return nil
	}
}

// listed are the elements of a constant of from.
func (c *converter) listed(id int) (out []int) {
	for _, x := range tensor.Of[int32](c.from.Values[id].Const) {
		out = append(out, int(x))
	}
	return out
}

// channelsFirst is where the axes of an image are in NCHW.
var channelsFirst = []int{0, 2, 3, 1}

func onnxMean(c *converter, n *graph.Node) error {
	keep, _ := n.Attrs["keep_dims"].(bool)
	axes, image := c.listed(n.Inputs[1]), c.image[n.Inputs[0]]
	// Without height and width an image is a list of channels; what else is left has an order.
	image = image && (keep || slices.Equal(axes, []int{1, 2}))
	a := graph.Attrs{"keepdims": int64(0)}
	if keep {
		a["keepdims"] = int64(1)
	}
	list := make([]int64, len(axes))
	for i, x := range axes {
		if list[i] = int64(x); image {
			list[i] = int64(channelsFirst[x])
		}
	}
	a["axes"] = list
	c.out(n, image && keep, "ReduceMean", a, c.in(n.Inputs[0], image))
	return nil
}

// images reports whether all operands are images, so that their order need not change.
func (c *converter) images(n *graph.Node) bool {
	return !slices.ContainsFunc(n.Inputs, func(id int) bool { return !c.image[id] })
}

func onnxBinary(op string) func(c *converter, n *graph.Node) error {
	return func(c *converter, n *graph.Node) error {
		image := c.images(n)
		c.out(n, image, op, nil, c.in(n.Inputs[0], image), c.in(n.Inputs[1], image))
		return nil
	}
}

func onnxConcat(c *converter, n *graph.Node) error {
	image, axis := c.images(n), attr(n, "axis")
	if image {
		axis = channelsFirst[axis]
	}
	var inputs []int
	for _, id := range n.Inputs {
		inputs = append(inputs, c.in(id, image))
	}
	c.out(n, image, "Concat", graph.Attrs{"axis": int64(axis)}, inputs...)
	return nil
}

func onnxReshape(c *converter, n *graph.Node) error {
	x := c.from.Values[n.Inputs[0]].Shape
	// The channels of a single pixel have the same order in both layouts.
	image := c.image[n.Inputs[0]] && x[1] == 1 && x[2] == 1
	c.out(n, false, "Reshape", nil, c.in(n.Inputs[0], image), c.int64s(c.from.Values[n.Inputs[1]].Name, c.listed(n.Inputs[1])...))
	return nil
}

func onnxTranspose(c *converter, n *graph.Node) error {
	var perm []int64
	for _, p := range c.listed(n.Inputs[1]) {
		perm = append(perm, int64(p))
	}
	c.out(n, false, "Transpose", graph.Attrs{"perm": perm}, c.in(n.Inputs[0], false))
	return nil
}

func onnxPad(c *converter, n *graph.Node) error {
	image, list := c.image[n.Inputs[0]], c.listed(n.Inputs[1])
	rank := len(list) / 2
	pads := make([]int, 2*rank)
	for i := range rank {
		to := i
		if image {
			to = channelsFirst[i]
		}
		pads[to], pads[rank+to] = list[2*i], list[2*i+1]
	}
	c.out(n, image, "Pad", nil, c.in(n.Inputs[0], image), c.int64s(c.from.Values[n.Inputs[1]].Name, pads...))
	return nil
}

func onnxMatMul(c *converter, n *graph.Node) error {
	y := c.in(n.Inputs[1], false)
	if turned, _ := n.Attrs["adj_y"].(bool); turned {
		v := c.from.Values[n.Inputs[1]]
		rank := len(v.Shape)
		perm, shape := make([]int64, rank), slices.Clone(v.Shape)
		for i := range perm {
			perm[i] = int64(i)
		}
		perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
		shape[rank-1], shape[rank-2] = shape[rank-2], shape[rank-1]
		y = c.between(v.Name+"/turned", "Transpose", graph.Attrs{"perm": perm}, shape, y)
	}
	c.out(n, false, "MatMul", nil, c.in(n.Inputs[0], false), y)
	return nil
}

func onnxResize(c *converter, n *graph.Node) error {
	y := c.from.Values[n.Outputs[0]]
	sizes := c.int64s(y.Name+"/sizes", c.stored(y.Shape, true)...)
	c.out(n, true, "Resize", graph.Attrs{"mode": "linear", "coordinate_transformation_mode": "half_pixel"}, c.in(n.Inputs[0], true), -1, -1, sizes)
	return nil
}

func onnxSoftmax(c *converter, n *graph.Node) error {
	c.out(n, false, "Softmax", graph.Attrs{"axis": int64(-1)}, c.in(n.Inputs[0], false))
	return nil
}

func onnxUnary(op string) func(c *converter, n *graph.Node) error {
	return func(c *converter, n *graph.Node) error {
		image := c.image[n.Inputs[0]]
		inputs := []int{c.in(n.Inputs[0], image)}
		var a graph.Attrs
		switch op {
		case "Clip":
			name := c.from.Values[n.Outputs[0]].Name
			inputs = append(inputs, c.float(name+"/low", 0), c.float(name+"/high", 6))
		case "LeakyRelu":
			alpha, _ := n.Attrs["alpha"].(float32)
			a = graph.Attrs{"alpha": alpha}
		}
		c.out(n, image, op, a, inputs...)
		return nil
	}
}

func onnxRsqrt(c *converter, n *graph.Node) error {
	image, v := c.image[n.Inputs[0]], c.from.Values[n.Outputs[0]]
	root := c.between(v.Name+"/root", "Sqrt", nil, c.stored(v.Shape, image), c.in(n.Inputs[0], image))
	c.out(n, image, "Reciprocal", nil, root)
	return nil
}
