package timeline

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// MaxSeconds bounds times: beyond 30 years a nanosecond is lost in a float64.
const MaxSeconds = 1e9

// Validate checks that columns have one length, times are in order, and
// references are in range; layers is the number of the profile's layers. The error
// names the field by its JSON path below the timeline.
func (t *Timeline) Validate(layers int) error {
	for i, n := range []*int64{t.Iterations, t.Dropped, t.Representative} {
		if n != nil && *n < 0 {
			return fmt.Errorf("%s is %d", [...]string{"iterations", "dropped", "representative"}[i], *n)
		}
	}
	clocks := map[string]bool{"": true}
	for i, c := range t.Clocks {
		if c.Name == "" || clocks[c.Name] {
			return fmt.Errorf("clocks[%d].name is %q, want a name that no other clock has", i, c.Name)
		}
		clocks[c.Name] = true
		if v := c.OffsetS; v != nil && !(math.Abs(*v) <= math.MaxFloat64) {
			return fmt.Errorf("clocks[%d].offset_s is %v", i, *v)
		}
		if v := c.Rate; v != nil && !(*v > 0 && *v <= math.MaxFloat64) {
			return fmt.Errorf("clocks[%d].rate is %v, want more than 0", i, *v)
		}
	}
	for i := range t.Lanes {
		l := &t.Lanes[i]
		at := fmt.Sprintf("lanes[%d]", i)
		if !slices.Contains(Kinds(), l.Kind) {
			return fmt.Errorf("%s.kind is %q, want one of %q", at, l.Kind, Kinds())
		}
		if err := t.part(at, l.Name, l.Clock, clocks, l.Columns(), len(l.Starts), layers); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(l.Figures)) {
			if !isKey(key) {
				return fmt.Errorf("%s.figures has %q, want a key of lower-case letters, digits and underscores", at, key)
			}
		}
		if err := l.nested(at); err != nil {
			return err
		}
	}
	for i := range t.Counters {
		k := &t.Counters[i]
		if err := t.part(fmt.Sprintf("counters[%d]", i), k.Name, k.Clock, clocks, k.Columns(), len(k.Times), layers); err != nil {
			return err
		}
	}
	for i := range t.Memories {
		if err := t.memory(i, clocks, layers); err != nil {
			return err
		}
	}
	return t.links()
}

// isKey reports whether a text may be the key of a quantity: the rule of package
// profile, which cannot be asked from here.
func isKey(s string) bool {
	ok := s != "" && len(s) <= 100
	for _, r := range s {
		ok = ok && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}
	return ok
}

// part checks what lanes, counters and memories have in common.
func (t *Timeline) part(at, name, clock string, clocks map[string]bool, cs iter.Seq[Column], n, layers int) error {
	if name == "" {
		return fmt.Errorf("%s.name is missing", at)
	}
	if !clocks[clock] {
		return fmt.Errorf("%s.clock is %q, which no clock is called", at, clock)
	}
	for c := range cs {
		if c.Absent() && !c.Required {
			continue
		}
		if c.Len() != n {
			return fmt.Errorf("%s.%s has %d entries, want %d", at, strings.Join(c.Path, "."), c.Len(), n)
		}
		if err := t.column(&c, layers); err != nil {
			return fmt.Errorf("%s.%s %w", at, strings.Join(c.Path, "."), err)
		}
	}
	return nil
}

func (t *Timeline) column(c *Column, layers int) error {
	limit := int64(math.MaxInt32) + 1
	switch c.Holds {
	case OfLayer:
		limit = int64(layers)
	case OfName:
		limit = int64(len(t.Names))
	case OfSubnet:
		limit = int64(len(t.Subnets))
	}
	switch {
	case c.Int32 != nil:
		for i, x := range *c.Int32 {
			if x < -1 || int64(x) >= limit {
				return fmt.Errorf("has %d at %d, want -1 to %d", x, i, limit-1)
			}
		}
	case c.Int64 != nil:
		for i, x := range *c.Int64 {
			if x < -1 {
				return fmt.Errorf("has %d at %d, want -1 or more", x, i)
			}
		}
	default:
		last := 0.0
		for i, x := range *c.Float64 {
			switch {
			case c.Holds == Time && !(x >= last && x <= MaxSeconds):
				return fmt.Errorf("has %v at %d after %v", x, i, last)
			case c.Holds == Span && !(x >= 0 && x <= MaxSeconds), math.IsNaN(x), math.IsInf(x, 0):
				return fmt.Errorf("has %v at %d", x, i)
			}
			last = x
		}
	}
	return nil
}

// nested checks that no two bars of a lane overlap in part.
func (l *Lane) nested(at string) error {
	var ends []float64
	for i, s := range l.Starts {
		// Half a nanosecond is the rounding of times in seconds.
		for len(ends) > 0 && ends[len(ends)-1] <= s+0.5e-9 {
			ends = ends[:len(ends)-1]
		}
		e := s + l.Durations[i]
		if len(ends) > 0 && e > ends[len(ends)-1]+0.5e-9 {
			return fmt.Errorf("%s bar %d ends after the bar around it", at, i)
		}
		ends = append(ends, e)
	}
	return nil
}

func (t *Timeline) memory(i int, clocks map[string]bool, layers int) error {
	m := &t.Memories[i]
	at := fmt.Sprintf("memories[%d]", i)
	if err := t.part(at, m.Name, m.Clock, clocks, m.Columns(), len(m.Starts), layers); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"ends_s", len(m.Ends)}, {"address_bytes", len(m.Addresses)}, {"size_bytes", len(m.Sizes)}, {"writes", len(m.Writes)}} {
		if c.n != len(m.Starts) {
			return fmt.Errorf("%s.%s has %d entries, want %d", at, c.name, c.n, len(m.Starts))
		}
	}
	for j := range m.Starts {
		if !(m.Ends[j] >= m.Starts[j] && m.Ends[j] <= MaxSeconds) || m.Addresses[j] < 0 || m.Sizes[j] < 0 {
			return fmt.Errorf("%s access %d is %d bytes at %d, %v to %v s", at, j, m.Sizes[j], m.Addresses[j], m.Starts[j], m.Ends[j])
		}
	}
	for j, w := range m.Writes {
		if w != 0 && w != 1 {
			return fmt.Errorf("%s.writes has %d at %d, want 0 or 1", at, w, j)
		}
	}
	for j, p := range m.Partitions {
		if p.Address < 0 || p.Bytes < 0 {
			return fmt.Errorf("%s partition %d has %d bytes at %d", at, j, p.Bytes, p.Address)
		}
	}
	return nil
}

func (t *Timeline) links() error {
	for i, l := range t.Links {
		for _, e := range [][2]int32{{l.FromLane, l.FromBar}, {l.ToLane, l.ToBar}} {
			if e[0] < 0 || int(e[0]) >= len(t.Lanes) || e[1] < 0 || int(e[1]) >= len(t.Lanes[e[0]].Starts) {
				return fmt.Errorf("links[%d] names bar %d of lane %d", i, e[1], e[0])
			}
		}
	}
	return nil
}
