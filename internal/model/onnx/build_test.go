package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// The helpers write messages field by field, also ones that no writer makes.

func msg(parts ...func(*message)) message {
	var b message
	for _, p := range parts {
		p(&b)
	}
	return b
}

func sub(field protowire.Number, parts ...func(*message)) func(*message) {
	return func(b *message) { b.bytes(field, msg(parts...)) }
}

func str(field protowire.Number, s string) func(*message) {
	return func(b *message) { b.str(field, s) }
}

func num(field protowire.Number, v int64) func(*message) {
	return func(b *message) { b.int(field, v) }
}

func raw(field protowire.Number, v ...byte) func(*message) {
	return func(b *message) { b.bytes(field, v) }
}

// names writes a repeated string, given as words; "_" is the empty string.
func names(field protowire.Number, words string) func(*message) {
	return func(b *message) {
		for w := range strings.FieldsSeq(words) {
			b.str(field, strings.Trim(w, "_"))
		}
	}
}

// node writes "Op out out = in in" with attributes.
func node(text string, attrs ...func(*message)) func(*message) {
	return nodeIn(graphNode, text, attrs...)
}

func nodeIn(field protowire.Number, text string, attrs ...func(*message)) func(*message) {
	left, in, _ := strings.Cut(text, "=")
	op, out, _ := strings.Cut(left, " ")
	domain := ""
	if d, o, ok := strings.Cut(op, ":"); ok {
		domain, op = d, o
	}
	parts := []func(*message){names(nodeInput, in), names(nodeOutput, out), str(nodeOpType, op), str(nodeDomain, domain)}
	return sub(field, append(parts, attrs...)...)
}

func attr(name string, kind int64, parts ...func(*message)) func(*message) {
	return sub(nodeAttribute, append([]func(*message){str(attrName, name), num(attrType, kind)}, parts...)...)
}

func input(name string) func(*message)  { return sub(graphInput, str(infoName, name)) }
func output(name string) func(*message) { return sub(graphOutput, str(infoName, name)) }

// scalar writes an initializer that holds one float.
func scalar(name string) func(*message) {
	return sub(graphInitializer, num(tensorDataType, 1), str(tensorName, name), raw(tensorRawData, 0, 0, 128, 63))
}

func model(graph ...func(*message)) []byte { return modelWith(nil, graph...) }

func modelWith(extra []func(*message), graph ...func(*message)) []byte {
	parts := []func(*message){num(modelIRVersion, 8), sub(modelOpsetImport, num(opsetVersion, 17)), sub(modelGraph, graph...)}
	return msg(append(parts, extra...)...)
}

func function(name, in, out string, parts ...func(*message)) func(*message) {
	head := []func(*message){
		str(functionName, name), str(functionDomain, "local"), names(functionInput, in), names(functionOutput, out),
		sub(functionOpset, num(opsetVersion, 18)),
	}
	return sub(modelFunctions, append(head, parts...)...)
}

func externalTensor(dims int64, entries ...string) func(*message) {
	parts := []func(*message){num(tensorDims, dims), num(tensorDataType, 1), str(tensorName, "w"), num(tensorDataLocation, 1)}
	for i := 0; i < len(entries); i += 2 {
		parts = append(parts, sub(tensorExternalData, str(entryKey, entries[i]), str(entryValue, entries[i+1])))
	}
	return sub(graphInitializer, parts...)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := t.TempDir()
	write := func(dir, name string, n int) {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, "w.bin", 16)
	write(outside, "secret", 16)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := os.Symlink(filepath.Join(outside, "gone"), filepath.Join(dir, "link"))

	deep := []func(*message){node("Relu y = x"), output("y")}
	for range 60 {
		deep = []func(*message){node("If y = x", attr("then_branch", kindGraph, sub(attrG, deep...))), output("y")}
	}
	whole := model(input("x"), scalar("w"), node("Add y = x w"), output("y"))
	chain := []func(*message){function("F0", "a", "b", nodeIn(functionNode, "Relu b = a"))}
	for i := 1; i < 40; i++ {
		call := fmt.Sprintf("local:F%d", i-1)
		chain = append(chain, function(fmt.Sprintf("F%d", i), "a", "c", nodeIn(functionNode, call+" b = a"), nodeIn(functionNode, call+" c = b")))
	}
	tests := []struct {
		name, path, want string
		data             []byte
		noOffset         bool
	}{
		{name: "empty", want: "file is empty", noOffset: true},
		{name: "text", want: "damaged or not an ONNX model: field", data: []byte("this is not a model at all")},
		{name: "no graph", want: "not an ONNX model", data: msg(num(modelIRVersion, 8)), noOffset: true},
		{name: "cut short", want: "damaged or not an ONNX model: field 7 claims", data: whole[:len(whole)-5]},
		{name: "wrong wire type", path: "graph.node[0]", want: "field 4 is not bytes", data: model(sub(graphNode, num(nodeOpType, 3)))},
		{name: "no operator", path: "graph.node[1]", want: "no operator type", data: model(input("x"), node("Relu y = x"), sub(graphNode))},
		{name: "missing input", path: "graph.node[1].input[1]", want: `"q" is not made`, data: model(input("x"), node("Relu y = x"), node("Add z = y q"))},
		{name: "missing output", path: "graph.output[0]", want: `"z" is never made`, data: model(input("x"), node("Relu y = x"), output("z"))},
		{name: "value made twice", path: "graph.node[1].output[0]", want: "defined twice", data: model(input("x"), node("Relu y = x"), node("Relu y = x"))},
		{name: "input made again", path: "graph.node[0].output[0]", want: "defined twice", data: model(input("x"), node("Relu x = x"))},
		{name: "initializer twice", path: "graph.initializer[1]", want: "defined twice", data: model(scalar("w"), scalar("w"))},
		{name: "input twice", path: "graph.input[1]", want: "listed twice", data: model(input("x"), input("x"))},
		{name: "cycle", path: "graph", want: "has a cycle: node", data: model(input("x"), node("Add a = x b"), node("Relu b = a"), output("b"))},
		{name: "own input", path: "graph", want: "has a cycle", data: model(node("Relu a = a"), output("a"))},
		{
			name: "raw data too short", path: `graph.node[0].attribute["value"].t.raw_data`, want: "4 bytes, but 2x3 of float32 takes 24",
			data: model(node("Constant c =", attr("value", kindTensor, sub(attrT, num(tensorDims, 2), num(tensorDims, 3), num(tensorDataType, 1), raw(tensorRawData, 1, 2, 3, 4))))),
		},
		{name: "huge tensor", path: "graph.initializer[0]", want: "too large", data: model(sub(graphInitializer, num(tensorDims, 1<<30), num(tensorDims, 1<<30), num(tensorDataType, 1)))},
		{name: "negative dimension", path: "graph.initializer[0].dims", want: "dimension -1", data: model(sub(graphInitializer, num(tensorDims, -1), num(tensorDataType, 1)))},
		{name: "no data", path: "graph.initializer[0]", want: "0 elements in float_data", data: model(sub(graphInitializer, num(tensorDims, 1<<20), num(tensorDataType, 1)))},
		{name: "unknown type", path: "graph.initializer[0].data_type", want: "unknown element type 99", data: model(sub(graphInitializer, num(tensorDataType, 99)))},
		{name: "no type", path: "graph.initializer[0]", want: "no element type", data: model(sub(graphInitializer, str(tensorName, "w")))},
		{name: "segment", path: "graph.initializer[0].segment", want: "not supported", data: model(sub(graphInitializer, sub(tensorSegment)))},
		{
			name: "huge declared shape", path: "graph.input[0].type.tensor_type.shape", want: "too large",
			data: model(sub(graphInput, str(infoName, "x"), sub(infoType, sub(typeTensor, num(tensorTypeElem, 1), sub(tensorTypeShape, sub(shapeDim, num(dimValue, 1<<39)), sub(shapeDim, num(dimValue, 1<<39))))))),
		},
		{
			name: "huge dimension", path: "graph.input[0].type.tensor_type.shape.dim[0]", want: "too large",
			data: model(sub(graphInput, str(infoName, "x"), sub(infoType, sub(typeTensor, num(tensorTypeElem, 1), sub(tensorTypeShape, sub(shapeDim, num(dimValue, 1<<50))))))),
		},
		{name: "nests too deep", want: "nest deeper", data: model(append(deep, input("x"))...)},
		{name: "attribute twice", path: "graph.node[0]", want: `"a" is given twice`, data: model(node("Foo y =", attr("a", kindInt), attr("a", kindInt)))},
		{name: "attribute type", path: `graph.node[0].attribute["a"]`, want: "unknown type 77", data: model(node("Foo y =", attr("a", 77)))},
		{name: "attribute without value", path: `graph.node[0].attribute["a"]`, want: "type tensor has 0 values", data: model(node("Foo y =", attr("a", kindTensor)))},
		{name: "no inputs and outputs", path: "graph.node[0]", want: "neither inputs nor outputs", data: model(node("Foo"))},
		{name: "body without output", path: `graph.node[0].attribute["b"].g`, want: "has no output", data: model(node("If y =", attr("b", kindGraph, sub(attrG))))},
		{name: "second graph", want: "second graph", data: modelWith([]func(*message){sub(modelGraph)}, input("x"))},
		{name: "sparse index", path: "graph.sparse_initializer[0]", want: "index 9 is outside 4 elements", data: model(sparse(4, 9))},
		{name: "sparse bomb", path: "graph.sparse_initializer[0]", want: "far larger than the file", data: model(sparse(1<<31, 1))},
		{name: "recursion", path: "functions[0].node[0]", want: "calls itself", data: modelWith([]func(*message){function("F", "a", "b", nodeIn(functionNode, "local:F b = a"))}, input("x"), node("local:F y = x"), output("y"))},
		{name: "expansion bomb", want: "far more than the file", data: modelWith(chain, input("x"), node("local:F39 y = x"), output("y"))},
		{name: "function twice", path: "functions[1]", want: "defined twice", data: modelWith([]func(*message){function("F", "", ""), function("F", "", "")}, input("x"))},
		{name: "too many arguments", path: "graph.node[0]", want: "has 1 inputs", data: modelWith([]func(*message){function("F", "a", "b", nodeIn(functionNode, "Relu b = a"))}, input("x"), node("local:F y = x x"))},
		{name: "function output", path: "graph.node[0]", want: `does not make its output "b"`, data: modelWith([]func(*message){function("F", "a", "b", nodeIn(functionNode, "Relu c = a"))}, input("x"), node("local:F y = x"))},
		{name: "no location", path: "graph.initializer[0].external_data", want: "no location", data: model(externalTensor(2))},
		{name: "absolute location", path: "graph.initializer[0].external_data", want: "outside the model's folder", data: model(externalTensor(2, "location", filepath.Join(outside, "secret")))},
		{name: "location above", path: "graph.initializer[0].external_data", want: "outside the model's folder", data: model(externalTensor(2, "location", "../"+filepath.Base(outside)+"/secret"))},
		{name: "location up and down", path: "graph.initializer[0].external_data", want: "outside the model's folder", data: model(externalTensor(2, "location", "folder/../w.bin"))},
		{name: "location of Windows", path: "graph.initializer[0].external_data", want: "outside the model's folder", data: model(externalTensor(2, "location", `..\secret`))},
		{name: "location is a folder", path: "graph.initializer[0].external_data", want: "not a regular file", data: model(externalTensor(2, "location", "folder"))},
		{name: "absent file", path: "graph.initializer[0].external_data", want: "no such file", data: model(externalTensor(2, "location", "absent"))},
		{name: "beyond the file", path: "graph.initializer[0].external_data", want: "has 16 bytes, but the tensor needs 8 at 12", data: model(externalTensor(2, "location", "w.bin", "offset", "12"))},
		{name: "wrong length", path: "graph.initializer[0].external_data", want: "length 4, but the tensor takes 8", data: model(externalTensor(2, "location", "w.bin", "length", "4"))},
		{name: "wrong offset", path: "graph.initializer[0].external_data", want: "is not a size", data: model(externalTensor(2, "location", "w.bin", "offset", "-4"))},
	}
	if link == nil {
		tests = append(tests, struct {
			name, path, want string
			data             []byte
			noOffset         bool
		}{name: "link to nothing", path: "graph.initializer[0].external_data", want: "location \"link\": no such file", data: model(externalTensor(2, "location", "link"))})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := Parse(tt.data, "m.onnx", dir)
			var e *Error
			if m != nil || !errors.As(err, &e) {
				t.Fatalf("got model %v and error %v", m, err)
			}
			if e.File != "m.onnx" || tt.path != "" && e.Path != tt.path || !strings.Contains(err.Error(), tt.want) || (e.Offset < 0) != tt.noOffset {
				t.Errorf("got %v; path %q offset %d; want %q, path %q", err, e.Path, e.Offset, tt.want, tt.path)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// sparse writes a sparse initializer "w" with one value 1 at an index.
func sparse(dim, index int64) func(*message) {
	return sub(graphSparse,
		sub(sparseValues, num(tensorDims, 1), num(tensorDataType, 1), str(tensorName, "w"), raw(tensorRawData, 0, 0, 128, 63)),
		sub(sparseIndices, num(tensorDims, 1), num(tensorDataType, 7), num(tensorInt64Data, index)),
		num(sparseDims, dim))
}

// lines describes a graph's nodes, such as "Add z = x y".
func lines(g *graph.Graph) (out []string) {
	list := func(ids []int) (s string) {
		for _, id := range ids {
			if id < 0 {
				s += " _"
			} else {
				s += " " + g.Values[id].Name
			}
		}
		return s
	}
	for _, n := range g.Nodes {
		out = append(out, n.Key()+list(n.Outputs)+" ="+list(n.Inputs))
	}
	return out
}

func mustParse(t *testing.T, data []byte) *graph.Model {
	t.Helper()
	m, err := Parse(data, "m.onnx", "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOrder(t *testing.T) {
	t.Parallel()
	m := mustParse(t, model(input("x"),
		node("Add d = b c"),
		node("If c = x", attr("then_branch", kindGraph, sub(attrG, node("Relu r = b"), output("r")))),
		node("Relu b = x"), output("d")))
	want := []string{"Relu b = x", "If c = x", "Add d = b c"}
	if diff := cmp.Diff(want, lines(m.Main())); diff != "" {
		t.Error(diff)
	}
	if len(m.Warnings) != 1 {
		t.Errorf("warnings %q", m.Warnings)
	}
}

func TestCaptures(t *testing.T) {
	t.Parallel()
	inner := sub(attrG, node("Sum s = x w k own"), output("s"), scalar("own"))
	middle := sub(attrG, node("If t = c", attr("then_branch", kindGraph, inner)), output("t"))
	m := mustParse(t, model(input("x"), input("c"), scalar("w"),
		node("Constant k =", attr("value_float", kindFloat)),
		node("If y = c", attr("then_branch", kindGraph, middle)), output("y")))
	if len(m.Graphs) != 3 {
		t.Fatalf("%d graphs", len(m.Graphs))
	}
	mid, in := m.Graphs[1], m.Graphs[2]
	if mid.Parent != m.Main() || in.Parent != mid {
		t.Error("parents are wrong")
	}
	// x and c pass through the middle graph; w, k and own are constants everywhere.
	if len(mid.Captures) != 2 || len(in.Captures) != 1 {
		t.Errorf("captures %v and %v", mid.Captures, in.Captures)
	}
	for _, name := range []string{"w", "k", "own"} {
		for _, v := range in.Values {
			if v.Name == name && v.Const == nil {
				t.Errorf("%s is not a constant of the body", name)
			}
		}
	}
	if diff := cmp.Diff([]string{"Sum s = x w k own"}, lines(in)); diff != "" {
		t.Error(diff)
	}
}

// TestModulePaths: PyTorch's exporter writes the modules of a node to its metadata. Nodes of a
// function have the module of the call.
func TestModulePaths(t *testing.T) {
	t.Parallel()
	meta := func(key, value string) func(*message) {
		return sub(nodeMetadata, str(entryKey, key), str(entryValue, value))
	}
	for _, tt := range []struct {
		name string
		meta []func(*message)
		want string
	}{
		{"scopes", []func(*message){meta(scopesKey, "['', 'model', 'model.layers.0', 'model.layers.0.attn.q', 'linear_3']")}, "model/layers.0/attn/q"},
		{"quotes", []func(*message){meta(scopesKey, `["", 'it"s', "linear"]`)}, `it"s`},
		{"nested lists", []func(*message){meta(scopesKey, "['', 'blocks.1.2', 'add']")}, "blocks.1.2"},
		{"of the model itself", []func(*message){meta(scopesKey, "['', 'add']")}, ""},
		{"without modules", []func(*message){meta(scopesKey, "['add']")}, ""},
		{"empty", []func(*message){meta(scopesKey, "[]")}, ""},
		{"no list", []func(*message){meta(scopesKey, "layers.0.linear")}, ""},
		{"not closed", []func(*message){meta(scopesKey, "['a', 'b")}, ""},
		{"without commas", []func(*message){meta(scopesKey, "['a' 'b']")}, ""},
		{"escapes", []func(*message){meta(scopesKey, `['', 'a\'b', 'c']`)}, ""},
		{"too long", []func(*message){meta(scopesKey, "['', '"+strings.Repeat("a", maxModulePath)+"', 'c']")}, ""},
		{"namespace", []func(*message){meta(namespaceKey, ": net.Model/layers.0: net.Layer/layers.0.fc: torch.nn.Linear/linear: aten.linear.default")}, "layers.0/fc"},
		{"another namespace", []func(*message){meta(namespaceKey, "a/b/c")}, ""},
		{"scopes before a namespace", []func(*message){meta(scopesKey, "['', 'a', 'n']"), meta(namespaceKey, ": M/b: B/n: t")}, "a"},
		{"scopes after a namespace", []func(*message){meta(namespaceKey, ": M/b: B/n: t"), meta(scopesKey, "['', 'a', 'n']")}, "a"},
		{"other metadata", []func(*message){meta("pkg.torch.onnx.fx_node", "['', 'a', 'n']")}, ""},
	} {
		if n := mustParse(t, model(input("x"), node("Relu y = x", tt.meta...), output("y"))).Main().Nodes[0]; n.Scope != tt.want {
			t.Errorf("%s: module %q, want %q", tt.name, n.Scope, tt.want)
		}
	}
	g := mustParse(t, modelWith([]func(*message){function("F", "a", "b", nodeIn(functionNode, "Relu c = a"), nodeIn(functionNode, "Neg b = c", meta(scopesKey, "['own', 'n']")))},
		input("x"), node("local:F y = x", meta(scopesKey, "['', 'outer', 'n']")), output("y"))).Main()
	if a, b := g.Nodes[0].Scope, g.Nodes[1].Scope; a != "outer" || b != "own" {
		t.Errorf("modules %q and %q inside of a function, want outer and own", a, b)
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	ref := func(name, to string, kind int64) func(*message) { return attr(name, kind, str(attrRef, to)) }
	alpha := func(v float32) func(*message) {
		return attr("alpha", kindFloat, func(b *message) { b.float(attrF, v) })
	}
	leaky := function("Leaky", "a b", "c a", str(functionAttribute, "alpha"),
		sub(functionAttrProto, str(attrName, "beta"), num(attrType, kindFloat), func(b *message) { b.float(attrF, 0.5) }),
		nodeIn(functionNode, "LeakyRelu t = a", ref("alpha", "alpha", kindFloat)),
		nodeIn(functionNode, "Elu c = t b", ref("alpha", "beta", kindFloat), ref("gone", "gone", kindInt)))
	outer := function("Outer", "a", "r", nodeIn(functionNode, "local:Leaky r _ = a _", alpha(2)))
	m := mustParse(t, modelWith([]func(*message){leaky, outer}, input("x"), input("Leaky/t"),
		node("local:Outer y = x"), node("local:Leaky z u = y Leaky/t", alpha(3)), output("z"), output("u")))
	g := m.Main()
	want := []string{
		"LeakyRelu Outer/Leaky/t = x", "Elu y = Outer/Leaky/t _",
		"LeakyRelu Leaky/t#2 = y", "Elu z = Leaky/t#2 Leaky/t", "Identity u = y",
	}
	if diff := cmp.Diff(want, lines(g)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Outer", "Leaky"}, g.Nodes[1].Function); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]graph.Attrs{{"alpha": float32(2)}, {"alpha": float32(0.5)}, {"alpha": float32(3)}},
		[]graph.Attrs{g.Nodes[0].Attrs, g.Nodes[1].Attrs, g.Nodes[2].Attrs}); diff != "" {
		t.Error(diff)
	}
	if v := g.Nodes[0].Version; v != 18 {
		t.Errorf("version %d inside the function, which imports 18", v)
	}
}

func TestOldInitializers(t *testing.T) {
	t.Parallel()
	m := mustParse(t, model(input("w"), input("x"), scalar("w"), node("Add y = x w"), output("y")))
	g := m.Main()
	if len(g.Inputs) != 1 || g.Values[g.Inputs[0]].Name != "x" {
		t.Errorf("inputs %v", g.Inputs)
	}
}

func TestSparse(t *testing.T) {
	t.Parallel()
	g := mustParse(t, model(input("x"), sparse(4, 2), node("Add y = x w"), output("y"))).Main()
	if diff := cmp.Diff([]float32{0, 0, 1, 0}, tensor.Of[float32](g.Values[0].Const)); diff != "" {
		t.Error(diff)
	}
}

func TestDomainWithoutImport(t *testing.T) {
	t.Parallel()
	m := mustParse(t, model(input("x"), node("custom:Foo y = x"), node("ai.onnx:Relu z = y"), output("z")))
	if v := m.Main().Nodes[0].Version; v != 1 || len(m.Warnings) != 1 {
		t.Errorf("version %d, warnings %q", v, m.Warnings)
	}
	if n := m.Main().Nodes[1]; n.Version != 17 || n.Key() != "Relu" {
		t.Errorf("%s version %d", n.Key(), n.Version)
	}
}

// TestLargeExternal opens a model with 2 GiB of weights, of which not a byte may
// be read or copied. The time is logged, not judged.
func TestLargeExternal(t *testing.T) {
	dir := t.TempDir()
	path := largeExternal(t, dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := Open(path)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
		t.Errorf("opening allocated %d bytes", n)
	}
	total := 0
	for _, v := range m.Main().Values {
		if v.Const != nil {
			total += len(v.Const.Data)
		}
	}
	if total != 2<<30 {
		t.Errorf("%d bytes of weights", total)
	}
}

func largeExternal(t testing.TB, dir string) string {
	t.Helper()
	w := filepath.Join(dir, "weights")
	if err := os.WriteFile(w, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w, 2<<30); err != nil {
		t.Skip(err)
	}
	parts := []func(*message){input("x"), output("v31")}
	const each = 2 << 30 / 32
	for i := range 32 {
		in, out := fmt.Sprintf("v%d", i-1), fmt.Sprintf("v%d", i)
		if i == 0 {
			in = "x"
		}
		parts = append(parts, node("Add "+out+" = "+in+fmt.Sprintf(" w%d", i)), sub(graphInitializer,
			num(tensorDims, each/4), num(tensorDataType, 1), str(tensorName, fmt.Sprintf("w%d", i)), num(tensorDataLocation, 1),
			sub(tensorExternalData, str(entryKey, "location"), str(entryValue, "weights")),
			sub(tensorExternalData, str(entryKey, "offset"), str(entryValue, fmt.Sprint(i*each))),
			sub(tensorExternalData, str(entryKey, "length"), str(entryValue, fmt.Sprint(each)))))
	}
	path := filepath.Join(dir, "m.onnx")
	if err := os.WriteFile(path, model(parts...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func BenchmarkOpenLargeExternal(b *testing.B) {
	path := largeExternal(b, b.TempDir())
	b.ReportAllocs()
	for b.Loop() {
		m, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
