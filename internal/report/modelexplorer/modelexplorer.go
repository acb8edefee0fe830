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
	"fmt"
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
	graphs, names, called := times(p)
	onnx := p.Model.Format == "onnx"
	var parts [][]byte
	used := map[string]bool{}
	for _, g := range slices.Sorted(maps.Keys(graphs)) {
		var one []byte
		for _, n := range slices.Sorted(maps.Keys(graphs[g])) {
			id := strconv.FormatInt(n, 10)
			if onnx {
				if id = called[profile.SourceNode{Graph: g, Node: n}]; !own(used, id) {
					continue
				}
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

// own reports whether a node of an ONNX model has a name, and is the first that has it: Model
// Explorer renames the others.
func own(used map[string]bool, name string) bool {
	if name == "" || used[name] {
		return false
	}
	used[name] = true
	return true
}

// LeftOut says which nodes [Write] leaves out, "" for none.
func LeftOut(p *profile.Profile) string {
	if p.Model.Format != "onnx" {
		return ""
	}
	graphs, _, called := times(p)
	used := map[string]bool{}
	var left, nodes int
	var lost, all float64
	for _, g := range slices.Sorted(maps.Keys(graphs)) {
		for _, n := range slices.Sorted(maps.Keys(graphs[g])) {
			nodes, all = nodes+1, all+graphs[g][n]
			if !own(used, called[profile.SourceNode{Graph: g, Node: n}]) {
				left, lost = left+1, lost+graphs[g][n]
			}
		}
	}
	if left == 0 || all <= 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes with a time left out (no name of their own), %.0f %% of the time", left, nodes, 100*lost/all)
}

// times returns the times of nodes by graph, the names of graphs, and those of nodes.
func times(p *profile.Profile) (graphs map[int64]map[int64]float64, names map[int64]string, called map[profile.SourceNode]string) {
	graphs, names = map[int64]map[int64]float64{}, map[int64]string{0: "main"}
	called = map[profile.SourceNode]string{}
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
	return graphs, names, called
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
