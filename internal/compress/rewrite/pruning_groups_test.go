package rewrite_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// TestRandomGroups takes lanes out of one group after the other: its layers lose some, and
// nothing becomes smaller that the group does not name.
func TestRandomGroups(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]func(*rapid.T) *graph.Model{draw, draw, recurrent, attention}).Draw(t, "kind")
		m := kind(t)
		s := rapid.SampledFrom([]study.Structure{study.Filter, study.Channel}).Draw(t, "structure")
		layers := weights.Find(m, nil)
		seen := map[int]bool{}
		for _, g := range rewrite.Groups(m, layers, s) {
			var changes []rewrite.Change
			for _, l := range g.Layers {
				if seen[l] {
					t.Fatalf("layer %d is in two groups", l)
				}
				seen[l] = true
				changes = append(changes, rewrite.Change{Layer: layers[l], Change: study.Change{Structure: s, Level: .5}})
			}
			out, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
			if err != nil {
				t.Fatal(err)
			}
			touched := map[int]bool{}
			for _, n := range g.Nodes {
				for _, id := range slices.Concat(m.Main().Nodes[n].Inputs, m.Main().Nodes[n].Outputs) {
					touched[id] = true
				}
			}
			for id, v := range m.Main().Values {
				if w := out.Main().Values[id]; !touched[id] && !slices.Equal(v.Shape, w.Shape) {
					t.Fatalf("value %d became %v of %v, which %v does not touch", id, w.Shape, v.Shape, g)
				}
			}
		}
	})
}
