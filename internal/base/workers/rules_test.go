package workers

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// span is a piece that a worker was given.
type span struct{ worker, lo, hi int }

func pieces(p *Pool, n, grain int) []span {
	var mu sync.Mutex
	var out []span
	p.ForWorker(n, grain, func(worker, lo, hi int) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, span{worker, lo, hi})
	})
	slices.SortFunc(out, func(a, b span) int { return a.lo - b.lo })
	return out
}

// Pieces follow each other, are at least the grain long, or half of what is less than twice
// the grain, and at most four a thread.
func TestPieces(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2, 3} {
		p := New(threads, nil)
		defer p.Close()
		for _, n := range []int{1, 2, 7, 8, 9, 24, 25, 100, 1001} {
			for _, grain := range []int{-1, 0, 1, 2, 7, 24, 99, 1000, 1001, 2000} {
				got := pieces(p, n, grain)
				at := 0
				for _, s := range got {
					if s.lo != at || s.hi <= s.lo || s.hi-s.lo < min(grain, n/2) || s.worker < 0 || s.worker >= threads {
						t.Fatalf("%d threads, %d by %d: %v", threads, n, grain, got)
					}
					at = s.hi
				}
				if at != n || len(got) > 4*threads {
					t.Fatalf("%d threads, %d by %d: %v", threads, n, grain, got)
				}
				// What is not worth sharing, or has nobody to share with, is the caller's.
				if (threads == 1 || n <= max(grain, 1)) && (len(got) != 1 || got[0].worker != 0) {
					t.Fatalf("%d threads, %d by %d is shared: %v", threads, n, grain, got)
				}
				if threads > 1 && n > max(grain, 1) && len(got) < 2 {
					t.Fatalf("%d threads, %d by %d is not shared", threads, n, grain)
				}
				if threads > 1 && grain <= 1 && n >= 4*threads && len(got) < 2*threads {
					t.Fatalf("%d threads, %d by %d in %d pieces", threads, n, grain, len(got))
				}
			}
		}
		for _, n := range []int{0, -1} {
			if got := pieces(p, n, 1); got != nil {
				t.Errorf("%d elements: %v", n, got)
			}
		}
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	var none *Pool
	if none.Threads() != 1 {
		t.Errorf("no pool has %d threads", none.Threads())
	}
	none.Begin(nil, false)
	none.End()
	if got := pieces(none, 100, 1); !slices.Equal(got, []span{{0, 0, 100}}) {
		t.Errorf("no pool: %v", got)
	}
	none.Close()
	for threads, want := range map[int]int{-3: 1, 0: 1, 1: 1, 4: 4} {
		p := New(threads, nil)
		if p.Threads() != want {
			t.Errorf("New(%d) has %d threads", threads, p.Threads())
		}
		p.Close()
		p.Close() // a second time is nothing
	}
}

// together runs a loop whose pieces each wait until all workers have one.
func together(t *testing.T, p *Pool) []int {
	t.Helper()
	n := p.Threads()
	var begun sync.WaitGroup
	begun.Add(n)
	var mu sync.Mutex
	var who []int
	p.ForWorker(n, 1, func(worker, lo, hi int) {
		mu.Lock()
		who = append(who, worker)
		mu.Unlock()
		begun.Done()
		all := make(chan struct{})
		go func() { begun.Wait(); close(all) }()
		select {
		case <-all:
		case <-time.After(20 * time.Second):
			t.Error("the others do not begin")
		}
	})
	slices.Sort(who)
	return who
}

// Workers begin with start, each once and with its number, and work at the same time as
// the caller, also after they have slept.
func TestWorkersBegin(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{2, 4} {
		var mu sync.Mutex
		var started []int
		p := New(threads, func(worker int) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, worker)
		})
		var all []int
		for i := range threads {
			all = append(all, i)
		}
		for range 5 {
			if who := together(t, p); !slices.Equal(who, all) {
				t.Fatalf("workers %v, want %v", who, all)
			}
			time.Sleep(time.Millisecond) // they sleep
		}
		p.Close()
		mu.Lock()
		slices.Sort(started)
		if !slices.Equal(started, all[1:]) {
			t.Errorf("started %v, want %v", started, all[1:])
		}
		mu.Unlock()
	}
}

// A panic keeps its value, whoever panics, and For returns only when nobody works.
func TestPanicValue(t *testing.T) {
	t.Parallel()
	p := New(2, nil)
	defer p.Close()
	boom := errors.New("boom")
	for _, which := range []int{0, 1} {
		for range 20 {
			var busy atomic.Int64
			got := func() (e any) {
				defer func() { e = recover() }()
				var both sync.WaitGroup
				both.Add(2)
				p.ForWorker(2, 1, func(worker, _, _ int) {
					busy.Add(1)
					defer busy.Add(-1)
					both.Done()
					both.Wait()
					if worker == which {
						panic(boom)
					}
					time.Sleep(100 * time.Microsecond)
				})
				return nil
			}()
			if err, ok := got.(error); !ok || !errors.Is(err, boom) || busy.Load() != 0 {
				t.Fatalf("worker %d: panic %v, %d still at work", which, got, busy.Load())
			}
		}
	}
}

// What is over before it begins is not begun; what one thread does alone is not asked.
func TestOver(t *testing.T) {
	t.Parallel()
	p := New(2, nil)
	defer p.Close()
	done := make(chan struct{})
	close(done)
	p.Begin(done, false)
	ran := int64(0)
	got := func() (e any) {
		defer func() { e = recover() }()
		p.For(100, 1, func(lo, hi int) { atomic.AddInt64(&ran, 1) })
		return nil
	}()
	if err, ok := got.(error); !ok || !errors.Is(err, ErrStopped) || ran != 0 {
		t.Errorf("%v after %d pieces", got, ran)
	}
	p.For(100, 100, func(lo, hi int) { ran += int64(hi - lo) })
	if ran != 100 {
		t.Errorf("%d of 100", ran)
	}
}

// Each worker begins with its own part, which is the same in the next loop, and all pieces are
// done once.
func TestOwnPart(t *testing.T) {
	t.Parallel()
	const n = 600
	for _, threads := range []int{2, 3} {
		p := New(threads, nil)
		defer p.Close()
		for range 3 {
			var begun sync.WaitGroup
			begun.Add(threads)
			first := make([]atomic.Int64, threads)
			var done [n]atomic.Int64
			p.ForWorker(n, 1, func(worker, lo, hi int) {
				if first[worker].CompareAndSwap(0, int64(lo)+1) {
					begun.Done()
					begun.Wait()
				}
				for i := lo; i < hi; i++ {
					done[i].Add(1)
				}
			})
			for i := range first {
				// Parts are of whole pieces, 4 a worker.
				if got, want := first[i].Load()-1, int64(i*n/threads); got != want {
					t.Errorf("%d threads: worker %d begins at %d, want %d", threads, i, got, want)
				}
			}
			for i := range done {
				if c := done[i].Load(); c != 1 {
					t.Fatalf("%d threads: element %d is done %d times", threads, i, c)
				}
			}
		}
	}
}
