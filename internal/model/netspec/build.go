package netspec

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// File reads a description from a file and builds the model.
func File(path string) (*graph.Model, error) {
	f, _, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read builds the network described by a text; the name is for error messages.
func Read(r io.Reader, path string) (*graph.Model, error) {
	s, err := Parse(r)
	if err == nil {
		if s.Name == "" {
			s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		}
		var m *graph.Model
		if m, err = Model(s); err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// Model builds the described network. Equal descriptions give equal bytes.
func Model(s *Spec) (*graph.Model, error) {
	b := &builder{
		g: &graph.Graph{Name: s.Name}, int8: s.Type == "int8", names: map[string]int{}, used: map[string]bool{}, next: map[string]int{},
		random: rand.New(rand.NewPCG(s.Seed, 0x6f706d65746572)),
	}
	in, err := b.value(s.Input.Name, s.Input.Shape, b.act(2))
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	b.g.Inputs = []int{in}
	b.names[s.Input.Name] = in
	out, err := b.layers(s.Layers, in, in)
	if err != nil {
		return nil, err
	}
	b.g.Outputs = []int{out}
	m := &graph.Model{Format: "tflite", Name: s.Name, Description: s.Name, Producer: "opmeter build", IRVersion: 3, Graphs: []*graph.Graph{b.g}}
	return m, m.Validate()
}

// builder builds a graph.
type builder struct {
	g       *graph.Graph
	int8    bool
	names   map[string]int // layers that From may refer to
	next    map[string]int // the last number used to make a name unique
	used    map[string]bool
	random  *rand.Rand
	count   int
	weights int
}

// act returns an activation's quantisation, nil in float models.
func (b *builder) act(span float64) *tensor.Quant {
	if !b.int8 {
		return nil
	}
	// A symmetric span in 256 steps.
	return &tensor.Quant{Scale: []float32{float32(2 * span / 255)}, Zero: []int64{0}}
}

// after returns the quantisation after an activation function.
func (b *builder) after(activation string, span float64) *tensor.Quant {
	if !b.int8 {
		return nil
	}
	switch activation {
	case "relu":
		return &tensor.Quant{Scale: []float32{float32(span / 255)}, Zero: []int64{-128}}
	case "relu6":
		return &tensor.Quant{Scale: []float32{6.0 / 255}, Zero: []int64{-128}}
	}
	return b.act(span)
}

// unit returns the fixed quantisation of softmax and logistic.
func (b *builder) unit() *tensor.Quant {
	if !b.int8 {
		return nil
	}
	return &tensor.Quant{Scale: []float32{1.0 / 256}, Zero: []int64{-128}}
}

// value adds an activation.
func (b *builder) value(name string, shape []int, q *tensor.Quant) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 1 {
			return 0, fmt.Errorf("shape %v has a dimension below 1", shape)
		}
		if n > maxElements/d {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= d
	}
	base := name
	for b.used[name] {
		b.next[base] = max(b.next[base]+1, 2)
		name = base + "_" + strconv.Itoa(b.next[base])
	}
	b.used[name] = true
	t := tensor.Float32
	if b.int8 {
		t = tensor.Int8
	}
	v := &graph.Value{ID: len(b.g.Values), Name: name, Type: t, Shape: slices.Clone(shape), HasShape: true, Quant: q, Offset: -1}
	b.g.Values = append(b.g.Values, v)
	return v.ID, nil
}

func (b *builder) constant(name string, t *tensor.Tensor) int {
	v := &graph.Value{ID: len(b.g.Values), Name: name, Type: t.Type, Shape: t.Shape, HasShape: true, Quant: t.Quant, Const: t, Offset: -1}
	b.g.Values = append(b.g.Values, v)
	return v.ID
}

func (b *builder) ints(name string, v ...int) int {
	t := tensor.New(tensor.Int32, len(v))
	for i, x := range v {
		tensor.Of[int32](t)[i] = int32(x)
	}
	return b.constant(name, t)
}

// node adds an operator.
func (b *builder) node(op string, version int, attrs graph.Attrs, inputs []int, outputs ...int) {
	b.g.Nodes = append(b.g.Nodes, &graph.Node{Index: len(b.g.Nodes), Domain: graph.TFLite, Op: op, Version: version, Attrs: attrs, Inputs: inputs, Outputs: outputs})
}

func (b *builder) shape(id int) []int { return b.g.Values[id].Shape }

// version picks an operator version: the one for float or the one for int8.
func (b *builder) version(float, int8 int) int {
	if b.int8 {
		return int8
	}
	return float
}

// kernel makes random weights with the output channel along axis, quantised per
// channel in int8 models. fan is the number of inputs of an output.
func (b *builder) kernel(name string, shape []int, axis, fan int) (int, []float32, error) {
	n := 1
	for _, d := range shape {
		if d < 1 || n > maxElements/d {
			return 0, nil, fmt.Errorf("weights of shape %v are empty or too large", shape)
		}
		n *= d
	}
	if b.weights += n; b.weights > maxWeights {
		return 0, nil, fmt.Errorf("the weights exceed %d elements", maxWeights)
	}
	dev := math.Sqrt(2 / float64(max(fan, 1)))
	if !b.int8 {
		t := tensor.New(tensor.Float32, shape...)
		v := tensor.Of[float32](t)
		for i := range v {
			v[i] = float32(b.random.NormFloat64() * dev)
		}
		return b.constant(name, t), nil, nil
	}
	t := tensor.New(tensor.Int8, shape...)
	v := tensor.Of[int8](t)
	for i := range v {
		// Four deviations fill the range.
		v[i] = int8(min(max(math.Round(b.random.NormFloat64()*127/4), -127), 127))
	}
	scales := make([]float32, shape[axis])
	for i := range scales {
		// Channels differ a little, as trained ones do.
		scales[i] = float32(dev * 4 / 127 * (0.75 + 0.5*b.random.Float64()))
	}
	t.Quant = &tensor.Quant{Scale: scales, Zero: make([]int64, len(scales)), Axis: axis}
	return b.constant(name, t), scales, nil
}

// bias makes a bias for weights with the given scales (int8) over an input.
func (b *builder) bias(name string, n int, in *tensor.Quant, scales []float32) int {
	if !b.int8 {
		t := tensor.New(tensor.Float32, n)
		for i, v := 0, tensor.Of[float32](t); i < n; i++ {
			v[i] = float32(b.random.NormFloat64() * 0.05)
		}
		return b.constant(name, t)
	}
	t := tensor.New(tensor.Int32, n)
	q := &tensor.Quant{Scale: make([]float32, len(scales)), Zero: make([]int64, len(scales))}
	for i, s := range scales {
		q.Scale[i] = in.Scale[0] * s
	}
	for i, v := 0, tensor.Of[int32](t); i < n; i++ {
		v[i] = int32(math.Round(b.random.NormFloat64() * 0.05 / float64(q.Scale[min(i, len(scales)-1)])))
	}
	t.Quant = q
	return b.constant(name, t)
}
