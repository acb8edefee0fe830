// Package modelexplorer writes node data for Model Explorer: the latency of every
// node of the model, to be shown on its graph in colours.
//
// Source of the format: the custom node data of the model-explorer project:
// graphs by name, in each the values by node and a gradient.
package modelexplorer

import (
	"bufio"
	"bytes"
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
// back to a node that Model Explorer can find.
var ErrNoNodes = errors.New("no layer with a latency leads back to a node of the model (in ONNX models: to a node with a name)")

// Write writes p, in milliseconds. Nodes of .tflite models are named by their positions in the
// file and nodes of .onnx models by their names, as the adapters of Model Explorer name them. A
// layer that does the work of several nodes counts for the first of them, its own.
//
// Values of one graph are written without its name: Model Explorer shows them on the graph that
// is open, whatever its name.
func Write(w io.Writer, p *profile.Profile) error {
	graphs, names := map[int64]map[int64]float64{}, map[int64]string{0: "main"}
	called := map[profile.SourceNode]string{}
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
		called[profile.SourceNode{Graph: n.Graph, Node: n.Node}] = n.Name
		if names[n.Graph] == "" {
			names[n.Graph] = l.Graph
		}
	}
	onnx := p.Model.Format == "onnx"
	var parts [][]byte
	used := map[string]bool{}
	for _, g := range slices.Sorted(maps.Keys(graphs)) {
		var one []byte
		for _, n := range slices.Sorted(maps.Keys(graphs[g])) {
			id := strconv.FormatInt(n, 10)
			if onnx {
				// Model Explorer renames all but the first node of a name.
				id = called[profile.SourceNode{Graph: g, Node: n}]
				if id == "" || used[id] {
					continue
				}
				used[id] = true
			}
			if len(one) > 0 {
				one = append(one, ",\n"...)
			}
			one = append(jsonx.AppendString(one, id), `:{"value":`...)
			one = append(strconv.AppendFloat(one, 1e3*graphs[g][n], 'g', -1, 64), '}')
		}
		if len(one) > 0 {
			parts = append(parts, one)
		}
	}
	if len(parts) == 0 {
		return ErrNoNodes
	}
	b := bufio.NewWriter(w)
	if onnx || len(graphs) == 1 && graphs[0] != nil {
		results(b, bytes.Join(parts, []byte(",\n")))
		_, _ = b.WriteString("\n")
		return b.Flush()
	}
	distinct(names)
	comma := "{\n"
	for i, g := range slices.Sorted(maps.Keys(graphs)) {
		_, _ = b.WriteString(comma)
		comma = ",\n"
		_, _ = b.Write(append(jsonx.AppendString(nil, names[g]), ':'))
		results(b, parts[i])
	}
	_, _ = b.WriteString("\n}\n")
	return b.Flush()
}

// results writes the values of a graph and their colours.
func results(b *bufio.Writer, values []byte) {
	_, _ = b.WriteString("{\"results\":{\n")
	_, _ = b.Write(values)
	_, _ = b.WriteString("\n},\"gradient\":[{\"stop\":0,\"bgColor\":\"#fff7bc\"},{\"stop\":0.5,\"bgColor\":\"#fe9929\"},{\"stop\":1,\"bgColor\":\"#cc4c02\"}]}")
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
