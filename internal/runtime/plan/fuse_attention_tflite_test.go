package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// liteShape adds a RESHAPE.
func (l *list) liteShape(id int, shape ...int) int {
	s := make([]int32, len(shape))
	for i, n := range shape {
		s[i] = int32(n)
	}
	return l.lite("RESHAPE", nil, id, l.constant(tensor.From(tensor.Int32, []int{len(s)}, s)))
}

// TestLiteAttentions compares blocked TFLite attention with the operators of the file,
// bit-exactly.
func TestLiteAttentions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &list{newNet(), ""}
		seed := rapid.Uint32().Draw(t, "seed")
		numbers := func(shape ...int) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			for i := range x.Len() {
				seed = seed*1664525 + 1013904223
				tensor.Of[float32](x)[i] = float32(int32(seed)) / (1 << 29)
			}
			return x
		}
		of := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		b, h, rows, size, width := of("batch", 1, 3), of("heads", 1, 3), of("rows", 8, 50), of("size", 1, 9), of("width", 1, 40)
		keys := of("keys", (1<<13+rows-1)/rows, (1<<13+rows-1)/rows+100)
		if of("long", 0, 4) == 0 {
			rows, keys = of("many rows", 200, 300), of("many keys", 500, 600)
		}
		matrix := func(adjoint bool, m, n int) []int {
			if adjoint {
				return []int{n, m}
			}
			return []int{m, n}
		}
		whole := flag("heads apart")
		lead := []int{b * h}
		if whole {
			lead = []int{b, h}
		}
		shape := func(lead []int, more ...int) []int { return append(slices.Clone(lead), more...) }
		adjX, adjY, adjV := flag("adj_x"), flag("adj_y"), flag("adj_v")
		x, y := l.input(numbers(shape(lead, matrix(adjX, rows, size)...)...)), l.input(numbers(shape(lead, matrix(adjY, size, keys)...)...))
		s := l.lite("BATCH_MATMUL", graph.Attrs{"adj_x": adjX, "adj_y": adjY}, x, y)
		fused := 2
		reshape := func() {
			if !whole {
				s, whole, lead = l.liteShape(s, b, h, rows, keys), true, []int{b, h}
				fused++
			}
		}
		for range of("operators", 0, 3) {
			name := rapid.SampledFrom([]string{"ADD", "MUL", "SUB", "DIV"}).Draw(t, "operator")
			if flag("reshaped") {
				reshape()
			}
			shapes := [][]int{nil, {1}, {keys}, {rows, keys}, {rows, 1}, shape(lead, rows, keys)}
			if whole {
				shapes = append(shapes, []int{b, 1, 1, keys}, []int{1, h, rows, 1}, []int{b, 1, rows, keys})
			}
			p, q := s, l.input(numbers(rapid.SampledFrom(shapes).Draw(t, "operand")...))
			if (name == "ADD" || name == "MUL") && flag("turned") {
				p, q = q, p
			}
			s = l.lite(name, graph.Attrs{"fused_activation_function": "NONE"}, p, q)
			fused++
		}
		s = l.lite("SOFTMAX", graph.Attrs{"beta": rapid.SampledFrom([]float32{1, 0.5}).Draw(t, "beta")}, s)
		leadV := lead
		switch of("values", 0, 3) {
		case 0:
			leadV = nil
		case 1:
			s, lead = l.liteShape(s, shape([]int{1, b * h}, rows, keys)...), []int{1, b * h}
			leadV, fused = lead, fused+1
		}
		v := l.input(numbers(shape(leadV, matrix(adjV, keys, width)...)...))
		l.g.Outputs = []int{l.lite("BATCH_MATMUL", graph.Attrs{"adj_x": false, "adj_y": adjV}, s, v)}
		m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
		want, _ := outputsOf(t, m, l.in, true)
		got, steps := outputsOf(t, m, l.in, false)
		if !slices.Equal(got[0].Shape, want[0].Shape) || !slices.Equal(got[0].Data, want[0].Data) {
			t.Fatalf("%v of %v, want %v of %v", tensor.Of[float32](got[0])[:1], got[0].Shape, tensor.Of[float32](want[0])[:1], want[0].Shape)
		}
		runs(t, steps, "BATCH_MATMUL", fused)
	})
}

// TestNoLiteAttentions lists patterns that stay: an activation between, scores with other
// readers, a division, few rows, a transposed left-hand matrix.
func TestNoLiteAttentions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"activation", "read", "divisor", "few", "turned"} {
		l := &list{newNet(), ""}
		rows := 128
		if name == "few" {
			rows = 7
		}
		s := l.lite("BATCH_MATMUL", nil, l.input(tensor.New(tensor.Float32, 2, rows, 3)), l.input(tensor.New(tensor.Float32, 2, 3, 2048)))
		one := l.input(scalar32(1))
		switch name {
		case "activation":
			s = l.lite("ADD", graph.Attrs{"fused_activation_function": "RELU"}, s, one)
		case "divisor":
			s = l.lite("DIV", nil, one, s)
		}
		p := l.lite("SOFTMAX", nil, s)
		v, turned := []int{2, 2048, 5}, name == "turned"
		if turned {
			v = []int{2, rows, 5}
		}
		l.g.Outputs = []int{l.lite("BATCH_MATMUL", graph.Attrs{"adj_x": turned}, p, l.input(tensor.New(tensor.Float32, v...)))}
		if name == "read" {
			l.g.Outputs = append(l.g.Outputs, p)
		}
		_, steps := outputsOf(t, &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}, l.in, false)
		for _, s := range steps {
			if s.State == plan.Fused {
				t.Errorf("%s: step %d became attention", name, s.Node.Index)
			}
		}
	}
}
