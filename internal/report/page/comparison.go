package page

import (
	"io"

	"github.com/opmeter/opmeter/internal/base/columnar"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// Comparison is the JSON part of a page about a comparison; web/src/compare/types.ts has its
// other side.
type Comparison struct {
	Table *compare.Table `json:"comparison"`
	// Title names the models, Answers say of each run whether it is faster than the first one, and
	// Limits what does not compare well, the same as in other reports.
	Title   string   `json:"title"`
	Answers []string `json:"answers"`
	Limits  []string `json:"limits"`
	// Sort is the order of the rows to begin with, empty for the largest contribution first: index,
	// time or difference. Top is the number of rows to begin with, 0 for all.
	Sort string `json:"sort,omitzero"`
	Top  int    `json:"top,omitzero"`
	// Layers are those of the profiles, by run, with what the page shows of them; empty if the table
	// has no profiles.
	Layers  [][]profile.Layer `json:"layers"`
	Columns []columnar.Ref    `json:"columns"` // none
	Version string            `json:"version,omitzero"`
}

// WriteComparison writes a page about a comparison; it sets what the table's profiles give.
func WriteComparison(w io.Writer, c Comparison) error {
	c.Layers, c.Columns = make([][]profile.Layer, len(c.Table.Profiles)), []columnar.Ref{}
	for k, p := range c.Table.Profiles {
		c.Layers[k] = make([]profile.Layer, len(p.Layers))
		for i := range p.Layers {
			c.Layers[k][i] = outline(&p.Layers[i])
		}
	}
	return write(w, c.Title, &c, func(io.Writer) error { return nil })
}

// outline is a layer with what a comparison shows of it: what it is, how it was computed, and
// where its data come from. Its figures are in the table.
func outline(l *profile.Layer) profile.Layer {
	return profile.Layer{
		Index: l.Index, Op: l.Op, Name: l.Name, Scope: l.Scope, Graph: l.Graph, Parent: l.Parent, State: l.State,
		FusedInto: l.FusedInto, Kernel: l.Kernel, Computes: l.Computes, Placement: l.Placement, Cause: l.Cause, Options: l.Options,
		MACs: l.MACs, BytesRead: l.BytesRead, BytesWritten: l.BytesWritten, WeightsBytes: l.WeightsBytes,
		Inputs: shapes(l.Inputs), Outputs: shapes(l.Outputs),
	}
}

// shapes are tensors with name, type and shape only.
func shapes(ts []profile.Tensor) []profile.Tensor {
	out := make([]profile.Tensor, len(ts))
	for i := range ts {
		t := &ts[i]
		out[i] = profile.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Constant: t.Constant, Absent: t.Absent}
	}
	return out
}
