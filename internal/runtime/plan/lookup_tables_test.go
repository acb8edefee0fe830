package plan_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// again quantises a value and dequantises it.
func (b *net) again(d draws, id int, name string) int {
	s, z := b.constant(scalar32(d.scale(name+" scale")*4)), b.constant(zeroPoint(d.kind, d.zero(name+" zero")))
	return b.node("DequantizeLinear", nil, b.node("QuantizeLinear", nil, id, s, z), s, z)
}

// grow adds element-wise operators to a function of x.
func grow(d draws, b *net, x int) int {
	y := x
	for range rapid.IntRange(1, 6).Draw(d.t, "operators") {
		name := rapid.SampledFrom([]string{"Sigmoid", "Tanh", "Erf", "HardSigmoid", "LeakyRelu", "Abs", "Mul", "Add", "Sub", "own", "constant", "codes"}).Draw(d.t, "operator")
		switch name {
		case "Mul", "Add", "Sub":
			y = b.node(name, nil, y, x)
		case "own":
			y = b.node("Mul", nil, y, y)
		case "constant":
			y = b.node(rapid.SampledFrom([]string{"Mul", "Add", "Div"}).Draw(d.t, "by"), nil, y, b.constant(scalar32(d.scale("constant")*20)))
		case "codes":
			y = b.again(d, y, "between")
		default:
			y = b.node(name, nil, y)
		}
	}
	return y
}

func TestLookUps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := draws{t, rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(t, "type")}
		b := newNet()
		b.quantised(d, grow(d, b, b.dequantised(d, "x", rapid.SampledFrom([][]int{{64}, {2, 3, 64}, {1, 320}}).Draw(t, "shape")...)))
		got, steps := run(t, b, false)
		want, _ := run(t, b, true)
		within(t, got, want, 0) // all numbers fill whole vectors, as in the table
		n := 0
		for _, s := range steps {
			if s.State == plan.Runs {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d nodes run, want a table only", n)
		}
	})
}

// TestLookUpsOfChannels uses batch normalisations and per-channel constants in functions of one
// quantised value.
func TestLookUpsOfChannels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := draws{t, rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(t, "type")}
		b := newNet()
		channels := rapid.IntRange(1, 5).Draw(t, "channels")
		// The numbers fill whole vectors, as in a table.
		x := b.dequantised(d, "x", rapid.IntRange(1, 3).Draw(t, "pictures"), channels, 4, rapid.SampledFrom([]int{16, 32, 48}).Draw(t, "columns"))
		numbers := func(name string, shape ...int) int {
			v := make([]float32, channels)
			for i := range v {
				v[i] = d.scale(name) * 20
			}
			return b.constant(tensor.From(tensor.Float32, shape, v))
		}
		y := grow(d, b, x)
		if rapid.Bool().Draw(t, "normalises") {
			y = b.node("BatchNormalization", nil, y, numbers("factor", channels), numbers("bias", channels), numbers("mean", channels), numbers("variance", channels))
		} else {
			y = b.node(rapid.SampledFrom([]string{"Mul", "Add", "Div", "Sub"}).Draw(t, "by"), nil, y, numbers("number", channels, 1, 1))
		}
		b.quantised(d, grow(d, b, y))
		got, steps := run(t, b, false)
		want, _ := run(t, b, true)
		within(t, got, want, 0)
		for _, s := range steps {
			if s.State == plan.Runs && s.Runs.Op != "LookUp" {
				t.Fatalf("%s runs, want a table only", s.Runs.Op)
			}
		}
	})
}

func TestLookUpsWhere(t *testing.T) {
	t.Parallel()
	dq := func(b *net, x int) int { return b.node("DequantizeLinear", nil, x, b.constant(scalar32(0.05))) }
	q := func(b *net, x int) {
		b.g.Outputs = append(b.g.Outputs, b.node("QuantizeLinear", nil, x, b.constant(scalar32(0.02))))
	}
	bytes := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Uint8, shape...) }
	for _, tt := range []struct {
		name, runs string // operators that run, in order
		build      func(b *net)
	}{
		{"the function of one code", "LookUp", func(b *net) {
			x := dq(b, b.input(bytes(2, 9)))
			q(b, b.node("Mul", nil, x, b.node("HardSigmoid", nil, x)))
		}},
		{"a number that somebody else reads", "DequantizeLinear Tanh LookUp", func(b *net) {
			y := b.node("Tanh", nil, dq(b, b.input(bytes(9))))
			q(b, y)
			b.g.Outputs = append(b.g.Outputs, y)
		}},
		{"two functions of a code", "LookUp LookUp", func(b *net) {
			x := dq(b, b.input(bytes(9)))
			q(b, b.node("Tanh", nil, x))
			q(b, b.node("Erf", nil, x))
		}},
		{"a single number", "LookUp", func(b *net) { q(b, b.node("Tanh", nil, dq(b, b.input(bytes())))) }},
		{"other codes", "LookUp", func(b *net) { q(b, dq(b, b.input(bytes(9)))) }},
		{"one operator that has a rule", "QLinearSigmoid", func(b *net) { q(b, b.node("Sigmoid", nil, dq(b, b.input(bytes(9))))) }},
		{"two codes", "QLinearMul", func(b *net) { q(b, b.node("Mul", nil, dq(b, b.input(bytes(9))), dq(b, b.input(bytes(9))))) }},
		{"a constant for each channel", "DequantizeLinear Div QuantizeLinear", func(b *net) {
			q(b, b.node("Div", nil, dq(b, b.input(bytes(2, 3))), b.constant(tensor.From(tensor.Float32, []int{3}, []float32{1, 2, 3}))))
		}},
		{"a constant for each channel of planes", "LookUp", func(b *net) {
			q(b, b.node("Div", nil, dq(b, b.input(bytes(2, 3, 8, 8))), b.constant(tensor.From(tensor.Float32, []int{3, 1, 1}, []float32{1, 2, 3}))))
		}},
		{"a constant for each line of planes", "DequantizeLinear Div QuantizeLinear", func(b *net) {
			q(b, b.node("Div", nil, dq(b, b.input(bytes(2, 3, 3, 64))), b.constant(tensor.From(tensor.Float32, []int{3, 1}, []float32{1, 2, 3}))))
		}},
		{"a constant for each channel of small planes", "DequantizeLinear Div QuantizeLinear", func(b *net) {
			q(b, b.node("Div", nil, dq(b, b.input(bytes(2, 3, 2, 2))), b.constant(tensor.From(tensor.Float32, []int{3, 1, 1}, []float32{1, 2, 3}))))
		}},
		{"a constant that adds an axis", "DequantizeLinear Div QuantizeLinear", func(b *net) {
			q(b, b.node("Div", nil, dq(b, b.input(bytes(3))), b.constant(tensor.From(tensor.Float32, []int{1, 1}, []float32{3}))))
		}},
		{"scales of channels", "DequantizeLinear Tanh QuantizeLinear", func(b *net) {
			x := b.node("DequantizeLinear", graph.Attrs{"axis": int64(0)}, b.input(bytes(2, 3)), b.constant(tensor.From(tensor.Float32, []int{2}, []float32{1, 2})))
			q(b, b.node("Tanh", nil, x))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newNet()
			tt.build(b)
			_, steps := run(t, b, false)
			var got []string
			for _, s := range steps {
				if s.State == plan.Runs {
					got = append(got, s.Runs.Op)
				}
			}
			want := strings.Fields(tt.runs)
			if !slices.Equal(got, want) {
				t.Errorf("%v run, want %v", got, want)
			}
		})
	}
}

// TestLookUpsOfTFLite compares tables with the operators of the file one by one, bit-exactly.
func TestLookUpsOfTFLite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := draws{t, rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(t, "type")}
		l := &list{newNet(), ""}
		affine := func(name string) *tensor.Quant {
			return &tensor.Quant{Scale: []float32{d.scale(name + " scale")}, Zero: []int64{d.zero(name + " zero")}}
		}
		shape := rapid.SampledFrom([][]int{{1}, {2, 3, 7}, {1, 300}}).Draw(t, "shape")
		x := l.input(d.codes("x", shape...))
		l.g.Values[x].Quant = affine("x")
		l.in[0].Quant = l.g.Values[x].Quant
		x = l.lite("DEQUANTIZE", nil, x)
		l.g.Values[x].Type = tensor.Float32
		y := x
		none := graph.Attrs{"fused_activation_function": "NONE"}
		for range rapid.IntRange(0, 4).Draw(t, "operators") {
			switch name := rapid.SampledFrom([]string{"ELU", "SQUARE", "SIN", "TANH", "LOGISTIC", "NEG", "ABS", "MUL", "ADD", "constant"}).Draw(t, "operator"); name {
			case "MUL", "ADD":
				y = l.lite(name, none, y, x)
			case "constant":
				y = l.lite("SUB", none, y, l.constant(scalar32(d.scale("constant"))))
			default:
				y = l.lite(name, nil, y)
			}
		}
		y = l.lite("QUANTIZE", nil, y)
		l.g.Values[y].Type, l.g.Values[y].Quant = d.kind, affine("y")
		l.g.Outputs = append(l.g.Outputs, y)
		m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
		want, _ := outputsOf(t, m, l.in, true)
		got, steps := outputsOf(t, m, l.in, false)
		if !slices.Equal(got[0].Shape, want[0].Shape) || !slices.Equal(got[0].Data, want[0].Data) {
			t.Fatalf("%v, want %v", got[0].Data, want[0].Data)
		}
		n := 0
		for _, s := range steps {
			if s.State == plan.Runs {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d nodes run, want a table only", n)
		}
	})
}
