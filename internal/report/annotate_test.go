package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// profiled writes a model of two nodes, and returns a function that makes it the model of a
// profile, whose first layer does the work of the second node.
func profiled(t *testing.T) (path string, of func(*profile.Profile)) {
	t.Helper()
	g := &graph.Graph{Inputs: []int{0}, Outputs: []int{2}}
	for i := range 3 {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: string(rune('a' + i)), Type: tensor.Float32, Shape: []int{2}, HasShape: true})
	}
	g.Nodes = []*graph.Node{{Op: "Relu", Inputs: []int{0}, Outputs: []int{1}}, {Index: 1, Op: "Neg", Name: "n", Inputs: []int{1}, Outputs: []int{2}}}
	b, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 10, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return path, func(p *profile.Profile) {
		p.Model.Format, p.Model.Path, p.Model.SHA256 = "onnx", path, hex.EncodeToString(sum[:])
		if len(p.Layers) > 0 {
			p.Layers[0].Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: 1, Name: "n", Op: "Neg"}, {Node: 0, Op: "Relu"}}}
		}
	}
}

// notes are the properties of the model and of its nodes, as "key=value".
func notes(t rapid.TB, file []byte) (all []string) {
	t.Helper()
	// The reader of models drops properties of nodes: they are seen while they are replaced.
	var plain bytes.Buffer
	if err := onnx.Annotate(&plain, file, ownKeys, nil, func(int, string, string) []onnx.Property { return nil }); err != nil {
		t.Fatal(err)
	}
	for s := range strings.SplitSeq(string(file), ownKeys) {
		key, rest, ok := strings.Cut(s, "\x12") // field 2 of an entry, its length in front
		if ok && len(rest) > 1 && int(rest[0]) < len(rest) && rest[0] < 0x80 && !strings.Contains(key, "\n") {
			all = append(all, key+"="+rest[1:1+rest[0]])
		}
	}
	return all
}

func TestAnnotated(t *testing.T) {
	t.Parallel()
	path, of := profiled(t)
	p := fixed()
	of(p)
	p.Layers = p.Layers[:1]
	p.Layers[0].Latency, p.Layers[0].Share = profile.Value(profile.Measured, 2.5e-6, ""), new(0.25)
	p.Layers[0].Roof, p.Layers[0].State, p.Layers[0].MACs = &profile.Roof{Bound: profile.BoundMemory}, profile.Ran, new(int64(1500))
	var b bytes.Buffer
	if err := Write(&b, p, "onnx", Options{}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(notes(t, b.Bytes()), "\n")
	for _, want := range []string{"state=fused into 0\n", "layer=0\ntime=2.50 µs\nshare=25.0 %\nbound=memory\nmacs=1.50 k\n", "target=", "version="} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	m, err := onnx.Parse(b.Bytes(), "", "")
	if err != nil || len(m.Main().Nodes) != 2 {
		t.Errorf("the model: %v", err)
	}

	for want, change := range map[string]func(p *profile.Profile, o *Options){
		"only .onnx models can be written": func(p *profile.Profile, _ *Options) { p.Model.Format = "tflite" },
		"does not name the file":           func(p *profile.Profile, _ *Options) { p.Model.Path = "" },
		"in the folder of the profile":     func(p *profile.Profile, _ *Options) { p.Model.Path += "x" },
		"is not the file that was":         func(p *profile.Profile, _ *Options) { p.Model.SHA256 = strings.Repeat("0", 64) },
		"no layer of the profile leads":    func(p *profile.Profile, _ *Options) { p.Layers[0].Provenance = nil },
		"it is the model itself":           func(_ *profile.Profile, o *Options) { o.file = path },
	} {
		p, o := *p, Options{}
		p.Layers = append([]profile.Layer(nil), p.Layers...)
		change(&p, &o)
		if err := Write(&b, &p, "onnx", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// External data are found from the folder of the model only.
func TestAnnotatedExternal(t *testing.T) {
	t.Parallel()
	c := tensor.New(tensor.Float32, 2000)
	g := &graph.Graph{Outputs: []int{1}, Values: []*graph.Value{{Name: "c", Type: c.Type, Shape: c.Shape, HasShape: true, Const: c}, {ID: 1, Name: "y", Type: c.Type}}, Nodes: []*graph.Node{{Op: "Relu", Inputs: []int{0}, Outputs: []int{1}}}}
	b, x, err := onnx.EncodeExternal(&graph.Model{Format: "onnx", IRVersion: 10, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}}, "m.data")
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if err := x.Write(&data); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	for name, b := range map[string][]byte{"m.onnx": b, "m.data": data.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(b)
	p := &profile.Profile{Model: profile.Model{Format: "onnx", Path: path, SHA256: hex.EncodeToString(sum[:])}}
	p.Layers = []profile.Layer{{State: profile.Ran, Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Op: "Relu"}}}}}
	if err := File(filepath.Join(dir, "noted.onnx"), p, Options{}); err != nil {
		t.Error(err)
	}
	if m, err := onnx.Open(filepath.Join(dir, "noted.onnx")); err != nil {
		t.Error(err)
	} else if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := File(filepath.Join(t.TempDir(), "noted.onnx"), p, Options{}); err == nil || !strings.Contains(err.Error(), "write the file there") {
		t.Errorf("another folder: %v", err)
	}
}

// Nodes are found by position, by name where the file has another order, and once.
func TestNodeNotes(t *testing.T) {
	t.Parallel()
	layer := func(i int64, nodes ...profile.SourceNode) profile.Layer {
		return profile.Layer{Index: i, Provenance: &profile.Provenance{SourceNodes: nodes}}
	}
	s := newNodeNotes(&profile.Profile{Layers: []profile.Layer{
		layer(0, profile.SourceNode{Node: 0, Name: "a", Op: "Relu"}), layer(1, profile.SourceNode{Node: 1, Op: "Relu"}),
		layer(2, profile.SourceNode{Node: 2, Name: "b", Op: "Conv"}), layer(3, profile.SourceNode{Graph: 1, Node: 3, Op: "Neg"}),
	}})
	for _, c := range []struct {
		at       int
		name, op string
		want     int64
	}{{0, "b", "Conv", 2}, {1, "", "Relu", 1}, {1, "", "Relu", -1}, {2, "a", "Relu", 0}, {2, "a", "Relu", -1}, {3, "", "Neg", -1}, {4, "c", "Neg", -1}} {
		n := s.take(c.at, c.name, c.op)
		if (n == nil) != (c.want < 0) || n != nil && n.layer.Index != c.want {
			t.Errorf("node %d %q: %+v, want that of layer %d", c.at, c.name, n, c.want)
		}
	}
}

// checkNotes looks for what must reach no viewer of a model.
func checkNotes(t rapid.TB, file []byte) {
	t.Helper()
	for _, s := range notes(t, file) {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, obeyed) {
			t.Errorf("property %q", s)
		}
	}
}
