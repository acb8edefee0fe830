package profile

import (
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/profile/timeline"
)

// Event is what a source of figures reports while it works. One part is set. A
// [Builder] makes a profile of events, and a journal on disk holds them until the
// source is done.
type Event struct {
	// Described says what is known without running the model: the model, the target,
	// the layers with their work. It comes first.
	Described *Profile `json:"described,omitzero"`
	// Refined says what turned out about a layer.
	Refined *Refined `json:"refined,omitzero"`
	// Measured brings samples.
	Measured *Samples `json:"measured,omitzero"`
	// Counted brings a figure that is whole already, in place of an earlier one.
	Counted *Figure `json:"counted,omitzero"`
	// Noted brings parts of the profile beside its layers and figures.
	Noted *Noted `json:"noted,omitzero"`
	// Lost says that records are missing.
	Lost *Loss `json:"lost,omitzero"`
	// Found is a finding.
	Found *Finding `json:"found,omitzero"`
	// Done is the last event.
	Done *Done `json:"done,omitzero"`
}

// Refined says what turned out about a layer. Parts that are absent stay as they are.
type Refined struct {
	// Layer is its index.
	Layer int64 `json:"layer"`
	// State and Cause replace those of the layer. A cause needs a state beside it.
	State State  `json:"state,omitzero"`
	Cause *Cause `json:"cause,omitzero"`
	// FusedInto goes with the state [Fused].
	FusedInto *int64 `json:"fused_into,omitzero"`
	// Placement says which unit of the target does the work.
	Placement *Placement `json:"placement,omitzero"`
	// Kernel names the implementation.
	Kernel string `json:"kernel,omitzero"`
	// Computes is [Layer.Computes].
	Computes string `json:"computes,omitzero"`
	// Inputs and Outputs replace the layer's where shapes became known.
	Inputs  []Tensor `json:"inputs,omitzero"`
	Outputs []Tensor `json:"outputs,omitzero"`
	// Check replaces what came of a second measurement.
	Check *Check `json:"check,omitzero"`
	// Samples replaces the layer's samples of its time, seconds.
	Samples []float64 `json:"samples_s,omitzero"`
}

// Samples is measured values of one quantity.
type Samples struct {
	// Layer is the index of the layer, absent for the whole model.
	Layer *int64 `json:"layer,omitzero"`
	// Quantity is the key.
	Quantity string `json:"quantity"`
	// Kind is [Measured] when left out, and the same in all events of a series.
	Kind Kind `json:"kind,omitzero"`
	// Values are the samples, one an inference, in the quantity's unit. They come
	// after those that were sent before.
	Values []float64 `json:"values"`
	// Method says how they were taken.
	Method string `json:"method,omitzero"`
}

// Figure is one figure. The latest one counts: samples that came before it are kept
// and no longer make the figure, samples that come after it do.
type Figure struct {
	// Layer is the index of the layer, absent for the whole model.
	Layer *int64 `json:"layer,omitzero"`
	// Quantity is the key.
	Quantity string `json:"quantity"`
	// Metric is the figure, null to take an earlier one away.
	Metric *Metric `json:"metric"`
}

// Noted is parts of a profile. Those that are set replace earlier ones.
type Noted struct {
	Host      *Host      `json:"host,omitzero"`      // the machine
	Target    *Target    `json:"target,omitzero"`    // what was learnt about the target
	Settings  *Settings  `json:"settings,omitzero"`  // what was really used
	Phases    *Phases    `json:"phases,omitzero"`    // times of what happens once
	Reconcile *Reconcile `json:"reconcile,omitzero"` // sums against the wall clock
	// how far the latency can be relied upon
	Trust    *Trust   `json:"trust,omitzero"`
	Memory   *Memory  `json:"memory,omitzero"`    // the plan of the runtime
	RAMBytes *int64   `json:"ram_bytes,omitzero"` // goes to the totals
	Outputs  []Tensor `json:"outputs,omitzero"`   // of the model, as a run made them
	// descriptions of foreign figures, added
	Quantities  []Quantity         `json:"quantities,omitzero"`
	Timeline    *timeline.Timeline `json:"timeline,omitzero"`    // when things happened
	Differences []Difference       `json:"differences,omitzero"` // of outputs from another engine's
	// samples of the whole model's time, seconds
	Latencies []float64 `json:"latencies,omitzero"`
}

// Loss says that records are missing.
type Loss struct {
	// Layer is the index of the layer that they were of, absent where that is not
	// known. A layer that ran and has no time becomes [Lost] until one comes.
	Layer *int64 `json:"layer,omitzero"`
	// Records is how many, absent where that is not known.
	Records *int64 `json:"records,omitzero"`
	// Cause says why.
	Cause Cause `json:"cause"`
}

// Done ends a series of events.
type Done struct {
	// Incomplete says what is missing, empty when everything is there.
	Incomplete []Missing `json:"incomplete,omitzero"`
}

// Kind names the part that is set, as JSON does; "" for none or several.
func (e *Event) Kind() string {
	name, n := "", 0
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"described", e.Described != nil},
		{"refined", e.Refined != nil},
		{"measured", e.Measured != nil},
		{"counted", e.Counted != nil},
		{"noted", e.Noted != nil},
		{"lost", e.Lost != nil},
		{"found", e.Found != nil},
		{"done", e.Done != nil},
	} {
		if x.set {
			name = x.name
			n++
		}
	}
	if n != 1 {
		return ""
	}
	return name
}

// check refuses an event that cannot be right whatever the profile holds. layers is
// the number of layers. What depends on the rest is checked when it is applied.
func (e *Event) check(layers int, described bool) error {
	kind := e.Kind()
	switch {
	case kind == "":
		return errors.New("event: want one part that is set")
	case kind == "described" && described:
		return errors.New("described: the model was described before")
	case kind == "described":
		if err := e.Described.Validate(); err != nil {
			return fmt.Errorf("described: %w", err)
		}
		return nil
	case !described:
		return fmt.Errorf("%s: the model is to be described first", kind)
	}
	c := &checker{}
	switch {
	case e.Refined != nil:
		r := e.Refined
		c.ref("layer", &r.Layer, layers)
		if r.State == "" && (r.Cause != nil || r.FusedInto != nil) {
			c.fail("state", "is missing beside cause or fused_into")
		}
	case e.Measured != nil:
		c.ref("layer", e.Measured.Layer, layers)
		c.measured(e.Measured)
	case e.Counted != nil:
		c.ref("layer", e.Counted.Layer, layers)
		c.key(e.Counted.Quantity)
		if e.Counted.Quantity == "share" {
			c.fail("quantity", "share follows from latency_s")
		}
	case e.Lost != nil:
		c.ref("layer", e.Lost.Layer, layers)
		c.counts("lost", named{"records", e.Lost.Records})
		c.cause("cause.code", e.Lost.Cause.Code)
	case e.Found != nil:
		c.finding("finding", e.Found, layers)
	case e.Done != nil:
		c.missing(e.Done.Incomplete, layers)
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w", kind, c.err)
	}
	return nil
}

func (c *checker) key(key string) {
	if !isKey(key) {
		c.fail("quantity:", "%v", badKey(key))
	}
}

// maxSample bounds samples: beyond, the sum of their squares is not a number.
const maxSample = 1e150

// measured checks samples: that their quantity has any, and that they are figures.
func (c *checker) measured(m *Samples) {
	c.key(m.Quantity)
	if m.Kind != "" {
		c.word("kind", string(m.Kind), kinds...)
	}
	least, most := -maxSample, maxSample
	if e, ok := lookup(m.Quantity); ok {
		var s place
		switch {
		case m.Layer == nil && e.total != nil:
			s = e.total(&Totals{})
		case m.Layer != nil && e.layer != nil:
			s = e.layer(&Layer{Sparsity: &Sparsity{}})
		}
		switch {
		case e.Derived():
			c.fail("quantity", "%s follows from others", m.Quantity)
		case m.Quantity == "share":
			c.fail("quantity", "share follows from latency_s")
		case s.count != nil:
			c.fail("quantity", "%s is a count and has no samples", m.Quantity)
		case s != (place{}):
			least = 0
		}
		if s.real != nil && e.Unit == "1" {
			most = 1
		}
	}
	for i, v := range m.Values {
		if !(v >= least && v <= most) {
			c.fail("values", "has %v at %d, want %v to %v", v, i, least, most)
			break
		}
	}
}
