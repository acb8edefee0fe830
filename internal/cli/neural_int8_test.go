package cli

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// int8Net builds a chain of quantised matrix products.
type int8Net struct {
	g       *graph.Graph
	weights []int8Weight
}

// int8Weight is a matrix as the file stores it, with what stands for zero in each column or row.
type int8Weight struct {
	rows, cols int
	codes      []int
	zero       func(r, c int) int
	first      bool // the first operand
}

func (b *int8Net) value(t tensor.Type, c *tensor.Tensor) int {
	id := len(b.g.Values)
	b.g.Values = append(b.g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: t, Const: c})
	if c != nil {
		b.g.Values[id].Shape, b.g.Values[id].HasShape = c.Shape, true
	}
	return id
}

func (b *int8Net) node(op string, attrs graph.Attrs, out tensor.Type, in ...int) int {
	n := &graph.Node{Index: len(b.g.Nodes), Name: fmt.Sprintf("n%d", len(b.g.Nodes)), Op: op, Version: 13, Attrs: attrs, Inputs: in, Outputs: []int{b.value(out, nil)}}
	if slices.Contains([]string{"QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"}, op) {
		n.Domain, n.Version = graph.Microsoft, 1
	}
	b.g.Nodes = append(b.g.Nodes, n)
	return n.Outputs[0]
}

func (b *int8Net) floats(v ...float32) int {
	shape := []int{len(v)}
	if len(v) == 1 {
		shape = []int{}
	}
	return b.value(tensor.Float32, tensor.From(tensor.Float32, shape, v))
}

// bytesOf is a constant of type int8 or uint8.
func (b *int8Net) bytesOf(t tensor.Type, shape []int, v []int) int {
	c := tensor.New(t, shape...)
	for i, x := range v {
		c.Data[i] = byte(x)
	}
	return b.value(t, c)
}

// matrix adds weights of which some blocks of 4x16 are zero, and their zero points: one for all,
// or one for each index of an axis.
func (b *int8Net) matrix(t tensor.Type, rows, cols, axis int, first bool) (weight, zero, scale int) {
	low := 0
	if t == tensor.Uint8 {
		low = 120
	}
	zeros, scales := []int{low}, []float32{0.02}
	w := int8Weight{rows: rows, cols: cols, first: first, zero: func(int, int) int { return low }}
	if axis >= 0 {
		n := []int{rows, cols}[axis]
		zeros, scales = make([]int, n), make([]float32, n)
		for i := range zeros {
			scales[i] = 0.01 + float32(i)*0.001
			if zeros[i] = low; t == tensor.Uint8 {
				zeros[i] += i % 5
			}
		}
		w.zero = func(r, c int) int { return zeros[[]int{r, c}[axis]] }
	}
	for r := range rows {
		for c := range cols {
			code := w.zero(r, c)
			if (r/4+c/16)%3 != 0 && (r+c)%7 != 0 {
				code += 1 + (3*r+c)%5
			}
			w.codes = append(w.codes, code)
		}
	}
	b.weights = append(b.weights, w)
	shape := []int{len(zeros)}
	if axis < 0 {
		shape = []int{}
	}
	return b.bytesOf(t, []int{rows, cols}, w.codes), b.bytesOf(t, shape, zeros), b.floats(scales...)
}

// quantised adds QuantizeLinear, and its scale and zero point.
func (b *int8Net) quantised(x int) (q, scale, zero int) {
	scale, zero = b.floats(0.05), b.bytesOf(tensor.Uint8, []int{}, []int{128})
	return b.node("QuantizeLinear", nil, tensor.Uint8, x, scale, zero), scale, zero
}

func (b *int8Net) simulated(x int) int {
	q, scale, zero := b.quantised(x)
	return b.node("DequantizeLinear", nil, tensor.Float32, q, scale, zero)
}

// dynamic adds DynamicQuantizeLinear.
func (b *int8Net) dynamic(x int) (q, scale, zero int) {
	q = b.node("DynamicQuantizeLinear", nil, tensor.Uint8, x)
	n := b.g.Nodes[len(b.g.Nodes)-1]
	scale, zero = b.value(tensor.Float32, nil), b.value(tensor.Uint8, nil)
	n.Outputs = append(n.Outputs, scale, zero)
	return q, scale, zero
}

// int8Forms multiply x, of rows by k (k by rows for the forms that have the weights first), with
// weights of k by n.
var int8Forms = []struct {
	name string
	add  func(b *int8Net, x, k, n int) int
}{
	{"dynamic", func(b *int8Net, x, k, n int) int { return b.integer(x, tensor.Int8, k, n, -1, true) }},
	{"dynamic uint8", func(b *int8Net, x, k, n int) int { return b.integer(x, tensor.Uint8, k, n, -1, true) }},
	{"dynamic uint8 per channel", func(b *int8Net, x, k, n int) int { return b.integer(x, tensor.Uint8, k, n, 1, true) }},
	{"dynamic without a zero point", func(b *int8Net, x, k, n int) int { return b.integer(x, tensor.Int8, k, n, -1, false) }},
	{"weights first", func(b *int8Net, x, k, n int) int {
		q, scale, zero := b.dynamic(x)
		w, wz, _ := b.matrix(tensor.Int8, n, k, -1, true)
		y := b.node("MatMulInteger", nil, tensor.Int32, w, q, wz, zero)
		return b.node("Mul", nil, tensor.Float32, b.node("Cast", graph.Attrs{"to": int64(1)}, tensor.Float32, y), scale)
	}},
	{"QDQ", func(b *int8Net, x, k, n int) int { return b.qdq(x, tensor.Int8, k, n, -1) }},
	{"QDQ per channel", func(b *int8Net, x, k, n int) int { return b.qdq(x, tensor.Int8, k, n, 1) }},
	{"QDQ uint8 per channel", func(b *int8Net, x, k, n int) int { return b.qdq(x, tensor.Uint8, k, n, 1) }},
	{"QDQ transposed", func(b *int8Net, x, k, n int) int {
		w, wz, ws := b.matrix(tensor.Int8, n, k, 0, false)
		d := b.node("DequantizeLinear", graph.Attrs{"axis": int64(0)}, tensor.Float32, w, ws, wz)
		return b.node("MatMul", nil, tensor.Float32, b.simulated(x), b.node("Transpose", graph.Attrs{"perm": []int64{1, 0}}, tensor.Float32, d))
	}},
	{"QDQ Gemm", func(b *int8Net, x, k, n int) int {
		w, wz, ws := b.matrix(tensor.Int8, n, k, 0, false)
		d := b.node("DequantizeLinear", graph.Attrs{"axis": int64(0)}, tensor.Float32, w, ws, wz)
		return b.node("Gemm", graph.Attrs{"transB": int64(1)}, tensor.Float32, b.simulated(x), d)
	}},
	{"QLinearMatMul", func(b *int8Net, x, k, n int) int { return b.linear(x, tensor.Int8, k, n, -1) }},
	{"QLinearMatMul uint8 per channel", func(b *int8Net, x, k, n int) int { return b.linear(x, tensor.Uint8, k, n, 1) }},
	{"QGemm", func(b *int8Net, x, k, n int) int {
		q, scale, zero := b.quantised(x)
		w, wz, ws := b.matrix(tensor.Int8, k, n, -1, false)
		return b.node("QGemm", nil, tensor.Float32, q, scale, zero, w, ws, wz)
	}},
	{"MatMulIntegerToFloat", func(b *int8Net, x, k, n int) int {
		q, scale, zero := b.dynamic(x)
		w, wz, ws := b.matrix(tensor.Uint8, k, n, -1, false)
		return b.node("MatMulIntegerToFloat", nil, tensor.Float32, q, w, scale, ws, zero, wz)
	}},
	{"DynamicQuantizeMatMul", func(b *int8Net, x, k, n int) int {
		w, wz, ws := b.matrix(tensor.Int8, k, n, -1, false)
		return b.node("DynamicQuantizeMatMul", nil, tensor.Float32, x, w, ws, wz)
	}},
	{"QGemm transposed uint8 per channel", func(b *int8Net, x, k, n int) int {
		q, scale, zero := b.quantised(x)
		w, wz, ws := b.matrix(tensor.Uint8, n, k, 0, false)
		return b.node("QGemm", graph.Attrs{"transB": int64(1)}, tensor.Float32, q, scale, zero, w, ws, wz)
	}},
}

func (b *int8Net) integer(x int, t tensor.Type, k, n, axis int, hasZero bool) int {
	q, scale, zero := b.dynamic(x)
	w, wz, ws := b.matrix(t, k, n, axis, false)
	in := []int{q, w, zero, wz}
	if !hasZero {
		in = in[:3]
	}
	y := b.node("Cast", graph.Attrs{"to": int64(1)}, tensor.Float32, b.node("MatMulInteger", nil, tensor.Int32, in...))
	return b.node("Mul", nil, tensor.Float32, y, b.node("Mul", nil, tensor.Float32, scale, ws))
}

func (b *int8Net) qdq(x int, t tensor.Type, k, n, axis int) int {
	w, wz, ws := b.matrix(t, k, n, axis, false)
	d := b.node("DequantizeLinear", graph.Attrs{"axis": int64(1)}, tensor.Float32, w, ws, wz)
	return b.node("MatMul", nil, tensor.Float32, b.simulated(x), d)
}

func (b *int8Net) linear(x int, t tensor.Type, k, n, axis int) int {
	q, scale, zero := b.quantised(x)
	w, wz, ws := b.matrix(t, k, n, axis, false)
	ys, yz := b.floats(0.1), b.bytesOf(tensor.Uint8, []int{}, []int{128})
	return b.node("DequantizeLinear", nil, tensor.Float32, b.node("QLinearMatMul", nil, tensor.Uint8, q, scale, zero, w, ws, wz, ys, yz), ys, yz)
}

// sparsePart is what the table should say of weights, by its definition: the shape as stored, and
// the share of whole blocks that are zero, of 4x16, or 4x1 where the weights are the first
// operand.
func (w *int8Weight) sparsePart() (shape, share string, capable bool, sparse bool) {
	width := 16
	if w.first {
		width = 1
	}
	blocks, empty := 0, 0
	for r := 0; r+4 <= w.rows; r += 4 {
		for c := 0; c+width <= w.cols; c += width {
			blocks++
			set := false
			for i := range 4 {
				for j := range width {
					set = set || w.codes[(r+i)*w.cols+c+j] != w.zero(r+i, c+j)
				}
			}
			if !set {
				empty++
			}
		}
	}
	v := 0.0
	if blocks > 0 {
		v = float64(empty) / float64(blocks)
	}
	return fmt.Sprintf("%dx%d", w.rows, w.cols), fmt.Sprintf("%.2f%%", 100*v), w.rows%4 == 0, v >= 0.5
}

// TestNeuralEngineInt8 records int8 models in the format of the Neural Engine's profiler, and
// compares the part on sparse weights with what follows from the weights.
func TestNeuralEngineInt8(t *testing.T) {
	t.Parallel()
	nets := [][]int{{16, 32, 16}, {8, 64, 48, 8}, {32, 20, 32}, {64, 6, 64}} // widths of the chain
	for i, form := range int8Forms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			widths := nets[i%len(nets)]
			b := &int8Net{g: &graph.Graph{Name: "net"}}
			shape := []int{4, widths[0]}
			if form.name == "weights first" {
				shape = []int{widths[0], 4}
			}
			y := b.value(tensor.Float32, nil)
			b.g.Values[y].Shape, b.g.Values[y].HasShape = shape, true
			b.g.Inputs = []int{y}
			for k := range len(widths) - 1 {
				y = form.add(b, y, widths[k], widths[k+1])
			}
			// A product without weights.
			y = b.node("MatMul", nil, tensor.Float32, y, b.node("Transpose", nil, tensor.Float32, y))
			b.g.Outputs = []int{y}
			data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17, graph.Microsoft: 1}, Graphs: []*graph.Graph{b.g}})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "m.onnx"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			c := child("run", "m.onnx", "--runs", "2", "--output", "out")
			c.Dir, c.Env = dir, append(c.Env, "ENGINE_PROFILING=1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			tables, _ := filepath.Glob(filepath.Join(dir, "engine_profiling", "profiling_csv", "*.csv"))
			if len(tables) != 1 {
				t.Fatalf("%q", tables)
			}
			b.checkSparsePart(t, tables[0])
		})
	}
}

// checkSparsePart compares a table.
func (b *int8Net) checkSparsePart(t *testing.T, table string) {
	t.Helper()
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	head := slices.IndexFunc(rows, func(r []string) bool { return r[0] == "operator type" })
	ratios, ops, sums := rows[1:head], rows[head+1:len(rows)-3], rows[len(rows)-3:]
	var dims [][2]int
	for _, w := range b.weights {
		if d := [2]int{w.rows, w.cols}; w.rows%4 == 0 && !slices.Contains(dims, d) {
			dims = append(dims, d)
		}
	}
	slices.SortFunc(dims, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	if len(ratios) != len(dims) {
		t.Errorf("ratio rows %q, want %v", ratios, dims)
	}
	for k, d := range dims {
		if want := fmt.Sprintf("%dx%d", d[0], d[1]); k < len(ratios) && ratios[k][0] != want {
			t.Errorf("ratio row %q, want %s", ratios[k], want)
		}
	}
	at, sum := 0, 0.0
	var cells []string
	for k, op := range ops {
		if op[9] == "" {
			if op[11] != "" {
				t.Errorf("%q is supported without weights", op)
			}
			continue
		}
		if at == len(b.weights) {
			t.Fatalf("weights too many: %q", op)
		}
		w := b.weights[at]
		at++
		shape, share, capable, sparse := w.sparsePart()
		want := []string{shape, share, "", op[12], " ", "", op[12]}
		if line := strconv.Itoa(head + 2 + k); capable {
			want[2] = "true"
			cells = append(cells, "P"+line)
			v, err := strconv.ParseFloat(op[12], 64)
			if err != nil {
				t.Fatal(err)
			}
			if sum += v; !sparse {
				n := strconv.Itoa(2 + slices.Index(dims, [2]int{w.rows, w.cols}))
				want[4], want[6] = " 90%", "=M"+line+"/O"+line
				want[5] = strings.NewReplacer("#", n, "@", "VALUE(N"+line+")").Replace("=IF(@=90%,B#,IF(@=80%,C#,IF(@=70%,D#,E#)))")
			}
		}
		if op[0] != "InnerProduct" || !slices.Equal(op[9:], want) {
			t.Errorf("%s: %q, want %q", op[0], op[9:], want)
		}
	}
	if at != len(b.weights) {
		t.Errorf("%d layers with weights, want %d", at, len(b.weights))
	}
	got, err := strconv.ParseFloat(sums[1][12], 64)
	if err != nil || math.Abs(got-sum) > 1e-3*sum+1e-6 {
		t.Errorf("sparse support latency %q, want %g", sums[1][12], sum)
	}
	want := "=" + strings.Join(cells, "+")
	if len(cells) == 0 {
		want = "0"
	}
	if sums[1][15] != want {
		t.Errorf("sum %q, want %q", sums[1][15], want)
	}
}
