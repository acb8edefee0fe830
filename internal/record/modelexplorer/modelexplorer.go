// Package modelexplorer reads node data of Model Explorer: a value without a unit for each node
// of a graph.
//
// Source of the format: the custom node data of the model-explorer project.
package modelexplorer

import (
	"context"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// Format reads node data of Model Explorer.
func Format() *record.Format {
	return &record.Format{
		Name:  "model-explorer",
		Title: "Model Explorer node data",
		Files: "JSON of custom node data: results by node, gradient or thresholds",
		Gives: []string{"node_value"},
		Match: match,
		Read:  record.RunsPerFile(read),
	}
}

func match(f *record.File) record.Sure {
	h := f.JSONHead("{")
	if !h.Has(`"results"`, `"value"`) {
		return record.No
	}
	return max(record.Maybe, record.Certain.If(h.HasAny(`"bgColor"`, `"thresholds"`, `"gradient"`)))
}

// maxBytes limits the size of a file.
const maxBytes = 64 << 20

var nodeValue = profile.Quantity{Key: "node_value", Head: "value", Name: "Value of the node", Group: "Record", Doc: "The value that the file has for the node. The format has no unit."}

func read(_ context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	v, fault, err := f.ParseJSON(maxBytes)
	if err != nil {
		return nil, err
	}
	d := draft.New("model-explorer", draft.Stem(f), "")
	d.Dropped.Add(draft.NotFinite, v.Odd())
	if v.Has("results") && v.Get("results").Kind == jsontree.Object {
		graph(d, "", 0, v) // an unnamed graph
	} else {
		for i, name := range v.Keys {
			graph(d, name, i, v.Items[i])
		}
	}
	d.Found("model_explorer.unit", profile.Info, "Node data has values without a unit: the file does not say whether they are times.")
	return d.Runs(fault)
}

// graph adds the nodes of a graph as layers.
func graph(d *draft.Draft, name string, at int, v *jsontree.Value) {
	results := v.Get("results")
	if results == nil {
		return
	}
	for id, e := range results.Members() {
		l := profile.Layer{Name: id, Op: "node"}
		h := runlog.Hint{Nodes: []string{id}}
		if at > 0 {
			l.Graph = draft.Text(name)
		} else if n, err := strconv.ParseInt(id, 10, 64); err == nil && n >= 0 {
			h = runlog.Hint{Index: &n} // an index, as in .tflite models
		}
		k := d.Add(l, h)
		value := e
		if e != nil && e.Kind == jsontree.Object {
			value = e.Get("value")
			for key, item := range e.Members() {
				if key != "value" {
					d.Option(k, key, item.Brief())
				}
			}
		}
		if x, ok := value.Float(); ok {
			d.Set(k, nodeValue, x)
		} else {
			d.Option(k, "value", value.Str())
		}
	}
	if name != "" {
		d.Note("graph", name)
	}
}
