package neuralengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// call is an operator in an iteration; times are nanoseconds.
type call struct {
	layer            int
	forward, reshape int64
}

// operator is the part of an operator's events without its times.
type operator struct {
	key, name, kind string
	args            *jsontree.Value
}

// trace is one file.
type trace struct {
	instance   string
	ops        []operator
	signature  strings.Builder // keys of all operators
	at         map[string]int
	iterations [][]call
	res        jsonscan.Result
	odd        int64
	calls      int
}

// maxCalls limits the calls of a trace that are kept.
const maxCalls = 4_000_000

func readTrace(ctx context.Context, f *record.File, n string) (*trace, error) {
	t := &trace{instance: n, at: map[string]int{}}
	seen := map[string]int{}
	var err error
	t.res, err = f.ScanJSON(ctx, jsonscan.Options{Stream: jsonscan.Keys("traceEvents"), MaxValue: 1 << 20, Single: true}, func(key string, b []byte) {
		if key != "traceEvents" {
			return
		}
		v, fault := jsontree.Parse(b)
		if fault != nil || v.Kind != jsontree.Object {
			t.odd++
			return
		}
		switch tid, cat := v.Get("tid").Str(), v.Get("cat").Str(); {
		case tid == "inference" || cat == "inference":
		case tid == "Iteration" || cat == "iteration":
			t.iterations = append(t.iterations, nil)
			clear(seen)
		default:
			t.op(v, seen)
		}
	})
	if errors.Is(err, jsonscan.ErrNone) {
		return nil, fmt.Errorf("no trace: %w", err)
	}
	return t, err
}

// op reads an operator's event.
func (t *trace) op(v *jsontree.Value, seen map[string]int) {
	name := v.Get("name").Str()
	args := v.Get("args")
	forward, ok := nanos(args.Get("forward_time"))
	reshape, also := nanos(args.Get("reshape_time"))
	if !ok {
		d, has := v.Get("dur").Float()
		if !has || !(d >= 0 && d < 1e12) {
			t.odd++
			return
		}
		forward = int64(math.Round(d * 1e3))
		if also {
			forward = max(0, forward-reshape)
		}
	}
	if t.calls++; t.calls > maxCalls {
		t.odd++
		return
	}
	if len(t.iterations) == 0 {
		t.iterations = append(t.iterations, nil)
	}
	k := key(name, seen)
	i, have := t.at[k]
	if !have {
		if len(t.ops) >= draft.MaxLayers {
			t.odd++
			return
		}
		i = len(t.ops)
		t.at[k] = i
		t.signature.WriteString(k + "\x00")
		t.ops = append(t.ops, operator{key: k, name: name, kind: v.Get("cat").Str(), args: args})
	}
	last := len(t.iterations) - 1
	t.iterations[last] = append(t.iterations[last], call{i, forward, reshape})
}

// nanos parses a time such as 0.044ms.
func nanos(v *jsontree.Value) (int64, bool) {
	f, ok := textscan.Number(strings.TrimSuffix(v.Str(), "ms"))
	if !ok || !(f >= 0 && f < 1e9) {
		return 0, false
	}
	return int64(math.Round(f * 1e6)), true
}

// between is the time from one nanosecond to another in seconds. It is rounded such that a bar does
// not end after the beginning of the next one.
func between(from, to int64) float64 {
	a, b := float64(from)/1e9, float64(to)/1e9
	d := b - a
	for d > 0 && a+d > b {
		d = math.Nextafter(d, 0)
	}
	return d
}

var reshaping = profile.Quantity{Key: "reshape_s", Unit: "s", Head: "reshape", Name: "Time to prepare shapes", Group: "Time", Adds: true, Better: -1, Doc: "Mean time over all iterations in which the engine prepared the operator for new shapes; it is part of the layer's time."}

// traces makes layers of the operators, and figures over the iterations of all instances.
func traces(d *draft.Draft, ts []*trace, at map[string]int) {
	tally := runlog.Tally{}
	bars := runlog.Lanes{}
	reshape := map[int]float64{}
	runs := 0
	for instance, t := range ts {
		d.Dropped.Add("events that are not events of this trace", t.odd+t.res.Bad+t.res.Large)
		if t.res.More {
			d.Dropped.Add(record.MoreDocuments, 1)
		}
		if t.res.Cut {
			d.Dropped.Add("the file ends within an event", 1)
		}
		index := make([]int, len(t.ops))
		for k, o := range t.ops {
			i, have := at[o.key]
			if !have {
				if i = d.Add(profile.Layer{Name: o.name, Op: o.kind}, runlog.Hint{Nodes: []string{o.name}}); i >= 0 {
					at[o.key] = i
					o.describe(d, i)
				}
			}
			index[k] = i
		}
		group := ""
		if len(ts) > 1 {
			group = "instance " + t.instance
		}
		whole := bars.Lane(timeline.Iteration, group, "iterations", "")
		lane := bars.Lane(timeline.Layer, group, "operators", "")
		now := int64(0)
		for n, calls := range t.iterations {
			start := now
			for _, c := range calls {
				i := index[c.layer]
				if i < 0 {
					continue
				}
				took := c.forward + c.reshape
				tally.Call(i, took)
				reshape[i] += float64(c.reshape) / 1e9
				bars.Add(lane, runlog.Bar{Start: float64(now) / 1e9, Duration: between(now, now+took), Layer: int32(i), Iteration: int32(min(n, math.MaxInt32)), Label: -1, Type: -1, Bytes: -1})
				now += took
			}
			// A file that is cut has no whole last iteration.
			if t.res.Cut && n == len(t.iterations)-1 && n > 0 {
				tally.Drop()
				continue
			}
			if len(calls) > 0 {
				bars.Add(whole, runlog.Bar{Start: float64(start) / 1e9, Duration: between(start, now), Layer: -1, Iteration: int32(min(n, math.MaxInt32)), Label: bars.Name(fmt.Sprintf("iteration %d", n%1000)), Type: -1, Bytes: -1})
				if instance > 0 && n == 0 && len(t.iterations) > 1 {
					tally.Drop() // the first iteration of each instance prepares it
				} else {
					tally.End(-1)
				}
				runs++
			}
		}
	}
	for i, s := range reshape {
		if runs > 0 {
			d.Set(i, reshaping, s/float64(runs))
		}
	}
	tally.Fill(d.P)
	if d.P.Totals.Latency != nil {
		d.P.Totals.Latency.Method = "sum of the operators"
	}
	d.P.Timeline = bars.Timeline("the first operator", "durations laid end to end, as the profiler does: it records neither gaps nor overlap")
	if d.P.Timeline != nil {
		d.P.Timeline.Iterations = new(int64(runs))
	}
}

// describe sets the arguments of an operator's first event. Only the first output
// has a shape.
func (o *operator) describe(d *draft.Draft, i int) {
	y := d.Layer(i)
	arg := func(key string) string { return o.args.Get(key).Str() }
	y.Inputs = ports(list(arg("input_tensor_name"), ","), list(arg("input_shape"), ","), list(arg("input_type"), ","), "*")
	outputs := list(arg("output_tensor_name"), ",")
	y.Outputs = ports(outputs, nil, list(arg("output_type"), ","), "*")
	if s := arg("output_shape"); len(y.Outputs) > 0 && s != "" {
		y.Outputs[0].Shape = shape(s, "*")
	}
	d.Hint(i).Outputs = outputs
	for _, a := range list(arg("attributes"), ";") {
		if k, v, ok := strings.Cut(a, ":"); ok {
			d.Option(i, k, v)
		}
	}
	for name, item := range o.args.Members() {
		switch name {
		case "reshape_time", "forward_time", "input_tensor_name", "input_type", "input_shape", "output_tensor_name", "output_type", "output_shape", "attributes":
		default:
			d.Option(i, name, item.Brief())
		}
	}
}
