package perfetto

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/protoread"
)

// clocks leads points in time to one clock, by what snapshots say of several at a
// time.
type clocks struct {
	main    uint64 // the clock that others are led to, 0 for the usual one
	offsets map[clockKey]int64
}

// clockKey names a clock; those from 64 to 127 are a writer's own.
type clockKey struct {
	sequence uint32
	clock    uint64
}

// ownClock is a clock by the rules of a writer.
type ownClock struct {
	unit        uint64
	incremental bool
	last        int64
}

// bootTime is the clock of times that name none.
const bootTime = 6

func keyOf(clock uint64, sequence uint32) clockKey {
	if clock < 64 || clock >= 128 {
		sequence = 0
	}
	return clockKey{sequence, clock}
}

func (c *clocks) mainClock() uint64 {
	if c.main != 0 {
		return c.main
	}
	return bootTime
}

// reading is what a clock shows at a snapshot.
type reading struct {
	clock uint64
	ns    int64
}

// snapshot takes the readings of several clocks at a time.
func (c *clocks) snapshot(data []byte, id uint32, s *sequence) {
	var all []reading
	r := protoread.NewReader(data)
	for r.Next() {
		if r.Num() == 2 {
			if c.main == 0 && len(c.offsets) == 0 {
				c.main = uint64(r.Int())
			}
			continue
		}
		if r.Num() != 1 || len(all) >= 32 {
			continue
		}
		var clock, ts, unit uint64
		incremental := false
		m := r.Message()
		_ = m.Scan(1, &clock, 2, &ts, 3, &incremental, 4, &unit)
		ns := scaled(ts, unit)
		if k := keyOf(clock, id); k.sequence == id && clock >= 64 && clock < 128 {
			if s.clocks == nil {
				s.clocks = map[uint64]*ownClock{}
			}
			s.clocks[clock] = &ownClock{unit, incremental, ns}
		}
		all = append(all, reading{clock, ns})
	}
	c.set(all, id)
}

// set finds how far clocks are from the main one: a snapshot shows it, or a clock of
// which it is known.
func (c *clocks) set(all []reading, id uint32) {
	base, known := int64(0), false
	for _, x := range all {
		if x.clock == c.mainClock() {
			base, known = x.ns, true
		}
	}
	for _, x := range all {
		if off, ok := c.offsets[keyOf(x.clock, id)]; ok && !known {
			base, known = clamp(x.ns, off), true
		}
	}
	if !known {
		return
	}
	if c.offsets == nil {
		c.offsets = map[clockKey]int64{}
	}
	for _, x := range all {
		if len(c.offsets) < 100_000 {
			c.offsets[keyOf(x.clock, id)] = clamp(base, -x.ns)
		}
	}
}

// clamp adds without overflow.
func clamp(a, b int64) int64 {
	s := a + b
	if (s > a) != (b > 0) && b != 0 {
		if b > 0 {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return s
}

// time leads a packet's time to the main clock, nanoseconds.
func (c *clocks) time(ts, clock uint64, id uint32, s *sequence) int64 {
	if clock == 0 {
		clock = c.mainClock()
	}
	ns := scaled(ts, 1)
	if o := s.clocks[clock]; o != nil {
		ns = scaled(ts, o.unit)
		if o.incremental {
			o.last = clamp(o.last, ns)
			ns = o.last
		}
	}
	return clamp(ns, c.offsets[keyOf(clock, id)])
}

// scaled multiplies by a unit; what does not fit is as large as fits.
func scaled(v, unit uint64) int64 {
	if unit == 0 {
		unit = 1
	}
	if v > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return int64(v * unit)
}
