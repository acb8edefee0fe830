// Package modelexplorer writes node data for Model Explorer: the latency of every
// node of the model, to be shown on its graph in colours.
//
// Source of the format: the custom node data of the model-explorer project:
// graphs by name, in each the values by node and a gradient.
package modelexplorer

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/profile"
)

// ErrNoNodes is returned for profiles none of whose layers with a latency leads
// back to a node of the model.
var ErrNoNodes = errors.New("no layer with a latency leads back to a node of the model")

// Write writes p, in milliseconds. Nodes are named by their positions in the
// file, as Model Explorer names those of .tflite models. A layer that does the
// work of several nodes counts for the first of them, its own.
func Write(w io.Writer, p *profile.Profile) error {
	graphs, names := map[int64]map[int64]float64{}, map[int64]string{0: "main"}
	for i := range p.Layers {
		l := &p.Layers[i]
		v, ok := l.Latency.Best()
		if !ok || l.State != profile.Ran || l.Provenance == nil || len(l.Provenance.SourceNodes) == 0 {
			continue
		}
		n := l.Provenance.SourceNodes[0]
		if graphs[n.Graph] == nil {
			graphs[n.Graph] = map[int64]float64{}
		}
		graphs[n.Graph][n.Node] += v
		if names[n.Graph] == "" {
			names[n.Graph] = l.Graph
		}
	}
	if len(graphs) == 0 {
		return ErrNoNodes
	}
	distinct(names)
	b := bufio.NewWriter(w)
	_, _ = b.WriteString("{")
	comma := "\n"
	for _, g := range slices.Sorted(maps.Keys(graphs)) {
		_, _ = b.WriteString(comma)
		comma = ",\n"
		_, _ = b.Write(jsonx.AppendString(nil, names[g]))
		_, _ = b.WriteString(`:{"results":{`)
		sep := "\n"
		for _, n := range slices.Sorted(maps.Keys(graphs[g])) {
			_, _ = b.WriteString(sep + `"` + strconv.FormatInt(n, 10) + `":{"value":` + strconv.FormatFloat(1e3*graphs[g][n], 'g', -1, 64) + "}")
			sep = ",\n"
		}
		_, _ = b.WriteString("\n},\"gradient\":[{\"stop\":0,\"bgColor\":\"#fff7bc\"},{\"stop\":0.5,\"bgColor\":\"#fe9929\"},{\"stop\":1,\"bgColor\":\"#cc4c02\"}]}")
	}
	_, _ = b.WriteString("\n}\n")
	return b.Flush()
}

// distinct gives graphs without a name, or with that of another, a name of their
// own.
func distinct(names map[int64]string) {
	used := map[string]bool{}
	for _, g := range slices.Sorted(maps.Keys(names)) {
		n := cmp.Or(names[g], "graph "+strconv.FormatInt(g, 10))
		// Compared as they are written.
		for used[string(jsonx.AppendString(nil, n))] {
			n += " " + strconv.FormatInt(g, 10)
		}
		used[string(jsonx.AppendString(nil, n))] = true
		names[g] = n
	}
}
