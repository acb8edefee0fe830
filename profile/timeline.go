package profile

import (
	"math"
	"strconv"
)

// Timeline says when things happened. Columns of bars stand side by side in
// slices of one length, so that millions of bars stay small; a column that a
// source has nothing for is absent. All times are seconds since one origin.
type Timeline struct {
	// Origin says what time 0 is.
	Origin string `json:"origin,omitzero"`
	// Iterations is the number of inferences that ran while the timeline was
	// recorded; bars may exist for some of them only (see method).
	Iterations *int64 `json:"iterations,omitzero"`
	// Dropped is the number of records that the source lost or that did not fit.
	Dropped *int64 `json:"dropped,omitzero"`
	// Method says how the times were taken and which part was kept.
	Method string `json:"method,omitzero"`
	// Names holds the texts that name columns refer to.
	Names []string `json:"names,omitzero"`
	// Subnets names the parts of the model that subnet columns refer to.
	Subnets []string `json:"subnets,omitzero"`
	// Lanes holds the bars, in the order in which they are to be shown.
	Lanes []Lane `json:"lanes"`
	// Counters holds figures over time, such as bandwidth or frequency.
	Counters []Counter `json:"counters,omitzero"`
	// Links are dependencies between bars.
	Links []Link `json:"links,omitzero"`
	// Memories holds accesses to memories over time, with their banks or
	// allocations.
	Memories []MemorySpace `json:"memories,omitzero"`
}

// LaneKind says what the bars of a lane are.
type LaneKind string

// Kinds of lanes.
const (
	LaneIteration  LaneKind = "iteration"   // whole inferences
	LaneSubnet     LaneKind = "subnet"      // parts of the model that run as one
	LaneLayerGroup LaneKind = "layer group" // layers that are scheduled together
	LaneLayer      LaneKind = "layer"       // layers of the model
	LaneEngine     LaneKind = "engine"      // commands of a unit of hardware
	LaneThread     LaneKind = "thread"      // work on a thread
	LaneStream     LaneKind = "stream"      // work on a queue of an accelerator
	LaneHost       LaneKind = "host"        // what the computer around the target does
)

// Lane is a row of bars, sorted by their starts. Bars of a lane may lie within
// one another (the outer one comes first); they never overlap in part.
type Lane struct {
	// Name of the lane.
	Name string `json:"name"`
	// Kind says what the bars are.
	Kind LaneKind `json:"kind"`
	// Group is the core, device or process that the lane belongs to. Lanes of one
	// group stand together.
	Group string `json:"group,omitzero"`
	// Starts holds the start of each bar, seconds.
	Starts []float64 `json:"starts_s"`
	// Durations holds the length of each bar, seconds.
	Durations []float64 `json:"durations_s"`
	// Layers holds the index in [Profile.Layers] of each bar, -1 for none.
	Layers []int32 `json:"layers,omitzero"`
	// Labels holds the index in [Timeline.Names] of each bar's name, -1 for the
	// name of its layer.
	Labels []int32 `json:"labels,omitzero"`
	// Types holds the index in [Timeline.Names] of each bar's kind of work, -1 for
	// that of its layer.
	Types []int32 `json:"types,omitzero"`
	// Iterations holds the number of the inference of each bar, from 0, -1 for none.
	Iterations []int32 `json:"iterations,omitzero"`
	// Subnets holds the index in [Timeline.Subnets] of each bar, -1 for none.
	Subnets []int32 `json:"subnets,omitzero"`
	// Directions holds the index in [Timeline.Names] of what each transfer went
	// from and to, such as "DDR to local", -1 for none.
	Directions []int32 `json:"directions,omitzero"`
	// Stalls holds how long each bar waited, from its start, seconds.
	Stalls []float64 `json:"stalls_s,omitzero"`
	// Bytes holds what each bar moved, -1 for not known.
	Bytes []int64 `json:"moved_bytes,omitzero"`
	// Utilisation holds each bar's rate as a fraction of the unit's peak, 0 to 1,
	// -1 for not known.
	Utilisation []float64 `json:"utilisation,omitzero"`
}

// Counter is a figure over time. Each value holds until the next.
type Counter struct {
	// Name of the counter.
	Name string `json:"name"`
	// Unit of the values, such as "B/s" or "Hz"; empty for a count.
	Unit string `json:"unit,omitzero"`
	// Group is the core, device or process that it belongs to.
	Group string `json:"group,omitzero"`
	// Times in ascending order, seconds.
	Times []float64 `json:"times_s"`
	// Values at these times.
	Values []float64 `json:"values"`
}

// Link says that one bar waited for another.
type Link struct {
	// FromLane and FromBar name the bar that came first, by position.
	FromLane int32 `json:"from_lane"`
	FromBar  int32 `json:"from_bar"`
	// ToLane and ToBar name the bar that waited.
	ToLane int32 `json:"to_lane"`
	ToBar  int32 `json:"to_bar"`
}

// MemorySpace is a memory whose accesses were recorded.
type MemorySpace struct {
	// Name of the memory, such as "local" or "global".
	Name string `json:"name"`
	// Group is the core or device that it belongs to, empty for a shared one.
	Group string `json:"group,omitzero"`
	// Partitions are its banks or allocations in the order of their addresses.
	Partitions []Partition `json:"partitions,omitzero"`
	// Starts and Ends bound each access in time, seconds, sorted by starts.
	Starts []float64 `json:"starts_s,omitzero"`
	Ends   []float64 `json:"ends_s,omitzero"`
	// Addresses and Sizes bound each access in the memory, bytes.
	Addresses []int64 `json:"address_bytes,omitzero"`
	Sizes     []int64 `json:"size_bytes,omitzero"`
	// Writes holds 1 for a write, 0 for a read.
	Writes []int32 `json:"writes,omitzero"`
	// Layers holds the index in [Profile.Layers] of each access, -1 for none.
	Layers []int32 `json:"layers,omitzero"`
}

// Partition is a bank or an allocation of a memory.
type Partition struct {
	// Name of the bank or of what is stored there.
	Name string `json:"name"`
	// Address and Bytes bound it.
	Address int64 `json:"address_bytes"`
	Bytes   int64 `json:"bytes"`
}

// timeline checks that columns have one length, times are in order and
// references are in range.
func (c *checker) timeline(t *Timeline, layers int) {
	if t == nil || c.err != nil {
		return
	}
	c.counts("timeline", named{"iterations", t.Iterations}, named{"dropped", t.Dropped})
	for i := range t.Lanes {
		c.lane(i, &t.Lanes[i], t, layers)
	}
	for i := range t.Counters {
		k := &t.Counters[i]
		at := "timeline.counters[" + strconv.Itoa(i) + "]"
		c.need(at+".name", k.Name)
		c.same(at, "values", len(k.Values), len(k.Times))
		c.ascending(at+".times_s", k.Times)
		c.finite(at+".values", k.Values)
	}
	for i, l := range t.Links {
		at := "timeline.links[" + strconv.Itoa(i) + "]"
		for _, e := range [][2]int32{{l.FromLane, l.FromBar}, {l.ToLane, l.ToBar}} {
			if e[0] < 0 || int(e[0]) >= len(t.Lanes) || e[1] < 0 || int(e[1]) >= len(t.Lanes[e[0]].Starts) {
				c.fail(at, "names bar %d of lane %d", e[1], e[0])
			}
		}
	}
	for i := range t.Memories {
		m := &t.Memories[i]
		at := "timeline.memories[" + strconv.Itoa(i) + "]"
		c.need(at+".name", m.Name)
		n := len(m.Starts)
		c.same(at, "ends_s", len(m.Ends), n)
		c.same(at, "address_bytes", len(m.Addresses), n)
		c.same(at, "size_bytes", len(m.Sizes), n)
		c.same(at, "writes", len(m.Writes), n)
		c.column(at, "layers", m.Layers, n, layers)
		c.ascending(at+".starts_s", m.Starts)
		if c.err != nil {
			return
		}
		for j := range m.Starts {
			if !(m.Ends[j] >= m.Starts[j]) || m.Ends[j] > maxSeconds || m.Addresses[j] < 0 || m.Sizes[j] < 0 {
				c.fail(at, "access %d is %d bytes at %d, %v to %v s", j, m.Sizes[j], m.Addresses[j], m.Starts[j], m.Ends[j])
				return
			}
		}
		for j, p := range m.Partitions {
			if p.Address < 0 || p.Bytes < 0 {
				c.fail(at, "partition %d has %d bytes at %d", j, p.Bytes, p.Address)
			}
		}
	}
}

// maxSeconds bounds times: beyond 30 years a nanosecond is lost in a float64.
const maxSeconds = 1e9

func (c *checker) lane(i int, l *Lane, t *Timeline, layers int) {
	at := "timeline.lanes[" + strconv.Itoa(i) + "]"
	c.need(at+".name", l.Name)
	c.word(at+".kind", string(l.Kind), string(LaneIteration), string(LaneSubnet), string(LaneLayerGroup), string(LaneLayer),
		string(LaneEngine), string(LaneThread), string(LaneStream), string(LaneHost))
	n := len(l.Starts)
	c.same(at, "durations_s", len(l.Durations), n)
	c.ascending(at+".starts_s", l.Starts)
	c.samples(at+".durations_s", l.Durations)
	c.column(at, "layers", l.Layers, n, layers)
	c.column(at, "labels", l.Labels, n, len(t.Names))
	c.column(at, "types", l.Types, n, len(t.Names))
	c.column(at, "iterations", l.Iterations, n, 1<<31-1)
	c.column(at, "subnets", l.Subnets, n, len(t.Subnets))
	c.column(at, "directions", l.Directions, n, len(t.Names))
	if l.Stalls != nil {
		c.same(at, "stalls_s", len(l.Stalls), n)
		c.samples(at+".stalls_s", l.Stalls)
	}
	if l.Bytes != nil {
		c.same(at, "moved_bytes", len(l.Bytes), n)
	}
	if l.Utilisation != nil {
		c.same(at, "utilisation", len(l.Utilisation), n)
		c.finite(at+".utilisation", l.Utilisation)
	}
	c.nested(at, l)
}

// nested checks that no two bars of a lane overlap in part.
func (c *checker) nested(at string, l *Lane) {
	if c.err != nil {
		return
	}
	var ends []float64
	for i, s := range l.Starts {
		// Half a nanosecond is the rounding of times in seconds.
		for len(ends) > 0 && ends[len(ends)-1] <= s+0.5e-9 {
			ends = ends[:len(ends)-1]
		}
		e := s + l.Durations[i]
		if len(ends) > 0 && e > ends[len(ends)-1]+0.5e-9 {
			c.fail(at, "bar %d ends after the bar around it", i)
			return
		}
		ends = append(ends, e)
	}
}

func (c *checker) same(at, name string, have, want int) {
	if have != want {
		c.fail(at+"."+name, "has %d entries, want %d", have, want)
	}
}

func (c *checker) column(at, name string, v []int32, n, limit int) {
	if v == nil {
		return
	}
	c.same(at, name, len(v), n)
	for i, x := range v {
		if x < -1 || int(x) >= limit {
			c.fail(at+"."+name, "has %d at %d, want -1 to %d", x, i, limit-1)
			return
		}
	}
}

func (c *checker) ascending(at string, v []float64) {
	last := 0.0
	for i, x := range v {
		if !(x >= last && x <= maxSeconds) {
			c.fail(at, "has %v at %d after %v", x, i, last)
			return
		}
		last = x
	}
}

func (c *checker) finite(at string, v []float64) {
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			c.fail(at, "has %v at %d", x, i)
			return
		}
	}
}
