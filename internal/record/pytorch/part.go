package pytorch

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// run holds the files of the ranks of one profile.
type run struct {
	trace   track.Trace
	several bool
	parts   []*part
	ops     ops
	flows   track.Flows
	layers  []layer
	at      map[layerKey]int32
	number  []int32 // of each iteration the step of its rank, -1 for a file without steps
}

// part is the file of one rank.
type part struct {
	file         *record.File
	rank, world  int64
	backend      string
	res          jsonscan.Result
	cut          bool
	base         int64 // nanoseconds to add to all times
	devices      []device
	libraries    map[string]string
	run          *run
	events       int64
	e            *traceevent.Event // the current event
	key, lastKey []byte
	last         *row
	rows         map[string]*row
	list         []*row
	names        map[string]string // of threads and processes
	aux          []aux
	steps        []step
	first, end   int32 // iterations of the run that are of this file
	memory       []mark
	counters     map[string]*track.Counter
	sums         map[string]float64
}

type device struct {
	name   string
	memory float64
}

// row is the track of a thread or stream.
type row struct {
	track    int32
	pid, tid string
	stream   bool
	what     string // kind of slices, if the thread has several tracks
}

// class is the kind of a slice.
type class uint8

const (
	other class = iota
	operator
	annotation
	launch
	work // on a device
)

// aux holds properties of slices.
type aux struct {
	correlation, external int64 // -1 without one
	class                 class
	occupancy             float32 // -1 if unknown
}

type step struct {
	track.Step
	name string
}

// mark is an allocation or, with negative bytes, a release of memory.
type mark struct {
	ts, bytes int64
	track     int32
	device    bool
}

// distributed reads the rank of the file.
func (p *part) distributed(v []byte) {
	traceevent.Fields(v, "rank", &p.rank, "world_size", &p.world, "backend", &p.backend)
}

// member reads members of the file other than events. Names of users and computers, and paths,
// are not imported.
func (p *part) member(key string, v []byte) {
	switch key {
	case "distributedInfo":
		p.distributed(v)
	case "baseTimeNanoseconds":
		if n, ok := jsonscan.Int(v); ok && n > -4e18 && n < 4e18 {
			p.base = n
		}
	case "deviceProperties":
		traceevent.Elements(v, func(v []byte) {
			var d device
			traceevent.Fields(v, "name", &d.name, "totalGlobalMem", &d.memory)
			if len(p.devices) < 1000 {
				p.devices = append(p.devices, d)
			}
		})
	case "cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version", "hip_driver_version", "roctracer_version", "nccl_version":
		p.libraries[strings.TrimSuffix(key, "_version")] = track.Clip(traceevent.Text(v))
	}
}

// machine describes the devices.
func (p *part) machine(to *profile.Profile) {
	if len(p.libraries) > 0 {
		to.Settings.Libraries = p.libraries
	}
	var kinds []string
	count := map[string]int{}
	for _, d := range p.devices {
		if d.name == "" {
			continue
		}
		if count[d.name]++; count[d.name] == 1 {
			kinds = append(kinds, d.name)
		}
	}
	if len(kinds) == 0 {
		return
	}
	to.Target.ID, to.Target.Accelerator = kinds[0], kinds[0]
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%d × %s", count[k], k)
	}
	to.Target.Description = strings.Join(kinds, ", ")
	if m := p.devices[0].memory; m > 0 {
		to.Target.Description += fmt.Sprintf(", %.0f GB each", m/1e9)
	}
}

// row returns the track of the current event, nil beyond the limit. Slices that overlap others of
// their thread have a separate track, named by what.
func (p *part) row(what string, stream bool) *row {
	pid, tid := traceevent.Bare(p.e.PID), traceevent.Bare(p.e.TID)
	p.key = traceevent.Key(p.key, pid, tid, []byte(what))
	if p.last != nil && bytes.Equal(p.key, p.lastKey) {
		return p.last
	}
	t, ok := p.rows[string(p.key)]
	if !ok {
		kind := timeline.Thread
		if stream {
			kind = timeline.Stream
		}
		if len(p.rows) >= 10_000 {
			p.run.trace.Dropped.Add("events of more than 10,000 threads", 1)
			return nil
		}
		t = &row{track: p.run.trace.Track(kind, "", ""), pid: track.Clip(pid), tid: track.Clip(tid), stream: stream, what: what}
		p.rows[string(p.key)] = t
		p.list = append(p.list, t)
	}
	p.last, p.lastKey = t, append(p.lastKey[:0], p.key...)
	return t
}

// event reads one event.
func (p *part) event(e *traceevent.Event) {
	p.e = e
	p.events++
	switch e.Phase {
	case 0:
		p.run.trace.Dropped.Add("events without a phase", 1)
	case 'M':
		p.metadata()
	case 'X':
		p.slice()
	case 'i', 'I':
		p.instant()
	case 's', 't', 'f':
		// The correlation links launches and kernels; more traces have it.
		switch string(traceevent.Bare(e.Cat)) {
		case "ac2g", "async_cpu_to_gpu", "async", "async_gpu":
			return
		}
		if t := p.row("", false); t != nil && e.HasTS {
			e.TS += p.base
			e.Arrow(&p.run.flows, t.track)
		}
	case 'B', 'E', 'b', 'e', 'n', 'C':
		p.run.trace.Dropped.Add("events of phases that Kineto does not write", 1)
	}
}

// classes holds the classes of categories of both generations.
var classes = map[string]class{
	"cpu_op": operator, "Operator": operator, "user_annotation": annotation, "Runtime": launch,
	"kernel": work, "Kernel": work, "concurrent_kernel": work,
	"gpu_memcpy": work, "Memcpy": work, "gpu_memset": work, "Memset": work,
	"gpu_user_annotation": other, "cuda_sync": other, "python_function": other, "overhead": other,
}

// classify returns the class of a slice with a category and name.
func classify(cat, name []byte) class {
	if c, ok := classes[string(cat)]; ok {
		// The old generation has annotations among its operators.
		if c == operator && bytes.IndexByte(name, '#') > 0 && !bytes.Contains(name, []byte("::")) {
			c = annotation
		}
		return c
	}
	switch {
	case bytes.HasSuffix(cat, []byte("_runtime")), bytes.HasSuffix(cat, []byte("_driver")):
		return launch
	case bytes.HasSuffix(cat, []byte("_ccp_events")), bytes.HasSuffix(cat, []byte("_kernel")), bytes.Contains(cat, []byte("memcpy")), bytes.Contains(cat, []byte("memset")):
		return work
	}
	return other
}

// slice reads an event with a duration.
func (p *part) slice() {
	e, t := p.e, &p.run.trace
	name, cat := traceevent.Text(e.Name), traceevent.Bare(e.Cat)
	if string(cat) == "Trace" {
		return
	}
	c := classify(cat, name)
	if !e.HasTS || !e.HasDur || e.Dur < 0 {
		t.Dropped.Add("slices without a time or length", 1)
		return
	}
	what := ""
	switch string(cat) {
	case "gpu_user_annotation", "cuda_sync":
		what = string(cat)
	}
	r := p.row(what, c == work || what != "")
	if r == nil {
		return
	}
	s := track.Slice{Start: e.TS + p.base, Dur: e.Dur, Bytes: -1, Layer: -1, Iteration: -1, Label: -1, Type: -1}
	a := aux{correlation: -1, external: -1, class: c, occupancy: -1}
	switch c {
	case operator:
		s.Layer = p.operator(name, &a)
	case annotation:
		if n, ok := bytes.CutPrefix(name, []byte("ProfilerStep#")); ok {
			p.step(string(n), s)
			return
		}
		s.Label, s.Type = t.Name(name), t.Name([]byte("annotation"))
	default:
		if len(name) == 0 {
			name = cat
		}
		s.Label, s.Type = t.Name(name), t.Name(cat)
		p.ids(&a, &s)
	}
	if a.class != other && len(p.aux) < track.MaxSlices {
		p.aux = append(p.aux, a)
		s.Extra = int32(len(p.aux))
	}
	t.Add(r.track, s)
}

// ids reads the identifiers that link launches to operators and kernels.
func (p *part) ids(a *aux, s *track.Slice) {
	bytes, occupancy := int64(-1), -1.0
	p.e.Fields("correlation", &a.correlation, "External id", &a.external, "external id", &a.external,
		"bytes", &bytes, "est. achieved occupancy %", &occupancy)
	if bytes >= 0 && a.class == work {
		s.Bytes = bytes
	}
	if occupancy >= 0 && occupancy <= 1000 {
		a.occupancy = float32(occupancy)
	}
}

// step adds a step, once for all threads.
func (p *part) step(number string, s track.Slice) {
	if slices.ContainsFunc(p.steps[max(0, len(p.steps)-100):], func(o step) bool { return o.name == number }) {
		return
	}
	if len(p.steps) >= maxSteps {
		p.run.trace.Dropped.Add("steps beyond the first 100,000", 1)
		return
	}
	p.steps = append(p.steps, step{Step: track.Step{Start: s.Start, End: s.End()}, name: track.Clip([]byte(number))})
}

// instant reads an event without a duration, such as an allocation.
func (p *part) instant() {
	e, t := p.e, &p.run.trace
	name := traceevent.Text(e.Name)
	if !e.HasTS || bytes.HasPrefix(name, []byte("Iteration Start:")) || bytes.HasPrefix(name, []byte("Record Window End")) {
		return
	}
	r := p.row("", false)
	if r == nil {
		return
	}
	if string(name) != "[memory]" {
		t.Add(r.track, track.Slice{Start: e.TS + p.base, Bytes: -1, Layer: -1, Iteration: -1, Label: t.Name(name), Type: t.Name([]byte("instant"))})
		return
	}
	bytes, kind, id, allocated, reserved := int64(0), int64(-1), int64(-1), int64(-1), int64(-1)
	e.Fields("Bytes", &bytes, "Total Allocated", &allocated, "Total Reserved", &reserved, "Device Type", &kind, "Device Id", &id)
	m := mark{e.TS + p.base, bytes, r.track, kind > 0}
	if len(p.memory) < track.MaxPoints {
		p.memory = append(p.memory, m)
	} else {
		t.Dropped.Add("marks of memory beyond the first 500,000", 1)
	}
	where := "processor"
	if kind > 0 {
		where = fmt.Sprintf("device %d", max(0, id))
	}
	if allocated >= 0 {
		p.count(where, "allocated", m.ts, float64(allocated))
	} else {
		p.sums[where] += float64(bytes)
		p.count(where, "allocated since the start", m.ts, p.sums[where])
	}
	if reserved > 0 {
		p.count(where, "reserved", m.ts, float64(reserved))
	}
}

func (p *part) count(where, what string, ts int64, v float64) {
	key := where + "\x00" + what
	c, ok := p.counters[key]
	if !ok {
		c = p.run.trace.Counter(p.group(where), "memory "+what, "B")
		p.counters[key] = c
	}
	p.run.trace.Value(c, ts, v)
}

// group returns the name of a process or device, with the rank if there are several.
func (p *part) group(name string) string {
	if p.run.several {
		return fmt.Sprintf("rank %d: %s", p.rank, name)
	}
	return name
}

// nameArguments holds the argument of each event that names or orders threads and processes.
var nameArguments = map[string]string{
	"thread_name": "name", "process_name": "name", "process_labels": "labels",
	"process_sort_index": "sort_index", "thread_sort_index": "sort_index",
}

// metadata reads names and ranks of threads and processes. Some writers repeat them a thousand
// times.
func (p *part) metadata() {
	e := p.e
	what, tid := traceevent.Bare(e.Name), traceevent.Bare(e.TID)
	want, ok := nameArguments[string(what)]
	if !ok {
		return
	}
	if bytes.HasPrefix(what, []byte("process")) {
		tid = nil
	}
	p.key = traceevent.Key(p.key, what, traceevent.Bare(e.PID), tid)
	_, named := p.names[string(p.key)]
	if named || len(p.names) >= 50_000 {
		return
	}
	var v []byte
	if e.Fields(want, &v); v != nil {
		p.names[string(p.key)] = track.Clip(traceevent.Text(v))
	}
}

func (p *part) name(what, pid, tid string) string { return p.names[what+"\x00"+pid+"\x00"+tid] }

// nameTracks names and orders the tracks.
func (p *part) nameTracks() {
	for _, r := range p.list {
		k := p.run.trace.Tracks[r.track]
		group := cmp.Or(p.name("process_labels", r.pid, ""), p.name("process_name", r.pid, ""), "process "+r.pid)
		if n := p.name("process_name", r.pid, ""); n != "" && n != group {
			group = fmt.Sprintf("%s (%s)", group, n)
		}
		k.Group = p.group(group)
		name := "thread " + r.tid
		if r.stream {
			name = "stream " + strings.TrimPrefix(r.tid, "stream ")
		}
		k.Name = strings.TrimSpace(cmp.Or(p.name("thread_name", r.pid, r.tid), name))
		if r.what != "" {
			k.Name += " " + strings.ReplaceAll(strings.TrimPrefix(r.what, "gpu_user_"), "_", " ")
			k.Aside = true
		}
		k.GroupRank, _ = jsonscan.Int([]byte(p.name("process_sort_index", r.pid, "")))
		k.Rank, _ = jsonscan.Int([]byte(p.name("thread_sort_index", r.pid, r.tid)))
		if p.run.several {
			k.GroupRank = p.rank<<32 + min(max(k.GroupRank, 0), 1<<31)
		}
	}
	p.rows, p.names, p.last = nil, nil, nil
}
