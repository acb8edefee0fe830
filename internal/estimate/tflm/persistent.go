package tflm

import (
	"strings"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// abi holds what differs between C++ builds of the runtime, in bytes.
type abi struct {
	pointer int
	enum    int // enumerations without a declared type
}

// build is a build of the runtime and of the program around it.
type build struct {
	abi
	allocators []string // structures of the allocators, in order of their creation
	// variables is the number of resource variables that the program provides for, 0 for what
	// the model needs.
	variables int
	more      map[string]string // members that a vendor's kernels add to the data of operators
}

// device returns a build for bare-metal Arm, where an enumeration is as small as its values allow.
func device(k Kernels) build {
	b := build{abi: abi{pointer: 4, enum: 1}, allocators: []string{arenaAllocator, greedyPlanner, microAllocator}}
	if k == CMSISNN || k == CMSISMVE {
		b.more = map[string]string{
			"CONV_2D": "i", "DEPTHWISE_CONV_2D": "i", "FULLY_CONNECTED": "pp i p iii", "AVERAGE_POOL_2D": "i", "MAX_POOL_2D": "i",
		}
	}
	return b
}

// size returns the size of a C++ structure. Each letter of fields is a member: p is a pointer or
// size_t, e an enumeration, i and f have 4 bytes, h has 2, b has 1, d and l have 8. Brackets hold
// a member that is a structure. Members are aligned to their own size, and a structure to its
// largest member.
func (a abi) size(fields string) int {
	size, _, _ := a.layout(fields)
	return size
}

// layout returns the size and the alignment of a structure, and what follows its closing bracket.
func (a abi) layout(fields string) (size, most int, rest string) {
	most = 1
	for fields != "" {
		c := fields[0]
		fields = fields[1:]
		w, to := 1, 1
		switch c {
		case ' ':
			continue
		case ')':
			return align(size, most), most, fields
		case '(':
			w, to, fields = a.layout(fields)
		case 'p':
			w, to = a.pointer, a.pointer
		case 'e':
			w, to = a.enum, a.enum
		case 'i', 'f':
			w, to = 4, 4
		case 'h':
			w, to = 2, 2
		case 'd', 'l':
			w, to = 8, 8
		}
		size, most = align(size, to)+w, max(most, to)
	}
	return align(size, most), most, ""
}

func align(n, to int) int { return (n + to - 1) / to * to }

// tail is the persistent part of an arena. It grows from the end, which is aligned, downwards.
type tail struct {
	abi
	used int
}

// object adds a structure with the alignment that it needs itself, or an array of it.
func (t *tail) object(fields string, n int) {
	size, most, _ := t.layout(fields)
	t.used = align(t.used+n*size, most)
}

// buffer adds memory that a kernel or the interpreter requests.
func (t *tail) buffer(bytes int) { t.used = align(t.used+max(bytes, 0), memplan.TFLMAlign) }

// Structures of the runtime.
const (
	arenaAllocator    = "pp ppppp pb" // two virtual tables, the limits and the state of both ends
	greedyPlanner     = "p ii pppppp pb"
	microAllocator    = "p pppp b p p p"
	builtinAllocator  = "pp"
	subgraph          = "pp"
	evalTensor        = "ppe"
	nodeRegistration  = "pppppp p p"
	fullTensor        = "ep fi pp p eeb"
	affineQuant       = "ppi"
	resourceVariables = "pii"
	resourceVariable  = "pppp b"
	scratchHandle     = "p"
)

// persistent returns the bytes of everything that lives as long as the interpreter, in the order
// in which the runtime requests it: alignment makes the sum depend on it.
func persistent(m *graph.Model, scratch []memplan.Scratch, b build) int {
	t := &tail{abi: b.abi}
	for _, a := range b.allocators {
		t.object(a, 1)
	}
	names, sizes := variables(m)
	if names = max(names, b.variables); names > 0 {
		t.buffer(t.size(resourceVariables))
		t.buffer(names * t.size(resourceVariable))
	}
	t.object(builtinAllocator, 1)
	t.object(subgraph, len(m.Graphs))
	for _, g := range m.Graphs {
		t.object(evalTensor, len(g.Values))
	}
	for _, g := range m.Graphs {
		t.object(nodeRegistration, len(g.Nodes))
	}
	t.kernels(m, b.more)
	for _, n := range sizes {
		t.buffer(n)
	}
	if len(scratch) > 0 {
		t.object(scratchHandle, len(scratch))
	}
	t.variableTensors(m)
	for _, ids := range [][]int{m.Main().Inputs, m.Main().Outputs} {
		t.buffer(len(ids) * t.pointer)
		for _, id := range ids {
			t.object(fullTensor, 1)
			if q := m.Main().Values[id].Quant; q != nil && len(q.Scale) > 0 {
				t.object(affineQuant, 1)
				t.object("i", 1+len(q.Scale))
			}
		}
	}
	return align(t.used, memplan.TFLMAlign)
}

// variableTensors adds the tensors that keep their values between two runs.
func (t *tail) variableTensors(m *graph.Model) {
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			if v.Variable {
				t.buffer(count.Declared(g, []int{v.ID})[0].Bytes())
			}
		}
	}
}

// kernels adds what the operators keep: first the options of all of them, then their data, then
// what they request when they prepare.
func (t *tail) kernels(m *graph.Model, more map[string]string) {
	t.each(m, func(o *operands, k kernel) {
		if k.options != "" {
			t.object(k.options, 1)
		}
	})
	t.each(m, func(o *operands, k kernel) {
		if k.data != "" {
			t.buffer(t.size("(" + k.data + ")" + more[o.n.Op]))
		}
		if k.init != nil {
			k.init(o)
		}
	})
	t.each(m, func(o *operands, k kernel) {
		if k.prepare != nil {
			k.prepare(o)
		}
	})
}

// each calls do for all nodes of a model.
func (t *tail) each(m *graph.Model, do func(*operands, kernel)) {
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			o := &operands{tail: t, n: n, in: count.Declared(g, n.Inputs), out: count.Declared(g, n.Outputs)}
			do(o, kernels[n.Op])
		}
	}
}

// operands are the tensors of a node whose persistent memory is added to a tail.
type operands struct {
	*tail
	n       *graph.Node
	in, out []*tensor.Tensor
}

func (o *operands) input(k int) *tensor.Tensor {
	if k < len(o.in) && o.in[k] != nil {
		return o.in[k]
	}
	return &tensor.Tensor{}
}

func (o *operands) output(k int) *tensor.Tensor {
	if k < len(o.out) && o.out[k] != nil {
		return o.out[k]
	}
	return &tensor.Tensor{}
}

// kernel lists the persistent memory of an operator in the reference kernels.
type kernel struct {
	options string // structure of the parsed options
	data    string // structure of the kernel's own data
	// init and prepare request further buffers.
	init, prepare func(*operands)
}

// Structures that several kernels use.
const (
	paddingValues  = "iiii"
	convOptions    = "eiieiie"
	convData       = paddingValues + "iii ii pp ii i"
	poolOptions    = "eiiiie" + paddingValues
	poolData       = paddingValues + "ii ff"
	arithmeticData = "(b iiii ii ii ii ii ff ll iiiii)"
	denseParams    = "(iiii i ii ff bbb)"
	comparison     = "i iii iii b"
	elementwise    = "ii ii b e e"
	reduceData     = "ii ii if if i i"
)

var lstmData = "(b iiii) (f h i)" + "e" + strings.Repeat(denseParams, 8) + strings.Repeat(arithmeticData, 3) + "iiii"

// kernels lists the reference kernels of TensorFlow Lite Micro. An operator that is absent keeps
// nothing.
var kernels = map[string]kernel{
	"CONV_2D":                      {options: convOptions, data: convData, prepare: perChannel(1, 0)},
	"DEPTHWISE_CONV_2D":            {options: "eiiieii", data: convData, prepare: perChannel(1, 3)},
	"TRANSPOSE_CONV":               {options: "eiiee", data: "(b hhhh hhhh iii i i ii ff) ii pp", prepare: perChannel(1, 0)},
	"FULLY_CONNECTED":              {options: "eebbe", data: "ii ii i iii i pp b", prepare: densePerChannel},
	"BATCH_MATMUL":                 {options: "bbb", data: "ppp bbb", prepare: transposed},
	"SVDF":                         {options: "ieb", data: "ii ii ii ii i"},
	"UNIDIRECTIONAL_SEQUENCE_LSTM": {options: "effbbb", data: lstmData},

	"AVERAGE_POOL_2D": {options: poolOptions, data: poolData},
	"MAX_POOL_2D":     {options: poolOptions, data: poolData},
	"L2_POOL_2D":      {options: poolOptions},

	"ADD":                {options: "eb", data: "b ii ii ii i ii iii ff"},
	"SUB":                {options: "eb", data: "b ii ii ii i ii iii"},
	"MUL":                {options: "e", data: "ii ii i i i ff"},
	"DIV":                {options: "e", data: "ii ii ii i"},
	"SQUARED_DIFFERENCE": {data: "b" + arithmeticData},
	"SOFTMAX":            {options: "f", data: "d ii ii i i f p pp pp", prepare: softmaxTables},
	"LOG_SOFTMAX":        {prepare: ofInt8("iiii i pp")},
	"HARD_SWISH":         {data: "hhh i h i"},
	"RELU":               {data: "iii i iii"},
	"RELU6":              {data: "bb"},
	"ELU":                {init: table},
	"L2_NORMALIZATION":   {options: "e", data: "i"},
	"LOGISTIC":           {data: "iii i"},
	"TANH":               {data: "iii i"},
	"LEAKY_RELU":         {options: "f", data: "ii ii ii"},
	"PRELU":              {data: "iii ii ii"},
	"CUMSUM":             {options: "bb", prepare: ofInt8("iii iii iii")},
	"ADD_N":              {prepare: ofInt8("iii iii iii i")},
	"ARG_MAX":            {options: "e"},
	"ARG_MIN":            {options: "e"},
	"ABS":                {data: elementwise},
	"RSQRT":              {data: elementwise},
	"QUANTIZE":           {data: "(d i) ii i"},
	"DEQUANTIZE":         {data: "(d i) ii i"},

	"MEAN":       {options: "b", data: reduceData},
	"SUM":        {options: "b", data: reduceData},
	"REDUCE_MAX": {options: "b", data: reduceData},
	"REDUCE_MIN": {options: "b", data: reduceData},

	"EQUAL": {data: comparison}, "NOT_EQUAL": {data: comparison}, "GREATER": {data: comparison},
	"GREATER_EQUAL": {data: comparison}, "LESS": {data: comparison}, "LESS_EQUAL": {data: comparison},

	"RESHAPE":                 {options: "iiiiiiii i"},
	"SQUEEZE":                 {options: "iiiiiiii i"},
	"PAD":                     {data: "(b iiiii b iiiii b) i"},
	"PADV2":                   {data: "(b iiiii b iiiii b) i"},
	"MIRROR_PAD":              {options: "e", data: "iiiii"},
	"STRIDED_SLICE":           {options: "iiiii b", data: "b iiiii b iiiii b iiiii hhhhh b"},
	"CONCATENATION":           {options: "ie", data: "b p p h i f"},
	"SPLIT":                   {options: "i"},
	"SPLIT_V":                 {options: "i"},
	"PACK":                    {options: "ii"},
	"UNPACK":                  {options: "ii"},
	"GATHER":                  {options: "ii", prepare: outputShape},
	"GATHER_ND":               {prepare: outputShape},
	"EMBEDDING_LOOKUP":        {data: "fp", prepare: outputShape},
	"SPACE_TO_DEPTH":          {options: "i", prepare: outputShape},
	"DEPTH_TO_SPACE":          {options: "i", prepare: outputShape},
	"SPACE_TO_BATCH_ND":       {data: "i"},
	"SELECT_V2":               {data: "b"},
	"SHAPE":                   {options: "e"},
	"CAST":                    {options: "ee"},
	"RESIZE_BILINEAR":         {options: "bb"},
	"RESIZE_NEAREST_NEIGHBOR": {options: "bb"},

	"SignalWindow":                        {data: "ii"},
	"SignalRfft":                          {data: "iiii e p i p", init: rfft},
	"SignalEnergy":                        {data: "ii"},
	"SignalFilterBank":                    {data: "i ppppp ii p", init: channels(1, 8)},
	"SignalFilterBankSpectralSubtraction": {data: "iiiiiiiii pp", init: channels(0, 4)},
	"SignalPCAN":                          {data: "i"},
	"SignalFilterBankLog":                 {data: "ii"},

	"CALL_ONCE":  {options: "i", data: "i b"},
	"IF":         {options: "ii", data: "ii"},
	"WHILE":      {options: "ii", data: "ii"},
	"VAR_HANDLE": {options: "pp", data: "i"},
}

// perChannel requests a multiplier and a shift for each channel along an axis of the weights.
func perChannel(weights, axis int) func(*operands) {
	return func(o *operands) {
		if w := o.input(weights); axis < w.Rank() {
			o.buffer(4 * w.Shape[axis])
			o.buffer(4 * w.Shape[axis])
		}
	}
}

// transposed requests the copies in which BATCH_MATMUL transposes its operands. The left one is
// needed if the operator transposes it, the right one if it does not. Each is a tensor of its own:
// structure, shape, elements. Then the shape of the output is copied.
func transposed(o *operands) {
	l, r := o.input(0), o.input(1)
	if l.Type == tensor.Int8 || l.Type == tensor.Int16 {
		o.buffer(o.size("iiiiiii"))
	}
	for _, x := range []struct {
		t    *tensor.Tensor
		copy bool
	}{{l, o.n.Attrs.Bool("adj_x", false)}, {r, !o.n.Attrs.Bool("adj_y", false)}} {
		if x.copy {
			o.buffer(o.size(evalTensor))
			o.buffer(4 * (1 + x.t.Rank()))
			o.buffer(x.t.Bytes())
		}
	}
	outputShape(o)
}

// outputShape requests a copy of the shape of the output, which the kernel may change.
func outputShape(o *operands) { o.buffer(4 * (1 + o.output(0).Rank())) }

// densePerChannel requests what convolutions do, if the weights have a scale for each output.
func densePerChannel(o *operands) {
	if q := o.input(1).Quant; q != nil && len(q.Scale) > 1 && o.input(0).Type != tensor.Float32 {
		perChannel(1, 0)(o)
	}
}

// ofInt8 requests a kernel's data for 8-bit inputs only.
func ofInt8(fields string) func(*operands) {
	return func(o *operands) {
		if o.input(0).Type == tensor.Int8 {
			o.buffer(o.size(fields))
		}
	}
}

// table requests the results of all 8-bit inputs.
func table(o *operands) { o.buffer(256) }

// rfft requests the state of a Fourier transform of real values: a complex one of half the length
// with up to 32 factors, its twiddle factors, and work space.
func rfft(o *operands) {
	out := o.output(0)
	if out.Rank() == 0 {
		return
	}
	half := out.Shape[out.Rank()-1]/2 - 1 // n real values give n/2+1 complex ones
	pair := out.Type.Bytes(2)
	o.buffer(o.size("ppp") + 4*(2+64) + half*pair + half*3/2*pair)
}

// channels requests a word for each channel of the output, and some more.
func channels(more, word int) func(*operands) {
	return func(o *operands) { o.buffer(word * (o.output(0).Len() + more)) }
}

// softmaxTables requests the tables of softmax with 16-bit activations: exponential and
// reciprocal at 513 points.
func softmaxTables(o *operands) {
	if o.input(0).Type == tensor.Int16 {
		o.buffer(2 * 513)
		o.buffer(2 * 513)
	}
}

// variables returns the number of names of resource variables and the sizes of their buffers, in
// the order of their first assignment: the runtime keeps one buffer for each name.
func variables(m *graph.Model) (names int, sizes []int) {
	type name struct{ container, shared string }
	seen, kept := map[name]bool{}, map[name]bool{}
	for _, g := range m.Graphs {
		handles := map[int]name{}
		for _, n := range g.Nodes {
			if len(n.Inputs)+len(n.Outputs) == 0 {
				continue
			}
			switch n.Op {
			case "VAR_HANDLE":
				id := name{n.Attrs.Str("container", ""), n.Attrs.Str("shared_name", "")}
				handles[n.Outputs[0]], seen[id] = id, true
			case "ASSIGN_VARIABLE":
				id, ok := handles[n.Inputs[0]]
				if t := count.Declared(g, n.Inputs); ok && !kept[id] && len(t) > 1 && t[1] != nil {
					kept[id] = true
					sizes = append(sizes, t[1].Bytes())
				}
			}
		}
	}
	return len(seen), sizes
}
