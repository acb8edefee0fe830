//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/record/draft"
	ovcounters "github.com/opmeter/opmeter/internal/record/openvino"
	"github.com/opmeter/opmeter/profile"
)

// counter is ov_profiling_info_t: a node, its times in microseconds.
type counter struct {
	status         int32
	_              int32
	real, cpu      int64
	name, exec, op uintptr
}

// statuses are the names that OpenVINO's own tools print for the numbers.
var statuses = []string{"NOT_RUN", "OPTIMIZED_OUT", "EXECUTED"}

// node is the description of a node in the counters.
type node struct {
	name, op, exec, status string
}

// times are the counters of all nodes at one moment, in microseconds.
type times struct {
	runs      int64 // since the model was compiled
	real, cpu []int64
}

// recorder collects the counters of a session.
type recorder struct {
	// running says that counters are means since the model was compiled, as on CPUs; otherwise
	// they describe the last inference.
	running bool
	runs    int64 // that AfterRun counted since the model was compiled
	nodes   []node
	base    times // where the figures begin
	walls   *stats.Reservoir
	tally   *runlog.Tally
	cpu     []int64 // sums, where counters are of the last inference
	graphs  *graphs
	notes   []string
}

// profiled is a session with counters.
type profiled struct{ *session }

// record starts collecting.
func (s *session) record() error {
	devices := strings.Fields(strings.Trim(s.tells("EXECUTION_DEVICES"), "()[]"))
	if len(devices) == 0 {
		devices = []string{s.config.device}
	}
	r := &recorder{running: true}
	for _, d := range devices {
		r.running = r.running && strings.Trim(d, `,"'()`) == "CPU"
	}
	s.rec = r
	r.forget()
	if s.config.graphs {
		r.graphs = s.readGraphs(r)
	}
	return nil
}

func (r *recorder) forget() {
	r.walls, r.tally, r.cpu = stats.NewReservoir(profile.KeptSamples), &runlog.Tally{}, nil
}

// counters reads the counters. Names are copied if nodes is true.
func (s *session) counters(nodes bool, each func(i int, c *counter)) (list []node, err error) {
	var raw [2]uintptr // ov_profiling_info_list_t {ov_profiling_info_t *infos, size_t size}
	if st := invoke(s.l.c.counters, s.request, uintptr(unsafe.Pointer(&raw))); st != 0 {
		return nil, s.l.failed(external.Failed, st, s.what()+" gives no counters")
	}
	defer invoke(s.l.c.countersFree, uintptr(unsafe.Pointer(&raw)))
	if raw[0] == 0 || raw[1] > draft.MaxLayers {
		return nil, external.Errorf(external.Failed, "%s gives counters of %d nodes; expected at most %d", s.what(), raw[1], draft.MaxLayers)
	}
	all := unsafe.Slice((*counter)(at(raw[0])), raw[1])
	for i := range all {
		c := &all[i]
		each(i, c)
		if nodes {
			n := node{name: text(c.name), op: text(c.op), exec: text(c.exec), status: fmt.Sprintf("STATUS_%d", c.status)}
			if c.status >= 0 && int(c.status) < len(statuses) {
				n.status = statuses[c.status]
			}
			list = append(list, n)
		}
	}
	return list, nil
}

// now reads the times of all nodes, and their names.
func (p *profiled) now() (t times, nodes []node, err error) {
	t.runs = p.rec.runs
	nodes, err = p.counters(true, func(_ int, c *counter) {
		t.real, t.cpu = append(t.real, max(0, c.real)), append(t.cpu, max(0, c.cpu))
	})
	return t, nodes, err
}

// AfterRun counts a run. Running means are read later, so a run costs nothing here. Other counters
// describe the last inference and are added up.
func (p *profiled) AfterRun(wall int64, disturbed bool) error {
	r := p.rec
	r.runs++
	if wall >= 0 {
		r.walls.Add(float64(wall) / 1e9)
	}
	if r.running {
		return nil
	}
	_, err := p.counters(false, func(i int, c *counter) {
		for len(r.cpu) <= i {
			r.cpu = append(r.cpu, 0)
		}
		r.cpu[i] += max(0, c.cpu)
		if c.status == 2 {
			const most = 1 << 40 // microseconds, twelve days
			r.tally.Call(i, min(max(0, c.real), most)*1000)
		}
	})
	if err != nil {
		r.tally.Drop()
		return err
	}
	if disturbed {
		r.tally.Disturbed()
	}
	r.tally.End(wall)
	return nil
}

// Remaining is unlimited: counters do not grow.
func (p *profiled) Remaining() int { return -1 }

// Clone returns an error, see [session.Clone].
func (p *profiled) Clone() (external.Session, error) { return p.session.Clone() }

// Reset drops what was recorded. Running means continue in the library: the current values
// become the baseline.
func (p *profiled) Reset() error {
	r := p.rec
	r.forget()
	if !r.running || r.runs == 0 {
		r.base = times{}
		return nil
	}
	t, nodes, err := p.now()
	if err != nil {
		return err
	}
	r.base, r.nodes = t, nodes
	return nil
}

// mean returns the mean time of a node over the runs between two readings of its running mean, in
// seconds, and the maximum error. ok is false if only an upper bound is known.
//
// The library sums whole microseconds, truncated in each run, and returns the sum divided by the
// runs, truncated again. A reading of a after n runs means that the sum is in [n·a, n·a+n-1];
// truncation in the runs between adds less than one microsecond a run. The result is the middle
// of the possible interval.
func mean(base, runs, from, to int64) (figure, half float64, ok bool) {
	n := runs - base
	if n <= 0 {
		return 0, 0, false
	}
	began := float64(base) * float64(from)
	began2 := began
	if base > 0 {
		began2 += float64(base) - 1
	}
	ended := float64(runs) * float64(to)
	low := max(0, ended-began2) / float64(n)
	high := (ended+float64(runs)-1-began)/float64(n) + 1
	if low <= 0 || high < low {
		return 0, 0, false
	}
	return (low + high) / 2 / 1e6, (high - low) / 2 / 1e6, true
}

// Records builds a record from the counters.
func (p *profiled) Records() (*runlog.Run, error) {
	r := p.rec
	n := r.runs - r.base.runs
	if n <= 0 {
		return nil, nil
	}
	t, nodes, err := p.now()
	if err != nil {
		return nil, err
	}
	if r.base.runs > 0 && len(r.base.real) != len(nodes) {
		return nil, external.Errorf(external.Failed, "%s: the counters were of %d nodes and are of %d", p.what(), len(r.base.real), len(nodes))
	}
	r.nodes = nodes
	name := filepath.Base(p.task.Model)
	d := draft.New("openvino", strings.TrimSuffix(name, filepath.Ext(name)), "OpenVINO")
	rows := r.rows(d)
	if r.running {
		r.means(d, rows, t)
	} else {
		r.sums(d, rows, n)
	}
	return d.Run(), nil
}

// ports are inputs and outputs of the model, which counters list as nodes without time.
var ports = map[string]bool{"Parameter": true, "Result": true, "Input": true, "Output": true}

// rows adds a layer for each node and returns their indices, -1 for skipped ones.
func (r *recorder) rows(d *draft.Draft) []int {
	rows := make([]int, len(r.nodes))
	ran := -1
	for i := range r.nodes {
		n := &r.nodes[i]
		if rows[i] = -1; ports[n.op] {
			continue
		}
		l := profile.Layer{Name: n.name, Op: n.op, Kernel: n.exec, State: ovcounters.State(n.status)}
		hint, where := r.graphs.classify(n.name)
		switch {
		case l.State == profile.Ran:
		case where == executed:
			l.State = profile.Ran // in less than a microsecond
		case where == fused && ran >= 0:
			l.State, l.FusedInto = profile.Fused, new(int64(ran))
		}
		rows[i] = d.Add(l, hint)
		if rows[i] < 0 {
			continue
		}
		d.Option(rows[i], "exec_status", n.status)
		if l.State == profile.Ran {
			ran = rows[i]
		}
	}
	return rows
}

// means sets running means, and the part of the total that they leave.
func (r *recorder) means(d *draft.Draft, rows []int, t times) {
	n := t.runs - r.base.runs
	at := func(list []int64, i int) int64 {
		if r.base.runs == 0 || i >= len(list) {
			return 0
		}
		return list[i]
	}
	sum := 0.0
	for i, row := range rows {
		v, half, ok := mean(r.base.runs, t.runs, at(r.base.real, i), t.real[i])
		if row < 0 || !ok || d.Layer(row).State != profile.Ran {
			continue
		}
		sum += v
		d.Layer(row).Latency = &profile.Metric{
			Kind: profile.Imported, N: &n, Mean: &v,
			Method: fmt.Sprintf("middle of what the engine's running mean in whole microseconds allows, within %.2g µs, over all inferences", half*1e6),
		}
		// On CPUs the CPU time repeats the real time.
		if t.cpu[i] == t.real[i] {
			continue
		}
		if c, _, ok := mean(r.base.runs, t.runs, at(r.base.cpu, i), t.cpu[i]); ok {
			d.Set(row, ovcounters.CPUTime, c)
		}
	}
	d.P.Settings.Runs = &n
	if r.walls.N() == 0 {
		return
	}
	s := r.walls.Summary()
	kept, _ := r.walls.Kept()
	m := profile.FromSummary(profile.Imported, s, "")
	d.P.Totals.Latency, d.P.Totals.LatencySamples = m, kept
	d.P.Reconcile = &profile.Reconcile{WallS: new(max(s.Mean, sum)), OperatorsS: &sum, GapsS: new(max(0, s.Mean-sum))}
}

// sums sets figures of single inferences.
func (r *recorder) sums(d *draft.Draft, rows []int, n int64) {
	var kept []int
	for i, row := range rows {
		if row >= 0 {
			kept = append(kept, i)
		}
	}
	r.tally.Reorder(kept)
	r.tally.Fill(d.P)
	for i, row := range rows {
		if row >= 0 && i < len(r.cpu) && r.cpu[i] > 0 {
			d.Set(row, ovcounters.CPUTime, float64(r.cpu[i])/float64(n)/1e6)
		}
	}
	d.P.Settings.Runs = &n
}
