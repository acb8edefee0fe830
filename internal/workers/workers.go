// Package workers splits loops over long-lived threads.
//
// It imports the standard library only and knows nothing of models: operators and
// kernels hand it functions over ranges.
package workers

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Pool splits work over long-lived workers, each locked to an operating-system
// thread. The caller of For is worker 0 and does its share. A nil Pool and a
// Pool of one thread run everything on the caller.
//
// Operators follow each other within microseconds, and waking a thread takes
// longer than many of them. Workers therefore watch for work a while before
// they sleep, and the caller takes work back from a worker that has not begun.
type Pool struct {
	n     int
	work  []*worker
	jobs  job
	done  <-chan struct{} // work ends early when it is closed
	only  bool            // the caller works alone
	some  bool            // a loop was shared since Begin
	watch time.Duration
	close sync.Once
	tasks map[any]any // what Do gave out before, by type
}

// busy counts the threads of all pools that work or watch: callers between [Pool.Begin] and [Pool.End], and workers
// that do not sleep. While there are more of them than processors nobody watches for long.
var busy atomic.Int64

// worker is the mailbox of one thread.
type worker struct {
	next   atomic.Pointer[job]
	asleep atomic.Bool
	stop   atomic.Bool
	wake   chan struct{} // one signal for each time that asleep was taken back by others
}

type job struct {
	f       func(worker, lo, hi int)
	each    func(lo, hi int) // instead of f
	parts   []part           // of each worker that may take part
	pending atomic.Int64     // workers that have the job, begun or not
	waiting atomic.Bool      // the caller sleeps until pending is 0
	done    chan struct{}
	until   <-chan struct{}
	panic   atomic.Pointer[any]
}

// part is what a worker begins with: neighbouring elements, so that a layer finds in a core's cache what the same core
// made of them in the layer before. Who is done with its own part goes on with those of others.
type part struct {
	next            atomic.Int64 // the number of the next piece
	lo, end, pieces int
	_               [32]byte // each in a cache line of its own
}

// take takes the next piece; ok is false when all are taken.
func (p *part) take() (lo, hi int, ok bool) {
	i, n := int(p.next.Add(1))-1, p.end-p.lo
	if i >= p.pieces {
		return 0, 0, false
	}
	return p.lo + i*n/p.pieces, p.lo + (i+1)*n/p.pieces, true
}

// How long a thread watches before it sleeps. Waking it takes some 5 µs of the waker's time, and on virtual processors 50 to
// several hundred µs pass until it runs, many times what most layers take (docs/performance.md "Two threads"): it watches longer
// than nearly all stretches of a model that one thread computes, unless others wait for the processor.
const (
	watchTime = time.Millisecond
	shortly   = 30 * time.Microsecond
)

// Piece is the least work that is worth a piece of its own, in nanoseconds: a worker that watches begins within a
// tenth of it.
const Piece = 5000

// Grain is how many items make a piece of work, when a thread does so many of them in a nanosecond.
func Grain(rate float64) int { return max(1, int(Piece*rate)) }

// New starts threads-1 workers. start, if not nil, runs first on each
// worker's thread (to pin it); worker numbers begin at 1.
func New(threads int, start func(worker int)) *Pool {
	p := &Pool{n: max(threads, 1)}
	p.jobs.done = make(chan struct{}, 1)
	p.jobs.parts = make([]part, p.n)
	if p.n <= runtime.GOMAXPROCS(0) {
		p.watch = watchTime // otherwise threads would watch in each other's way
	}
	for i := 1; i < p.n; i++ {
		w := &worker{wake: make(chan struct{}, 1)}
		p.work = append(p.work, w)
		go func() {
			runtime.LockOSThread()
			// Weights are mapped files: a fault is a panic, which the caller gets.
			debug.SetPanicOnFault(true)
			if start != nil {
				start(i)
			}
			busy.Add(1)
			defer busy.Add(-1)
			for {
				j := w.take(p.watch)
				if j == nil {
					return
				}
				j.run(i)
				j.leave()
			}
		}()
	}
	return p
}

// until watches for ready for a short time and tells whether it came.
func until(d time.Duration, ready func() bool) bool {
	if ready() {
		return true
	}
	if d == 0 {
		return false
	}
	processors := int64(runtime.GOMAXPROCS(0))
	for start := time.Now(); ; {
		for range 50 {
			if ready() {
				return true
			}
		}
		t := time.Since(start)
		if t > d || t > shortly && busy.Load() > processors {
			return false
		}
		if t > shortly {
			yield()
		}
	}
}

// take waits for a job; nil means that the pool is closed.
func (w *worker) take(watch time.Duration) *job {
	ready := func() bool { return w.next.Load() != nil || w.stop.Load() }
	for {
		if !until(watch, ready) {
			busy.Add(-1)
			w.asleep.Store(true)
			// What came before the line above did not see it. Whoever takes asleep back
			// decides who wakes: when it is not this worker, a signal is on its way.
			if !ready() || !w.asleep.CompareAndSwap(true, false) {
				<-w.wake
			}
			busy.Add(1)
		}
		// The caller may have taken the job back.
		if j := w.next.Swap(nil); j != nil {
			return j
		}
		if w.stop.Load() {
			return nil
		}
	}
}

func (w *worker) rouse() {
	if w.asleep.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}

// leave counts a worker out and wakes the caller after the last.
func (j *job) leave() {
	if j.pending.Add(-1) == 0 && j.waiting.CompareAndSwap(true, false) {
		j.done <- struct{}{}
	}
}

// wait returns when all workers have left.
func (j *job) wait(watch time.Duration) {
	left := func() bool { return j.pending.Load() == 0 }
	// A worker that left the job before this one may send late: look again.
	for !until(watch, left) {
		j.waiting.Store(true)
		if !left() || !j.waiting.CompareAndSwap(true, false) {
			<-j.done
		}
	}
}

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.close.Do(func() {
		for _, w := range p.work {
			w.stop.Store(true)
			w.rouse()
		}
	})
}

// ErrStopped is what For panics with when its work was ended early.
var ErrStopped = errors.New("stopped")

// Begin tells that the caller works from now on, until [Pool.End], as one more thread that needs a processor. Work ends early when
// done, which may be nil, is closed, which is asked between the pieces of
// loops that several threads share: For then panics with [ErrStopped], and what it was to compute is not there.
// With alone all work is the caller's until then. It must not be called while For runs.
func (p *Pool) Begin(done <-chan struct{}, alone bool) {
	busy.Add(1)
	if p != nil {
		p.done, p.only, p.some = done, alone, false
	}
}

// End takes back what [Pool.Begin] told.
func (p *Pool) End() {
	busy.Add(-1)
	if p != nil {
		p.done, p.only = nil, false
	}
}

// Shared tells whether workers were given a part of any loop since [Pool.Begin].
func (p *Pool) Shared() bool { return p != nil && p.some }

// Taking is the number of workers that take part at present, 1 or all: for it work is cut.
func (p *Pool) Taking() int {
	if p == nil || p.only {
		return 1
	}
	return p.n
}

// Threads is the number of workers, the caller included: what each of them needs is made for so many.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return p.n
}

// For calls f over disjoint ranges that cover [0, n), each at least grain long, or over two
// halves where that is less than 2·grain. f must be safe to call from several goroutines. A panic in
// any worker is raised again on the caller. For must not be called from
// within f.
func (p *Pool) For(n, grain int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	if p.alone(n, grain) {
		f(0, n)
		return
	}
	p.share(n, grain, nil, f)
}

// task is what Do gives to the workers.
type task[A any] struct {
	a    A
	f    func(a A, lo, hi int)
	call func(lo, hi int)
}

// Do is For with an argument for f, for loops that must not allocate: what a closure
// holds on to does, since it goes to other threads.
func Do[A any](p *Pool, n, grain int, a A, f func(a A, lo, hi int)) {
	if n <= 0 {
		return
	}
	if p.alone(n, grain) {
		f(a, 0, n)
		return
	}
	t, _ := p.tasks[(*task[A])(nil)].(*task[A])
	if t == nil {
		t = new(task[A])
		t.call = func(lo, hi int) { t.f(t.a, lo, hi) }
		p.keep((*task[A])(nil), t)
	}
	t.a, t.f = a, f
	p.share(n, grain, nil, t.call)
	var none A
	t.a = none // forget the memory that it points to
}

// Piecewise is an argument that knows its loop.
type Piecewise interface {
	Piece(lo, hi int)
}

// piecewise is what Each gives to the workers.
type piecewise[A Piecewise] struct {
	a    A
	call func(lo, hi int)
}

// Each is Do for arguments of generic types in generic functions: to name their loop there would allocate in each call.
func Each[A Piecewise](p *Pool, n, grain int, a A) {
	if n <= 0 {
		return
	}
	if p.alone(n, grain) {
		a.Piece(0, n)
		return
	}
	t, _ := p.tasks[(*piecewise[A])(nil)].(*piecewise[A])
	if t == nil {
		t = new(piecewise[A])
		t.call = func(lo, hi int) { t.a.Piece(lo, hi) }
		p.keep((*piecewise[A])(nil), t)
	}
	t.a = a
	p.share(n, grain, nil, t.call)
	var none A
	t.a = none // forget the memory that it points to
}

// keep remembers what Do or Each has made for one type.
func (p *Pool) keep(key, t any) {
	if p.tasks == nil {
		p.tasks = make(map[any]any)
	}
	p.tasks[key] = t
}

// alone tells whether the caller does all of it.
func (p *Pool) alone(n, grain int) bool { return p == nil || p.n == 1 || p.only || n <= max(grain, 1) }

// ForWorker is For with the worker's number, below Threads, for per-worker
// scratch memory.
func (p *Pool) ForWorker(n, grain int, f func(worker, lo, hi int)) {
	if n <= 0 {
		return
	}
	if p.alone(n, grain) {
		f(0, 0, n)
		return
	}
	p.share(n, grain, f, nil)
}

// share hands out pieces of [0, n) for f or each: the same to each worker, to an element.
func (p *Pool) share(n, grain int, f func(worker, lo, hi int), each func(lo, hi int)) {
	p.some = true
	grain = max(grain, 1)
	j := &p.jobs
	helpers := max(1, min(len(p.work), n/grain-1))
	j.f, j.each, j.until, j.parts = f, each, p.done, j.parts[:helpers+1]
	for i, at := 0, 0; i < len(j.parts); i++ {
		q := &j.parts[i]
		q.lo, q.end = at, (i+1)*n/len(j.parts)
		// About four pieces a thread even out unequal pieces.
		q.pieces = max(1, min(4, (q.end-q.lo)/grain))
		q.next.Store(0)
		at = q.end
	}
	j.panic.Store(nil)
	j.pending.Store(int64(helpers))
	for _, w := range p.work[:helpers] {
		w.next.Store(j)
		w.rouse()
	}
	j.run(0)
	for _, w := range p.work[:helpers] {
		if w.next.CompareAndSwap(j, nil) {
			j.pending.Add(-1)
		}
	}
	j.wait(p.watch)
	j.f, j.each = nil, nil
	if e := j.panic.Load(); e != nil {
		panic(*e)
	}
}

// over reports whether a channel was closed.
func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (j *job) run(worker int) {
	defer func() {
		if e := recover(); e != nil {
			j.panic.CompareAndSwap(nil, &e)
		}
	}()
	for i := range j.parts {
		own := &j.parts[(worker+i)%len(j.parts)]
		for {
			lo, hi, ok := own.take()
			if !ok {
				break
			}
			if over(j.until) {
				panic(ErrStopped)
			}
			if j.each != nil {
				j.each(lo, hi)
			} else {
				j.f(worker, lo, hi)
			}
		}
	}
}
