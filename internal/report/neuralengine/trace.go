package neuralengine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// ErrNoTimeline is returned for a recorded run that does not say when operators ran.
var ErrNoTimeline = errors.New("the files of Neural Engine need the times of single inferences: profile the model with --timeline all")

// call is an operator in an iteration, in nanoseconds.
type call struct {
	layer            int32
	forward, reshape int64
}

// Trace writes the profiler's trace: one event for the model, one for each iteration, and
// below it one for each operator in order. As there, times are laid end to end, so that an
// iteration lasts as long as the operators in it; what lay between them stands in the
// profile's own timeline. Operators in bodies of control flow are part of their owner. Names
// are written as in the table, so that the two can be joined. A profile without times of single
// inferences has one iteration of the median times, which "times" says.
func Trace(w io.Writer, p *profile.Profile) error {
	iterations, times := calls(p), "single inferences"
	if len(iterations) == 0 {
		iterations, times = medians(p), "medians"
	}
	out := &events{w: bufio.NewWriter(w)}
	out.text(`{"otherData": {`)
	for i, f := range []struct{ key, value string }{
		{"model", p.Model.Name}, {"engine", p.Settings.Engine}, {"opmeter", p.Settings.Version}, {"created", p.Created}, {"times", times},
	} {
		if i > 0 {
			out.text(", ")
		}
		out.quoted(f.key)
		out.text(": ")
		out.quoted(f.value)
	}
	out.text(`}, "traceEvents": [`)
	args := map[int32]string{}
	total := int64(0)
	for _, it := range iterations {
		total += length(it)
	}
	out.event("", "inference", "model_inference", "inference", 0, total)
	now := int64(0)
	for i, it := range iterations {
		out.event("", "iteration", fmt.Sprintf("Iteration%d", i), "Iteration", now, length(it))
		for _, c := range it {
			l := &p.Layers[c.layer]
			if _, ok := args[c.layer]; !ok {
				args[c.layer] = arguments(p, l)
			}
			out.event(fmt.Sprintf(`"args": {"reshape_time": "%s", "forward_time": "%s", %s}, `, short(c.reshape), short(c.forward), args[c.layer]),
				Operator(l), one(l.Name), "Operator", now, c.forward+c.reshape)
			now += c.forward + c.reshape
		}
	}
	out.text("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// events writes JSON and keeps the first error.
type events struct {
	w     *bufio.Writer
	err   error
	count int
}

func (e *events) text(s string) {
	if e.err == nil {
		_, e.err = e.w.WriteString(s)
	}
}

func (e *events) quoted(s string) { e.text(quoted(s)) }

// quoted is a text as JSON has it.
func quoted(s string) string {
	b, err := jsonx.Marshal(s)
	if err != nil {
		return `""` // not of a text
	}
	return strings.TrimSpace(string(b))
}

func (e *events) event(args, cat, name, tid string, ts, dur int64) {
	if e.count++; e.count > 1 {
		e.text(",")
	}
	e.text("\n{" + args + `"cat": ` + quoted(cat) + `, "dur": ` + micros(dur) + `, "name": ` + quoted(name) +
		`, "ph": "X", "pid": 0, "tid": ` + quoted(tid) + `, "ts": ` + micros(ts) + "}")
}

// micros writes nanoseconds as microseconds, with all digits.
func micros(ns int64) string { return strconv.FormatFloat(float64(ns)/1e3, 'f', -1, 64) }

// short writes nanoseconds as milliseconds with six digits at most.
func short(ns int64) string {
	if ns == 0 {
		return "0ms"
	}
	v := float64(ns) / 1e6
	digits := max(0, 5-int(math.Floor(math.Log10(v))))
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + "ms"
}

func length(it []call) (ns int64) {
	for _, c := range it {
		ns += c.forward + c.reshape
	}
	return ns
}

// calls gathers the operators of each iteration, of the first instance where there are several.
func calls(p *profile.Profile) [][]call {
	if p.Timeline == nil {
		return nil
	}
	at := slices.IndexFunc(p.Timeline.Lanes, func(l timeline.Lane) bool { return l.Kind == timeline.Layer && l.Layers != nil && l.Iterations != nil })
	if at < 0 {
		return nil
	}
	lane := &p.Timeline.Lanes[at]
	var out [][]call
	last := int32(-1)
	for i, layer := range lane.Layers {
		if layer < 0 || p.Layers[layer].Parent != nil || lane.Iterations[i] < 0 {
			continue
		}
		if n := lane.Iterations[i]; n != last || out == nil {
			out, last = append(out, nil), n
		}
		c := call{layer: layer, forward: nanos(lane.Durations[i])}
		// Shapes are prepared once, before the first inference.
		if v, ok := p.Layers[layer].Value("prepare_s"); ok && last == 0 {
			c.reshape = nanos(v)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// medians returns an iteration of the times of the layers, nil if none has one.
func medians(p *profile.Profile) [][]call {
	var it []call
	for i := range p.Layers {
		l := &p.Layers[i]
		v, ok := l.Latency.Best()
		if t, has := l.Total.Best(); has {
			v, ok = t, true
		}
		if ok && v >= 0 && v < maxSeconds && l.Parent == nil {
			it = append(it, call{layer: int32(i), forward: nanos(v)})
		}
	}
	if it == nil {
		return nil
	}
	return [][]call{it}
}

// maxSeconds bounds a time: a hundred years of nanoseconds fit into 64 bits, for some layers.
const maxSeconds = 1e6

func nanos(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

// arguments are what an operator's event says beside its times.
func arguments(p *profile.Profile, l *profile.Layer) string {
	side := func(ts []profile.Tensor) (names, types, shapes []string) {
		for _, t := range ts {
			if t.Absent {
				continue
			}
			names, types = append(names, comma(t.Name)), append(types, whatif.Type(t.DType))
			shapes = append(shapes, words.Dims(t.Shape, "*"))
		}
		return
	}
	in, inTypes, inShapes := side(l.Inputs)
	out, outTypes, outShapes := side(l.Outputs)
	first := ""
	if len(outShapes) > 0 {
		first = outShapes[0]
	}
	join := func(s []string) string { return strings.Join(s, ",") }
	var b strings.Builder
	for i, f := range []struct{ key, value string }{
		{"input_tensor_name", join(in)},
		{"input_type", join(inTypes)},
		{"input_shape", join(inShapes)},
		{"output_tensor_name", join(out)},
		{"output_type", join(outTypes)},
		{"output_shape", first},
		{"attributes", attributes(p, l)},
	} {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(f.key) + ": " + quoted(f.value))
	}
	return b.String()
}

// comma keeps a name in one piece where names are joined by commas.
func comma(s string) string { return strings.ReplaceAll(one(s), ",", "|") }

// attributes joins options by their keys; what was fused comes as append_op.
func attributes(p *profile.Profile, l *profile.Layer) string {
	all := map[string]string{}
	for _, o := range l.Options {
		switch {
		case o.Key == "activation" && o.Value == "none":
		case o.Key == "activation":
			all["append_op"] = postOp(o.Value)
		default:
			all[o.Key] = strings.ReplaceAll(o.Value, ";", "|")
		}
	}
	for i := range p.Layers {
		if f := p.Layers[i].FusedInto; f != nil && *f == l.Index {
			all["append_op"] = strings.TrimPrefix(all["append_op"]+","+postOp(p.Layers[i].Op), ",")
		}
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, k+":"+all[k])
	}
	return strings.Join(parts, ";")
}
