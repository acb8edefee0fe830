package agent

// Op is an operator of an inference, summed over its calls.
type Op struct {
	Index uint16
	// Calls is the number of completed calls.
	Calls int
	// Counts is the time in the operator itself, without nested operators.
	Counts int64
	// Inner is the number of directly nested operators. Agent is the number of agent calls within
	// this operator and not within nested ones.
	Inner, Agent int64
	// Within says that it was nested in another operator at least once.
	Within bool

	stretch int  // of frames without a loss between them
	mixed   bool // came in several
}

// Counter is a custom counter of the firmware.
type Counter struct {
	Index int // of the operator, -1 for the inference
	Name  string
	Value float64 // summed over the calls of the operator
}

// Run is an inference.
type Run struct {
	// Number counts inferences since the device started; if Partial, it may be too small.
	Number uint64
	// Counts is the time from begin to end, Own the part that the agent spent on sending; both
	// are 0 in partial runs. Calls is the number of agent calls.
	Counts, Own, Calls uint64
	Ops                []Op // in the order in which they ended first
	Counters           []Counter
	// Partial says that frames were lost, or that the counter may have wrapped around.
	Partial bool
	// Wrong says that the firmware used the agent incorrectly: none of its figures count.
	Wrong bool
	// Sure says that nothing was lost since the last hello, so that all tags are known.
	Sure bool

	begun   bool // its begin came
	joined  bool // listening began in the middle of it
	at      map[uint16]int
	stretch int

	counterAt map[counterKey]int
}

type counterKey struct {
	index int
	name  string
}

// Event is an event of a stream. One of its parts is set.
type Event struct {
	Hello   *Hello
	Run     *Run
	Memory  *Memory
	Data    *Data
	Text    string // a remark through the agent
	Output  []byte // printed by the firmware itself
	Problem *Problem
	// Restart says that the device restarted. Earlier information about it may be outdated; tags
	// and texts of the hello are available for the last time.
	Restart bool
	// Done says that the firmware has finished.
	Done bool
	// Version is an unsupported version of the format.
	Version uint8
}

// Memory is a report of memory in use.
type Memory struct {
	Name  string
	Bytes uint32
}

// Data is a block of data.
type Data struct {
	Name  string
	Index int
	Bytes []byte
}

// Problem is an incorrect use of the agent.
type Problem struct {
	Code  uint8
	Index uint64
}

// Lost counts missing and unusable data.
type Lost struct {
	Frames    int64 // that the sequence shows to be lost
	Runs      int64 // inferences of which nothing came
	Data      int64 // blocks of data that are not complete
	Noise     int64 // bytes that are neither frame nor text
	Twice     int64 // frames that came twice or too late, and were left out
	Malformed int64 // frames with a right check and a wrong body
	Foreign   int64 // frames of types that are not known
	Counters  int64 // custom counters beyond the limit
}
