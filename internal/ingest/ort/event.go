package ort

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/jsonscan"
)

// event is what is read of every event; the rest of its arguments is looked at for
// each row once.
type event struct {
	cat, name, tid []byte
	ts, dur        int64 // microseconds
	timed          bool  // ts and dur are there
	args           []byte
}

// parse reads an event; ok is false where it is no object with a category.
func (e *event) parse(v []byte) bool {
	*e = event{}
	var ts, dur bool
	err := jsonscan.Walk(v, func(k, x []byte) bool {
		switch string(k) {
		case "cat":
			e.cat = bare(x)
		case "name":
			e.name = bare(x)
		case "tid":
			e.tid = bare(x)
		case "ts":
			e.ts, ts = jsonscan.Int(x)
			if !ts {
				var f float64
				f, ts = jsonscan.Number(x)
				e.ts = int64(f)
			}
		case "dur":
			e.dur, dur = jsonscan.Int(x)
			if !dur {
				var f float64
				f, dur = jsonscan.Number(x)
				e.dur = int64(f)
			}
		case "args":
			e.args = x
		}
		return true
	})
	// Times beyond a hundred years are none, and would not fit in nanoseconds.
	const most = 3e15
	e.timed = ts && dur && e.dur >= 0 && e.dur < most && e.ts > -most && e.ts < most
	return err == nil && e.cat != nil
}

// bare takes the quotes from a string.
func bare(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// broken matches an event whose name holds quotes that nobody escaped: the runtime
// writes the same keys in the same order on every line.
var broken = regexp.MustCompile(`^\{"cat" : "(\w+)","pid" :(-?\d+),"tid" :(-?\d+),"dur" :(\d+),"ts" :(\d+),"ph" : "X","name" :"(.*)","args" : (\{.*\})\},?$`)

// line reads a line that is no JSON.
func (r *reader) line(b []byte) bool {
	m := broken.FindSubmatch(bytes.TrimSpace(b))
	if m == nil {
		return false
	}
	e := &r.now
	*e = event{cat: m[1], name: m[6], tid: m[3], args: m[7], timed: true}
	var okd, okt bool
	e.dur, okd = jsonscan.Int(m[4])
	e.ts, okt = jsonscan.Int(m[5])
	if !okd || !okt {
		return false
	}
	r.take()
	return true
}

// Suffixes of the names of node events.
const (
	kernelTime  = "_kernel_time"
	fenceBefore = "_fence_before"
	fenceAfter  = "_fence_after"
)

// executor reports whether a session event is the execution of a graph: of the main one,
// or of a body.
func executor(name []byte) bool {
	return bytes.HasSuffix(name, []byte("Executor::Execute"))
}

// holds reports whether an operator runs graphs of its own, for profiles without
// events of executors.
func holds(op string) bool {
	switch op {
	case "If", "Loop", "Scan", "SequenceMap", "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch":
		return true
	}
	return strings.HasPrefix(op, "Loop_")
}
