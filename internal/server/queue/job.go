package queue

import (
	"encoding/hex"
	"slices"
	"strings"
)

// State is where a job stands.
type State string

// The states.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether nothing follows.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Needs says which workers can do a job. An empty field makes no demand.
type Needs struct {
	Target string `json:"target,omitzero"` // kind of target, such as host or board
	CPU    string `json:"cpu,omitzero"`    // architecture of the processor
	Engine string `json:"engine,omitzero"`
	Board  string `json:"board,omitzero"` // name of a board or emulator
}

// Offers says what a worker can do: for each field of [Needs] the values that it has.
type Offers struct {
	Targets []string `json:"targets"`
	CPUs    []string `json:"cpus"`
	Engines []string `json:"engines"`
	Boards  []string `json:"boards"`
}

// can reports whether a worker can do a job.
func (o *Offers) can(n Needs) bool {
	for _, c := range []struct {
		need  string
		offer []string
	}{{n.Target, o.Targets}, {n.CPU, o.CPUs}, {n.Engine, o.Engines}, {n.Board, o.Boards}} {
		if c.need != "" && !slices.Contains(c.offer, c.need) {
			return false
		}
	}
	return true
}

// subject is where jobs with these needs wait: their fields as tokens, in hexadecimal digits since
// names of boards contain anything.
func (n Needs) subject() string {
	parts := []string{"jobs"}
	for _, s := range []string{n.Target, n.CPU, n.Engine, n.Board} {
		if s == "" {
			parts = append(parts, "any")
		} else {
			parts = append(parts, "x"+hex.EncodeToString([]byte(s)))
		}
	}
	return strings.Join(parts, ".")
}

// needs reads a subject.
func needs(subject string) (n Needs, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != "jobs" {
		return n, false
	}
	for i, to := range []*string{&n.Target, &n.CPU, &n.Engine, &n.Board} {
		if parts[i+1] == "any" {
			continue
		}
		b, err := hex.DecodeString(strings.TrimPrefix(parts[i+1], "x"))
		if err != nil {
			return n, false
		}
		*to = string(b)
	}
	return n, true
}

// Input is a file that a job works on.
type Input struct {
	Name string `json:"name"`
	Hash string `json:"hash"` // SHA-256 of the file
	// As is what the file is for, such as a model; "" is what its position says.
	As string `json:"as,omitzero"`
}

// Job is a piece of work and its state.
type Job struct {
	ID      string  `json:"id"`
	Project string  `json:"project"`
	Kind    string  `json:"kind"` // what is done with the inputs: profile, import, …
	Inputs  []Input `json:"inputs"`
	// Options go to the kind: its engine, its targets and so on.
	Options map[string]string `json:"options,omitzero"`
	// Labels go to the result: branch, commit, note.
	Labels map[string]string `json:"labels,omitzero"`
	Tags   []string          `json:"tags,omitzero"`
	Needs  Needs             `json:"needs,omitzero"`
	Who    string            `json:"who,omitzero"`
	// Request is the SHA-256 of the request with an idempotency key, "" without a key.
	Request string `json:"request,omitzero"`
	Created int64  `json:"created_ms"`

	State   State    `json:"state"`
	Changed int64    `json:"changed_ms"`
	Attempt uint64   `json:"attempt,omitzero"` // counts workers that began: the fence of late ones
	Lost    int      `json:"lost,omitzero"`    // workers that began and did not finish
	Worker  string   `json:"worker,omitzero"`
	Doing   string   `json:"doing,omitzero"` // what the worker does now
	Share   *float64 `json:"share,omitzero"` // how much of it is done, 0 to 1
	Stop    bool     `json:"stop,omitzero"`  // somebody wants it to end
	Runs    []string `json:"runs,omitzero"`  // the results
	Error   string   `json:"error,omitzero"`
	// Delivered counts deliveries of the message.
	Delivered uint64 `json:"delivered,omitzero"`
	Cause     string `json:"cause,omitzero"` // code of the error, such as memory-limit
	// Lacks says what no worker has that a waiting job needs. It is not stored.
	Lacks string `json:"lacks,omitzero"`
	// Revision counts changes of all jobs.
	Revision uint64 `json:"revision"`
}
