package page

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// column says where a slice of figures belongs and how it stands in the binary
// part. Columns follow one another there in the order of the list, without gaps.
type column struct {
	Path   []any  `json:"path"` // from the document
	Type   string `json:"type"` // one of the codes below
	Length int    `json:"length"`
	First  int64  `json:"first,omitzero"` // of ns: the first value
}

// Codes of columns.
const (
	f64 = "f64" // 64-bit floating point
	f32 = "f32" // 32-bit floating point
	i32 = "i32" // 32-bit integers
	i16 = "i16" // 16-bit integers, for columns of i32 whose figures fit
	i8  = "i8"  // 8-bit integers, likewise
	ns  = "ns"  // 32-bit steps from the value before, in nanoseconds, for seconds
)

var widths = map[string]int{f64: 8, f32: 4, i32: 4, i16: 2, i8: 1, ns: 4}

// columns gathers the slices of a profile that go into the binary part.
type columns struct {
	refs []column
	put  []func(io.Writer) error
	buf  []byte // of the column that is written
}

func add[T int32 | int64 | float64](c *columns, code string, v *[]T, path ...any) {
	if *v == nil {
		return
	}
	values := *v
	*v = nil
	ref := column{Path: slices.Clone(path), Type: code, Length: len(values)}
	switch code {
	case i32:
		ref.Type = narrow(values)
	case ns:
		ref.Type, ref.First = steps(values)
	}
	c.refs = append(c.refs, ref)
	c.put = append(c.put, func(w io.Writer) error {
		const room = 1 << 15
		if c.buf == nil {
			c.buf = make([]byte, 0, room)
		}
		buf, last := c.buf[:0], ref.First
		for _, x := range values {
			switch ref.Type {
			case f64:
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(float64(x)))
			case f32:
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(float32(x)))
			case i32:
				buf = binary.LittleEndian.AppendUint32(buf, uint32(int32(x)))
			case i16:
				buf = binary.LittleEndian.AppendUint16(buf, uint16(int16(x)))
			case i8:
				buf = append(buf, byte(int8(x)))
			case ns:
				n := int64(math.Round(float64(x) * 1e9))
				buf = binary.LittleEndian.AppendUint32(buf, uint32(int32(n-last)))
				last = n
			}
			if len(buf) > room-8 {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		_, err := w.Write(buf)
		return err
	})
}

// narrow is the shortest code that holds all values.
func narrow[T int32 | int64 | float64](values []T) string {
	var low, high T
	for _, x := range values {
		low, high = min(low, x), max(high, x)
	}
	switch {
	case low >= -1<<7 && high < 1<<7:
		return i8
	case low >= -1<<15 && high < 1<<15:
		return i16
	}
	return i32
}

// steps is ns for times that are whole nanoseconds, close enough together, and
// f64 for others. Most clocks count nanoseconds; their steps take a third of the
// room. A thousandth of one may be lost in the seconds of a float64.
func steps[T int32 | int64 | float64](values []T) (code string, first int64) {
	if len(values) == 0 {
		return f64, 0
	}
	first = int64(math.Round(float64(values[0]) * 1e9))
	last := first
	for _, v := range values {
		x := float64(v)
		n := math.Round(x * 1e9)
		if math.Abs(x-n/1e9) > 1e-12 || math.Abs(n-float64(last)) > math.MaxInt32 {
			return f64, 0
		}
		last = int64(n)
	}
	return ns, first
}

func (c *columns) write(w io.Writer) error {
	for _, put := range c.put {
		if err := put(w); err != nil {
			return err
		}
	}
	return nil
}

// split puts a copy of p without its long columns into d, and returns these.
func split(d *document, p *profile.Profile, limit int) *columns {
	c := &columns{refs: []column{}}
	q := *p
	d.Profile = &q
	q.Layers = append([]profile.Layer{}, p.Layers...)
	reduce(d, limit)
	for i := range d.Distributions {
		s, at := &d.Distributions[i], []any{"distributions", i}
		add(c, f64, &s.Edges, append(at, "edges_s")...)
		add(c, i32, &s.Counts, append(at, "counts")...)
		add(c, f32, &s.Quantiles, append(at, "quantiles_s")...)
		add(c, f32, &s.Mins, append(at, "mins_s")...)
		add(c, f32, &s.Medians, append(at, "medians_s")...)
		add(c, f32, &s.Maxs, append(at, "maxs_s")...)
	}
	add(c, f32, &q.Totals.LatencySamples, "profile", "totals", "latency_samples_s")
	for i := range q.Layers {
		add(c, f32, &q.Layers[i].Samples, "profile", "layers", i, "samples_s")
	}
	if p.Timeline != nil {
		t := *p.Timeline
		q.Timeline = &t
		c.timeline(&t)
	}
	d.Columns = c.refs
	return c
}

func (c *columns) timeline(t *profile.Timeline) {
	t.Lanes = append([]profile.Lane{}, t.Lanes...)
	for i := range t.Lanes {
		l, at := &t.Lanes[i], []any{"profile", "timeline", "lanes", i}
		add(c, ns, &l.Starts, append(at, "starts_s")...)
		add(c, f32, &l.Durations, append(at, "durations_s")...)
		add(c, i32, &l.Layers, append(at, "layers")...)
		add(c, i32, &l.Labels, append(at, "labels")...)
		add(c, i32, &l.Types, append(at, "types")...)
		add(c, i32, &l.Iterations, append(at, "iterations")...)
		add(c, i32, &l.Subnets, append(at, "subnets")...)
		add(c, i32, &l.Directions, append(at, "directions")...)
		add(c, f32, &l.Stalls, append(at, "stalls_s")...)
		add(c, f64, &l.Bytes, append(at, "moved_bytes")...)
		add(c, f32, &l.Utilisation, append(at, "utilisation")...)
	}
	t.Counters = append([]profile.Counter(nil), t.Counters...)
	for i := range t.Counters {
		k, at := &t.Counters[i], []any{"profile", "timeline", "counters", i}
		add(c, ns, &k.Times, append(at, "times_s")...)
		add(c, f64, &k.Values, append(at, "values")...)
	}
	t.Memories = append([]profile.MemorySpace(nil), t.Memories...)
	for i := range t.Memories {
		m, at := &t.Memories[i], []any{"profile", "timeline", "memories", i}
		add(c, ns, &m.Starts, append(at, "starts_s")...)
		add(c, ns, &m.Ends, append(at, "ends_s")...)
		add(c, f64, &m.Addresses, append(at, "address_bytes")...)
		add(c, f64, &m.Sizes, append(at, "size_bytes")...)
		add(c, i32, &m.Writes, append(at, "writes")...)
		add(c, i32, &m.Layers, append(at, "layers")...)
	}
}
