package agent

// Op is what an inference says of an operator, over all its calls.
type Op struct {
	Index uint16
	// Calls is how often it ended.
	Calls int
	// Counts is the time in the operator itself, without operators within it.
	Counts int64
	// Inner is the number of operators right within it, Agent that of calls of the agent within
	// it and not within those.
	Inner, Agent int64
	// Within says that it stood in another operator at least once.
	Within bool

	stretch int  // of frames without a loss between them
	mixed   bool // came in several
}

// Counter is a figure of the firmware's own.
type Counter struct {
	Index int // of the operator, -1 for the inference
	Name  string
	Value float64 // summed over the calls of the operator
}

// Run is an inference.
type Run struct {
	// Number counts inferences of a start of the device; where Partial, it may be too small.
	Number uint64
	// Counts is from begin to end, Own is the part of it that the agent took to send, both zero
	// in partial ones. Calls is the number of calls of the agent.
	Counts, Own, Calls uint64
	Ops                []Op // in the order in which they ended first
	Counters           []Counter
	// Partial says that frames of it were lost, or that its counter may have gone round.
	Partial bool
	// Wrong says that the firmware used the agent wrongly, so that no figure of it counts.
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

// Event is what a stream tells: one of its parts is set.
type Event struct {
	Hello   *Hello
	Run     *Run
	Memory  *Memory
	Data    *Data
	Text    string // a remark through the agent
	Output  []byte // what the firmware printed beside the agent
	Problem *Problem
	// Restart says that the device began anew. What is known of it may not hold any more; tags
	// and texts of the hello are there for the last time.
	Restart bool
	// Done says that the firmware is through.
	Done bool
	// Version is that of a format that this host does not know.
	Version uint8
}

// Memory is memory in use.
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

// Problem is a wrong use of the agent.
type Problem struct {
	Code  uint8
	Index uint64
}

// Lost counts what did not come.
type Lost struct {
	Frames    int64 // that the sequence shows to be lost
	Runs      int64 // inferences of which nothing came
	Data      int64 // blocks of data that are not complete
	Noise     int64 // bytes that are neither frame nor text
	Twice     int64 // frames that came twice or too late, and were left out
	Malformed int64 // frames with a right check and a wrong body
	Foreign   int64 // frames of types that are not known
	Counters  int64 // figures of the firmware's own beyond those that are held
}
