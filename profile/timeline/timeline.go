package timeline

// Timeline says when things happened. A column that a source has nothing for is
// absent. All times are seconds since one origin, unless a lane has a clock of its
// own.
type Timeline struct {
	// Origin says what time 0 is.
	Origin string `json:"origin,omitzero"`
	// Clocks holds clocks of lanes that have one of their own.
	Clocks []Clock `json:"clocks,omitzero"`
	// Iterations is the number of inferences that ran while the timeline was
	// recorded; bars may exist for some of them only (see method).
	Iterations *int64 `json:"iterations,omitzero"`
	// Representative is the number of the inference whose layers are nearest to their
	// medians, absent if it was not looked for. The timeline has its bars.
	Representative *int64 `json:"representative,omitzero"`
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
	Memories []Memory `json:"memories,omitzero"`
}

// Clock is a clock of a unit that counts by itself. A time t of a lane on it is
// (t - offset_s) x rate on the timeline's own clock.
type Clock struct {
	// Name of the clock, by which lanes refer to it.
	Name string `json:"name"`
	// OffsetS is the clock's time at the timeline's origin, seconds; absent when
	// it is not known, so that times of its lanes can be compared with each other only.
	OffsetS *float64 `json:"offset_s,omitzero"`
	// Rate is seconds of the timeline for a second of this clock, absent for 1.
	Rate *float64 `json:"rate,omitzero"`
	// Method says how offset and rate were found.
	Method string `json:"method,omitzero"`
}

// LaneKind says what the bars of a lane are.
type LaneKind string

// Kinds of lanes.
const (
	Iteration  LaneKind = "iteration"   // whole inferences
	Subnet     LaneKind = "subnet"      // parts of the model that run as one
	LayerGroup LaneKind = "layer group" // layers that are scheduled together
	Layer      LaneKind = "layer"       // layers of the model
	Engine     LaneKind = "engine"      // commands of a unit of hardware
	Thread     LaneKind = "thread"      // work on a thread
	Stream     LaneKind = "stream"      // work on a queue of an accelerator
	Host       LaneKind = "host"        // what the computer around the target does
)

// Kinds lists the kinds of lanes.
func Kinds() []LaneKind {
	return []LaneKind{Iteration, Subnet, LayerGroup, Layer, Engine, Thread, Stream, Host}
}

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
	// Clock names the clock of the lane's times, empty for the timeline's own.
	Clock string `json:"clock,omitzero"`
	// Starts holds the start of each bar, seconds.
	Starts []float64 `json:"starts_s"`
	// Durations holds the length of each bar, seconds.
	Durations []float64 `json:"durations_s"`
	// Layers holds the index in the profile's layers of each bar, -1 for none.
	Layers []int32 `json:"layers,omitzero"`
	// Labels holds the index in the timeline's names of each bar's name, -1 for the
	// name of its layer.
	Labels []int32 `json:"labels,omitzero"`
	// Types holds the index in the timeline's names of each bar's kind of work, -1 for
	// that of its layer.
	Types []int32 `json:"types,omitzero"`
	// Iterations holds the number of the inference of each bar, from 0, -1 for none.
	Iterations []int32 `json:"iterations,omitzero"`
	// Subnets holds the index in the timeline's subnets of each bar, -1 for none.
	Subnets []int32 `json:"subnets,omitzero"`
	// Directions holds the index in the timeline's names of what each transfer went
	// from and to, such as "DDR to local", -1 for none.
	Directions []int32 `json:"directions,omitzero"`
	// Stalls holds how long each bar waited, from its start, seconds.
	Stalls []float64 `json:"stalls_s,omitzero"`
	// Bytes holds what each bar moved, -1 for not known.
	Bytes []int64 `json:"moved_bytes,omitzero"`
	// Utilisation holds each bar's rate as a fraction of the unit's peak, 0 to 1,
	// -1 for not known.
	Utilisation []float64 `json:"utilisation,omitzero"`
	// Figures holds further figures of each bar by the key of their quantity, in its
	// unit, -1 for not known: bank conflicts, identifiers of instructions.
	Figures map[string][]float64 `json:"figures,omitzero"`
}

// Counter is a figure over time. Each value holds until the next.
type Counter struct {
	// Name of the counter.
	Name string `json:"name"`
	// Unit of the values, such as "B/s" or "Hz"; empty for a count.
	Unit string `json:"unit,omitzero"`
	// Group is the core, device or process that it belongs to.
	Group string `json:"group,omitzero"`
	// Clock names the clock of the times, empty for the timeline's own.
	Clock string `json:"clock,omitzero"`
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

// Memory is a memory whose accesses were recorded.
type Memory struct {
	// Name of the memory, such as "local" or "global".
	Name string `json:"name"`
	// Group is the core or device that it belongs to, empty for a shared one.
	Group string `json:"group,omitzero"`
	// Clock names the clock of the times, empty for the timeline's own.
	Clock string `json:"clock,omitzero"`
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
	// Layers holds the index in the profile's layers of each access, -1 for none.
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
