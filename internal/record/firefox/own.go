package firefox

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// ownThread takes a thread of a profile that opmeter wrote: its markers are the bars.
func (b *reader) ownThread(t *tables, group, name string, markers []byte) {
	m := readTable(markers, "data")
	n := b.trace.Track("", group, name)
	b.trace.Tracks[n].Rank = b.order
	data := m.raw["data"]
	for i := range m.n {
		start, ok := nanos(m.at("startTime", i))
		end, ok2 := nanos(m.at("endTime", i))
		if !ok || !ok2 || end < start || i >= len(data) || string(data[i]) == "null" {
			continue // a wait, which stands at its bar too
		}
		x := track.NewOwnBar()
		var kind []byte
		traceevent.Members(data[i], func(k, v []byte) {
			f, ok := jsonscan.Number(v)
			switch {
			case string(k) == "op":
				kind = traceevent.Text(v)
			case !ok:
			case string(k) == "bytes":
				x.Number("moved_bytes", f)
			case string(k) == "stall":
				x.Number("stall_us", f*1e3)
			case string(k) == "layer", string(k) == "iteration":
				x.Number(string(k), f)
			}
		})
		s := track.Slice{Start: start, Dur: end - start, Layer: -1, Label: -1, Type: -1}
		b.own.Apply(&b.trace, n, &s, x, []byte(t.text(m.index("name", i))), kind)
		b.trace.Add(n, s)
	}
}

// ours makes the profile. Times of layers are those of the lane with most of them.
func (b *reader) ours(run *runlog.Run) {
	p := run.Profile
	track.NameOwn(p, b.product)
	p.Layers = b.own.Done(&b.trace)
	b.trace.Nest()
	var best *track.Track
	most := 0
	var walls []int64
	for _, k := range b.trace.Tracks {
		seen := map[int32]bool{}
		for i := range k.Slices {
			if s := &k.Slices[i]; s.Layer >= 0 {
				seen[s.Layer] = true
			} else if n := int(s.Iteration); k.Kind == timeline.Iteration && n >= 0 && n < 100_000 {
				for len(walls) <= n {
					walls = append(walls, math.MinInt64)
				}
				walls[n] = max(walls[n], s.Dur)
			}
		}
		if len(seen) > most {
			best, most = k, len(seen)
		}
	}
	for _, k := range b.trace.Tracks {
		k.Aside = k != best
	}
	if best != nil {
		best.Kind = timeline.Layer
		// Only iterations that were recorded whole count.
		kept := make([]int32, len(walls))
		var lengths []int64
		for i, w := range walls {
			kept[i] = -1
			if w >= 0 {
				kept[i] = int32(len(lengths))
				lengths = append(lengths, w)
			}
		}
		before := make([]int32, len(best.Slices))
		for i := range best.Slices {
			s := &best.Slices[i]
			if before[i] = s.Iteration; s.Iteration >= 0 && int(s.Iteration) < len(kept) {
				s.Iteration = kept[s.Iteration]
			}
		}
		var tally runlog.Tally
		b.trace.Tally(&tally, lengths, -1)
		tally.Fill(p)
		for i := range best.Slices {
			best.Slices[i].Iteration = before[i]
		}
	}
	p.Timeline = b.trace.Timeline("", "as the profile of an earlier run shows it")
	b.set.Dropped.To(run)
	b.trace.Dropped.To(run)
}
