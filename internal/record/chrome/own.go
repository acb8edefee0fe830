package chrome

import (
	"strconv"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
)

// own reads traces that opmeter wrote.
type own struct {
	track.Own
	latency float64 // seconds, 0 for not known
}

func newOwn() *own { return &own{} }

// bar takes a slice with its arguments. The one around the whole run says nothing that
// others do not.
func (o *own) bar(b *reader, t *thread, s track.Slice) {
	name, kind := traceevent.Text(b.e.Name), traceevent.Text(b.e.Cat)
	if t.p.pid == "1" && t.tid == "1" {
		b.e.Each(func(k, v []byte) {
			if f, ok := jsonscan.Number(v); ok && string(k) == "latency_us" && f > 0 && f < 1e15 {
				o.latency = f / 1e6
			}
		})
		return
	}
	x := track.NewOwnBar()
	b.e.Each(func(k, v []byte) {
		switch {
		case len(v) == 0:
		case v[0] == '"':
			x.Text(jsonscan.Decode(k), string(traceevent.Text(v)))
		default:
			if f, ok := jsonscan.Number(v); ok {
				x.Number(jsonscan.Decode(k), f)
			}
		}
	})
	o.Apply(&b.trace, t.Track, &s, x, name, kind)
	b.trace.Add(t.Track, s)
}

// count reads a text of the head that is a number, nil for none.
func count(s string) *int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return &n
	}
	return nil
}
