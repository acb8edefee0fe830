package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Progress is shown for work that takes longer than quiet. Loading and planning tell of
// themselves only when they end: meanwhile the line is drawn anew every beat. Nothing is
// drawn between the calls of a phase that is timed, since that would be measured too.
const (
	quiet = time.Second
	beat  = 500 * time.Millisecond
)

// untimed are the phases in which nothing is measured.
var untimed = map[string]bool{"loading": true, "planning": true}

// meter is the line of a work that goes on.
type meter struct {
	w          io.Writer
	start, now time.Time // of the work, of the phase
	mu         sync.Mutex
	phase      string
	fraction   float64
	note       string // what else is known
	shown      bool
	over       chan struct{}
	gone       sync.WaitGroup
	once       sync.Once
}

// progress shows a line on the terminal for work that takes over a second. stop
// takes it away again.
func (a *app) progress() (show func(phase string, f float64), stop func()) {
	if !a.tty {
		return nil, func() {}
	}
	m := a.meter()
	return m.show, m.stop
}

// logEvery is the time between two lines of progress where standard error goes to a file or pipe.
const logEvery = 30 * time.Second

// progressLines shows progress on the terminal, elsewhere as lines: hours of work in a pipeline are
// not silent.
func (a *app) progressLines(clock func() time.Time) (show func(phase string, f float64), stop func()) {
	if a.tty {
		return a.progress()
	}
	l := &progressLog{w: a.err, clock: clock, start: clock(), last: clock()}
	return l.show, func() {}
}

// progressLog writes lines of progress.
type progressLog struct {
	w           io.Writer
	clock       func() time.Time
	start, last time.Time
	mu          sync.Mutex
}

func (l *progressLog) show(phase string, f float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if now.Sub(l.last) < logEvery {
		return
	}
	l.last = now
	fmt.Fprintf(l.w, "opmeter: %s, %.0f %% of this step, %s\n", phase, 100*f, now.Sub(l.start).Round(time.Second))
}

// meter begins a line of progress.
func (a *app) meter() *meter {
	m := &meter{w: a.err, start: time.Now(), now: time.Now(), phase: "loading", over: make(chan struct{})}
	m.gone.Go(m.tick)
	return m
}

// tick draws what nobody else does.
func (m *meter) tick() {
	wait := time.NewTimer(quiet)
	defer wait.Stop()
	for {
		select {
		case <-m.over:
			return
		case <-wait.C:
		}
		m.mu.Lock()
		if !m.shown || untimed[m.phase] {
			m.draw()
		}
		timed := !untimed[m.phase]
		m.mu.Unlock()
		if timed {
			return
		}
		wait.Reset(beat)
	}
}

// show takes what a source says.
func (m *meter) show(phase string, f float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if phase != m.phase {
		m.phase, m.now = phase, time.Now()
	}
	m.fraction = f
	if time.Since(m.start) >= quiet {
		m.draw()
	}
}

func (m *meter) draw() {
	m.shown = true
	s := line(m.phase, m.fraction, time.Since(m.now), time.Since(m.start))
	if m.note != "" {
		s += ", " + m.note
	}
	fmt.Fprint(m.w, "\r\x1b[K"+s)
}

// stop takes the line away; it may be called again.
func (m *meter) stop() {
	m.once.Do(m.end)
}

func (m *meter) end() {
	close(m.over)
	m.gone.Wait()
	if m.shown {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}

// line is what is shown of a phase that has lasted some time, of a work that has lasted
// longer: how far it is and how long it may still take, as far as that is known.
func line(phase string, f float64, lasted, all time.Duration) string {
	const width, early = 24, 0.02
	if f <= 0 {
		return fmt.Sprintf("%s, %d s", phase, int(all.Seconds()))
	}
	n := min(width, max(0, int(f*width)))
	s := fmt.Sprintf("%s [%s%s] %3.0f %%", phase, strings.Repeat("=", n), strings.Repeat(" ", width-n), 100*f)
	if left := lasted.Seconds() * (1 - f) / f; f >= early && left >= 1 {
		s += fmt.Sprintf(", %.0f s left", left)
	}
	return s
}

// parts shows the progress of several works that are interleaved: as far as the one that has come
// least far.
type parts struct {
	mu   sync.Mutex
	show func(phase string, f float64)
	far  []float64
}

func newParts(n int, show func(phase string, f float64)) *parts {
	return &parts{show: show, far: make([]float64, n)}
}

// of is what one of them tells, nil where nobody looks.
func (p *parts) of(i int) func(phase string, f float64) {
	if p.show == nil {
		return nil
	}
	return func(phase string, f float64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.far[i] = f
		p.show(phase, slices.Min(p.far))
	}
}
