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

// Bounds of what the profiler holds. Its own bound is a million events, beyond which it drops
// them; they lie in memory until the session ends, some 2 KiB each.
const (
	libraryEvents = 1_000_000
	maxEvents     = 150_000
)

// profiled is a session with the profiler on. The profiler writes its file when the session
// ends profiling, once and for all: for runs after that a new session is made, when nobody
// measures.
type profiled struct {
	*session
	l      *library
	task   *external.Task
	set    *settings
	prefix string // of the present session's files
	perRun int    // events of a run, at least 1
	room   int    // runs that the present session can still hold
	runs   int    // of the present session
	skip   int    // of these, those that do not count
	ended  bool   // the present session profiles no more
	all    *ort.Recording
	source *optimised // nil where it could not be had
}

// prefixes number sessions, so that none writes into another's file.
var prefixes atomic.Int64

// learning is how often the model runs in the session that is thrown away.
const learning = 2

// profiled loads a model with the profiler on. A first session, which is thrown away, tells how
// many events a run makes, and writes the optimised model.
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

// learn runs the session that is thrown away.
func (p *profiled) learn() error {
	prefix := p.unused()
	defer func() { erase(p.task.Folder, prefix) }()
	file := filepath.Join(p.task.Folder, prefix+".onnx")
	s, err := p.open(prefix, file)
	if err == nil {
		p.source = readOptimised(file, filepath.Dir(p.task.Model))
	} else if s, err = p.open(prefix, ""); err != nil {
		// It was not for the writing, which compiled providers refuse.
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
	// Loops may go round more often another time.
	n := int(once.Events())/once.Inferences() + 1
	p.perRun = n + n/8
	return nil
}

// unused is a prefix of files that nobody has.
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

// begin makes a session that records.
func (p *profiled) begin() error {
	p.prefix = p.unused()
	s, err := p.open(p.prefix, "")
	if err != nil {
		erase(p.task.Folder, p.prefix)
		return err
	}
	p.session, p.runs, p.skip, p.ended = s, 0, 0, false
	p.room = max(1, min(maxEvents, libraryEvents)/p.perRun-1)
	return nil
}

// again makes a session in place of one that profiles no more. Its first run is not like the
// others and does not count.
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

// Run computes one inference with the profiler on.
func (p *profiled) Run() error {
	err := p.session.Run()
	if err == nil && !p.ended {
		p.runs++
		p.room--
	}
	return err
}

// After makes a session that records, where the one that ran does no more.
func (p *profiled) After(int64) error {
	if p.ended {
		return p.again()
	}
	return nil
}

// Room is how many more runs the profiler can hold.
func (p *profiled) Room() int { return max(0, p.room) }

// Forget drops what was recorded. The present session's runs are left out when its file is read.
func (p *profiled) Forget() error {
	p.all = ort.NewRecording()
	p.skip = p.runs
	if p.ended || p.room < min(maxEvents, libraryEvents)/p.perRun/2 {
		return p.renew()
	}
	return nil
}

// renew ends the present session without a look at what it recorded, and makes the next.
func (p *profiled) renew() error {
	if !p.ended {
		if err := p.read(p.session, nil, 0); err != nil {
			return err
		}
	}
	return p.again()
}

// Recorded ends the session's profiling and returns what all sessions since [profiled.Forget]
// recorded. Where the present one was full the next is made at once; else at the next
// [profiled.After], and the run before that is not recorded.
func (p *profiled) Recorded() (*runlog.Run, error) {
	if !p.ended {
		if err := p.read(p.session, p.all, p.skip); err != nil {
			return nil, err
		}
		p.ended = true
		if p.room <= 0 {
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

// read ends a session's profiling and reads the file, into nothing where to is nil. The file
// does not stay.
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
	// What a cut file holds counts.
	if err := to.Add(context.Background(), f, ort.Session{Skip: skip, Started: int64(*started)}); err != nil && to.Inferences() == 0 {
		return external.Errorf(external.Failed, "ONNX Runtime: its profile cannot be read: %v", err)
	}
	return nil
}

// Beside makes another session that records for itself: the profiler is one for all threads of
// a session of the library.
func (p *profiled) Beside() (external.Session, error) {
	b := &profiled{l: p.l, task: p.task, set: p.set, all: ort.NewRecording(), perRun: p.perRun, source: p.source}
	if err := b.begin(); err != nil {
		return nil, err
	}
	return b, nil
}

// Close ends the session. No file of it stays.
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
