package tflite

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// compressed is a level whose vectors have words of 32 bits (kind 1) or 8 (kind 3).
func compressed(kind uint8, segments, indices []int) *flatbuffer.Object {
	vector := func(v []int) *flatbuffer.Object {
		o := &flatbuffer.Object{}
		switch kind {
		case 1:
			flatbuffer.Int32s(o, 0, v)
		case 3:
			b := make([]byte, len(v))
			for i, x := range v {
				b[i] = byte(x)
			}
			o.Bytes(0, b, 4)
		}
		return o
	}
	o := &flatbuffer.Object{}
	o.Uint8(0, 1, 0)
	o.Uint8(2, kind, 0)
	o.Table(3, vector(segments))
	o.Uint8(4, kind, 0)
	o.Table(5, vector(indices))
	return o
}

func sparseFile(t *testing.T, shape []int, typ uint8, stored []byte, sparse *flatbuffer.Object) []byte {
	t.Helper()
	f := abs()
	f.tensor(shape, typ, f.buffer(stored...)).Table(tensorSparsity, sparse)
	return f.bytes(t)
}

func TestSparseLayouts(t *testing.T) {
	t.Parallel()
	dense := func(n int32) *flatbuffer.Object { return sparseLevel(n, nil, nil) }
	for _, tt := range []struct {
		name   string
		shape  []int
		typ    uint8 // int8 unless told
		stored []byte
		sparse *flatbuffer.Object
		want   []byte
	}{
		{
			name: "wide elements", shape: []int{2, 2}, typ: 1, stored: []byte{1, 2, 3, 4},
			sparse: sparsity([]int{0, 1}, nil, dense(2), compressed(1, []int{0, 1, 2}, []int{1, 0})), want: []byte{0, 0, 1, 2, 3, 4, 0, 0},
		},
		{
			name: "both levels compressed", shape: []int{3, 2}, typ: 9, stored: []byte{8, 9},
			sparse: sparsity([]int{0, 1}, nil, compressed(3, []int{0, 2}, []int{0, 2}), compressed(3, []int{0, 1, 2}, []int{1, 0})), want: []byte{0, 8, 0, 0, 9, 0},
		},
		{
			// Two by two blocks, the right lower one of four.
			name: "square blocks", shape: []int{4, 4}, typ: 9, stored: []byte{1, 2, 3, 4},
			sparse: sparsity([]int{0, 1, 2, 3}, []int{0, 1}, dense(2), compressed(3, []int{0, 0, 1}, []int{1}), dense(2), dense(2)),
			want:   []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4},
		},
		{
			// The same with the columns of a block before its rows.
			name: "turned blocks", shape: []int{4, 4}, typ: 9, stored: []byte{1, 2, 3, 4},
			sparse: sparsity([]int{0, 1, 3, 2}, []int{0, 1}, dense(2), compressed(3, []int{0, 0, 1}, []int{1}), dense(2), dense(2)),
			want:   []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 2, 4},
		},
		{
			name: "three axes", shape: []int{2, 1, 3}, typ: 9, stored: []byte{5, 6},
			sparse: sparsity([]int{0, 1, 2}, nil, dense(2), dense(1), compressed(3, []int{0, 1, 2}, []int{2, 1})), want: []byte{0, 0, 5, 0, 6, 0},
		},
		{
			name: "full row", shape: []int{1, 2}, typ: 9, stored: []byte{5, 6},
			sparse: sparsity([]int{0, 1}, nil, dense(1), compressed(3, []int{0, 2}, []int{0, 1})), want: []byte{5, 6},
		},
		{
			name: "nothing stored but one", shape: []int{2}, typ: 9, stored: []byte{5},
			sparse: sparsity([]int{0}, nil, compressed(3, []int{0, 0}, nil)), want: []byte{0, 0},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := parse(t, sparseFile(t, tt.shape, tt.typ, tt.stored, tt.sparse)).Main().Values[2]
			if diff := cmp.Diff(tt.want, v.Const.Data); diff != "" {
				t.Error(diff)
			}
			if v.Sparse.StoredBytes != len(tt.stored) || v.Offset <= 0 || !cmp.Equal(v.Const.Shape, tt.shape) {
				t.Errorf("%+v at %d, shape %v", v.Sparse, v.Offset, v.Const.Shape)
			}
		})
	}
}

// TestSparseHalfWords has index vectors of 16 bits.
func TestSparseHalfWords(t *testing.T) {
	t.Parallel()
	l := compressed(1, []int{0x00010000, 0}, []int{0x0002}) // as halves: 0, 1, 0, 0 and 2, 0
	data := sparseFile(t, []int{3}, 9, []byte{7}, sparsity([]int{0}, nil, l))
	// The unions' types are the only bytes "1 at slots 2 and 4" of the level; find the
	// level through a reader and change them, and the counts of the vectors.
	m := flatbuffer.NewReader(data).Root("Model", "").Tables(2, "").At(0).Tables(0, "").At(2).Table(tensorSparsity, "").Tables(2, "").At(0)
	for _, slot := range []int{2, 4} {
		if m.Uint8(slot, "", 0) != 1 {
			t.Fatal("the level is not where it should be")
		}
	}
	changed := 0
	for i := range data[:len(data)-3] {
		if data[i] == 1 && data[i+1] == 1 && data[i+2] == 1 { // format and both types lie together
			data[i+1], data[i+2] = 2, 2
			changed++
		}
	}
	if changed != 1 {
		t.Fatalf("%d places look like the level's bytes", changed)
	}
	if m := parse(t, data); m.Main().Values[2].Sparse == nil || !cmp.Equal(m.Main().Values[2].Const.Data, []byte{0, 0, 7}) {
		// Vectors of two and one words have as many halves: 0, 1 and 2.
		t.Errorf("%+v", m.Main().Values[2].Const)
	}
}

// TestSparseZeroPoint fills what is not stored with the zero point: zero in real numbers.
func TestSparseZeroPoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zero  []int64
		scale []float32
		typ   uint8
		want  []byte
	}{
		{[]int64{-3}, []float32{1}, 9, []byte{0xfd, 5}},
		{[]int64{200}, []float32{1}, 3, []byte{200, 5}},
		{[]int64{0}, []float32{1}, 9, []byte{0, 5}},
		{[]int64{-3, -3}, []float32{1, 1}, 9, []byte{0, 5}},
		{[]int64{-3}, []float32{1}, 7, []byte{0, 0, 5, 5}},
	} {
		f := abs()
		q := &flatbuffer.Object{}
		q.Float32s(2, tt.scale)
		q.Int64s(3, tt.zero)
		o := f.tensor([]int{2}, tt.typ, f.buffer(tt.want[len(tt.want)/2:]...))
		o.Table(tensorQuant, q)
		o.Table(tensorSparsity, sparsity([]int{0}, nil, compressed(3, []int{0, 1}, []int{1})))
		c := parse(t, f.bytes(t)).Main().Values[2].Const
		if diff := cmp.Diff(tt.want, c.Data); diff != "" || c.Quant == nil {
			t.Errorf("zero points %v: %s, %v", tt.zero, diff, c.Quant)
		}
	}
}

func TestSparseRefused(t *testing.T) {
	t.Parallel()
	dense := func(n int32) *flatbuffer.Object { return sparseLevel(n, nil, nil) }
	row := func(segments, indices []int) *flatbuffer.Object {
		return sparsity([]int{0}, nil, compressed(1, segments, indices))
	}
	const at = "Model.subgraphs[0].tensors[2]"
	many := func(n int) (order []int, levels []*flatbuffer.Object) {
		for i := range n {
			order, levels = append(order, i), append(levels, dense(1))
		}
		return order, levels
	}
	order16, levels16 := many(16)
	order17, levels17 := many(17)
	for _, tt := range []struct {
		name, path, text string
		shape            []int
		typ              uint8
		sparse           *flatbuffer.Object
	}{
		{name: "strings", path: at + ".sparsity.", text: "sparse tensor of type string", shape: []int{1}, typ: 5, sparse: row([]int{0, 1}, []int{0})},
		{name: "half bytes", path: at + ".sparsity.", text: "sparse tensor of type int4", shape: []int{1}, typ: 17, sparse: row([]int{0, 1}, []int{0})},
		{name: "scalar", path: at + ".sparsity.", text: "rank 0", typ: 9, sparse: row([]int{0, 1}, []int{0})},
		{name: "unknown size", path: at + ".shape", text: "negative dimension", shape: []int{-1}, typ: 9, sparse: row([]int{0, 1}, []int{0})},
		{name: "too few levels", path: at + ".sparsity.traversal_order", text: "1 levels and 1 descriptions for rank 2 with 0 blocked", shape: []int{1, 1}, typ: 9, sparse: sparsity([]int{0}, nil, dense(1))},
		{name: "too few descriptions", path: at + ".sparsity.traversal_order", text: "2 levels and 1 descriptions", shape: []int{1, 1}, typ: 9, sparse: sparsity([]int{0, 1}, nil, dense(1))},
		{name: "17 levels", path: at + ".sparsity.traversal_order", text: "17 levels", shape: slices.Repeat([]int{1}, 17), typ: 9, sparse: sparsity(order17, nil, levels17...)},
		{name: "16 levels", path: at + ".sparsity.dim_metadata", text: "level 1 has 1 entries, the shape needs 2", shape: []int{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, typ: 9, sparse: sparsity(order16, nil, levels16...)},
		{name: "negative axis", path: at + ".sparsity.traversal_order", text: "entry 0 is -1", shape: []int{1}, typ: 9, sparse: sparsity([]int{-1}, nil, dense(1))},
		{name: "axis past the end", path: at + ".sparsity.traversal_order", text: "entry 0 is 1: not", shape: []int{1}, typ: 9, sparse: sparsity([]int{1}, nil, dense(1))},
		{name: "axis twice", path: at + ".sparsity.traversal_order", text: "entry 1 is 0: not", shape: []int{1, 1}, typ: 9, sparse: sparsity([]int{0, 0}, nil, dense(1), dense(1))},
		{name: "block before axes", path: at + ".sparsity.traversal_order", text: "entry 0 is 1: not", shape: []int{2}, typ: 9, sparse: sparsity([]int{1, 0}, []int{0}, dense(2), dense(1))},
		{name: "block of no axis", path: at + ".sparsity.block_map", text: "entry 0 is axis 1 of 1", shape: []int{2}, typ: 9, sparse: sparsity([]int{0, 1}, []int{1}, dense(1), dense(2))},
		{name: "block of axis -1", path: at + ".sparsity.block_map", text: "entry 0 is axis -1 of 1", shape: []int{2}, typ: 9, sparse: sparsity([]int{0, 1}, []int{-1}, dense(1), dense(2))},
		{name: "axis blocked twice", path: at + ".sparsity.block_map", text: "entry 1 is axis 0 of 2", shape: []int{2, 2}, typ: 9, sparse: sparsity([]int{0, 1, 2, 3}, []int{0, 0}, dense(1), dense(2), dense(2), dense(1))},
		{name: "compressed block", path: at + ".sparsity.dim_metadata[1].format", text: "must be dense", shape: []int{2}, typ: 9, sparse: sparsity([]int{0, 1}, []int{0}, dense(1), compressed(1, []int{0, 1}, []int{0}))},
		{name: "empty block", path: at + ".sparsity.dim_metadata[1].format", text: "must be dense", shape: []int{2}, typ: 9, sparse: sparsity([]int{0, 1}, []int{0}, dense(2), dense(0))},
		{name: "negative size", path: at + ".sparsity.dim_metadata[0].dense_size", text: "size -1", shape: []int{2}, typ: 9, sparse: sparsity([]int{0}, nil, dense(-1))},
		{name: "odd blocks", path: at + ".sparsity.block_map", text: "blocks of 2 do not divide dimension 3 of axis 0", shape: []int{3}, typ: 9, sparse: sparsity([]int{0, 1}, []int{0}, dense(1), dense(2))},
		{name: "level larger than the axis", path: at + ".sparsity.dim_metadata", text: "level 0 has 3 entries, the shape needs 2", shape: []int{2}, typ: 9, sparse: sparsity([]int{0}, nil, dense(3))},
		{name: "kind of index", path: at + ".sparsity.dim_metadata[0].array_segments", text: "type 0", shape: []int{2}, typ: 9, sparse: sparsity([]int{0}, nil, made(func(o *flatbuffer.Object) { o.Uint8(0, 1, 0) }))},
		{name: "segment missing", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{2}, typ: 9, sparse: row([]int{0}, []int{0})},
		{name: "negative segment", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{2}, typ: 9, sparse: row([]int{-1, 0}, []int{0})},
		{name: "segment backwards", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{2}, typ: 9, sparse: row([]int{1, 0}, []int{0, 1})},
		{name: "segment past the indices", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{2}, typ: 9, sparse: row([]int{0, 2}, []int{0})},
		{name: "segment longer than the axis", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{1}, typ: 9, sparse: row([]int{0, 2}, []int{0, 0})},
		{name: "negative index", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{2}, typ: 9, sparse: row([]int{0, 1}, []int{-1})},
		{name: "index past the end", path: at + ".sparsity.dim_metadata", text: "leads outside", shape: []int{2}, typ: 9, sparse: row([]int{0, 1}, []int{2})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			refusal(t, sparseFile(t, tt.shape, tt.typ, []byte{1, 2, 3, 4}, tt.sparse), strings.TrimSuffix(tt.path, "."), tt.text)
		})
	}
}

// TestSparseExpansion takes 64 times the size of the file and not a byte more, over all tensors.
func TestSparseExpansion(t *testing.T) {
	t.Parallel()
	build := func(first, second int) []byte {
		f := abs()
		for _, n := range []int{first, second} {
			f.tensor([]int{n}, 9, f.buffer(1)).Table(tensorSparsity, sparsity([]int{0}, nil, compressed(1, []int{0, 1}, []int{n - 1})))
		}
		return f.bytes(t)
	}
	size := len(build(9, 9))
	limit := 64 * size
	m := parse(t, build(limit/2, limit/2))
	var v *graph.Value
	for _, v = range m.Main().Values[2:] {
		if n := len(v.Const.Data); n != limit/2 || v.Const.Data[n-1] != 1 {
			t.Errorf("%d bytes", n)
		}
	}
	refusal(t, build(limit/2, limit/2+1), "Model.subgraphs[0].tensors[3].shape", "over 64 times the size")
}
