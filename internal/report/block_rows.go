package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/blocks"
)

// blockRow is what a row of repeated blocks, of a part or of equal layers has beside its layers.
type blockRow struct {
	count   int64
	part    profile.BlockPartName
	figures map[string]*profile.Metric // of one block
	active  *int64                     // parameters that a token uses, of all blocks
	alike   bool                       // the layers are equal ones of the blocks
	name    string                     // what their names have in common
}

// withBlocks is a copy of a profile with its repeated blocks.
func withBlocks(p *profile.Profile) *profile.Profile {
	q := *p
	q.Blocks = blocks.Find(p)
	return &q
}

// grouped is a profile with the groups that its JSON text can have.
func (o *Options) grouped(p *profile.Profile) *profile.Profile {
	if o.By == "block" {
		return withBlocks(p)
	}
	return p
}

// blockRows makes a row for each number of equal blocks, with rows of its parts and its layers
// inside, and a row for each other layer. The outermost rows hold every layer once. Layers without
// a time of their own that belong to no block are there with [Options.All].
func blockRows(p *profile.Profile, ls profile.Layers, o Options) (out []row) {
	inBlock := make([]bool, len(p.Layers))
	for _, b := range blocks.Find(p) {
		r := row{group: new(blocks.Name(p, &b)), block: &blockRow{count: b.Count, part: b.Part, figures: b.Figures}}
		byPart := map[profile.BlockPartName][]row{}
		for i := range b.Layers {
			l := layersRow(p, &b, &b.Layers[i])
			for _, x := range b.Layers[i].With {
				inBlock[x] = true
			}
			for _, x := range b.Layers[i].Layers {
				inBlock[x] = true
			}
			r.Layers, r.inside = append(r.Layers, l.Layers...), append(r.inside, l)
			byPart[b.Layers[i].Part] = append(byPart[b.Layers[i].Part], l)
		}
		if len(b.Parts) > 0 {
			r.inside = byPart[""]
		}
		for i := range b.Parts {
			part := &b.Parts[i]
			x := row{group: new(string(part.Name)), block: &blockRow{count: b.Count, part: part.Name, figures: part.Figures}, inside: byPart[part.Name]}
			if n := part.ActiveParams; n != nil {
				x.block.active = new(*n * b.Count)
			}
			for _, l := range x.inside {
				x.Layers = append(x.Layers, l.Layers...)
			}
			r.inside = append(r.inside, x)
		}
		inOrder(r.inside)
		out = append(out, r)
	}
	for i, l := range ls {
		if !inBlock[l.Index] && (o.All || !l.State.Elsewhere()) {
			out = append(out, row{Layers: ls[i : i+1]})
		}
	}
	inOrder(out)
	return out
}

// inOrder puts rows in the order of their first layers.
func inOrder(rs []row) {
	sorting.Stable(rs, func(a, b row) int { return cmp.Compare(a.Layers[0].Index, b.Layers[0].Index) })
}

// layersRow is the row of equal layers of blocks, or of the one layer of a single block.
func layersRow(p *profile.Profile, b *profile.Block, l *profile.BlockLayer) row {
	r := row{Layers: append(p.At(l.Layers), p.At(l.With)...)}
	if b.Count == 1 && len(l.With) == 0 {
		return r
	}
	r.group = new(r.Layers[0].OpText())
	r.block = &blockRow{count: b.Count, part: l.Part, figures: l.Figures, alike: true, name: r.Layers[0].Name}
	for _, x := range l.Layers[1:] {
		r.block.name = common(r.block.name, p.Layers[x].Name)
	}
	return r
}

// numbers are the numbers in a name, or what stands for them.
var numbers = lazyregexp.New(`[0-9]+|\*`)

// common is a name with * for the numbers that another name has otherwise: "layers.*/up". A name
// that differs in more than numbers stays as it is.
func common(a, b string) string {
	texts := numbers.Split(a, -1)
	if a == b || !slices.Equal(texts, numbers.Split(b, -1)) {
		return a
	}
	mine, others := numbers.FindAllString(a, -1), numbers.FindAllString(b, -1)
	var out strings.Builder
	for k, t := range texts {
		out.WriteString(t)
		switch {
		case k == len(mine):
		case mine[k] == others[k]:
			out.WriteString(mine[k])
		default:
			out.WriteByte('*')
		}
	}
	return out.String()
}

// blockColumns are the times of one block and the place of a row in the table of blocks.
func blockColumns() []column {
	times := func(key, head string, keep int, pick func(m *profile.Metric) *float64) column {
		return numeric(key, head, keep, true, Duration, func(r *row) (float64, bool) {
			if r.block == nil || r.block.count < 2 {
				return 0, false
			}
			m := r.block.figures["latency_s"]
			if m == nil || pick(m) == nil {
				return 0, false
			}
			return *pick(m), true
		})
	}
	cs := []column{
		textual("part", "", hidden, 0, true, func(r *row) string {
			if r.block == nil {
				return ""
			}
			return string(r.block.part)
		}),
		numeric("level", "", hidden, true, digits, func(r *row) (float64, bool) { return float64(r.level), true }),
		numeric("blocks", "", hidden, true, digits, func(r *row) (float64, bool) {
			if r.block == nil {
				return 0, false
			}
			return float64(r.block.count), true
		}),
		times("block_median_s", "median", 95, func(m *profile.Metric) *float64 { return m.Median }),
		times("block_mean_s", "", hidden, func(m *profile.Metric) *float64 { return m.Mean }),
		times("block_min_s", "min", 94, func(m *profile.Metric) *float64 { return m.Min }),
		times("block_max_s", "max", 93, func(m *profile.Metric) *float64 { return m.Max }),
	}
	for i := range cs {
		cs[i].only = "block"
	}
	return cs
}

// activeParams is the column of the parameters that a token uses, of rows with experts.
func activeParams() column {
	c := numeric("active_params", "active", 86, true, func(v float64) string { return Count(int64(v)) }, func(r *row) (float64, bool) {
		if r.block == nil || r.block.active == nil {
			return 0, false
		}
		return float64(*r.block.active), true
	})
	c.only = "block"
	return c
}
