package tflite

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// written is a model of one graph with values and nodes, encoded.
func written(values []*graph.Value, nodes ...*graph.Node) ([]byte, error) {
	g := &graph.Graph{Values: values, Nodes: nodes, Inputs: []int{0}, Outputs: []int{0}}
	for i, v := range values {
		v.ID = i
	}
	for i, n := range nodes {
		n.Index = i
	}
	return Encode(&graph.Model{Graphs: []*graph.Graph{g}})
}

func value(typ tensor.Type, shape ...int) *graph.Value {
	return &graph.Value{Type: typ, Shape: shape, HasShape: true}
}

func constant(c *tensor.Tensor) *graph.Value {
	return &graph.Value{Type: c.Type, Shape: c.Shape, HasShape: true, Const: c}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	node := func(domain, op string, attrs graph.Attrs) *graph.Node {
		return &graph.Node{Domain: domain, Op: op, Version: 1, Inputs: []int{0}, Attrs: attrs}
	}
	quant := func(q *tensor.Quant) *graph.Value { v := value(tensor.Int8, 2); v.Quant = q; return v }
	off := func(c *tensor.Tensor, change func(v *graph.Value)) *graph.Value {
		v := constant(c)
		change(v)
		return v
	}
	f2 := tensor.From(tensor.Float32, []int{2}, []float32{1, 2})
	for _, tt := range []struct {
		name, text string
		value      *graph.Value
		node       *graph.Node
	}{
		{name: "type", text: `graph 0 "": value 1 "": type invalid does not exist`, value: value(tensor.Invalid, 1)},
		{name: "constant's shape", text: "constant of 2 float32 for a value of 1x2 float32", value: off(f2, func(v *graph.Value) { v.Shape = []int{1, 2} })},
		{name: "constant's type", text: "constant of 2 float32 for a value of 2 int32", value: off(f2, func(v *graph.Value) { v.Type = tensor.Int32 })},
		{name: "too few bytes", text: "constant has 7 bytes, needs 8", value: constant(&tensor.Tensor{Type: tensor.Float32, Shape: []int{2}, Data: make([]byte, 7)})},
		{name: "too many bytes", text: "constant has 9 bytes, needs 8", value: constant(&tensor.Tensor{Type: tensor.Float32, Shape: []int{2}, Data: make([]byte, 9)})},
		{name: "no scale", text: "0 scales and 0 zero points", value: quant(&tensor.Quant{})},
		{name: "zero points", text: "2 scales and 1 zero points", value: quant(&tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{1}})},
		{name: "operator number", text: `node 0 (BUILTIN_x): operator "BUILTIN_x" does not exist`, node: node(graph.TFLite, "BUILTIN_x", nil)},
		{name: "negative operator number", text: "does not exist", node: node(graph.TFLite, "BUILTIN_-1", nil)},
		{name: "huge operator number", text: "does not exist", node: node(graph.TFLite, "BUILTIN_2147483648", nil)},
		{name: "custom by number", text: "does not exist", node: node(graph.TFLite, "CUSTOM", nil)},
		{name: "custom attribute", text: "1 attributes that", node: node(graph.TFLiteCustom, "Odd", graph.Attrs{"custom_options": []byte{1}, "x": int64(1)})},
		{name: "options of a type", text: "1 attributes that", node: node(graph.TFLiteCustom, "Odd", graph.Attrs{"custom_options": "text"})},
		{name: "too large for 32 bits", text: `attribute "stride_w" cannot hold 2147483648 (int64)`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": int64(1) << 31})},
		{name: "too small for 32 bits", text: "cannot hold -2147483649", node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": -int64(1)<<31 - 1})},
		{name: "number for a word", text: `attribute "padding" cannot hold 1`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"padding": int64(1)})},
		{name: "word for a number", text: `cannot hold SAME (string)`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": "SAME"})},
		{name: "unknown word", text: `attribute "padding" has no value "FULL"`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"padding": "FULL"})},
		{name: "truth for a number", text: `cannot hold true (bool)`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": true})},
		{name: "float for a number", text: `cannot hold 1 (float32)`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": float32(1)})},
		{name: "bytes for a number", text: `([]uint8)`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": []byte{1}})},
		{name: "list for a number", text: `attribute "stride_w" cannot hold a list of integers`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": []int64{1}})},
		{name: "floats for integers", text: `([]float32)`, node: node(graph.TFLite, "RESHAPE", graph.Attrs{"new_shape": []float32{1}})},
		{name: "words for integers", text: `([]string)`, node: node(graph.TFLite, "RESHAPE", graph.Attrs{"new_shape": []string{"a"}})},
		{name: "unknown word of a list", text: `attribute "precision_config" has no value "LOW"`, node: node(graph.TFLite, "STABLEHLO_DOT_GENERAL", graph.Attrs{"precision_config": []string{"HIGH", "LOW"}})},
		{name: "graph for a number", text: `(graph.GraphRef)`, node: node(graph.TFLite, "CONV_2D", graph.Attrs{"stride_w": graph.GraphRef(0)})},
		{name: "graphs for a graph", text: `([]graph.GraphRef)`, node: node(graph.TFLite, "IF", graph.Attrs{"then_subgraph_index": []graph.GraphRef{0}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			values := []*graph.Value{value(tensor.Float32, 1)}
			if tt.value != nil {
				values = append(values, tt.value)
			}
			var nodes []*graph.Node
			if tt.node != nil {
				nodes = append(nodes, tt.node)
			}
			if _, err := written(values, nodes...); err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error is %v, want %q", err, tt.text)
			}
		})
	}
	g := &graph.Graph{Name: "body", Values: []*graph.Value{value(tensor.Float32, 1)}, Captures: []graph.Capture{{}}}
	if _, err := Encode(&graph.Model{Graphs: []*graph.Graph{g}}); err == nil || !strings.Contains(err.Error(), `graph 0 "body": captured values`) {
		t.Errorf("captures: %v", err)
	}
	if _, err := Encode(&graph.Model{}); err == nil {
		t.Error("a model without graphs is written")
	}
}

// TestEncodeStores looks at what the writer stores by the schema's slots.
func TestEncodeStores(t *testing.T) {
	t.Parallel()
	open := value(tensor.Float32, -1, 3) // 0
	stored := value(tensor.Float32, -1, 3)
	stored.Placeholder = []int{1, 3} // 1
	scalar := value(tensor.Int8)     // 2
	state := value(tensor.Int8, 2)   // 3
	state.Variable = true
	state.Quant = &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{3, -4}, Axis: 1}
	// 4, 5
	seven := func() *graph.Value { return constant(tensor.From(tensor.Int32, []int{1}, []int32{7})) }
	// 6
	unranked := &graph.Value{Name: "unranked", Type: tensor.Float32}
	wrong := value(tensor.Float32, -1)
	wrong.Placeholder = []int{1, 2}                                    // 7
	eight := constant(tensor.From(tensor.Int32, []int{1}, []int32{8})) // 8
	node := func(domain, op string, version int) *graph.Node {
		return &graph.Node{Domain: domain, Op: op, Version: version, Inputs: []int{0, -1}, Outputs: []int{1}}
	}
	data, err := written([]*graph.Value{open, stored, scalar, state, seven(), seven(), unranked, wrong, eight},
		node(graph.TFLite, "ABS", 1), node(graph.TFLite, "GELU", 2), node(graph.TFLite, "ABS", 1), node(graph.TFLite, "ABS", 2),
		node(graph.TFLite, "BUILTIN_300", 1), node(graph.TFLiteCustom, "ABS", 1), node(graph.TFLite, "ADD", 1))
	if err != nil {
		t.Fatal(err)
	}
	r := flatbuffer.NewReader(data)
	root := r.Root("Model", "TFL3")
	codes := root.Tables(1, "")
	type code struct {
		byteCode uint8
		code     int32
		version  int32
		custom   string
	}
	var got []code
	for i := range codes.Len() {
		c := codes.At(i)
		got = append(got, code{c.Uint8(0, "", 0), c.Int32(3, "", 0), c.Int32(2, "", 1), c.String(1, "")})
	}
	// Codes above 127 have the placeholder in the byte, as the schema asks.
	want := []code{{101, 101, 1, ""}, {127, 150, 2, ""}, {101, 101, 2, ""}, {127, 300, 1, ""}, {32, 32, 1, "ABS"}, {0, 0, 1, ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(code{})); diff != "" {
		t.Error(diff)
	}
	g := root.Tables(2, "").At(0)
	ops, tensors := g.Tables(3, ""), g.Tables(0, "")
	for i, want := range []uint32{0, 1, 0, 2, 3, 4, 5} {
		if o := ops.At(i); o.Uint32(opCode, "", 0) != want || !cmp.Equal(o.Ints(opInputs, ""), []int{0, -1}) || !cmp.Equal(o.Ints(opOutputs, ""), []int{1}) {
			t.Errorf("operator %d: code %d, want %d", i, o.Uint32(opCode, "", 0), want)
		}
	}
	for i, want := range [][2][]int{{{1, 3}, {-1, 3}}, {{1, 3}, {-1, 3}}, {}, {{2}, nil}, {{1}, nil}, {{1}, nil}, {}, {{1}, {-1}}, {{1}, nil}} {
		o := tensors.At(i)
		if diff := cmp.Diff(want, [2][]int{o.Ints(0, ""), o.Ints(tensorSignature, "")}); diff != "" {
			t.Errorf("tensor %d: %s", i, diff)
		}
		if o.Bool(tensorHasRank, "", false) != (i == 2) || o.Bool(tensorVariable, "", false) != (i == 3) {
			t.Errorf("tensor %d: rank %v, state %v", i, o.Bool(tensorHasRank, "", false), o.Bool(tensorVariable, "", false))
		}
	}
	buffers := root.Tables(4, "")
	a, b, c := tensors.At(4).Uint32(2, "", 0), tensors.At(5).Uint32(2, "", 0), tensors.At(8).Uint32(2, "", 0)
	if a != 1 || b != 1 || c != 2 || buffers.Len() != 3 {
		t.Errorf("equal constants in buffers %d and %d, another in %d, of %d", a, b, c, buffers.Len())
	}
	if x, at := buffers.At(2).Bytes(0, ""); !bytes.Equal(x, []byte{8, 0, 0, 0}) || at%16 != 0 {
		t.Errorf("buffer 2 is %v at %d", x, at)
	}
	q := tensors.At(3).Table(tensorQuant, "")
	if !cmp.Equal(q.Float32s(2, ""), []float32{1, 2}) || !cmp.Equal(q.Int64s(3, ""), []int64{3, -4}) || q.Int32(6, "", 0) != 1 {
		t.Errorf("quantisation %v %v", q.Float32s(2, ""), q.Int64s(3, ""))
	}
	if r.Err() != nil || root.Uint32(0, "", 0) != 3 || g.String(4, "") != "" || root.Has(6) || root.Has(7) {
		t.Errorf("error %v, version %d", r.Err(), root.Uint32(0, "", 0))
	}
}

// TestEncodeBlockZeros writes zero points that no tensor of the graph holds, and finds those that
// one does.
func TestEncodeBlockZeros(t *testing.T) {
	t.Parallel()
	q := &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 5}, Axis: 1, Block: 2}
	for _, tt := range []struct {
		name   string
		add    []*graph.Value
		values int
		zero   int32
	}{
		{"added", nil, 4, 3},
		{"found", []*graph.Value{constant(tensor.From(tensor.Int8, []int{2}, []int8{0, 5}))}, 4, 2},
		{"others differ", []*graph.Value{constant(tensor.From(tensor.Int8, []int{2}, []int8{0, 6})), constant(tensor.From(tensor.Int8, []int{3}, []int8{0, 5, 0}))}, 6, 5},
	} {
		v := constant(tensor.From(tensor.Int8, []int{1, 4}, []int8{1, 2, 3, 4}))
		v.Quant = q
		data, err := written(append([]*graph.Value{value(tensor.Float32, 1), v}, tt.add...))
		if err != nil {
			t.Fatal(err)
		}
		m := parse(t, data)
		if diff := cmp.Diff(q, m.Main().Values[1].Quant); diff != "" || len(m.Main().Values) != tt.values {
			t.Errorf("%s: %d values, %s", tt.name, len(m.Main().Values), diff)
		}
		d := flatbuffer.NewReader(data).Root("", "").Tables(2, "").At(0).Tables(0, "").At(1).Table(tensorQuant, "").Table(5, "")
		if z := d.Int32(1, "", 0); z != tt.zero {
			t.Errorf("%s: zero points in tensor %d, want %d", tt.name, z, tt.zero)
		}
	}
}

// member is a file of an archive and what the archive's headers say of it.
type member struct {
	packed []byte
	size   uint64 // as the directory says
	method uint16
	sum    uint32
}

func archive(t *testing.T, m member) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "m.tflite", Method: m.method, CRC32: m.sum, UncompressedSize64: m.size, CompressedSize64: uint64(len(m.packed))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(m.packed); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "m.zip")
	if err := os.WriteFile(p, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestArchivesThatLie says in the directory what a member does not hold.
func TestArchivesThatLie(t *testing.T) {
	t.Parallel()
	model := smallModel(t)
	n, sum := uint64(len(model)), crc32.ChecksumIEEE(model)
	stored := func(size uint64) member { return member{packed: model, size: size, sum: sum} }
	large := make([]byte, 1<<20+1)
	binary.LittleEndian.PutUint32(large, 8)
	for _, tt := range []struct {
		name, text string
		member     member
	}{
		{name: "true", member: stored(n)},
		{name: "longer than it says", text: "", member: stored(n - 1)},
		{name: "shorter than it says", text: "EOF", member: stored(n + 1)},
		{name: "a wrong sum", text: "checksum", member: member{packed: model, size: n, sum: sum + 1}},
		{name: "more than can be unpacked", text: "has 268435457 bytes, at most 268435456 are unpacked", member: stored(256<<20 + 1)},
		{name: "as much as can be unpacked", text: "is said to have 268435456 bytes, which", member: stored(256 << 20)},
		{name: "more than it can hold", text: "is said to have 5161 bytes, which 4 cannot hold", member: member{packed: []byte{1, 2, 3, 4}, size: 1032*5 + 1, method: zip.Deflate}},
		{name: "as much as it could hold", text: "flate", member: member{packed: []byte{0xff, 2, 3, 4}, size: 1032 * 5, method: zip.Deflate}},
		{name: "empty", text: "m.tflite: Model", member: member{}},
		{name: "large and no model", text: "is not a TFLite model", member: member{packed: large, size: uint64(len(large)), sum: crc32.ChecksumIEEE(large)}},
		{name: "small and no model", text: "identifier", member: member{packed: large[:1<<20], size: 1 << 20, sum: crc32.ChecksumIEEE(large[:1<<20])}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := archive(t, tt.member)
			m, err := Open(p)
			if tt.name == "true" {
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || !strings.HasPrefix(e.File, p) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error is %v, want %q", err, tt.text)
			}
		})
	}
	b, err := os.ReadFile(archive(t, stored(n)))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := ParseArchive(b, "dir/other.zip"); err != nil || m.Path != "dir/other.zip!m.tflite" {
		t.Errorf("from memory: %v", err)
	}
	var e *Error
	if _, err := ParseArchive(b[:9], "dir/other.zip"); !errors.As(err, &e) || e.File != "dir/other.zip" || e.Offset != -1 {
		t.Errorf("half an archive: %v", err)
	}
}

// TestOpenMapped closes what it opened and knows when the file has changed.
func TestOpenMapped(t *testing.T) {
	t.Parallel()
	p := writeFile(t, "m.tflite", smallModel(t))
	m, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	if m.Path != p || m.Close == nil || m.Check == nil || m.Check() != nil {
		t.Errorf("path %s", m.Path)
	}
	if err := os.WriteFile(p, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m.Check() == nil {
		t.Error("a file that has changed is taken for the same")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
