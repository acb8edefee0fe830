package timeline

import (
	"iter"
	"maps"
	"slices"
)

// Holds says what the entries of a column are, which decides how they are checked
// and stored.
type Holds uint8

// What columns hold.
const (
	Time       Holds = iota // points in time, seconds, ascending
	Span                    // lengths of time, seconds, not negative
	Number                  // any finite figure
	Size                    // bytes, -1 for not known
	OfLayer                 // index of a layer, -1 for none
	OfName                  // index in Timeline.Names, -1 for none
	OfSubnet                // index in Timeline.Subnets, -1 for none
	OfSequence              // a number from 0, -1 for none
)

// Column is one slice of figures. One of the three pointers is set: it points at
// the field, so that whoever walks the columns may replace it.
type Column struct {
	// Key is the name in JSON; figures of a lane have "figures" before it in Path.
	Key   string
	Holds Holds
	// Required columns are there in every lane, also in an empty one.
	Required bool
	Float64  *[]float64
	Int64    *[]int64
	Int32    *[]int32
	// Store puts a replaced slice of a map back; nil where the pointer suffices.
	Store func([]float64)
	// Path is the place in JSON below the lane.
	Path []string
}

// Len is the number of entries.
func (c *Column) Len() int {
	switch {
	case c.Float64 != nil:
		return len(*c.Float64)
	case c.Int64 != nil:
		return len(*c.Int64)
	}
	return len(*c.Int32)
}

// Absent reports whether the source has nothing for the column.
func (c *Column) Absent() bool {
	switch {
	case c.Float64 != nil:
		return *c.Float64 == nil
	case c.Int64 != nil:
		return *c.Int64 == nil
	}
	return *c.Int32 == nil
}

// Pick replaces the column by some of its entries.
func (c *Column) Pick(at []int) {
	switch {
	case c.Absent():
	case c.Float64 != nil:
		*c.Float64 = pick(*c.Float64, at)
		if c.Store != nil {
			c.Store(*c.Float64)
		}
	case c.Int64 != nil:
		*c.Int64 = pick(*c.Int64, at)
	default:
		*c.Int32 = pick(*c.Int32, at)
	}
}

func pick[T any](v []T, at []int) []T {
	out := make([]T, len(at))
	for i, j := range at {
		out[i] = v[j]
	}
	return out
}

func floats(key string, h Holds, v *[]float64) Column {
	return Column{Key: key, Holds: h, Float64: v, Path: []string{key}}
}

func longs(key string, h Holds, v *[]int64) Column {
	return Column{Key: key, Holds: h, Int64: v, Path: []string{key}}
}

func ints(key string, h Holds, v *[]int32) Column {
	return Column{Key: key, Holds: h, Int32: v, Path: []string{key}}
}

func required(c Column) Column {
	c.Required = true
	return c
}

// Columns lists the lane's columns, the one list of them.
func (l *Lane) Columns() iter.Seq[Column] {
	return func(yield func(Column) bool) {
		for _, c := range []Column{
			required(floats("starts_s", Time, &l.Starts)),
			required(floats("durations_s", Span, &l.Durations)),
			ints("layers", OfLayer, &l.Layers),
			ints("labels", OfName, &l.Labels),
			ints("types", OfName, &l.Types),
			ints("iterations", OfSequence, &l.Iterations),
			ints("subnets", OfSubnet, &l.Subnets),
			ints("directions", OfName, &l.Directions),
			floats("stalls_s", Span, &l.Stalls),
			longs("moved_bytes", Size, &l.Bytes),
			floats("utilisation", Number, &l.Utilisation),
		} {
			if !yield(c) {
				return
			}
		}
		for _, key := range slices.Sorted(maps.Keys(l.Figures)) {
			v := l.Figures[key]
			c := floats(key, Number, &v)
			c.Path = []string{"figures", key}
			c.Store = func(s []float64) { l.Figures[key] = s }
			if !yield(c) {
				return
			}
		}
	}
}

// Columns lists the counter's columns.
func (k *Counter) Columns() iter.Seq[Column] {
	return slices.Values([]Column{required(floats("times_s", Time, &k.Times)), required(floats("values", Number, &k.Values))})
}

// Columns lists the memory's columns.
func (m *Memory) Columns() iter.Seq[Column] {
	return slices.Values([]Column{
		floats("starts_s", Time, &m.Starts),
		floats("ends_s", Number, &m.Ends),
		longs("address_bytes", Size, &m.Addresses),
		longs("size_bytes", Size, &m.Sizes),
		ints("writes", OfSequence, &m.Writes),
		ints("layers", OfLayer, &m.Layers),
	})
}

// Columns lists all columns with their place in JSON below the timeline: numbers
// are positions in lists.
func (t *Timeline) Columns() iter.Seq2[[]any, Column] {
	return func(yield func([]any, Column) bool) {
		each := func(list string, i int, cs iter.Seq[Column]) bool {
			for c := range cs {
				path := []any{list, i}
				for _, p := range c.Path {
					path = append(path, p)
				}
				if !yield(path, c) {
					return false
				}
			}
			return true
		}
		for i := range t.Lanes {
			if !each("lanes", i, t.Lanes[i].Columns()) {
				return
			}
		}
		for i := range t.Counters {
			if !each("counters", i, t.Counters[i].Columns()) {
				return
			}
		}
		for i := range t.Memories {
			if !each("memories", i, t.Memories[i].Columns()) {
				return
			}
		}
	}
}

// Complete gives the lists that JSON always has, and figures of lanes, an empty
// list where they are nil, so that what was read equals what is written of it.
func (t *Timeline) Complete() {
	if t.Lanes == nil {
		t.Lanes = []Lane{}
	}
	for _, c := range t.Columns() {
		if !c.Absent() || !c.Required && c.Store == nil {
			continue
		}
		*c.Float64 = []float64{}
		if c.Store != nil {
			c.Store(*c.Float64)
		}
	}
}

// Pick returns the lane with the bars for which keep says so, in their order, and
// the new place of each old bar, -1 for none. The lane itself is not changed.
func (l *Lane) Pick(keep func(bar int) bool) (out Lane, moved []int32) {
	moved = make([]int32, len(l.Starts))
	var at []int
	for i := range l.Starts {
		moved[i] = -1
		if keep(i) {
			moved[i] = int32(len(at))
			at = append(at, i)
		}
	}
	out = *l
	out.Figures = maps.Clone(l.Figures)
	for c := range out.Columns() {
		c.Pick(at)
	}
	return out, moved
}
