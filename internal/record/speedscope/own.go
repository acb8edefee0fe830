package speedscope

import (
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// ours makes layers of a file that opmeter wrote: its samples are the times of layers below their
// scopes. Functions between them do not become layers.
func (b *reader) ours(run *runlog.Run) {
	p := run.Profile
	track.NameOwn(p, p.Model.Name)
	number := map[int32]int32{}
	b.set.Each(func(path []int32, values []float64) {
		if len(path) < 2 || len(values) == 0 {
			return
		}
		f := path[len(path)-1]
		l := profile.Layer{Name: b.set.Name(f), Op: "operator"}
		if len(path) > 2 {
			l.Scope = b.set.Name(path[len(path)-2])
		}
		l.Latency = profile.Value(profile.Imported, values[0], "")
		if _, ok := number[f]; !ok {
			number[f] = int32(len(p.Layers))
		}
		p.Layers = append(p.Layers, l)
	})
	for _, s := range b.trace.All() {
		n, ok := number[s.Layer]
		if !ok {
			s.Label, n = b.trace.Name([]byte(b.set.Name(s.Layer))), -1
		}
		s.Layer = n
	}
	b.trace.Nest()
	p.Timeline = b.trace.Timeline("start of the run that is shown", "one run, as the file lays it out")
	b.set.Dropped.To(run)
}
