package graph

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSelect: the graph of a signature becomes the main graph, and every reference to a graph
// follows. The model itself does not change.
func TestSelect(t *testing.T) {
	t.Parallel()
	call := func(attrs Attrs) *Node { return &Node{Op: "CALL", Attrs: attrs} }
	m := &Model{
		Graphs: []*Graph{
			{Index: 0, Name: "a", Nodes: []*Node{call(Attrs{"subgraph": GraphRef(2), "n": int64(2)}), {Op: "ADD"}}},
			{Index: 1, Name: "b", Nodes: []*Node{call(Attrs{"branch_subgraph_indices": []int64{0, 2}, "sizes": []int64{0, 2}})}},
			{Index: 2, Name: "c", Nodes: []*Node{call(Attrs{"branches": []GraphRef{0, 1, 2}})}},
		},
		Signatures: []Signature{{Key: "run", Graph: 0}, {Key: "train", Graph: 2}, {Key: "again", Graph: 0}},
	}
	if d := cmp.Diff([]Entry{{[]string{"run", "again"}, 0}, {[]string{"train"}, 2}}, m.Entries()); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	s, err := m.Select("train")
	if err != nil {
		t.Fatal(err)
	}
	want := &Model{
		Name:     "c",
		Selected: "train",
		Graphs: []*Graph{
			{Index: 0, Name: "c", Nodes: []*Node{call(Attrs{"branches": []GraphRef{2, 1, 0}})}},
			{Index: 1, Name: "b", Nodes: []*Node{call(Attrs{"branch_subgraph_indices": []int64{2, 0}, "sizes": []int64{0, 2}})}},
			{Index: 2, Name: "a", Nodes: []*Node{call(Attrs{"subgraph": GraphRef(0), "n": int64(2)}), {Op: "ADD"}}},
		},
		Signatures: []Signature{{Key: "run", Graph: 2}, {Key: "train", Graph: 0}, {Key: "again", Graph: 2}},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("selected (-want +got):\n%s", d)
	}
	if m.Graphs[0].Name != "a" || m.Graphs[0].Nodes[0].Attrs["subgraph"] != GraphRef(2) {
		t.Error("the model itself has changed")
	}
	if same, err := m.Select("again"); err != nil || same.Main() != m.Main() || same.Selected != "again" || m.Selected != "" {
		t.Errorf("a signature of the main graph: %v, %v", same, err)
	}
	if _, err := m.Select("x"); err == nil || !strings.Contains(err.Error(), `the file has "run", "train", "again"`) {
		t.Errorf("unknown signature: %v", err)
	}
	if _, err := (&Model{}).Select("x"); err == nil || !strings.Contains(err.Error(), "no signatures") {
		t.Errorf("no signatures: %v", err)
	}
}

// TestInputOf: the selected signature names the inputs, or the first one of the main graph.
func TestInputOf(t *testing.T) {
	t.Parallel()
	m := &Model{
		Graphs: []*Graph{{Values: []*Value{{Name: "serving_a:0"}, {Name: "serving_b:0"}}, Inputs: []int{0, 1}}},
		Signatures: []Signature{
			{Key: "other", Graph: 1, Inputs: []SignatureTensor{{"z", 0}}},
			{Key: "run", Inputs: []SignatureTensor{{"x", 0}, {"bad", 9}}},
			{Key: "swap", Inputs: []SignatureTensor{{"x", 1}, {"y", 0}}},
		},
	}
	for _, tt := range []struct{ selected, name, want string }{
		{"", "x", "serving_a:0"},
		{"swap", "x", "serving_b:0"},
		{"swap", "y", "serving_a:0"},
		{"", "y", "y"},
		{"", "z", "z"},
		{"", "bad", "bad"},
		{"swap", "serving_a:0", "serving_a:0"},
	} {
		m.Selected = tt.selected
		if got := m.InputOf(tt.name); got != tt.want {
			t.Errorf("input %q of %q is %q, want %q", tt.name, tt.selected, got, tt.want)
		}
	}
}
