package compare

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/blocks"
)

// gather makes one row of all rows that have the same operator, scope, block or shape. Rows that
// several profiles have are named as in the first of them, so that other names of the same layer do
// not part them.
func (b *builder) gather() {
	if b.t.By == ByLayer {
		return
	}
	if b.t.By == ByBlock {
		for _, p := range b.ps {
			b.blocks = append(b.blocks, blocks.Names(p))
		}
	}
	at := map[string]int{}
	var rows []Group
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		key := cmp.Or(b.keyOf(g), "(none)")
		n, ok := at[key]
		if !ok {
			at[key] = len(rows)
			row := *g
			row.Op, row.Name, row.Kind, row.Matches, row.same = "", key, "", nil, slices.Clone(g.same)
			if b.t.By == ByOp {
				row.Op, row.Name = key, ""
			}
			rows = append(rows, row)
			continue
		}
		row := &rows[n]
		for k := range row.Layers {
			row.Layers[k] = append(row.Layers[k], g.Layers[k]...)
			row.same[k] = row.same[k] && g.same[k]
		}
		row.Confidence = align.Weaker(row.Confidence, g.Confidence)
	}
	for i := range rows {
		for k := range rows[i].Layers {
			slices.Sort(rows[i].Layers[k])
		}
	}
	b.t.Groups = rows
}

// keyOf is what a row is gathered by.
func (b *builder) keyOf(g *Group) string {
	l, k := b.leading(g)
	if l == nil {
		return ""
	}
	scope := strings.Trim(l.Scope, "/")
	switch b.t.By {
	case ByOp:
		if b.classes {
			return align.Class(l.Op)
		}
		return l.Op
	case ByScope:
		return scope
	case ByBlock:
		block, _, _ := strings.Cut(scope, "/")
		return cmp.Or(b.blocks[k][l.Index], block)
	case ByShape:
		return shape(l)
	}
	return ""
}

// shape is that of the first result of a layer, such as "1x28x28x64".
func shape(l *profile.Layer) string {
	if len(l.Outputs) == 0 || l.Outputs[0].Shape == nil {
		return ""
	}
	parts := make([]string, len(l.Outputs[0].Shape))
	for i, d := range l.Outputs[0].Shape {
		if parts[i] = "?"; d >= 0 {
			parts[i] = strconv.FormatInt(d, 10)
		}
	}
	return cmp.Or(strings.Join(parts, "x"), "scalar")
}
