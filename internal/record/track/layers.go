package track

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/profile"
)

// Step is an iteration: an inference or a step of training.
type Step struct{ Start, End int64 }

// InStep returns the latest step that has begun at a time, -1 if that step has ended.
func InStep(steps []Step, ts int64) int32 {
	n := sort.Search(len(steps), func(i int) bool { return steps[i].Start > ts })
	if n == 0 || ts >= steps[n-1].End && ts != steps[n-1].Start {
		return -1
	}
	return int32(n - 1)
}

// NoWall is the length of an iteration that does not count.
const NoWall = math.MinInt64

// Tally adds the own times of slices by layer. walls holds the length of each iteration in
// nanoseconds; a negative length other than [NoWall] stands for the sum of its calls. Without
// walls, everything is one iteration of length whole. With walls, slices outside of iterations do
// not count. Slices without an end, and those on tracks that are aside, never count.
func (t *Trace) Tally(to *runlog.Tally, walls []int64, whole int64) {
	one := len(walls) == 0 || len(walls) > maxIterations
	type call struct {
		layer int32
		self  int64
	}
	each := func(f func(n int32, c call)) {
		for _, k := range t.Tracks {
			for i := range k.Slices {
				s := &k.Slices[i]
				if n := s.Iteration; !k.Aside && s.Layer >= 0 && !s.Open && (one || n >= 0 && int(n) < len(walls)) {
					f(n, call{s.Layer, k.Self[i]})
				}
			}
		}
	}
	if one {
		each(func(_ int32, c call) { to.Call(int(c.layer), c.self) })
		to.End(whole)
		return
	}
	begin := make([]int, len(walls)+1)
	each(func(n int32, _ call) { begin[n+1]++ })
	for i := range walls {
		begin[i+1] += begin[i]
	}
	calls := make([]call, begin[len(walls)])
	next := slices.Clone(begin)
	each(func(n int32, c call) { calls[next[n]] = c; next[n]++ })
	for i, wall := range walls {
		if wall == NoWall {
			continue
		}
		for _, c := range calls[begin[i]:begin[i+1]] {
			to.Call(int(c.layer), c.self)
		}
		to.End(wall)
	}
}

// Fill makes the profile of a trace of any program: layers, their times and the timeline.
func (t *Trace) Fill(p *profile.Profile, l *Layers, f *Flows) {
	p.Layers = t.Settle(l)
	t.Nest()
	f.Links(t)
	start, end, ok := t.Span(func(k *Track) bool { return !k.Aside })
	if ok && len(p.Layers) > 0 {
		var tally runlog.Tally
		t.Tally(&tally, nil, end-start)
		tally.Fill(p)
	}
	p.Timeline = t.Timeline("first event of the trace", "recorded by the traced program")
}

// Layers numbers layers by name and operator.
type Layers struct {
	List []profile.Layer
	at   map[string]int32
	key  []byte
	seen []bool // layers whose arguments were read
}

// Of returns the number of a layer. All layers beyond [MaxLayers] share one number.
func (l *Layers) Of(name, op []byte) int32 {
	l.key = append(append(append(l.key[:0], name...), 0), op...)
	if i, ok := l.at[string(l.key)]; ok {
		return i
	}
	if l.at == nil {
		l.at = map[string]int32{}
	}
	y := profile.Layer{Name: Clip(name), Op: Clip(op)}
	if len(l.List) >= MaxLayers {
		if i, ok := l.at[""]; ok {
			return i
		}
		l.key, y = l.key[:0], profile.Layer{Name: fmt.Sprintf("all beyond %d names", MaxLayers), Op: "other"}
	}
	i := int32(len(l.List))
	l.at[string(l.key)] = i
	l.List = append(l.List, y)
	return i
}

// Arguments keeps the arguments that all slices of a layer have in common as its options: at most
// 16 of at most 300 bytes each. Call it for each slice. all adds the arguments of the slice; has
// reports whether it has an argument.
func (l *Layers) Arguments(n int32, all func(add func(key, value string)), has func(o *profile.Option) bool) {
	const most, bytes = 16, 300
	y := &l.List[n]
	l.seen = append(l.seen, make([]bool, len(l.List)-len(l.seen))...)
	if l.seen[n] {
		y.Options = slices.DeleteFunc(y.Options, func(o profile.Option) bool { return !has(&o) })
		return
	}
	l.seen[n] = true
	all(func(key, value string) {
		if key != "" && value != "" && len(key) <= bytes && len(value) <= bytes && len(y.Options) < most {
			y.Options = append(y.Options, profile.Option{Key: key, Value: value})
		}
	})
}

// Clip makes a text valid UTF-8 and limits it to 16 KiB.
func Clip(s []byte) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	return strings.ToValidUTF8(string(s), "\ufffd")
}

// Settle returns the layers that have slices on tracks that are not aside, and renumbers the
// slices. If all tracks are aside, none is. Other slices keep the name of their layer as a label.
func (t *Trace) Settle(l *Layers) []profile.Layer {
	var used, ended []bool
	for {
		used, ended = make([]bool, len(l.List)), make([]bool, len(l.List))
		some := false
		for k, s := range t.All() {
			if !k.Aside && s.Layer >= 0 {
				used[s.Layer], some = true, true
				ended[s.Layer] = ended[s.Layer] || !s.Open
			}
		}
		if some || !t.clearAside() {
			break
		}
	}
	var out []profile.Layer
	to := make([]int32, len(l.List))
	names := make([][2]int32, len(l.List))
	for i := range l.List {
		to[i] = -1
		if !used[i] {
			names[i] = [2]int32{t.Name([]byte(l.List[i].Name)), t.Name([]byte(l.List[i].Op))}
			continue
		}
		to[i] = int32(len(out))
		y := l.List[i]
		if !ended[i] {
			y.State, y.Cause = profile.Lost, &profile.Cause{Code: profile.ByRecord, Text: "the record has no end of it"}
		}
		out = append(out, y)
	}
	for _, s := range t.All() {
		if s.Layer >= 0 && to[s.Layer] < 0 {
			if s.Label < 0 {
				s.Label = names[s.Layer][0]
			}
			if s.Type < 0 {
				s.Type = names[s.Layer][1]
			}
		}
	}
	t.Relabel(to)
	return out
}

// clearAside puts no track aside, and reports whether a track with slices was.
func (t *Trace) clearAside() (some bool) {
	for _, k := range t.Tracks {
		if k.Aside && len(k.Slices) > 0 {
			some = true
		}
		k.Aside = false
	}
	return some
}

// Set sets a quantity of a layer. Negative values of opmeter's own quantities are ignored.
func Set(qs *runlog.Quantities, l *profile.Layer, q profile.Quantity, v float64) {
	if _, known := profile.Lookup(q.Key); !known || v >= 0 {
		qs.Set(l, q, v)
	}
}

// Stem returns the name of a file without the suffixes of traces.
func Stem(name string) string {
	s := name
	for {
		low := strings.ToLower(s)
		cut := len(s)
		for _, end := range []string{".json", ".trace", ".pt", ".pftrace", ".perfetto-trace", ".pb", ".prof", ".pprof", ".cpuprofile", ".txt", ".folded", ".speedscope", ".gz"} {
			if strings.HasSuffix(low, end) && len(end) < len(s) {
				cut = len(s) - len(end)
				break
			}
		}
		if cut == len(s) {
			return cmp.Or(s, "unnamed")
		}
		s = s[:cut]
	}
}

// NewRun returns a run whose model has the name of a file, see [Stem].
func NewRun(f *record.File, format string) *runlog.Run {
	return &runlog.Run{Profile: &profile.Profile{
		Model: profile.Model{Name: Stem(f.Name), Path: f.Path, Format: format},
	}}
}
