package memplan_test

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// TestGreedyByDefinition checks each offset against the rule: largest first, among equals the
// longer-lived, then in order; each in the smallest gap between buffers with overlapping
// lifetimes, the lowest among equals, or above all of them.
func TestGreedyByDefinition(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for round := range 400 {
		n, steps, align := 1+r.IntN(40), 1+r.IntN(25), 1<<r.IntN(7)
		b := make([]memplan.Buffer, n)
		for i := range b {
			first := r.IntN(steps) - 5
			b[i] = memplan.Buffer{Bytes: r.IntN(12) * r.IntN(50), First: first, Last: first + r.IntN(6)*r.IntN(3)}
		}
		at, total := memplan.Greedy(b, align)
		up := func(n int) int {
			for n%align != 0 {
				n++
			}
			return n
		}
		var order []int
		for i := range b {
			if b[i].Bytes > 0 {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(i, j int) int {
			return cmp.Or(cmp.Compare(up(b[j].Bytes), up(b[i].Bytes)), cmp.Compare(b[j].Last-b[j].First, b[i].Last-b[i].First))
		})
		most := 0
		for k, i := range order {
			size := up(b[i].Bytes)
			most = max(most, at[i]+size)
			// Ranges that are occupied during the lifetime of i.
			var taken [][2]int
			top := 0
			for _, j := range order[:k] {
				if b[j].First <= b[i].Last && b[i].First <= b[j].Last {
					taken = append(taken, [2]int{at[j], at[j] + up(b[j].Bytes)})
					top = max(top, at[j]+up(b[j].Bytes))
				}
			}
			slices.SortFunc(taken, func(x, y [2]int) int { return x[0] - y[0] })
			want, least, end := top, -1, 0
			for _, x := range taken {
				if gap := x[0] - end; gap >= size && (least < 0 || gap < least) {
					want, least = end, gap
				}
				end = max(end, x[1])
			}
			if at[i] != want {
				t.Fatalf("round %d: %+v of %+v with alignment %d is at %d, want %d (all at %v)", round, b[i], b, align, at[i], want, at)
			}
		}
		if total != most {
			t.Fatalf("round %d: %d bytes, want %d", round, total, most)
		}
		// Sum of live bytes at one step.
		live := 0
		for s := -10; s < 60; s++ {
			sum := 0
			for _, x := range b {
				if x.First <= s && s <= x.Last {
					sum += up(x.Bytes)
				}
			}
			live = max(live, sum)
		}
		if got := memplan.LiveBytes(b, align); got != live {
			t.Fatalf("round %d: %d bytes alive, want %d", round, got, live)
		}
	}
	if got := memplan.LiveBytes([]memplan.Buffer{{Bytes: 3}, {Bytes: 5, First: 1, Last: 1}}, 0); got != 5 {
		t.Errorf("without alignment %d bytes alive, want 5", got)
	}
	if at, total := memplan.Greedy([]memplan.Buffer{{Bytes: 3}, {Bytes: 5}}, 0); !slices.Equal(at, []int{5, 0}) || total != 8 {
		t.Errorf("without alignment at %v of %d", at, total)
	}
}

// TestInPlace checks when a buffer reuses another's memory.
func TestInPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		b     []memplan.Buffer
		share bool // the last two share memory
	}{
		{"at the step in which the other ends", []memplan.Buffer{{Bytes: 8, First: 0, Last: 3}, {Bytes: 8, First: 3, Last: 4, InPlace: 1}}, true},
		{"smaller", []memplan.Buffer{{Bytes: 8, First: 0, Last: 3}, {Bytes: 1, First: 3, Last: 4, InPlace: 1}}, true},
		{"larger", []memplan.Buffer{{Bytes: 8, First: 0, Last: 3}, {Bytes: 9, First: 3, Last: 4, InPlace: 1}}, false},
		{"the other lives on", []memplan.Buffer{{Bytes: 8, First: 0, Last: 4}, {Bytes: 8, First: 3, Last: 5, InPlace: 1}}, false},
		{"the other begins with it", []memplan.Buffer{{Bytes: 8, First: 3, Last: 3}, {Bytes: 8, First: 3, Last: 4, InPlace: 1}}, false},
		{"itself", []memplan.Buffer{{Bytes: 8, First: 0, Last: 3}, {Bytes: 8, First: 3, Last: 3, InPlace: 2}}, false},
		{"one that is absent", []memplan.Buffer{{Bytes: 8, First: 0, Last: 3}, {Bytes: 8, First: 3, Last: 3, InPlace: 3}}, false},
		{"below the first", []memplan.Buffer{{Bytes: 8, First: 0, Last: 3}, {Bytes: 8, First: 3, Last: 3, InPlace: -1}}, false},
	} {
		at, total := memplan.Greedy(c.b, 1)
		want := c.b[0].Bytes
		if !c.share {
			want += c.b[1].Bytes
		}
		if (at[0] == at[1]) != c.share || total != want {
			t.Errorf("%s: at %v of %d bytes, want %d", c.name, at, total, want)
		}
	}
	// The reused memory is live for both buffers: a third one that overlaps only the second in
	// time gets other memory, also if the first outlives the second.
	b := []memplan.Buffer{{Bytes: 8, First: 0, Last: 1}, {Bytes: 8, First: 1, Last: 5, InPlace: 1}, {Bytes: 4, First: 4, Last: 4}, {Bytes: 8, First: 6, Last: 7}}
	if at, total := memplan.Greedy(b, 4); !slices.Equal(at, []int{0, 0, 8, 0}) || total != 12 {
		t.Errorf("at %v of %d", at, total)
	}
	// A chain of hints given backwards works, and a cycle of hints terminates.
	b = []memplan.Buffer{{Bytes: 8, First: 2, Last: 9, InPlace: 2}, {Bytes: 8, First: 1, Last: 2, InPlace: 3}, {Bytes: 8, First: 0, Last: 1}, {Bytes: 8, First: 9, Last: 9}}
	if at, total := memplan.Greedy(b, 1); at[0] != at[1] || at[1] != at[2] || at[3] == at[0] || total != 16 {
		t.Errorf("a chain at %v of %d", at, total)
	}
	ring := []memplan.Buffer{{Bytes: 8, First: 1, Last: 2, InPlace: 2}, {Bytes: 8, First: 2, Last: 1, InPlace: 1}}
	if at, _ := memplan.Greedy(ring, 1); len(at) != 2 {
		t.Errorf("a ring at %v", at)
	}
}

// TestFirstFit checks plans of random graphs against the rule of TensorFlow Lite Micro: fixed
// tensors as in the file, the rest by size, the later first among equals, each at the lowest
// offset that earlier ones leave free during its lifetime.
func TestFirstFit(t *testing.T) {
	t.Parallel()
	const align = 16
	up := func(n int) int { return (n + align - 1) &^ (align - 1) }
	r := rand.New(rand.NewPCG(21, 22))
	for round := range 300 {
		g := &graph.Graph{}
		n := 2 + r.IntN(30)
		words := []int32{1, 0, int32(n)}
		for i := range n {
			g.Values = append(g.Values, &graph.Value{ID: i, Type: tensor.Int8, Shape: []int{r.IntN(9) * r.IntN(20)}, HasShape: true})
			at := int32(-1)
			if r.IntN(8) == 0 {
				at = int32(16 * (1000 + 20*i)) // far apart, so that fixed plans are possible
			}
			words = append(words, at)
			if i > 0 {
				node := &graph.Node{Domain: graph.TFLite, Op: "X", Outputs: []int{i}}
				for range 1 + r.IntN(3) {
					node.Inputs = append(node.Inputs, r.IntN(i))
				}
				g.Nodes = append(g.Nodes, node)
			}
		}
		g.Inputs, g.Outputs = []int{0}, []int{n - 1}
		m := &graph.Model{Graphs: []*graph.Graph{g}}
		if r.IntN(2) == 0 {
			var data []byte
			for _, w := range words {
				data = binary.LittleEndian.AppendUint32(data, uint32(w))
			}
			m.Metadata = []graph.Metadata{{Name: "other", Data: []byte{1}}, {Name: "OfflineMemoryAllocation", Data: data}}
		}
		p, err := memplan.TFLM(m, []memplan.Scratch{{Node: r.IntN(n - 1), Bytes: r.IntN(200)}, {Node: r.IntN(n - 1), Bytes: r.IntN(20)}})
		if err != nil {
			t.Fatal(err)
		}
		var order []memplan.Entry
		for _, e := range p.Entries {
			if e.Offline {
				order = append(order, e)
				if e.Offset != int(words[3+e.Value]) {
					t.Fatalf("round %d: %+v, the file says %d", round, e, words[3+e.Value])
				}
			}
		}
		fixed := len(order)
		for _, e := range slices.Backward(p.Entries) {
			if !e.Offline {
				order = append(order, e)
			}
		}
		slices.SortStableFunc(order[fixed:], func(a, b memplan.Entry) int { return up(b.Bytes) - up(a.Bytes) })
		most := 0
		for k, e := range order {
			most = max(most, e.Offset+up(e.Bytes))
			if k < fixed {
				continue
			}
			free := func(at int) bool {
				return !slices.ContainsFunc(order[:k], func(q memplan.Entry) bool {
					return q.First <= e.Last && e.First <= q.Last && at < q.Offset+up(q.Bytes) && q.Offset < at+up(e.Bytes)
				})
			}
			want := 0
			for !free(want) {
				want += align
			}
			if e.Offset != want {
				t.Fatalf("round %d: %+v, the lowest free place is %d (%+v)", round, e, want, order[:k])
			}
		}
		if p.Bytes != most {
			t.Fatalf("round %d: %d bytes, want %d", round, p.Bytes, most)
		}
	}
}

// TestBodies lists the scopes of control flow: condition before body, then before else. A body's
// tensors are live in its scopes, its owner's inputs until the bodies have run.
func TestBodies(t *testing.T) {
	t.Parallel()
	body := func() *graph.Graph { return chain(16, 16).Graphs[0] }
	m := chain(16, 16, 16)
	g := m.Graphs[0]
	g.Nodes[0].Op, g.Nodes[0].Attrs = "WHILE", graph.Attrs{"body_subgraph_index": graph.GraphRef(1), "cond_subgraph_index": graph.GraphRef(2)}
	g.Nodes[1].Op, g.Nodes[1].Attrs = "IF", graph.Attrs{"else_subgraph_index": graph.GraphRef(3), "then_subgraph_index": graph.GraphRef(4)}
	m.Graphs = append(m.Graphs, body(), body(), body(), body())
	p, err := memplan.TFLM(m, []memplan.Scratch{{Graph: 0, Node: 0, Bytes: 4}, {Graph: 2, Node: 0, Bytes: 4}})
	if err != nil {
		t.Fatal(err)
	}
	// Scopes: 1 WHILE, 2 its condition, 3 a node of it, 4 its body, 5 a node of it; 6 IF, 7 and 8
	// then, 9 and 10 else.
	if want := []int{-1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}; !slices.Equal(p.Nodes, want) {
		t.Errorf("nodes by scope %v, want %v", p.Nodes, want)
	}
	type place struct{ graph, value, scratch int }
	got := map[place][2]int{}
	for _, e := range p.Entries {
		got[place{e.Graph, e.Value, e.Scratch}] = [2]int{e.First, e.Last}
	}
	for at, want := range map[place][2]int{
		{0, 0, -1}: {0, 5}, {0, 1, -1}: {1, 10}, {0, 2, -1}: {6, 10},
		{2, 0, -1}: {2, 3}, {2, 1, -1}: {3, 3}, {1, 0, -1}: {4, 5}, {1, 1, -1}: {5, 5},
		{4, 0, -1}: {7, 8}, {3, 0, -1}: {9, 10}, {3, 1, -1}: {10, 10},
		{0, -1, 0}: {1, 5}, {2, -1, 1}: {3, 3},
	} {
		if got[at] != want {
			t.Errorf("%+v lives from %d to %d, want %v", at, got[at][0], got[at][1], want)
		}
	}
}

// TestWhatIsPlanned lists values that need no memory in the arena, and errors of a plan.
func TestWhatIsPlanned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(v *graph.Value)
		places bool
		err    string
	}{
		{"a tensor", func(*graph.Value) {}, true, ""},
		{"a constant", func(v *graph.Value) { v.Const = tensor.New(tensor.Int8, 1, 16) }, false, ""},
		{"a variable", func(v *graph.Value) { v.Variable = true }, false, ""},
		{"a variable that begins with a constant", func(v *graph.Value) { v.Variable, v.Const = true, tensor.New(tensor.Int8, 1, 16) }, false, ""},
		{"a resource", func(v *graph.Value) { v.Type = tensor.Resource }, false, ""},
		{"a variant", func(v *graph.Value) { v.Type = tensor.Variant }, false, ""},
		{"of no elements", func(v *graph.Value) { v.Shape = []int{0, 3} }, false, ""},
		{"open, with a stored shape", func(v *graph.Value) { v.Shape, v.Placeholder = []int{-1, 16}, []int{1, 16} }, true, ""},
		{"open", func(v *graph.Value) { v.Shape = []int{-1, 16} }, false, `tensor 1 "y" of graph 0: `},
		{"without a shape", func(v *graph.Value) { v.HasShape = false }, false, "no shape"},
	} {
		m := chain(16, 16, 16)
		v := m.Graphs[0].Values[1]
		v.Name = "y"
		c.change(v)
		p, err := memplan.TFLM(m, nil)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "a fixed arena cannot be planned") {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := slices.ContainsFunc(p.Entries, func(e memplan.Entry) bool { return e.Value == 1 }); got != c.places {
			t.Errorf("%s: has a place: %v, want %v", c.name, got, c.places)
		}
	}
	// An unused value is not an error, whatever its shape.
	m := chain(16, 16)
	m.Graphs[0].Values = append(m.Graphs[0].Values, &graph.Value{ID: 2, Type: tensor.Int8, Shape: []int{-1}, HasShape: true})
	if p, err := memplan.TFLM(m, nil); err != nil || len(p.Entries) != 2 {
		t.Errorf("an open value without use: %+v, %v", p, err)
	}
	// A variable with an offline offset is placed; offsets are numbered over all graphs.
	m = chain(16, 16)
	m.Graphs[0].Values[1].Variable = true
	m.Graphs = append(m.Graphs, chain(16, 16).Graphs[0])
	var data []byte
	for _, w := range []int32{1, 0, 4, -1, 48, -1, 96} {
		data = binary.LittleEndian.AppendUint32(data, uint32(w))
	}
	m.Metadata = []graph.Metadata{{Name: memplan.OfflineKey, Data: data}}
	p, err := memplan.TFLM(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Entries {
		fixed := map[[2]int]int{{0, 1}: 48, {1, 1}: 96}
		if at, ok := fixed[[2]int{e.Graph, e.Value}]; ok != e.Offline || ok && e.Offset != at {
			t.Errorf("%+v, want %v", e, fixed)
		}
	}
	if len(p.Entries) != 4 || p.Bytes != 112 {
		t.Errorf("%+v", p)
	}
	// Twelve bytes are the header of an empty plan; eleven and thirteen bytes are invalid.
	for n, ok := range map[int]bool{11: false, 12: true, 13: false, 16: true} {
		empty := &graph.Model{Graphs: []*graph.Graph{{}}, Metadata: []graph.Metadata{{Name: memplan.OfflineKey, Data: make([]byte, n)}}}
		if _, err := memplan.TFLM(empty, nil); (err == nil) != ok {
			t.Errorf("a plan of %d bytes: %v", n, err)
		}
	}
}
