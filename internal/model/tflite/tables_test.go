package tflite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// file builds a model by slots, for what the writer does not write.
type file struct {
	tensors, operators, codes, buffers []*flatbuffer.Object
	inputs, outputs                    []int
}

func (f *file) bytes(t testing.TB) []byte {
	t.Helper()
	root, g := &flatbuffer.Object{}, &flatbuffer.Object{}
	g.Tables(0, f.tensors)
	flatbuffer.Int32s(g, 1, f.inputs)
	flatbuffer.Int32s(g, 2, f.outputs)
	g.Tables(3, f.operators)
	root.Int32(0, 3, 0)
	root.Tables(1, f.codes)
	root.Tables(2, []*flatbuffer.Object{g})
	root.Tables(4, append([]*flatbuffer.Object{{}}, f.buffers...))
	b, err := flatbuffer.Build(root, identifier)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (f *file) tensor(shape []int, typ uint8, buffer int) *flatbuffer.Object {
	o := &flatbuffer.Object{}
	flatbuffer.Int32s(o, 0, shape)
	o.Uint8(1, typ, 0)
	o.Int32(2, int32(buffer), 0)
	f.tensors = append(f.tensors, o)
	return o
}

func (f *file) buffer(b ...byte) int {
	o := &flatbuffer.Object{}
	o.Bytes(0, b, 16)
	f.buffers = append(f.buffers, o)
	return len(f.buffers)
}

// level is the description of a sparse level: dense with a size, or compressed.
func sparseLevel(size int32, segments, indices []byte) *flatbuffer.Object {
	o := &flatbuffer.Object{}
	if segments == nil {
		o.Int32(1, size, 0)
		return o
	}
	vector := func(b []byte) *flatbuffer.Object { v := &flatbuffer.Object{}; v.Bytes(0, b, 4); return v }
	o.Uint8(0, 1, 0)
	o.Uint8(2, 3, 0)
	o.Table(3, vector(segments))
	o.Uint8(4, 3, 0)
	o.Table(5, vector(indices))
	return o
}

func sparsity(order, blocks []int, levels ...*flatbuffer.Object) *flatbuffer.Object {
	o := &flatbuffer.Object{}
	flatbuffer.Int32s(o, 0, order)
	if blocks != nil {
		flatbuffer.Int32s(o, 1, blocks)
	}
	o.Tables(2, levels)
	return o
}

func TestSparse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		shape  []int
		stored []byte
		sparse *flatbuffer.Object
		want   []byte
		errors string
	}{
		{
			name: "rows", shape: []int{3, 4}, stored: []byte{5, 6, 7},
			sparse: sparsity([]int{0, 1}, nil, sparseLevel(3, nil, nil), sparseLevel(0, []byte{0, 1, 1, 3}, []byte{2, 0, 3})),
			want:   []byte{0, 0, 5, 0, 0, 0, 0, 0, 6, 0, 0, 7},
		},
		{
			name: "columns", shape: []int{2, 3}, stored: []byte{1, 2},
			sparse: sparsity([]int{1, 0}, nil, sparseLevel(3, nil, nil), sparseLevel(0, []byte{0, 1, 1, 2}, []byte{1, 0})),
			want:   []byte{0, 0, 2, 1, 0, 0},
		},
		{
			// Blocks of one row and two columns; the second and third are stored.
			name: "blocks", shape: []int{2, 4}, stored: []byte{1, 2, 3, 4},
			sparse: sparsity([]int{0, 1, 2}, []int{1}, sparseLevel(2, nil, nil), sparseLevel(0, []byte{0, 1, 2}, []byte{1, 0}), sparseLevel(2, nil, nil)),
			want:   []byte{0, 0, 1, 2, 3, 4, 0, 0},
		},
		{
			name: "index outside", shape: []int{1, 4}, stored: []byte{1},
			sparse: sparsity([]int{0, 1}, nil, sparseLevel(1, nil, nil), sparseLevel(0, []byte{0, 1}, []byte{4})), errors: "index leads outside",
		},
		{
			name: "too few values", shape: []int{1, 4}, stored: []byte{1},
			sparse: sparsity([]int{0, 1}, nil, sparseLevel(1, nil, nil), sparseLevel(0, []byte{0, 2}, []byte{0, 1})), errors: "1 stored elements",
		},
		{
			name: "no permutation", shape: []int{1, 4}, stored: []byte{1},
			sparse: sparsity([]int{1, 1}, nil, sparseLevel(1, nil, nil), sparseLevel(4, nil, nil)), errors: "not a permutation",
		},
		{
			name: "huge", shape: []int{1 << 15, 1 << 15}, stored: []byte{1},
			sparse: sparsity([]int{0, 1}, nil, sparseLevel(1<<15, nil, nil), sparseLevel(1<<15, nil, nil)), errors: "expand to over 64 times",
		},
		{
			// Without a shortcut the walk would take for ever.
			name: "zero elements", shape: []int{1 << 30, 0}, stored: []byte{1},
			sparse: sparsity([]int{0, 1}, nil, sparseLevel(1<<30, nil, nil), sparseLevel(0, nil, nil)), want: []byte{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := &file{outputs: []int{0}}
			f.tensor(tc.shape, 9, f.buffer(tc.stored...)).Table(6, tc.sparse)
			m, err := Parse(f.bytes(t), "sparse")
			if tc.errors != "" {
				if err == nil || !strings.Contains(err.Error(), tc.errors) {
					t.Fatalf("error is %v, want %q", err, tc.errors)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			v := m.Main().Values[0]
			if diff := cmp.Diff(tc.want, v.Const.Data); diff != "" {
				t.Error(diff)
			}
			if v.Sparse == nil || v.Sparse.StoredElements != len(tc.stored) {
				t.Errorf("encoding is %+v", v.Sparse)
			}
		})
	}
}

// chain makes operators ABS that read tensor a and write tensor b.
func chain(tensors int, edges ...[2]int) *file {
	f := &file{inputs: []int{0}, outputs: []int{tensors - 1}}
	for range tensors {
		f.tensor([]int{1}, 0, 0)
	}
	code := &flatbuffer.Object{}
	code.Uint8(0, 101, 0)
	f.codes = []*flatbuffer.Object{code}
	for _, e := range edges {
		o := &flatbuffer.Object{}
		flatbuffer.Int32s(o, 1, e[:1])
		flatbuffer.Int32s(o, 2, e[1:])
		f.operators = append(f.operators, o)
	}
	return f
}

func TestOrder(t *testing.T) {
	t.Parallel()
	m, err := Parse(chain(4, [2]int{2, 3}, [2]int{0, 1}, [2]int{1, 2}).bytes(t), "order")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, n := range m.Main().Nodes {
		got = append(got, n.Outputs[0])
	}
	if diff := cmp.Diff([]int{1, 2, 3}, got); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		name, want string
		file       *file
	}{
		{"cycle", "operators form a cycle through tensor", chain(4, [2]int{2, 1}, [2]int{1, 2}, [2]int{2, 3})},
		{"itself", "cycle", chain(2, [2]int{1, 1})},
		{"missing", "Model.subgraphs[0].operators[0].inputs", chain(3, [2]int{1, 2})},
		{"two makers", "already written by another operator", chain(3, [2]int{1, 2}, [2]int{0, 1}, [2]int{0, 1})},
		{"writes an input", "is an input of the graph", chain(2, [2]int{0, 0}, [2]int{0, 1})},
		{"index", "entry 0 is tensor 9 of 2", chain(2, [2]int{9, 1})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse(tc.file.bytes(t), "order"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// TestScratch has memory among an operator's inputs that no one writes, as compilers for
// accelerators ask for it. Of a built-in operator that is an error.
func TestScratch(t *testing.T) {
	t.Parallel()
	f := &file{inputs: []int{0}, outputs: []int{3}}
	f.tensor([]int{1, 8}, 0, 0)
	f.tensor([]int{4}, 3, f.buffer(1, 2, 3, 4)) // commands
	f.tensor([]int{1024}, 3, 0)                 // scratch
	f.tensor([]int{1, 8}, 0, 0)
	code, o := &flatbuffer.Object{}, &flatbuffer.Object{}
	code.Uint8(0, 32, 0)
	code.String(1, "ethos-u")
	f.codes = []*flatbuffer.Object{code}
	flatbuffer.Int32s(o, 1, []int{1, 2, 0})
	flatbuffer.Int32s(o, 2, []int{3})
	f.operators = []*flatbuffer.Object{o}
	m, err := Parse(f.bytes(t), "compiled")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	var scratch []bool
	for _, v := range m.Main().Values {
		scratch = append(scratch, v.Scratch)
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, scratch); diff != "" {
		t.Error(diff)
	}
	if n := m.Main().Nodes[0]; n.Op != "ethos-u" {
		t.Errorf("operator %s", n.Key())
	}
	f.codes[0] = &flatbuffer.Object{} // ADD
	if _, err := Parse(f.bytes(t), "built in"); err == nil || !strings.Contains(err.Error(), "has no data") {
		t.Errorf("a built-in operator with scratch memory: %v", err)
	}
}

// TestLongChain sorts a chain as long as a file allows: no recursion, no quadratic time.
func TestLongChain(t *testing.T) {
	t.Parallel()
	const n = 20_000
	edges := make([][2]int, n)
	for i := range edges {
		edges[i] = [2]int{n - 1 - i, n - i} // last operator first
	}
	m, err := Parse(chain(n+1, edges...).bytes(t), "chain")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Main().Nodes[n-1].Outputs[0]; got != n {
		t.Errorf("last operator makes tensor %d, want %d", got, n)
	}
}

// tensorKinds is a file with an input of unknown size, a constant behind the
// FlatBuffer at the offset, packed integers and a scalar.
func tensorKinds(t *testing.T, offset int) []byte {
	f := &file{outputs: []int{0}, inputs: []int{0}}
	large := &flatbuffer.Object{}
	large.Int64(1, int64(offset), 0)
	large.Int64(2, 8, 0)
	f.buffers = append(f.buffers, large)
	flatbuffer.Int32s(f.tensor([]int{1, 3}, 0, 0), 7, []int{-1, 3})
	f.tensor([]int{2}, 0, 1)
	q := &flatbuffer.Object{}
	q.Float32s(2, []float32{1, 2, 3})
	q.Int64s(3, []int64{0})
	q.Int32(6, 3, 0) // the filter's axis
	f.tensor([]int{3}, 17, f.buffer(0x21, 0x0f)).Table(4, q)
	f.tensor(nil, 2, f.buffer(7, 0, 0, 0))
	return f.bytes(t)
}

func TestTensors(t *testing.T) {
	t.Parallel()
	size := len(tensorKinds(t, 1<<40))
	data := append(tensorKinds(t, size), 0, 0, 128, 63, 0, 0, 0, 64)
	m, err := Parse(append(data, "PK\x03\x04 labels"...), "tensors")
	if err != nil {
		t.Fatal(err)
	}
	v := m.Main().Values
	if diff := cmp.Diff([][]int{{-1, 3}, {1, 3}}, [][]int{v[0].Shape, v[0].Placeholder}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float32{1, 2}, tensor.Of[float32](v[1].Const)); diff != "" || v[1].Offset != int64(size) {
		t.Errorf("offset %d, want %d; %s", v[1].Offset, size, diff)
	}
	if diff := cmp.Diff(&tensor.Quant{Scale: []float32{1, 2, 3}, Zero: []int64{0, 0, 0}}, v[2].Quant); diff != "" {
		t.Error(diff)
	}
	if v[2].Const.Type != tensor.Int4 || !v[3].HasShape || len(v[3].Shape) != 0 {
		t.Errorf("int4 is %v, scalar %+v", v[2].Const.Type, v[3])
	}
	for _, tc := range []struct {
		name, want string
		buffer     []byte
		typ        uint8
	}{
		{"short", "has 3 bytes, a tensor of 2 float32 needs 8", []byte{1, 2, 3}, 0},
		{"strings cut", "3 offsets in 8 bytes", []byte{2, 0, 0, 0, 0, 0, 0, 0}, 5},
		{"strings outside", "string 0 lies at bytes 16 to 99", []byte{2, 0, 0, 0, 16, 0, 0, 0, 99, 0, 0, 0, 99, 0, 0, 0}, 5},
		{"type", "tensor type 99", nil, 99},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := &file{}
			f.tensor([]int{2}, tc.typ, f.buffer(tc.buffer...))
			if _, err := Parse(f.bytes(t), "x"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestBlockwise(t *testing.T) {
	t.Parallel()
	f := &file{}
	d, q := &flatbuffer.Object{}, &flatbuffer.Object{}
	d.Int32(0, 1, 0)
	d.Int32(1, -1, 0)
	d.Int32(2, 2, 0)
	q.Uint8(4, detailsBlockwise, 0)
	q.Table(5, d)
	f.tensor([]int{1, 4}, 9, f.buffer(1, 2, 3, 4)).Table(4, q)
	f.tensor([]int{1, 2}, 1, f.buffer(0, 0x3c, 0, 0x40)) // halves 1 and 2
	m, err := Parse(f.bytes(t), "blocks")
	if err != nil {
		t.Fatal(err)
	}
	want := &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 2}
	if diff := cmp.Diff(want, m.Main().Values[0].Const.Quant); diff != "" {
		t.Error(diff)
	}
	data, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = Parse(data, "again"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, m.Main().Values[0].Quant); diff != "" {
		t.Error(diff)
	}
	m.Main().Values = m.Main().Values[:1] // the writer must add the scales
	if data, err = Encode(m); err != nil {
		t.Fatal(err)
	}
	if m, err = Parse(data, "alone"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, m.Main().Values[0].Quant); diff != "" {
		t.Error(diff)
	}
}
