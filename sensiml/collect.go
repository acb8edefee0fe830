package sensiml

import (
	"maps"
	"math"
	"slices"
)

// Bounds of what is kept.
const (
	maxKept     = 4 << 20 // values of all models
	maxOutcomes = 10_000  // results a model
	maxLengths  = 8       // lengths of arrays a model
	maxHeld     = 1 << 20 // values in vectors and tensors of results
)

// FirmwareHz is the clock by which the firmware makes seconds of cycles on every Arm chip,
// 80 times 1 024 000: seconds times it are cycles again.
const FirmwareHz = 81_920_000

// row is the figures of one inference as they came; nil lists did not come.
type row struct {
	cycles, times []float64
	clf, clfTime  float64
}

func (r *row) length() int { return max(len(r.cycles), len(r.times)) }

// device is what one model of a stream said.
type device struct {
	index   int
	groups  map[int][]row // by length of the array
	other   int           // rows of lengths beyond the bound
	pending *row

	classes  map[int]int
	results  int
	values   []float64
	lengths  []float64
	outcomes []Outcome

	profiled, disabled bool
	whole, odd         int64 // times that are whole milliseconds beside cycles, and others
}

// Collector gathers the messages of a stream and makes a Result of them at any time.
type Collector struct {
	pack    *Pack
	devices map[int]*device
	names   map[int]string
	kept    int
	held    int
	full    bool
	unknown int64 // messages of models that the pack has not
}

// NewCollector makes a collector for the models of a pack, nil where no model.json is at hand.
func NewCollector(p *Pack) *Collector {
	return &Collector{pack: p, devices: map[int]*device{}, names: map[int]string{}}
}

func (c *Collector) device(index int) *device {
	d := c.devices[index]
	if d == nil {
		d = &device{index: index, groups: map[int][]row{}, classes: map[int]int{}}
		c.devices[index] = d
	}
	return d
}

// Add takes a message.
func (c *Collector) Add(m *Message) {
	if m.Kind == KindMap {
		for i, n := range m.Names {
			c.names[i] = n
		}
		return
	}
	if c.pack != nil && c.pack.Find(m.Model) == nil {
		c.unknown++
		return
	}
	d := c.device(m.Model)
	switch m.Kind {
	case KindDisabled:
		d.disabled = true
	case KindResult:
		c.result(d, m)
	case KindCycles:
		d.profiled = true
		if p := d.pending; p != nil && p.cycles == nil && agree(m.Slots, p.times, m.Classifier, p.clfTime) {
			p.cycles, p.clf = m.Slots, m.Classifier
			c.flush(d)
			return
		}
		c.flush(d)
		d.pending = &row{cycles: m.Slots, clf: m.Classifier}
	case KindTimes:
		d.profiled = true
		p := d.pending
		if p != nil && p.times == nil {
			d.milliseconds(p.cycles, m.Slots)
			if agree(p.cycles, m.Slots, p.clf, m.Classifier) {
				p.times, p.clfTime = m.Slots, m.Classifier
				c.flush(d)
				return
			}
		}
		c.flush(d)
		d.pending = &row{times: m.Slots, clfTime: m.Classifier}
	}
}

// milliseconds counts seconds that are whole milliseconds where the counter moved: packs on a
// computer print such.
func (d *device) milliseconds(cycles, times []float64) {
	for i := range min(len(cycles), len(times)) {
		if cycles[i] == 0 {
			continue
		}
		if ms := times[i] * 1e3; math.Abs(ms-math.Round(ms)) < 1e-6 {
			d.whole++
		} else {
			d.odd++
		}
	}
}

// slack is by how much the seconds of a figure may differ from its cycles: the firmware reads its
// counter for one after the other, with a division between.
func slack(cycles float64) float64 { return 200 + cycles/200 }

// told reports whether a count and the seconds beside it say the same.
func told(cycles, seconds float64) bool {
	return math.Abs(unsigned(cycles)-seconds*FirmwareHz) <= slack(unsigned(cycles))
}

// agree reports whether most of the figures of two lines are those of one inference.
func agree(cycles, times []float64, clf, clfTime float64) bool {
	if len(cycles) == 0 || len(cycles) != len(times) {
		return false
	}
	n, same := 0, 0
	look := func(c, t float64) {
		if c == 0 && t == 0 {
			return
		}
		n++
		if told(c, t) {
			same++
		}
	}
	for i := range cycles {
		look(cycles[i], times[i])
	}
	look(clf, clfTime)
	return n > 0 && 2*same >= n
}

// unsigned undoes the signed print of a count of 32 bits.
func unsigned(v float64) float64 {
	if v < 0 {
		return v + 1<<32
	}
	return v
}

// flush ends the inference under way.
func (c *Collector) flush(d *device) {
	p := d.pending
	d.pending = nil
	if p == nil {
		return
	}
	n := p.length()
	if _, ok := d.groups[n]; !ok && len(d.groups) >= maxLengths {
		d.other++
		return
	}
	need := len(p.cycles) + len(p.times) + 2
	if c.kept+need > maxKept {
		c.full = true
		return
	}
	c.kept += need
	d.groups[n] = append(d.groups[n], *p)
}

// End says that no more messages come: what is known about the inference under way counts.
func (c *Collector) End() {
	for _, i := range slices.Sorted(maps.Keys(c.devices)) {
		c.flush(c.devices[i])
	}
}

// drop forgets the inferences under way: there are enough without.
func (c *Collector) drop() {
	for _, d := range c.devices {
		d.pending = nil
	}
}

// forget drops the inferences whose arrays have another length.
func (c *Collector) forget(d *device, length int) {
	for n, rows := range d.groups {
		if n == length {
			continue
		}
		d.other += len(rows)
		for _, r := range rows {
			c.kept -= len(r.cycles) + len(r.times) + 2
		}
		delete(d.groups, n)
	}
}

func (c *Collector) result(d *device, m *Message) {
	d.results++
	if m.Class != nil {
		if _, ok := d.classes[*m.Class]; ok || len(d.classes) < 1000 {
			d.classes[*m.Class]++
		}
	}
	if m.Value != nil && len(d.values) < maxOutcomes && !math.IsNaN(*m.Value) {
		d.values = append(d.values, *m.Value)
	}
	if m.SegmentLength != nil && len(d.lengths) < maxOutcomes {
		d.lengths = append(d.lengths, float64(*m.SegmentLength))
	}
	if len(d.outcomes) < maxOutcomes {
		o := Outcome{Class: m.Class, Value: m.Value, Start: m.SegmentStart, Length: m.SegmentLength}
		if n := len(m.Vector) + len(m.Tensor); c.held+n <= maxHeld {
			c.held += n
			o.Vector, o.Tensor = m.Vector, m.Tensor
		}
		d.outcomes = append(d.outcomes, o)
	}
}

// usual is the length that most of the model's arrays have, and the number of rows of others. Of
// two that are as frequent it is the one that the pack expects, or the longer one.
func (d *device) usual(m *Model) (length, others int) {
	all := d.other
	best := -1
	for _, n := range slices.Sorted(maps.Keys(d.groups)) {
		k := len(d.groups[n])
		all += k
		if best < 0 || k > len(d.groups[best]) || k == len(d.groups[best]) && (m == nil || best != len(m.Features)) {
			best = n
		}
	}
	if best < 0 {
		return 0, all
	}
	return best, all - len(d.groups[best])
}

// rows is the number of inferences of the usual length until now, and that of results.
func (c *Collector) rows(index int) int {
	d := c.devices[index]
	n := 0
	for _, g := range d.groups {
		n = max(n, len(g))
	}
	return n
}

// Has reports whether each model that prints figures has so many inferences, or one of them ten
// times as many.
func (c *Collector) Has(runs int) bool {
	any, all := false, true
	for i, d := range c.devices {
		if !d.profiled {
			continue
		}
		n := c.rows(i)
		any = true
		if n >= 10*runs {
			return true
		}
		all = all && n >= runs
	}
	return any && all
}

// Runs is the number of inferences with figures of the model that has most.
func (c *Collector) Runs() int {
	n := 0
	for i := range c.devices {
		n = max(n, c.rows(i))
	}
	return n
}

// Silent reports whether at least so many results came and no model printed figures: the pack was
// built without profiling.
func (c *Collector) Silent(results int) bool {
	n := 0
	for _, d := range c.devices {
		if d.profiled {
			return false
		}
		n = max(n, d.results)
	}
	return n >= results
}
