//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/external"
)

// eventData is a ProfiledEventData. Both MemoryUsages have three numbers in the library
// (TensorFlow Lite's memory_info.h); the C header declares two.
type eventData struct {
	tag                  *byte
	kind, _              int32
	start, elapsed       uint64
	begin, end           [3]int64
	metadata1, metadata2 uint64
	source, _            int32
}

// maxEvents bounds the events of one run.
const maxEvents = 1 << 20

// profiled is a session with the library's profiler enabled.
type profiled struct {
	*session
	handle handle
	data   []eventData
	events []event
	tags   map[string]string
	rec    *recorder
}

func (s *session) profile() (*profiled, error) {
	a := s.lib.api
	p := &profiled{session: s, tags: map[string]string{}, rec: newRecorder(s.known(), s.set.scattered)}
	if st := call(a.profiler, uintptr(s.compiled), uintptr(unsafe.Pointer(&p.handle))); st != 0 || p.handle == nil {
		return nil, external.Errorf(external.TooOld, "This LiteRT gives no profiler: %v. It does not know the option %s as 2.1 to 2.3 do.", st, runtimeOptions)
	}
	if st := call(a.startProfiler, uintptr(p.handle)); st != 0 {
		return nil, external.Errorf(external.Failed, "LiteRT does not start its profiler: %v.", st)
	}
	return p, nil
}

// AfterRun reads the events of the run and empties the profiler.
func (p *profiled) AfterRun(wall int64, disturbed bool) error {
	a := p.lib.api
	var n int32
	if st := call(a.numEvents, uintptr(p.handle), uintptr(unsafe.Pointer(&n))); st != 0 {
		return external.Errorf(external.Failed, "LiteRT does not tell how many events its profiler has: %v.", st)
	}
	if n < 0 || n > maxEvents {
		return external.Errorf(external.Failed, "LiteRT's profiler has %d events of one run; up to %d can be read.", n, maxEvents)
	}
	if int(n) > len(p.data) {
		p.data = make([]eventData, n)
	}
	p.events = p.events[:0]
	if n > 0 {
		clear(p.data[:n])
		if st := call(a.events, uintptr(p.handle), uintptr(n), uintptr(unsafe.Pointer(&p.data[0]))); st != 0 {
			return external.Errorf(external.Failed, "LiteRT does not give the events of its profiler: %v.", st)
		}
	}
	for i := range p.data[:n] {
		e := &p.data[i]
		p.events = append(p.events, event{tag: p.text(e.tag), kind: e.kind, elapsed: e.elapsed, number: int64(e.metadata1), graph: int64(e.metadata2)}) //nolint:gosec // -1 stands for none
		// of the library, and gone with the next line
		e.tag = nil
	}
	if err := p.reset(); err != nil {
		return err
	}
	p.rec.add(p.events, wall, disturbed)
	return nil
}

// reset empties the profiler, which also stops it, and restarts it.
func (p *profiled) reset() error {
	a := p.lib.api
	if st := call(a.resetProfiler, uintptr(p.handle)); st != 0 {
		return external.Errorf(external.Failed, "LiteRT does not reset its profiler: %v.", st)
	}
	if st := call(a.startProfiler, uintptr(p.handle)); st != 0 {
		return external.Errorf(external.Failed, "LiteRT does not start its profiler: %v.", st)
	}
	return nil
}

// text copies a tag, once for each distinct text.
func (p *profiled) text(tag *byte) string {
	s := text(tag)
	if t, ok := p.tags[s]; ok {
		return t
	}
	if len(p.tags) < maxEvents {
		p.tags[s] = s
	}
	return s
}

// Remaining is unlimited: events are read after each run.
func (p *profiled) Remaining() int { return -1 }

// Reset drops what was recorded.
func (p *profiled) Reset() error {
	if err := p.reset(); err != nil {
		return err
	}
	p.rec.forget()
	return nil
}

// Records returns what was recorded so far.
func (p *profiled) Records() (*runlog.Run, error) {
	const resolution = 1e-6 // the profiler counts whole microseconds
	name := strings.TrimSuffix(filepath.Base(p.task.Model), ".tflite")
	run := p.rec.record(name, p.task.Threads)
	if run != nil {
		run.ResolutionS = resolution
	}
	return run, nil
}
