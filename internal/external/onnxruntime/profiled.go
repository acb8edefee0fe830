package onnxruntime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/record/ort"
)

// Limits of the profiler. Its own limit is a million events, beyond which it drops them; events
// stay in memory until the session ends, about 2 KiB each.
const (
	libraryEvents = 1_000_000
	maxEvents     = 150_000
)

// profiled is a session with the profiler enabled. The profiler writes its file only once, when
// the session ends profiling. Later runs need a new session, which is created outside of
// measurements.
type profiled struct {
	*session
	l      *library
	task   *external.Task
	set    *settings
	prefix string // of the present session's files
	perRun int    // events of a run, at least 1
	left   int    // runs that the present session can still hold
	runs   int    // of the present session
	skip   int    // of these, runs that do not count
	ended  bool   // the present session profiles no more
	calm   []bool // of the runs of the present session, those that were timed without disturbance
	all    *ort.Recording
	source *optimised // nil where it could not be had
}

// prefixes numbers sessions, so that each writes its own file.
var prefixes atomic.Int64

// learning is the number of runs in the first, discarded session.
const learning = 2

// profiled loads a model with the profiler enabled. A first session, which is discarded, shows
// how many events a run produces, and writes the optimised model.
func (l *library) profiled(t *external.Task, set *settings) (external.Session, error) {
	p := &profiled{l: l, task: t, set: set, all: ort.NewRecording()}
	if err := p.learn(); err != nil {
		return nil, err
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	return p, nil
}

// learn runs the discarded session.
func (p *profiled) learn() error {
	prefix := p.unused()
	defer func() { erase(p.task.Folder, prefix) }()
	file := filepath.Join(p.task.Folder, prefix+".onnx")
	s, err := p.open(prefix, file)
	if err == nil {
		p.source = readOptimised(file, filepath.Dir(p.task.Model))
	} else if s, err = p.open(prefix, ""); err != nil {
		// Writing the model, which compiling providers refuse, was not the cause.
		return err
	}
	defer func() { _ = s.Close() }()
	for range learning {
		if err := s.Run(); err != nil {
			return err
		}
	}
	once := ort.NewRecording()
	if err := p.read(s, once, 0); err != nil {
		return err
	}
	if once.Inferences() == 0 {
		return external.Errorf(external.Failed, "ONNX Runtime %s: its profiler recorded no inference of %s", p.l.version, p.task.Model)
	}
	// Loops may iterate more often another time.
	n := int(once.Events())/once.Inferences() + 1
	p.perRun = n + n/8
	return nil
}

// unused returns an unused file prefix.
func (p *profiled) unused() string {
	return "ort-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(prefixes.Add(1), 10) + "-"
}

func (p *profiled) open(prefix, optimised string) (*session, error) {
	m, err := p.l.load(p.task, p.set, how{threads: p.task.Threads, profile: filepath.Join(p.task.Folder, prefix), optimised: optimised})
	if err != nil {
		return nil, err
	}
	return m.session()
}

// begin creates a session that records.
func (p *profiled) begin() error {
	p.prefix = p.unused()
	s, err := p.open(p.prefix, "")
	if err != nil {
		erase(p.task.Folder, p.prefix)
		return err
	}
	p.session, p.runs, p.skip, p.ended, p.calm = s, 0, 0, false, nil
	p.left = max(1, min(maxEvents, libraryEvents)/p.perRun-1)
	return nil
}

// again creates a session in place of one whose profile has ended. Its first run is not
// representative and does not count.
func (p *profiled) again() error {
	if err := p.session.Close(); err != nil {
		return err
	}
	if err := p.begin(); err != nil {
		return err
	}
	if err := p.session.Run(); err != nil {
		return err
	}
	p.runs, p.skip = 1, 1
	return nil
}

// Run computes one inference with the profiler enabled.
func (p *profiled) Run() error {
	err := p.session.Run()
	if err == nil && !p.ended {
		p.runs++
		p.left--
	}
	return err
}

// AfterRun creates a session that records, if the last one no longer does.
func (p *profiled) AfterRun(_ int64, disturbed bool) error {
	if p.ended {
		return p.again()
	}
	for len(p.calm) < p.runs {
		p.calm = append(p.calm, false)
	}
	if p.runs > 0 {
		p.calm[p.runs-1] = !disturbed
	}
	return nil
}

// disturbed reports whether a run of the present session was disturbed, or part of the warm-up.
func (p *profiled) disturbed(run int) bool { return run >= len(p.calm) || !p.calm[run] }

// Remaining is how many more runs the profiler can hold.
func (p *profiled) Remaining() int { return max(0, p.left) }

// Reset drops what was recorded. The runs of the current session are skipped when its file is
// read.
func (p *profiled) Reset() error {
	p.all = ort.NewRecording()
	p.skip = p.runs
	if p.ended || p.left < min(maxEvents, libraryEvents)/p.perRun/2 {
		return p.renew()
	}
	return nil
}

// renew ends the current session, discards its records and creates the next one.
func (p *profiled) renew() error {
	if !p.ended {
		if err := p.read(p.session, nil, 0); err != nil {
			return err
		}
	}
	return p.again()
}

// Records ends the session's profiling and returns what all sessions since [profiled.Reset]
// recorded. If the current one was full, the next is created at once; otherwise at the next
// [profiled.AfterRun], and the run before that is not recorded.
func (p *profiled) Records() (*runlog.Run, error) {
	if !p.ended {
		if err := p.read(p.session, p.all, p.skip); err != nil {
			return nil, err
		}
		p.ended = true
		if p.left <= 0 {
			if err := p.again(); err != nil {
				return nil, err
			}
		}
	}
	run := p.all.Run(strings.TrimSuffix(filepath.Base(p.task.Model), filepath.Ext(p.task.Model)), p.task.Model)
	if run != nil && p.source != nil {
		p.source.hint(run)
	}
	return run, nil
}

// read ends a session's profiling and reads its file; if to is nil, the records are discarded.
// The file is removed.
func (p *profiled) read(s *session, to *ort.Recording, skip int) error {
	l, h := p.l, s.m.handle
	name, started := new(uintptr), new(uint64)
	if err := l.call(l.f.SessionGetProfilingStartTimeNs, h, uintptr(unsafe.Pointer(started))); err != nil {
		return failed(external.Failed, "profiling", err)
	}
	if err := l.call(l.f.SessionEndProfiling, h, l.allocator, uintptr(unsafe.Pointer(name))); err != nil {
		return failed(external.Failed, "profiling", err)
	}
	file := goText(*name)
	if err := l.call(l.f.AllocatorFree, l.allocator, *name); err != nil {
		return failed(external.Failed, "profiling", err)
	}
	defer os.Remove(file)
	if to == nil {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return external.Errorf(external.Failed, "ONNX Runtime: its profile cannot be read: %v", err)
	}
	defer f.Close()
	// The contents of a truncated file count.
	if err := to.Add(context.Background(), f, ort.Session{Skip: skip, Started: int64(*started), Disturbed: p.disturbed}); err != nil && to.Inferences() == 0 {
		return external.Errorf(external.Failed, "ONNX Runtime: its profile cannot be read: %v", err)
	}
	return nil
}

// Clone creates another session with its own recording: all threads of a library session share
// one profiler.
func (p *profiled) Clone() (external.Session, error) {
	b := &profiled{l: p.l, task: p.task, set: p.set, all: ort.NewRecording(), perRun: p.perRun, source: p.source}
	if err := b.begin(); err != nil {
		return nil, err
	}
	return b, nil
}

// Close ends the session and removes its files.
func (p *profiled) Close() error {
	var err error
	if p.session != nil && p.session.m != nil {
		if !p.ended {
			err = p.read(p.session, nil, 0)
		}
		err = errors.Join(err, p.session.Close())
	}
	erase(p.task.Folder, p.prefix)
	return err
}
