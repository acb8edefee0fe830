package op

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Pool splits work over long-lived workers, each locked to an operating-system
// thread. The caller of For is worker 0 and does its share. A nil Pool and a
// Pool of one thread run everything on the caller.
type Pool struct {
	n     int
	work  []chan *job
	jobs  job
	close sync.Once
}

type job struct {
	f     func(worker, lo, hi int)
	n     int
	grain int
	next  atomic.Int64
	wg    sync.WaitGroup
	panic atomic.Pointer[any]
}

// NewPool starts threads-1 workers. start, if not nil, runs first on each
// worker's thread (to pin it); worker numbers begin at 1.
func NewPool(threads int, start func(worker int)) *Pool {
	p := &Pool{n: max(threads, 1)}
	for i := 1; i < p.n; i++ {
		ch := make(chan *job, 1)
		p.work = append(p.work, ch)
		go func() {
			runtime.LockOSThread()
			// Weights are mapped files: a fault is a panic, which the caller gets.
			debug.SetPanicOnFault(true)
			if start != nil {
				start(i)
			}
			for j := range ch {
				j.run(i)
				j.wg.Done()
			}
		}()
	}
	return p
}

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.close.Do(func() {
		for _, ch := range p.work {
			close(ch)
		}
	})
}

// Threads is the number of workers, the caller included.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return p.n
}

// For calls f over disjoint ranges that cover [0, n), each at least grain long
// except the last. f must be safe to call from several goroutines. A panic in
// any worker is raised again on the caller. For must not be called from
// within f.
func (p *Pool) For(n, grain int, f func(lo, hi int)) {
	p.ForWorker(n, grain, func(_, lo, hi int) { f(lo, hi) })
}

// ForWorker is For with the worker's number, below Threads, for per-worker
// scratch memory.
func (p *Pool) ForWorker(n, grain int, f func(worker, lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if p == nil || p.n == 1 || n <= grain {
		f(0, 0, n)
		return
	}
	// About four pieces a thread even out unequal pieces.
	if g := (n + 4*p.n - 1) / (4 * p.n); g > grain {
		grain = g
	}
	j := &p.jobs
	j.f, j.n, j.grain = f, n, grain
	j.next.Store(0)
	j.panic.Store(nil)
	helpers := min(len(p.work), (n+grain-1)/grain-1)
	j.wg.Add(helpers)
	for _, ch := range p.work[:helpers] {
		ch <- j
	}
	j.run(0)
	j.wg.Wait()
	j.f = nil
	if e := j.panic.Load(); e != nil {
		panic(*e)
	}
}

func (j *job) run(worker int) {
	defer func() {
		if e := recover(); e != nil {
			j.panic.CompareAndSwap(nil, &e)
		}
	}()
	for {
		lo := int(j.next.Add(int64(j.grain))) - j.grain
		if lo >= j.n {
			return
		}
		j.f(worker, lo, min(lo+j.grain, j.n))
	}
}
