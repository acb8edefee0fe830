package ort

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile"
)

// node is a node of a graph, with the arguments of its events.
type node struct {
	name, op  string
	index     int64 // -1 if absent
	provider  string
	inText    []byte // shapes as text, to detect changes
	in, out   []profile.Tensor
	shapes    int // number of changes of shapes
	figures   [figures]sum
	more      map[string]*sum // numbers of unknown keys
	options   []profile.Option
	device    sum // time of device kernels, seconds
	blocks    string
	threadsOf [len(phases)]sum // seconds
}

// sum is a figure of a node over its calls.
type sum struct {
	n           int64
	total, most float64
}

func (s *sum) add(v float64) {
	if s.n == 0 || v > s.most {
		s.most = v
	}
	s.n++
	s.total += v
}

func (s *sum) mean() float64 { return s.total / float64(s.n) }

// Figures of the arguments. Those after outputSize are of the arena.
const (
	activationSize = iota
	parameterSize
	outputSize
	inUse
	requestedInUse
	arenaHeld
	inUsePeak
	inUseDelta
	requestedDelta
	arenaDelta
	figures
)

var figureKeys = [figures]string{
	activationSize: "activation_size", parameterSize: "parameter_size", outputSize: "output_size",
	inUse: "mem_bytes_in_use", requestedInUse: "mem_bytes_requested_in_use", arenaHeld: "mem_arena_held", inUsePeak: "mem_in_use_peak",
	inUseDelta: "mem_in_use_delta", requestedDelta: "mem_requested_in_use_delta", arenaDelta: "mem_arena_held_delta",
}

// figure returns the figure with a key, -1 for other keys.
func figure(key []byte) int {
	for i := range figureKeys {
		if string(key) == figureKeys[i] {
			return i
		}
	}
	return -1
}

// phases are the times of a thread pool's main thread, microseconds in the record.
var phases = [...]struct{ key, name, doc string }{
	{"Distribution", "Time to distribute work", "Time in which the calling thread divided the node's work."},
	{"DistributionEnqueue", "Time to enqueue work", "Time in which the calling thread put work into queues of others."},
	{"Run", "Time on the calling thread", "Time in which the calling thread did its part of the node's work."},
	{"Wait", "Time waiting for threads", "Time in which the calling thread waited for the others."},
	{"WaitRevoke", "Time revoking work", "Time in which the calling thread took back work that no one had begun."},
}

// arguments are those of one event.
type arguments struct {
	op, provider, in, out, threads []byte
	index, plan                    int64
	numbers                        [figures]float64
	has                            [figures]bool
	rest                           [][2][]byte
	again                          [2]repeated // shapes, of outputs at 1
}

func (a *arguments) reset() {
	*a = arguments{index: -1, plan: -1, rest: a.rest[:0], again: a.again}
}

// begin notes the end of an inference: the next one repeats its shapes.
func (a *arguments) begin() { a.again[0].at, a.again[1].at = 0, 0 }

// add adds one argument.
func (a *arguments) add(k, v []byte) {
	number := func(to *int64) {
		if n, ok := jsonscan.Int(v); ok {
			*to = n
		}
	}
	switch string(k) {
	case "op_name":
		a.op = bare(v)
	case "provider":
		a.provider = bare(v)
	case "node_index":
		number(&a.index)
	case "exec_plan_index":
		number(&a.plan)
	case "graph_index": // the same as the plan's
	case "input_type_shape":
		a.in = v
	case "output_type_shape":
		a.out = v
	case "thread_scheduling_stats":
		a.threads = v
	default:
		if i := figure(k); i >= 0 {
			if n, ok := jsonscan.Int(v); ok {
				a.numbers[i], a.has[i] = float64(n), true
			}
		} else if len(a.rest) < 64 {
			a.rest = append(a.rest, [2][]byte{k, v})
		}
	}
}

// done completes the arguments after the last one.
func (a *arguments) done() {
	// Before version 1.13 or so, the number in the optimised graph had another name.
	if a.index < 0 {
		a.index = a.plan
	}
}

func newNode(name string, a *arguments) *node {
	n := &node{name: name, op: jsonscan.Decode(a.op), index: a.index, provider: jsonscan.Decode(a.provider)}
	n.in, n.out = tensors(a.in), tensors(a.out)
	n.inText = bytes.Clone(a.in)
	for _, kv := range a.rest {
		key, text := runlog.Key(string(kv[0])), jsonscan.Decode(bare(kv[1]))
		if _, number := jsonscan.Number(kv[1]); !number && key != "" && text != "" && len(text) < 1000 {
			n.options = append(n.options, profile.Option{Key: key, Value: text})
		}
	}
	return n
}

// maxMore limits the numbers of unknown keys of a node.
const maxMore = 50

// take adds the arguments of one call to a node.
func (n *node) take(r *reader, a *arguments) {
	for i := range a.numbers {
		if a.has[i] {
			n.figures[i].add(a.numbers[i])
		}
	}
	if a.has[arenaHeld] {
		r.arena = max(r.arena, int64(a.numbers[arenaHeld]))
	}
	if a.has[inUsePeak] {
		r.peak = max(r.peak, int64(a.numbers[inUsePeak]))
	}
	if !bytes.Equal(n.inText, a.in) {
		n.shapes++
		n.inText = append(n.inText[:0], a.in...)
	}
	for _, kv := range a.rest {
		v, ok := jsonscan.Number(kv[1])
		if !ok {
			continue
		}
		key := string(kv[0])
		s := n.more[key]
		if s == nil {
			if len(n.more) >= maxMore {
				continue
			}
			if n.more == nil {
				n.more = map[string]*sum{}
			}
			s = &sum{}
			n.more[key] = s
		}
		s.add(v)
	}
	if len(a.threads) > 2 && a.threads[0] == '{' {
		n.pool(r, a.threads)
	}
}

// pool adds the statistics of a thread pool of one call.
func (n *node) pool(r *reader, v []byte) {
	_ = jsonscan.Walk(v, func(k, v []byte) bool {
		switch string(k) {
		case "main_thread":
			_ = jsonscan.Walk(v, func(k, v []byte) bool {
				if string(k) == "block_size" && n.blocks == "" {
					n.blocks = strings.Trim(string(v), "[] ")
				}
				for i := range phases {
					if string(k) == phases[i].key {
						if us, ok := jsonscan.Number(v); ok && us >= 0 {
							n.threadsOf[i].add(us / 1e6)
						}
						return true
					}
				}
				return true
			})
		case "sub_threads":
			others := 0
			_ = jsonscan.Walk(v, func(_, _ []byte) bool { others++; return true })
			r.workers = max(r.workers, others)
		}
		return true
	})
}

// tensors reads a list of one-key objects, type to dimensions.
func tensors(v []byte) (out []profile.Tensor) {
	_ = jsonscan.Walk(v, func(_, t []byte) bool {
		_ = jsonscan.Walk(t, func(k, dims []byte) bool {
			x := profile.Tensor{DType: dtype(jsonscan.Decode(k)), Shape: []int64{}}
			_ = jsonscan.Walk(dims, func(_, d []byte) bool {
				n, ok := jsonscan.Int(d)
				if !ok || n < 0 {
					n = -1
				}
				x.Shape = append(x.Shape, n)
				return len(x.Shape) < 64
			})
			out = append(out, x)
			return true
		})
		return len(out) < 10_000
	})
	return out
}

// dtype converts ONNX Runtime's names of types to those of opmeter.
func dtype(s string) string {
	return cmp.Or(map[string]string{"float": "float32", "double": "float64"}[s], s)
}
