package modelexplorer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// The whole file of layers in two graphs: a node that several layers do has their sum,
// in milliseconds.
func TestWhole(t *testing.T) {
	t.Parallel()
	at := func(graph int64, name string, node int64, seconds float64, state profile.State) profile.Layer {
		return profile.Layer{Graph: name, State: state, Latency: profile.Value(profile.Measured, seconds, ""), Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Graph: graph, Node: node}, {Graph: graph, Node: 99}}}}
	}
	p := &profile.Profile{Layers: []profile.Layer{
		at(0, "", 10, 0.5, profile.Ran), at(0, "", 2, 0.25, profile.Ran), at(2, "", 0, 1, profile.Ran), at(1, "main", 0, 2, profile.Ran), at(0, "", 2, 0.25, profile.Ran),
		at(0, "", 3, 4, profile.Folded),
		{State: profile.Ran, Latency: profile.Value(profile.Measured, 8, "")},
		{State: profile.Ran, Latency: profile.Value(profile.Measured, 8, ""), Provenance: &profile.Provenance{}},
	}}
	p.Layers = append(p.Layers, profile.Layer{State: profile.Ran, Provenance: p.Layers[0].Provenance})
	const colours = "\n},\"gradient\":[{\"stop\":0,\"bgColor\":\"#fff7bc\"},{\"stop\":0.5,\"bgColor\":\"#fe9929\"},{\"stop\":1,\"bgColor\":\"#cc4c02\"}]}"
	want := "{\n\"main\":{\"results\":{\n\"2\":{\"value\":500},\n\"10\":{\"value\":500}" + colours + ",\n\"main 1\":{\"results\":{\n\"0\":{\"value\":2000}" + colours + ",\n\"graph 2\":{\"results\":{\n\"0\":{\"value\":1000}" + colours + "\n}\n"
	var b bytes.Buffer
	if err := Write(&b, p); err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
	p.Layers = p.Layers[5:]
	b.Reset()
	if err := Write(&b, p); !errors.Is(err, ErrNoNodes) || b.Len() != 0 {
		t.Errorf("no nodes: %v, %q", err, b.String())
	}
	names := map[int64]string{0: "a", 1: "a", 2: "a 1", 3: "", 4: "graph 3", 5: "a"}
	distinct(names)
	for g, want := range map[int64]string{0: "a", 1: "a 1", 2: "a 1 2", 3: "graph 3", 4: "graph 3 4", 5: "a 5"} {
		if names[g] != want {
			t.Errorf("graph %d is %q, want %q", g, names[g], want)
		}
	}
}
