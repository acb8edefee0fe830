package profile

import (
	"fmt"
	"slices"
)

// Peak is the rate of arithmetic of one element type.
type Peak struct {
	// DType is the element type of the operands: "float32", "int8".
	DType string `json:"dtype"`
	// Kernel names the instruction set of the kernels that were measured, "go" for
	// what the compiler makes of plain Go.
	Kernel string `json:"kernel,omitzero"`
	// OpsPerSecond is the rate of the quickest round; a multiply-accumulate is two. On
	// this computer it is the rate of a layer where one reached more.
	OpsPerSecond float64 `json:"ops_per_second"`
	// MeasuredOpsPerSecond is the rate of the quickest round and ReachedBy the index of
	// the layer that reached more, both absent without one.
	MeasuredOpsPerSecond *float64 `json:"measured_ops_per_second,omitzero"`
	ReachedBy            *int64   `json:"reached_by,omitzero"`
	// Spread is how far the median of the rounds lies below the quickest one, as a
	// part of it.
	Spread *float64 `json:"spread,omitzero"`
	// ProcessorOpsPerSecond is what the processor could do in theory: clock times lanes
	// times units, with the best instruction set for the type, ProcessorSet.
	ProcessorOpsPerSecond *float64 `json:"processor_ops_per_second,omitzero"`
	// ProcessorSet names that instruction set.
	ProcessorSet string `json:"processor_set,omitzero"`
}

// Level is a level of the memory, from the fastest to the slowest.
type Level struct {
	// Name is "L1", "L2", "L3" or "memory".
	Name string `json:"name"`
	// Bytes is what fits, all threads together; absent for the last level.
	Bytes *int64 `json:"bytes,omitzero"`
	// BytesPerSecond is the rate of the quickest round, read and written. On this
	// computer it is the rate of a layer where one reached more, here or in a slower
	// level.
	BytesPerSecond float64 `json:"bytes_per_second"`
	// ReadBytesPerSecond is the rate of the quickest round that only reads, absent where it was
	// not measured.
	ReadBytesPerSecond *float64 `json:"read_bytes_per_second,omitzero"`
	// MeasuredBytesPerSecond is the rate of the quickest round and ReachedBy the index
	// of the layer that reached more, both absent without one.
	MeasuredBytesPerSecond *float64 `json:"measured_bytes_per_second,omitzero"`
	ReachedBy              *int64   `json:"reached_by,omitzero"`
	// Spread is how far the median of the rounds lies below the quickest one, as a
	// part of it.
	Spread *float64 `json:"spread,omitzero"`
}

// Bound says what keeps a layer from being faster, as far as the peaks tell.
type Bound string

// Bounds.
const (
	BoundCompute  Bound = "compute"  // arithmetic needs most of the time
	BoundMemory   Bound = "memory"   // moving operands needs most of the time
	BoundOverhead Bound = "overhead" // below 10 % of both limits: fixed costs take the time
	// BoundUnknown is only the bound of a [BoundPart]: layers without a bound.
	BoundUnknown Bound = "unknown"
)

// oldOverhead is how profiles before 2026-12 name [BoundOverhead].
const oldOverhead = "neither"

// FarBelow is the part of its limit below which a layer is far below it.
const FarBelow = 0.1

// Roof is a layer's place under the roofline of the target: that of what it computes with all
// layers that are fused into it, whose work is its own, and without what these hand to each
// other, which is in no memory.
type Roof struct {
	// Bound says which limit is nearer, absent where one of the two is not known.
	Bound Bound `json:"bound,omitzero"`
	// DType is the type of the peak of arithmetic, Level the name of the level of
	// memory that it is judged by: the first that holds what the layer reads and
	// writes in a call.
	DType string `json:"dtype,omitzero"`
	Level string `json:"level,omitzero"`
	// OpsPerSecond and BytesPerSecond are these two limits.
	OpsPerSecond   *float64 `json:"ops_per_second,omitzero"`
	BytesPerSecond *float64 `json:"bytes_per_second,omitzero"`
	// Use is the least time that the limits allow as a part of the time taken. Under
	// peaks that were measured here it is at most 1.
	Use *float64 `json:"use,omitzero"`
}

// ArithmeticType is the element type whose peak bounds a layer, "" if unknown: the type that it
// computes in. Half precision is computed in float32, and all 8-bit types by the same kernels.
func (l *Layer) ArithmeticType() string {
	want := l.Computes
	if want == "" {
		want = l.operands()
	}
	switch want {
	case "uint8", "int4", "uint4":
		return "int8"
	case "float16", "bfloat16":
		return "float32"
	}
	return want
}

// peakType is the type of the target's peak for a layer, "" without one.
func (t *Target) peakType(l *Layer) string {
	want := l.ArithmeticType()
	if slices.ContainsFunc(t.Peaks, func(k Peak) bool { return k.DType == want }) {
		return want
	}
	return ""
}

// peak returns the rate of arithmetic for a layer, of its own element type where the
// target has peaks by type.
func (t *Target) peak(l *Layer) (dtype string, rate *float64) {
	if len(t.Peaks) == 0 {
		return "", positive(t.PeakOpsPerSecond)
	}
	want := t.peakType(l)
	for i := range t.Peaks {
		if want != "" && t.Peaks[i].DType == want {
			return want, positive(&t.Peaks[i].OpsPerSecond)
		}
	}
	return "", nil
}

// operands is the element type of the first input that is not a constant, of the first one where
// all are.
func (l *Layer) operands() (dtype string) {
	for i := range l.Inputs {
		if in := &l.Inputs[i]; !in.Absent && (dtype == "" || !in.Constant) {
			dtype = in.DType
			if !in.Constant {
				break
			}
		}
	}
	return dtype
}

// levelOf is the index of the first level that holds a number of bytes, -1 without levels.
func (t *Target) levelOf(bytes float64) int {
	for i := range t.Levels {
		if l := &t.Levels[i]; l.Bytes == nil || bytes <= float64(*l.Bytes) {
			return i
		}
	}
	return len(t.Levels) - 1
}

// level returns the first level that holds a number of bytes.
func (t *Target) level(bytes float64) (name string, rate *float64) {
	if i := t.levelOf(bytes); i >= 0 {
		return t.Levels[i].Name, positive(&t.Levels[i].BytesPerSecond)
	}
	if t.PeakBytesPerSecond == nil {
		return "", nil
	}
	return "memory", positive(t.PeakBytesPerSecond)
}

func positive(v *float64) *float64 {
	if v == nil || !(*v > 0) {
		return nil
	}
	return v
}

// RoofOf places a layer under the target's roofline; nil where nothing is known about its
// time, its work or the limits.
func (t *Target) RoofOf(l *Layer) *Roof {
	s, ok := l.Latency.Best()
	if !ok || !(s > 0) {
		return nil
	}
	r := &Roof{}
	var byOps, byBytes *float64
	if dtype, rate := t.peak(l); rate != nil {
		r.DType, r.OpsPerSecond = dtype, rate
		if l.Ops != nil {
			byOps = new(float64(*l.Ops) / *rate)
		}
	}
	if l.BytesRead != nil && l.BytesWritten != nil {
		bytes := float64(*l.BytesRead) + float64(*l.BytesWritten)
		if name, rate := t.level(bytes / max(1, calls(l))); rate != nil {
			r.Level, r.BytesPerSecond = name, rate
			byBytes = new(bytes / *rate)
		}
	}
	// Work that is not known under a limit that is: the layer may need any part of it.
	if r.OpsPerSecond != nil && byOps == nil || byOps == nil && byBytes == nil {
		return nil
	}
	var least float64
	for _, v := range []*float64{byOps, byBytes} {
		if v != nil {
			least = max(least, *v)
		}
	}
	r.Use = new(least / s)
	switch {
	case byOps == nil || byBytes == nil:
	case *r.Use < FarBelow:
		r.Bound = BoundOverhead
	case *byBytes > *byOps:
		r.Bound = BoundMemory
	default:
		r.Bound = BoundCompute
	}
	return r
}

func (c *checker) peaks(t *Target, layers int) {
	for i := range t.Peaks {
		k := &t.Peaks[i]
		at := fmt.Sprintf("target.peaks[%d]", i)
		c.need(at+".dtype", k.DType)
		c.reals(at, realNamed{"ops_per_second", &k.OpsPerSecond}, realNamed{"measured_ops_per_second", k.MeasuredOpsPerSecond}, realNamed{"processor_ops_per_second", k.ProcessorOpsPerSecond})
		c.reachedBy(at, k.ReachedBy, layers)
		c.fraction(at+".spread", k.Spread)
	}
	for i := range t.Levels {
		l := &t.Levels[i]
		at := fmt.Sprintf("target.levels[%d]", i)
		c.need(at+".name", l.Name)
		c.counts(at, named{"bytes", l.Bytes})
		c.reals(at, realNamed{"bytes_per_second", &l.BytesPerSecond}, realNamed{"read_bytes_per_second", l.ReadBytesPerSecond}, realNamed{"measured_bytes_per_second", l.MeasuredBytesPerSecond})
		c.reachedBy(at, l.ReachedBy, layers)
		c.fraction(at+".spread", l.Spread)
	}
}

// reachedBy checks the layer that reached a peak.
func (c *checker) reachedBy(at string, layer *int64, layers int) {
	if layer != nil && (*layer < 0 || *layer >= int64(layers)) {
		c.fail(at+".reached_by", "is %d, but there are %d layers", *layer, layers)
	}
}

func (c *checker) roof(at string, r *Roof) {
	if r == nil {
		return
	}
	if r.Bound != "" {
		c.word(at+".bound", string(r.Bound), string(BoundCompute), string(BoundMemory), string(BoundOverhead))
	}
	c.reals(at, realNamed{"ops_per_second", r.OpsPerSecond}, realNamed{"bytes_per_second", r.BytesPerSecond}, realNamed{"use", r.Use})
}
