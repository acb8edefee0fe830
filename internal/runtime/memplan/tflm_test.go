package memplan_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
	"github.com/opmeter/opmeter/internal/testing/material"
)

type place struct {
	Graph, Value, Bytes, Offset int
}

// TestTFLMPlans compares every offset with the plan of TensorFlow Lite Micro itself.
func TestTFLMPlans(t *testing.T) {
	t.Parallel()
	dir := material.Path(t, "golden")
	results, err := filepath.Glob(filepath.Join(dir, "*", "tflm", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	models, tensors := 0, 0
	for _, file := range results {
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Arena struct {
				Bytes int `json:"nonPersistentBytes"`
			} `json:"arena"`
			Plan []struct {
				Graph      int  `json:"subgraph"`
				Value      int  `json:"tensor"`
				Bytes      int  `json:"bytes"`
				Offset     int  `json:"offset"`
				Persistent bool `json:"persistent"`
			} `json:"plan"`
		}
		if err := jsonx.Unmarshal(b, &golden); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if golden.Plan == nil {
			continue
		}
		m, err := tflite.Open(material.Path(t, "models", "real", name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		scratch, _ := memplan.ReferenceScratch(m)
		plan, err := memplan.TFLM(m, scratch)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want, got []place
		for _, e := range golden.Plan {
			if !e.Persistent {
				want = append(want, place{e.Graph, e.Value, e.Bytes, e.Offset})
			}
		}
		for _, e := range plan.Entries {
			if e.Value >= 0 {
				got = append(got, place{e.Graph, e.Value, e.Bytes, e.Offset})
			}
		}
		models++
		tensors += len(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: offsets (-tflm +ours):\n%s", name, d)
		}
		if plan.Bytes != golden.Arena.Bytes {
			t.Errorf("%s: %d bytes, want %d", name, plan.Bytes, golden.Arena.Bytes)
		}
		if m.Close != nil {
			_ = m.Close()
		}
	}
	t.Logf("%d models, %d tensors", models, tensors)
}

// chain is a graph of one int8 tensor per node, each of the given size.
func chain(sizes ...int) *graph.Model {
	g := &graph.Graph{Inputs: []int{0}, Outputs: []int{len(sizes) - 1}}
	for i, n := range sizes {
		g.Values = append(g.Values, &graph.Value{ID: i, Type: tensor.Int8, Shape: []int{1, n}, HasShape: true})
		if i > 0 {
			g.Nodes = append(g.Nodes, &graph.Node{Index: i - 1, Op: "RELU", Domain: graph.TFLite, Inputs: []int{i - 1}, Outputs: []int{i}})
		}
	}
	return &graph.Model{Graphs: []*graph.Graph{g}}
}

func offsets(p *memplan.Plan) []int {
	var out []int
	for _, e := range p.Entries {
		out = append(out, e.Offset)
	}
	return out
}

func TestTFLM(t *testing.T) {
	t.Parallel()
	offline := func(m *graph.Model, words ...int32) *graph.Model {
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, uint32(w))
		}
		m.Metadata = []graph.Metadata{{Name: memplan.OfflineKey, Data: b}}
		return m
	}
	dynamic := chain(16, 16)
	dynamic.Graphs[0].Values[1].Shape[1] = -1
	endless := chain(16, 16)
	endless.Graphs[0].Nodes[0].Op = "CALL_ONCE"
	endless.Graphs[0].Nodes[0].Attrs = graph.Attrs{"init_subgraph_index": graph.GraphRef(0)}
	tests := []struct {
		name    string
		m       *graph.Model
		scratch []memplan.Scratch
		want    []int
		bytes   int
		err     string
	}{
		{name: "equal sizes: the later first", m: chain(16, 16, 16), want: []int{0, 16, 0}, bytes: 32},
		{name: "rounded up", m: chain(1, 17, 1), want: []int{32, 0, 32}, bytes: 48},
		{name: "scratch lives with its node only", m: chain(16, 16, 16), scratch: []memplan.Scratch{{Graph: 0, Node: 1, Bytes: 40}}, want: []int{0, 64, 48, 0}, bytes: 80},
		{name: "offline", m: offline(chain(16, 16), 1, 0, 2, 64, -1), want: []int{64, 0}, bytes: 80},
		{name: "offline of another model", m: offline(chain(16, 16), 1, 0, 3, 64, -1, -1), err: "the model has 2"},
		{name: "offline cut", m: offline(chain(16, 16), 1, 0, 2, 64), err: "1 offsets"},
		{name: "offline without header", m: offline(chain(16, 16), 1), err: "header"},
		{name: "offline negative", m: offline(chain(16, 16), 1, 0, 2, -7, 0), err: "offset -7"},
		{name: "dynamic", m: dynamic, err: "cannot be planned"},
		{name: "calls itself", m: endless, err: "nest deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := memplan.TFLM(tt.m, tt.scratch)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, offsets(p)); d != "" || p.Bytes != tt.bytes {
				t.Errorf("%d bytes, want %d; offsets (-want +got):\n%s", p.Bytes, tt.bytes, d)
			}
		})
	}
}

// TestTFLMNeverOverlaps plans random graphs.
func TestTFLMNeverOverlaps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	for round := range 200 {
		g := &graph.Graph{}
		n := 2 + r.IntN(40)
		for i := range n {
			g.Values = append(g.Values, &graph.Value{ID: i, Type: tensor.Int8, Shape: []int{r.IntN(100)}, HasShape: true})
			if i > 0 {
				node := &graph.Node{Index: i - 1, Domain: graph.TFLite, Op: "X", Outputs: []int{i}}
				for range 1 + r.IntN(3) {
					node.Inputs = append(node.Inputs, r.IntN(i))
				}
				g.Nodes = append(g.Nodes, node)
			}
		}
		g.Inputs, g.Outputs = []int{0}, []int{n - 1}
		scratch := []memplan.Scratch{{Node: r.IntN(n - 1), Bytes: r.IntN(200)}}
		p, err := memplan.TFLM(&graph.Model{Graphs: []*graph.Graph{g}}, scratch)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range p.Entries {
			if a.Offset%memplan.TFLMAlign != 0 || a.Offset+a.Bytes > p.Bytes {
				t.Fatalf("round %d: %+v in %d bytes", round, a, p.Bytes)
			}
			for _, b := range p.Entries[:i] {
				if a.First <= b.Last && b.First <= a.Last && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
					t.Fatalf("round %d: %+v and %+v overlap", round, a, b)
				}
			}
		}
	}
}

// TestTFLMNodes: scopes map to the main graph's nodes; scopes of a body map to its owner.
func TestTFLMNodes(t *testing.T) {
	t.Parallel()
	m := chain(16, 16, 16)
	m.Graphs[0].Nodes[1].Op = "CALL_ONCE"
	m.Graphs[0].Nodes[1].Attrs = graph.Attrs{"init_subgraph_index": graph.GraphRef(1)}
	body := chain(16, 16, 16).Graphs[0]
	body.Index = 1
	m.Graphs = append(m.Graphs, body)
	plan, err := memplan.TFLM(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The node opens a scope, so does entering the body, and each of its two nodes.
	if d := cmp.Diff([]int{-1, 0, 1, 1, 1, 1}, plan.Nodes); d != "" {
		t.Errorf("nodes by scope (-want +got):\n%s", d)
	}
	for _, e := range plan.Entries {
		if e.Last >= len(plan.Nodes) {
			t.Errorf("a buffer lives until scope %d of %d", e.Last, len(plan.Nodes))
		}
	}
}
