package loadgen

import (
	"fmt"
	"runtime"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loop"
)

// thread is a stream's goroutine.
func (s *stream) thread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := s.d
	warm := false
	isWarm := func() {
		if !warm {
			warm = true
			d.warm.Done()
		}
	}
	defer isWarm() // always: others wait for it
	if bind := d.o.Bind; bind != nil {
		restore, err := bind(s.number)
		if s.pinned, s.pinErr = err == nil, err; err == nil {
			defer restore()
		}
	}
	body := func() error {
		if err := s.warmup(); err != nil {
			return err
		}
		isWarm()
		if d.o.Rate > 0 {
			return s.runDue()
		}
		return s.runLoop()
	}
	around := d.o.Around
	if around == nil {
		around = func(_ int, body func() error) error { return body() }
	}
	if err := s.recovered(around, body); err != nil {
		d.halt(err)
	}
}

// recovered converts a panic into an error: it would end the process and lose the results of the
// other streams.
func (s *stream) recovered(around func(int, func() error) error, body func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("stream %d: internal error: %v", s.number, e)
		}
	}()
	return around(s.number, body)
}

// once runs one inference and returns its start and end.
func (s *stream) once() (start, end int64, err error) {
	d := s.d
	if d.o.Before != nil {
		if err := d.o.Before(s.number); err != nil {
			return 0, 0, err
		}
	}
	var cpu, preemptions int64
	if d.o.Usage != nil {
		cpu, preemptions = d.o.Usage()
	}
	start = d.now()
	s.began = start
	if err := s.f(); err != nil {
		return start, 0, err
	}
	end = d.now()
	s.began, s.last = 0, end
	if d.o.Usage != nil {
		c, p := d.o.Usage()
		s.hit = loop.Disturbed(float64(end-start), float64(c-cpu), p-preemptions, d.o.Parallel)
	}
	return start, end, nil
}

func (s *stream) warmup() error {
	d := s.d
	begin := d.now()
	for n := 0; n < d.o.WarmupRuns || d.now()-begin < int64(d.o.Warmup); n++ {
		if d.stop.Load() {
			return nil
		}
		if _, _, err := s.once(); err != nil {
			return err
		}
		s.warmups++
	}
	return nil
}

// runLoop starts each inference when the last one has ended.
func (s *stream) runLoop() error {
	d := s.d
	finished := false
	for !d.stop.Load() && d.pending.Load() > 0 {
		start, end, err := s.once()
		if err != nil {
			return err
		}
		open := d.open.Load()
		if open == 0 || end <= open {
			s.warmups++
			continue
		}
		if finished {
			continue // keeps up the load for the others
		}
		if start >= open {
			s.keep(start, end)
			if s.count++; s.count == d.o.MinRuns && d.reached.Add(1) == int64(len(d.streams)) {
				d.enough.Store(end)
			}
			// A stream that starts late counts although the inferences of others were already
			// complete: they ran under its load too.
			if d.done.Add(1) >= int64(d.o.Runs) && d.o.Runs > 0 && d.enough.Load() != 0 {
				d.close.CompareAndSwap(0, end)
			}
		}
		limit := d.windowClose(open, end)
		s.countWithin(start, end, open, limit)
		if limit != 0 && end >= limit {
			finished = true
			d.pending.Add(-1)
		}
	}
	return nil
}

// windowClose returns when the window closes, 0 while unknown.
func (d *driver) windowClose(open, now int64) int64 {
	if c := d.close.Load(); c != 0 {
		return c
	}
	enough := d.enough.Load()
	if enough == 0 || d.o.Runs > 0 && now-open < int64(d.o.Time) {
		return 0
	}
	// The same for all streams, whichever sees it first.
	if end := max(enough, open+int64(d.o.Time)); now >= end {
		d.close.CompareAndSwap(0, end)
	}
	return d.close.Load()
}

// keep records the times of an inference that began in the window.
func (s *stream) keep(start, end int64) {
	if s.hit {
		if s.hits == nil {
			s.hits = map[int64]bool{}
		}
		s.hits[s.took.N()] = true
	}
	s.took.Add(float64(end-start) / 1e9)
	if len(s.spans) < cap(s.spans) {
		s.spans = append(s.spans, Span{start, end})
	}
}

// countWithin adds the fraction of an inference that lies in the window.
func (s *stream) countWithin(start, end, open, limit int64) {
	if limit == 0 {
		limit = end
	}
	s.tally.add(start-open, end-open)
	from, to := max(start, open), min(end, limit)
	switch {
	case from == start && to == end:
		s.whole++
	case to > from:
		s.parts += float64(to-from) / float64(end-start)
	}
}

// runDue runs scheduled inferences at their times.
func (s *stream) runDue() error {
	d := s.d
	for d.open.Load() == 0 && !d.stop.Load() {
		time.Sleep(50 * time.Microsecond) // until the last stream is warm
	}
	for {
		intended, ok := d.takeDue()
		if !ok {
			return nil
		}
		start, end, err := s.once()
		if err != nil {
			return err
		}
		s.count++
		d.done.Add(1)
		s.keep(start, end)
		s.response.Add(float64(end-intended) / 1e9)
		s.waiting.Add(float64(max(0, start-intended)) / 1e9)
		s.countWithin(start, end, d.open.Load(), d.close.Load())
	}
}

// A stream waits for a scheduled inference by sleeping until shortly before it, because sleeping
// is not exact, and then polling the clock.
const (
	longestSleep = 20 * time.Millisecond // to notice the end soon
	usualAwake   = 200 * time.Microsecond
)

// takeDue waits until the next inference is scheduled and returns that time. One stream waits at
// a time and the others wait for it, so that only one polls the clock.
func (d *driver) takeDue() (intended int64, ok bool) {
	d.dispatch <- struct{}{}
	defer func() { <-d.dispatch }()
	intended = d.open.Load() + int64(float64(d.next)/d.o.Rate*1e9)
	if intended >= d.close.Load() || d.o.Runs > 0 && d.next >= int64(d.o.Runs) {
		return 0, false
	}
	first := true
	for !d.stop.Load() {
		now := d.now()
		left := time.Duration(intended - now)
		if left <= 0 {
			// Inferences still waiting at the end of the window are not started.
			if first && now >= d.close.Load() {
				return 0, false
			}
			d.next++
			if first && left < 0 {
				d.late++
			}
			return intended, true
		}
		first = false
		if left > d.o.awake {
			time.Sleep(min(left-d.o.awake, longestSleep))
		}
	}
	return 0, false
}
