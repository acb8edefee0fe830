// Package workers is a thread pool that splits loops over long-lived threads.
//
// It imports the standard library only and knows nothing of models: operators and kernels pass it
// functions over ranges.
package workers

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Pool splits work over long-lived workers. The caller of For is worker 0 and computes its share.
// A nil Pool and a Pool of one thread run everything on the caller.
//
// Operators follow each other within microseconds, and waking a thread takes longer than many of
// them. Workers therefore spin for a while before they sleep, and the caller computes the part of
// a worker that has not started.
//
// Starting a loop touches few cache lines, since each line that one core writes and another reads
// costs about 100 ns. A worker finds everything that its part needs in the line that it polls,
// and counts its progress there.
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

// busy counts the threads of all pools that compute or spin: callers between [Pool.Begin] and
// [Pool.End], and workers that do not sleep. While there are more of them than processors, no
// thread spins for long.
var busy atomic.Int64

// job is the state shared by all parts of a loop. Cache lines that change with each loop are in
// the parts.
type job struct {
	rest  rest // where the caller sleeps until all is done
	panic atomic.Pointer[any]
}

// part is the range that a worker starts with: contiguous elements, so that a layer finds in a
// core's cache what the same core wrote in the layer before. A worker that has finished its own
// part continues with the others' (work stealing).
//
// Chunks are claimed from left. A thread that has claimed a chunk may read the loop's fields: the
// loop cannot end before the chunk is counted. After that, the fields may belong to the next
// loop.
type part struct {
	// how many pieces there are, in the upper half, and how many of them were claimed
	left  atomic.Uint64
	ran   atomic.Int64 // pieces of any part that the worker has done, of all loops together
	lo, n int          // the first element and how many there are
	taper bool         // pieces get shorter
	f     func(worker, lo, hi int)
	each  func(lo, hi int) // instead of f
	until <-chan struct{}

	// Rarely changing fields are on their own cache line.

	rest rest
	stop atomic.Bool
	_    [40]byte
}

const pieceBits = 32

// give publishes the chunks of the part for claiming; all fields that they need must be set.
func (p *part) give(pieces int) { p.left.Store(uint64(pieces) << pieceBits) }

// open reports whether there are unclaimed chunks.
func (p *part) open() bool {
	v := p.left.Load()
	return uint32(v) < uint32(v>>pieceBits)
}

// claim claims the next chunk and returns its range; ok is false if all are claimed.
func (p *part) claim() (lo, hi int, ok bool) {
	if !p.open() {
		// without a write, which would take the cache line from the working threads
		return 0, 0, false
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

// Taper returns the start of piece i of the given number of pieces of n elements. Each piece is
// shorter than the one before; the last is as short as the difference between two of them.
// Threads with equal shares that steal the remaining work wait for the last pieces, and those are
// short.
func Taper(i, of, n int) int { return (2*of + 1 - i) * i / 2 * n / (of * (of + 1) / 2) }

// How long a thread spins before it sleeps. Waking it takes about 5 µs of the waker's time, and
// on virtual processors 50 to several hundred µs pass until it runs, many times the duration of
// most layers (docs/internals/kernel-experiments.md). So it spins longer than nearly all
// single-threaded stretches of a model, unless other threads wait for the processor.
const (
	watchTime = time.Millisecond
	shortly   = 30 * time.Microsecond
)

// Piece is the minimum duration of a chunk in nanoseconds: a spinning worker starts within a
// tenth of it.
const Piece = 5000

// Grain returns the number of items in a chunk for a thread that processes rate items per
// nanosecond.
func Grain(rate float64) int { return max(1, int(Piece*rate)) }

// New starts threads-1 workers. start, if not nil, runs first on each worker's thread (to pin
// it); worker numbers begin at 1.
func New(threads int, start func(worker int)) *Pool {
	p := &Pool{n: max(threads, 1)}
	p.job.rest.init()
	if p.n <= runtime.GOMAXPROCS(0) {
		p.watch = watchTime // otherwise spinning threads would disturb each other
	}
	for range p.n {
		q := new(part)
		q.rest.init()
		p.parts = append(p.parts, q)
	}
	for i := 1; i < p.n; i++ {
		go func() {
			// Weights are mapped files: a fault is a panic, which is passed to the caller.
			debug.SetPanicOnFault(true)
			if start != nil {
				// A locked thread sleeps and has to be woken by a third one whenever Go
				// schedules, every 10 ms. So only threads that start prepares are locked.
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

// until polls ready for a short time and reports whether it became true, and if not, whether
// other threads wait for the processor.
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

// await polls ready like until, then sleeps. Whatever makes ready true must be followed by a call
// of rouse.
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

// wait waits for chunks of the worker's own part; false means that the pool is closed.
func (p *part) wait(watch time.Duration) bool {
	p.rest.await(watch, func() bool { return p.open() || p.stop.Load() })
	return !p.stop.Load()
}

// help computes chunks as a worker: first of its own part, counted together, then of others,
// counted one by one.
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

// all computes the rest of a part, and returns the number of chunks.
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

// piece computes a chunk, or nothing after a panic.
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

// finish returns when workers have completed the given number of chunks of a loop.
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

// ErrStopped is the panic value of For if its work was ended early.
var ErrStopped = errors.New("stopped")

// Begin marks the caller as a working thread that needs a processor, until [Pool.End]. Work ends
// early when done, which may be nil, is closed. done is polled between the chunks of loops shared
// by several threads: For then panics with [ErrStopped], and its results are incomplete. If alone
// is set, the caller does all the work until End. Begin must not be called while For runs.
func (p *Pool) Begin(done <-chan struct{}, alone bool) {
	busy.Add(1)
	if p != nil {
		p.done, p.only, p.some = done, alone, false
	}
}

// End ends the effect of [Pool.Begin].
func (p *Pool) End() {
	busy.Add(-1)
	if p != nil {
		p.done, p.only = nil, false
	}
}

// Shared reports whether workers received a part of any loop since [Pool.Begin].
func (p *Pool) Shared() bool { return p != nil && p.some }

// Taking returns the number of threads that currently share work, 1 or all: work is divided for
// this number.
func (p *Pool) Taking() int {
	if p == nil || p.only {
		return 1
	}
	return p.n
}

// Threads returns the number of threads, including the caller: per-thread data is allocated for
// this number.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return p.n
}

// For calls f over disjoint ranges that cover [0, n), each at least grain long, or over two
// halves if n is less than 2·grain. f must be safe for concurrent calls. A panic in any worker is
// raised again on the caller. For must not be called from within f.
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

// task is what Do passes to the workers.
type task[A any] struct {
	a    A
	f    func(a A, lo, hi int)
	call func(lo, hi int)
}

// Do is For with an argument for f, for loops that must not allocate: a closure escapes to other
// threads and is allocated.
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

// Piecewise is an argument with its own loop body.
type Piecewise interface {
	Piece(lo, hi int)
}

// piecewise is what Each passes to the workers.
type piecewise[A Piecewise] struct {
	a    A
	call func(lo, hi int)
}

// Each is Do for arguments of generic types in generic functions: a function value of their loop
// would be allocated in each call.
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

// keep stores what Do or Each created for one type.
func (p *Pool) keep(key, t any) {
	if p.tasks == nil {
		p.tasks = make(map[any]any)
	}
	p.tasks[key] = t
}

// alone reports whether the caller does all the work.
func (p *Pool) alone(n, grain int) bool { return p == nil || p.n == 1 || p.only || n <= max(grain, 1) }

// ForWorker is For with the worker's number, below Threads, for per-worker scratch memory.
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

// forget clears the references of the last loop.
func (p *Pool) forget() {
	for _, q := range p.parts {
		q.f, q.each = nil, nil
	}
}

// share distributes chunks of [0, n) for f or each: equal parts, up to one element, for all
// threads.
func (p *Pool) share(n, grain int, f func(worker, lo, hi int), each func(lo, hi int)) {
	p.some = true
	grain = max(grain, 1)
	helpers := max(1, min(p.n-1, n/grain-1))
	all := int64(0)
	for i := helpers; i >= 0; i-- { // the caller's own part comes last: the others wait for theirs
		q := p.parts[i]
		lo, end := i*n/(helpers+1), (i+1)*n/(helpers+1)
		q.lo, q.n, q.f, q.each, q.until = lo, end-lo, f, each, p.done
		// About four chunks per thread balance unequal chunks. They taper if the last one is
		// still long enough.
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

// over reports whether a channel is closed.
func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
