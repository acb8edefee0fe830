package ort

import (
	"bytes"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// event is the part that is read of every event. Other arguments are read once for each row.
type event struct {
	cat, name, tid []byte
	ts, dur        int64 // microseconds
	timed          bool  // ts and dur are present
	placed         bool  // ts is present
}

// parse parses an event with its arguments in a single pass. It reports whether v is one object
// with a category.
func (e *event) parse(v []byte, a *arguments) bool {
	*e = event{}
	a.reset()
	var ts, dur bool
	c := jsonscan.Cursor{Text: v}
	for c.Next() {
		if c.Depth > 1 {
			// input_type_shape, output_type_shape
			if len(c.Key) > 10 && (c.Key[0] == 'i' || c.Key[0] == 'o') {
				p := &a.again[0]
				if c.Key[0] == 'o' {
					p = &a.again[1]
				}
				a.add(c.Key, p.value(&c))
			} else {
				a.add(c.Key, c.Value())
			}
			continue
		}
		if string(c.Key) == "args" && c.Enter() {
			continue
		}
		k, x := c.Key, c.Value()
		switch string(k) {
		case "cat":
			e.cat = bare(x)
		case "name":
			e.name = bare(x)
		case "tid":
			e.tid = bare(x)
		case "ts":
			e.ts, ts = micros(x)
		case "dur":
			e.dur, dur = micros(x)
		}
	}
	// Times beyond a hundred years are invalid and would overflow nanoseconds.
	const most = 3e15
	e.placed = ts && e.ts > -most && e.ts < most
	e.timed = e.placed && dur && e.dur >= 0 && e.dur < most
	return c.Whole() && e.cat != nil
}

// repeated holds the values of a key in their order in the last inference. Most repeat in the next
// one and need not be scanned again.
type repeated struct {
	texts [][]byte
	at    int
}

// maxRepeated limits the number of values and the size of each.
const maxRepeated = 4096

func (p *repeated) value(c *jsonscan.Cursor) []byte {
	at := p.at
	p.at++
	if at < len(p.texts) && c.Like(p.texts[at]) {
		return p.texts[at]
	}
	v := c.Value()
	switch {
	case len(v) == 0 || len(v) > maxRepeated || v[0] != '[':
	case at < len(p.texts):
		p.texts[at] = append(p.texts[at][:0:0], v...)
	case at < maxRepeated && at == len(p.texts):
		p.texts = append(p.texts, append([]byte(nil), v...))
	}
	return v
}

func micros(v []byte) (int64, bool) {
	if n, ok := jsonscan.Int(v); ok {
		return n, true
	}
	f, ok := jsonscan.Number(v)
	return int64(max(-1e16, min(1e16, f))), ok
}

// bare removes the quotes of a string.
func bare(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// broken matches an event with unescaped quotes in its name: the runtime writes the same keys
// in the same order on every line.
var broken = lazyregexp.New(`^\{"cat" : "(\w+)","pid" :(-?\d+),"tid" :(-?\d+),"dur" :(\d+),"ts" :(\d+),"ph" : "X","name" :"(.*)","args" : (\{.*\})\},?$`)

// line reads a line that is not valid JSON, and reports whether it is an event.
func (r *reader) line(b []byte) bool {
	m := broken.FindSubmatch(bytes.TrimSpace(b))
	if m == nil {
		return false
	}
	e := &r.now
	*e = event{cat: m[1], name: m[6], tid: m[3], timed: true, placed: true}
	r.args.reset()
	for c := (jsonscan.Cursor{Text: m[7]}); c.Next(); {
		r.args.add(c.Key, c.Value())
	}
	var timed [2]bool
	e.dur, timed[0] = jsonscan.Int(m[4])
	e.ts, timed[1] = jsonscan.Int(m[5])
	if timed != [2]bool{true, true} {
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

// holds reports whether an operator runs graphs, for profiles without events of executors.
func holds(op string) bool {
	return slices.Contains(holders, op) || strings.HasPrefix(op, "Loop_")
}

var holders = []string{"If", "Loop", "Scan", "SequenceMap", "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}
