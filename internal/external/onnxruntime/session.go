package onnxruntime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/external"
)

// model is a session of the library, which any number of threads can run.
type model struct {
	l       *library
	task    *external.Task
	set     *settings
	handle  uintptr
	ins     []port
	outs    []port
	feeds   []*external.Tensor // in the order of ins
	carried [][2]int           // output, input
	placed  [][2]int           // output, input
	uses    atomic.Int32
}

// Load prepares a model to run. Errors are an [external.Error].
func (l *library) Load(t *external.Task) (external.Session, error) {
	if t.Format != "onnx" {
		return nil, external.Errorf(external.NoFormat, "ONNX Runtime reads .onnx models, not .%s", t.Format)
	}
	set, err := l.parse(t.Options)
	if err != nil {
		return nil, err
	}
	if t.Profiled {
		return l.profiled(t, set)
	}
	m, err := l.load(t, set, how{threads: t.Threads})
	if err != nil {
		return nil, err
	}
	s, err := m.session()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// load creates a session of the library. The library reads the model file itself, so that it
// finds external weights beside it.
func (l *library) load(t *external.Task, set *settings, h how) (*model, error) {
	h.threads = max(1, h.threads)
	o, err := l.options(set, h)
	if err != nil {
		return nil, err
	}
	defer invoke(l.f.ReleaseSessionOptions, o)
	m := &model{l: l, task: t, set: set}
	file, err := filepath.Abs(t.Model)
	if err != nil {
		return nil, external.Errorf(external.Rejected, "%s: %v", t.Model, err)
	}
	var c mem
	defer c.free()
	if err := l.call(l.f.CreateSession, l.env, c.bytes(path(file)), o, uintptr(unsafe.Pointer(&m.handle))); err != nil {
		return nil, failed(external.Rejected, "does not take the model", err)
	}
	if err := m.describe(); err != nil {
		invoke(l.f.ReleaseSession, m.handle)
		return nil, err
	}
	return m, nil
}

// describe reads the inputs and outputs of the model, and checks the given inputs.
func (m *model) describe() (err error) {
	l, f := m.l, &m.l.f
	if m.ins, err = l.ports(m.handle, f.SessionGetInputCount, f.SessionGetInputName, f.SessionGetInputTypeInfo); err != nil {
		return failed(external.Rejected, "inputs of "+m.task.Model, err)
	}
	if m.outs, err = l.ports(m.handle, f.SessionGetOutputCount, f.SessionGetOutputName, f.SessionGetOutputTypeInfo); err != nil {
		return failed(external.Rejected, "outputs of "+m.task.Model, err)
	}
	given := m.task.Inputs
	if len(given) != len(m.ins) {
		return external.Errorf(external.Rejected, "ONNX Runtime: the model takes %d inputs, %d are fed", len(m.ins), len(given))
	}
	// Match by name, or in order if the names are not the model's. place is the index of each.
	place := make([]int, len(given))
	named := true
	for i := range given {
		place[i] = slices.IndexFunc(m.ins, func(p port) bool { return p.name == given[i].Name })
		named = named && place[i] >= 0 && !slices.Contains(place[:i], place[i])
	}
	m.feeds = make([]*external.Tensor, len(m.ins))
	for i := range given {
		if !named {
			place[i] = i
		}
		p := &m.ins[place[i]]
		if err := p.fits(&given[i]); err != nil {
			return err
		}
		m.feeds[place[i]] = &given[i]
	}
	for _, c := range []struct {
		pairs map[int]int
		verb  string
		to    *[][2]int
	}{{m.task.Carry, "become", &m.carried}, {m.task.InPlace, "be written to", &m.placed}} {
		for from, to := range c.pairs {
			if from < 0 || from >= len(m.outs) || to < 0 || to >= len(given) {
				return external.Errorf(external.Rejected, "ONNX Runtime: output %d cannot %s input %d: the model has %d outputs and %d inputs", from, c.verb, to, len(m.outs), len(given))
			}
			o, i := &m.outs[from], &m.ins[place[to]]
			if o.kind != isTensor || o.elem != i.elem {
				return external.Errorf(external.Rejected, "ONNX Runtime: the output %s cannot %s the input %s: their types differ", o.name, c.verb, i.name)
			}
			*c.to = append(*c.to, [2]int{from, place[to]})
		}
		sorting.Func(*c.to, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	}
	return nil
}

func (m *model) release() {
	if m.uses.Add(-1) == 0 {
		invoke(m.l.f.ReleaseSession, m.handle)
	}
}

// session is a model with its input and output values. Inputs are created once, and so are
// outputs of fixed shape, which the library overwrites in each run. It allocates other outputs
// anew in each run.
type session struct {
	m             *model
	mem           mem
	ins, outs     []uintptr // values, pinned
	keep          []bool    // outputs that are written again
	ran           bool
	run, releases uintptr   // copies for the timed call
	args          []uintptr // of Run, made once: a list of them would be allocated in each call
}

func (m *model) session() (*session, error) {
	s := &session{m: m, run: m.l.f.Run, releases: m.l.f.ReleaseValue}
	m.uses.Add(1)
	names := func(ports []port) uintptr {
		list := make([]string, len(ports))
		for i := range ports {
			list[i] = ports[i].name
		}
		return s.mem.texts(list)
	}
	var ins, outs uintptr
	s.ins, ins = s.mem.words(len(m.ins))
	s.outs, outs = s.mem.words(len(m.outs))
	// Session, run options (none), inputs, outputs.
	s.args = []uintptr{m.handle, 0, names(m.ins), ins, uintptr(len(m.ins)), names(m.outs), uintptr(len(m.outs)), outs}
	s.keep = make([]bool, len(m.outs))
	for i := range m.outs {
		s.keep[i] = m.outs[i].fixed()
	}
	for _, c := range m.carried {
		// The former input value receives the output, if their shapes are equal.
		s.keep[c[0]] = s.keep[c[0]] && slices.Equal(m.outs[c[0]].dims, m.ins[c[1]].dims)
	}
	for i, t := range m.feeds {
		v, err := m.l.value(t)
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		s.ins[i] = v
	}
	for _, c := range m.placed {
		s.outs[c[0]], s.keep[c[0]] = s.ins[c[1]], true
	}
	return s, nil
}

// Run computes one inference, as callers of the library do that reuse their values.
func (s *session) Run() error {
	if s.ran {
		s.next()
	}
	if st := invoke(s.run, s.args...); st != 0 {
		return s.failed(st)
	}
	s.ran = true
	return nil
}

// next prepares for the next run.
func (s *session) next() {
	for _, c := range s.m.carried {
		s.outs[c[0]], s.ins[c[1]] = s.ins[c[1]], s.outs[c[0]]
	}
	for i, v := range s.outs {
		if v != 0 && !s.keep[i] {
			invoke(s.releases, v)
			s.outs[i] = 0
		}
	}
}

func (s *session) failed(status uintptr) error {
	err := s.m.l.status(status)
	code := external.Failed
	// In the first run these codes mean that the inputs are not accepted.
	if f, ok := errors.AsType[*fault](err); ok && (f.code == invalidArgument || f.code == notImplemented) && !s.ran {
		code = external.Rejected
	}
	s.ran = false // carried values and outputs are no longer valid
	return failed(code, "inference", err)
}

// Outputs returns copies of the outputs of the last run.
func (s *session) Outputs() ([]external.Tensor, error) {
	if !s.ran {
		return nil, external.Errorf(external.Failed, "ONNX Runtime: there are no outputs before a run")
	}
	out := make([]external.Tensor, len(s.outs))
	for i, v := range s.outs {
		t, err := s.m.l.tensor(s.m.outs[i].name, v)
		if err != nil {
			return nil, failed(external.Failed, "output "+s.m.outs[i].name, err)
		}
		out[i] = t
	}
	return out, nil
}

// Clone creates another session on the same library session, with its own values: this is how
// the library is used from several threads.
func (s *session) Clone() (external.Session, error) {
	b, err := s.m.session()
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Close releases the values, and the library session with its last user.
func (s *session) Close() error {
	if s.m == nil {
		return nil
	}
	for _, c := range s.m.placed {
		s.outs[c[0]] = 0 // released as inputs
	}
	for _, list := range [][]uintptr{s.ins, s.outs} {
		for i, v := range list {
			if v != 0 {
				invoke(s.releases, v)
				list[i] = 0
			}
		}
	}
	s.mem.free()
	s.m.release()
	s.m = nil
	return nil
}

// Facts returns the settings in effect.
func (s *session) Facts() external.Facts {
	set := s.m.set
	onOff := map[bool]string{true: "on", false: "off"}
	f := external.Facts{Settings: map[string]string{
		"providers":        strings.Join(append(slices.Clone(set.providers), processor), ","),
		"optimization":     set.level.name,
		"execution":        map[bool]string{true: "parallel", false: "sequential"}[set.parallel],
		"intra_op_threads": strconv.Itoa(max(1, s.m.task.Threads)),
		"inter_op_threads": strconv.Itoa(set.interOp),
		"arena":            onOff[set.arena],
		"memory_pattern":   onOff[set.pattern],
	}}
	for _, c := range s.m.placed {
		if f.InPlace == nil {
			f.InPlace = map[string]string{}
		}
		f.InPlace[s.m.outs[c[0]].name] = s.m.ins[c[1]].name
	}
	for _, e := range set.entries {
		f.Settings[e.Key] = e.Value
	}
	for p, list := range set.of {
		for _, e := range list {
			f.Settings[short(p)+"."+e.Key] = e.Value
		}
	}
	for _, o := range s.m.outs {
		if o.kind != isTensor {
			f.Notes = append(f.Notes, fmt.Sprintf("The output %s is a %s: its elements are not read.", o.name, cmp.Or(kinds[o.kind], "value of an unknown kind")))
		}
	}
	if set.arena {
		f.ArenaBytes = s.m.arena()
	}
	return f
}

// arena returns the system memory held by the CPU arena, nil if the release does not report it.
func (m *model) arena() *int64 {
	l := m.l
	if l.f.AllocatorGetStats == 0 {
		return nil
	}
	const arenaAllocator, defaultMemory = 1, 0
	info, alloc, pairs := new(uintptr), new(uintptr), new(uintptr)
	if l.call(l.f.CreateCpuMemoryInfo, arenaAllocator, defaultMemory, uintptr(unsafe.Pointer(info))) != nil {
		return nil
	}
	defer invoke(l.f.ReleaseMemoryInfo, *info)
	if l.call(l.f.CreateAllocator, m.handle, *info, uintptr(unsafe.Pointer(alloc))) != nil {
		return nil
	}
	defer invoke(l.f.ReleaseAllocator, *alloc)
	if l.call(l.f.AllocatorGetStats, *alloc, uintptr(unsafe.Pointer(pairs))) != nil || *pairs == 0 {
		return nil
	}
	defer invoke(l.f.ReleaseKeyValuePairs, *pairs)
	var c mem
	defer c.free()
	n, err := strconv.ParseInt(goText(invoke(l.f.GetKeyValue, *pairs, c.text("TotalAllocated"))), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// erase removes the files in a folder whose names begin with a prefix.
func erase(folder, prefix string) {
	list, _ := os.ReadDir(folder)
	for _, f := range list {
		if strings.HasPrefix(f.Name(), prefix) {
			_ = os.Remove(filepath.Join(folder, f.Name()))
		}
	}
}
