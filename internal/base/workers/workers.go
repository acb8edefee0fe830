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

// Pool splits work over long-lived workers. The caller of For is worker 0 and does its
// share. A nil Pool and a Pool of one thread run everything on the caller.
//
// Operators follow each other within microseconds, and waking a thread takes
// longer than many of them. Workers therefore watch for work a while before
// they sleep, and the caller does the part of a worker that has not begun.
//
// A loop is handed over with few lines of the cache, as each that one core wrote and another reads takes some 100 ns: a worker
// finds all that its part needs in the line that it watches, and counts there what it has done.
type Pool struct {
	n     int
	parts []*part // one a worker, that of the caller first
	job   job
	done  <-chan struct{} // work ends early when it is closed
	only  bool            // the caller works alone
	some  bool            // a loop was shared since Begin
	watch time.Duration
	close sync.Once
	tasks map[any]any // what Do gave out before, by type
	ran   int64       // pieces of all loops before that workers have done
}

// busy counts the threads of all pools that work or watch: callers between [Pool.Begin] and [Pool.End], and workers
// that do not sleep. While there are more of them than processors nobody watches for long.
var busy atomic.Int64

// job is what all parts of a loop share. Lines of the cache that change with each loop are those of parts.
type job struct {
	rest  rest // where the caller sleeps until all is done
	panic atomic.Pointer[any]
}

// part is what a worker begins with: neighbouring elements, so that a layer finds in a core's cache what the same core
// made of them in the layer before. Who is done with its own part goes on with those of others.
//
// Pieces are claimed from left. Whoever has claimed one may read the loop that it belongs to, which cannot end before the piece is counted;
// after that there may be another one.
type part struct {
	left  atomic.Uint64 // how many pieces there are, in the upper half, and how many of them were claimed
	ran   atomic.Int64  // pieces of any part that the worker has done, of all loops together
	lo, n int           // the first element and how many there are
	taper bool          // pieces get shorter
	f     func(worker, lo, hi int)
	each  func(lo, hi int) // instead of f
	until <-chan struct{}

	// What changes rarely lies in a line of its own.

	rest rest
	stop atomic.Bool
	_    [40]byte
}

const pieceBits = 32

// give lets pieces be claimed: all that they need is there.
func (p *part) give(pieces int) { p.left.Store(uint64(pieces) << pieceBits) }

// open tells whether there are pieces that nobody has claimed.
func (p *part) open() bool {
	v := p.left.Load()
	return uint32(v) < uint32(v>>pieceBits)
}

// claim claims the next piece and returns its elements; ok is false when all are claimed.
func (p *part) claim() (lo, hi int, ok bool) {
	if !p.open() {
		return 0, 0, false // without writing, which would take the line from those who work
	}
	v := p.left.Add(1) - 1
	i, pieces := int(uint32(v)), int(v>>pieceBits)
	if i >= pieces {
		return 0, 0, false
	}
	if p.taper {
		return p.lo + Taper(i, pieces, p.n), p.lo + Taper(i+1, pieces, p.n), true
	}
	return p.lo + i*p.n/pieces, p.lo + (i+1)*p.n/pieces, true
}

// Taper is where piece i of so many begins when n elements are cut into pieces of which each is shorter than the one before, down to the
// difference between two of them: threads that have as much to do and go on to what others have not begun wait for the last pieces, and those are short.
func Taper(i, of, n int) int { return (2*of + 1 - i) * i / 2 * n / (of * (of + 1) / 2) }

// How long a thread watches before it sleeps. Waking it takes some 5 µs of the waker's time, and on virtual processors 50 to
// several hundred µs pass until it runs, many times what most layers take (docs/internals/kernel-experiments.md): it watches longer
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
	p.job.rest.init()
	if p.n <= runtime.GOMAXPROCS(0) {
		p.watch = watchTime // otherwise threads would watch in each other's way
	}
	for range p.n {
		q := new(part)
		q.rest.init()
		p.parts = append(p.parts, q)
	}
	for i := 1; i < p.n; i++ {
		go func() {
			// Weights are mapped files: a fault is a panic, which the caller gets.
			debug.SetPanicOnFault(true)
			if start != nil {
				// Else no thread is better than another, and one that is locked sleeps and has to be woken by a third one whenever
				// Go takes its turn, each 10 ms.
				runtime.LockOSThread()
				start(i)
			}
			busy.Add(1)
			defer busy.Add(-1)
			for p.parts[i].wait(p.watch) {
				p.help(i)
			}
		}()
	}
	return p
}

// until watches for ready for a short time and tells whether it came, and if not, whether others wait for the processor.
func until(d time.Duration, ready func() bool) (came, crowded bool) {
	if ready() {
		return true, false
	}
	if d == 0 {
		return false, true
	}
	processors := int64(runtime.GOMAXPROCS(0))
	for start := time.Now(); ; {
		for range 50 {
			if ready() {
				return true, false
			}
		}
		t := time.Since(start)
		if t > shortly && busy.Load() > processors {
			return false, true
		}
		if t > d {
			return false, false
		}
		if t > shortly {
			yield()
		}
	}
}

// await is until, and sleeps where it does not come soon. Whatever makes ready true must be followed by a call of rouse.
func (r *rest) await(watch time.Duration, ready func() bool) {
	for {
		came, crowded := until(watch, ready)
		if came {
			return
		}
		busy.Add(-1)
		r.sleep(ready, crowded)
		busy.Add(1)
	}
}

// wait waits for pieces of the worker's own part; false means that the pool is closed.
func (p *part) wait(watch time.Duration) bool {
	p.rest.await(watch, func() bool { return p.open() || p.stop.Load() })
	return !p.stop.Load()
}

// help does pieces as a worker: of its own part first, which it counts together, then of others one by one.
func (p *Pool) help(worker int) {
	own := p.parts[worker]
	for i := range p.parts {
		q := p.parts[(worker+i)%len(p.parts)]
		for {
			n := int64(0)
			if i == 0 {
				n = p.all(q, worker)
			} else if lo, hi, ok := q.claim(); ok {
				p.piece(q, worker, lo, hi)
				n = 1
			}
			if n == 0 {
				break
			}
			own.ran.Add(n)
			p.job.rest.rouse()
		}
	}
}

// all does what is left of a part, and returns how many pieces that were.
func (p *Pool) all(q *part, worker int) (n int64) {
	for {
		lo, hi, ok := q.claim()
		if !ok {
			return n
		}
		p.piece(q, worker, lo, hi)
		n++
	}
}

// piece does a piece, or nothing after a panic.
func (p *Pool) piece(q *part, worker, lo, hi int) {
	if p.job.panic.Load() != nil {
		return
	}
	defer func() {
		if e := recover(); e != nil {
			p.job.panic.CompareAndSwap(nil, new(e))
		}
	}()
	if over(q.until) {
		panic(ErrStopped)
	}
	if q.each != nil {
		q.each(lo, hi)
	} else {
		q.f(worker, lo, hi)
	}
}

// finish returns when workers have done so many pieces of a loop.
func (p *Pool) finish(pieces int64) {
	p.ran += pieces
	ready := func() bool {
		n := int64(0)
		for _, q := range p.parts[1:] {
			n += q.ran.Load()
		}
		return n == p.ran
	}
	p.job.rest.await(p.watch, ready)
}

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.close.Do(func() {
		for _, q := range p.parts[1:] {
			q.stop.Store(true)
			q.rest.rouse()
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
	p.forget()
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
	p.forget()
}

// forget lets go of what the last loop held on to.
func (p *Pool) forget() {
	for _, q := range p.parts {
		q.f, q.each = nil, nil
	}
}

// share hands out pieces of [0, n) for f or each: the same to each worker, to an element.
func (p *Pool) share(n, grain int, f func(worker, lo, hi int), each func(lo, hi int)) {
	p.some = true
	grain = max(grain, 1)
	helpers := max(1, min(p.n-1, n/grain-1))
	all := int64(0)
	for i := helpers; i >= 0; i-- { // the caller's own part comes last: the others wait for theirs
		q := p.parts[i]
		lo, end := i*n/(helpers+1), (i+1)*n/(helpers+1)
		q.lo, q.n, q.f, q.each, q.until = lo, end-lo, f, each, p.done
		// About four pieces a thread even out unequal pieces. They get shorter where the last one is still long enough.
		pieces := max(1, min(4, q.n/grain))
		switch q.taper = q.n >= 6*grain; {
		case q.n >= 10*grain:
			pieces = 4
		case q.taper:
			pieces = 3
		}
		all += int64(pieces)
		if q.give(pieces); i > 0 {
			q.rest.rouse()
		}
	}
	for _, q := range p.parts[:helpers+1] {
		all -= p.all(q, 0)
	}
	p.finish(all)
	if e := p.job.panic.Load(); e != nil {
		p.job.panic.Store(nil)
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
