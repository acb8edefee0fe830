package workers

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

func TestPool(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			t.Parallel()
			p := New(threads, nil)
			defer p.Close()
			var seen [1000]atomic.Int32
			for round := range 2000 {
				n := round % len(seen)
				p.ForWorker(n, 1+round%5, func(worker, lo, hi int) {
					if worker < 0 || worker >= threads {
						t.Errorf("worker %d of %d", worker, threads)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
				})
				for i := range n {
					if c := seen[i].Swap(0); c != 1 {
						t.Fatalf("round %d: %d visited %d times", round, i, c)
					}
				}
				if round%200 == 0 {
					time.Sleep(200 * time.Microsecond) // the workers fall asleep
				}
			}
		})
	}
}

func TestPoolPanic(t *testing.T) {
	t.Parallel()
	p := New(3, nil)
	defer p.Close()
	for range 50 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			p.For(100, 1, func(lo, _ int) {
				if lo > 20 {
					panic("at work")
				}
			})
		}()
		var n atomic.Int64
		p.For(100, 1, func(lo, hi int) { n.Add(int64(hi - lo)) })
		if n.Load() != 100 {
			t.Fatalf("%d of 100 after a panic", n.Load())
		}
	}
}

// BenchmarkPool is the cost of cutting work in two.
func BenchmarkPool(b *testing.B) {
	p := New(2, nil)
	defer p.Close()
	for b.Loop() {
		p.For(8, 1, func(lo, hi int) {})
	}
}

// TestUntil ends loops between their pieces, and leaves the
// pool fit for more.
func TestUntil(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{2, 3} {
		p := New(threads, nil)
		defer p.Close()
		done := make(chan struct{})
		p.Begin(done, false)
		const all = 25600
		var n atomic.Int64
		ended := func() (e any) {
			defer func() { e = recover() }()
			p.For(all, 1, func(lo, hi int) {
				if n.Add(int64(hi-lo)) == int64(hi-lo) {
					close(done)
				}
			})
			return nil
		}()
		if e, ok := ended.(error); !ok || !errors.Is(e, ErrStopped) || n.Load() >= all {
			t.Errorf("%d threads: ended with %v after %d", threads, ended, n.Load())
		}
		p.End()
		n.Store(0)
		p.For(all, 1, func(lo, hi int) { n.Add(int64(hi - lo)) })
		if n.Load() != all {
			t.Errorf("%d threads: %d afterwards", threads, n.Load())
		}
	}
}

func TestAlone(t *testing.T) {
	t.Parallel()
	p := New(3, nil)
	defer p.Close()
	for _, alone := range []bool{false, true, false} {
		p.Begin(nil, alone)
		ranges := int64(0)
		p.For(90, 1, func(lo, hi int) { atomic.AddInt64(&ranges, 1) })
		want := 3
		if alone {
			want = 1
		}
		if p.Threads() != 3 || p.Taking() != want || p.Shared() == alone || (ranges == 1) != alone {
			t.Errorf("alone %v: %d threads, %d take part, shared %v, %d ranges", alone, p.Threads(), p.Taking(), p.Shared(), ranges)
		}
		p.End()
	}
}

// counts is an argument of loops that must not allocate.
type counts struct{ n *atomic.Int64 }

func (c counts) Piece(lo, hi int) { c.n.Add(int64(hi - lo)) }

// Loops with arguments allocate nothing once their type has been seen.
func TestAllocs(t *testing.T) {
	p := New(2, nil)
	defer p.Close()
	var n atomic.Int64
	loops := func() {
		Do(p, 100, 1, counts{&n}, counts.Piece)
		Each(p, 100, 1, counts{&n})
	}
	if got := testing.AllocsPerRun(100, loops); got > 0.5 {
		t.Errorf("%v allocations", got)
	}
	if n.Load()%200 != 0 {
		t.Errorf("%d elements", n.Load())
	}
}

// Pieces that get shorter cover everything, each at least as long as the one behind it but for
// what is rounded off, the last one as long as promised.
func TestTaper(t *testing.T) {
	t.Parallel()
	for of := 1; of <= 6; of++ {
		for n := range 200 {
			if Taper(0, of, n) != 0 || Taper(of, of, n) != n {
				t.Fatalf("%d of %d: from %d to %d", n, of, Taper(0, of, n), Taper(of, of, n))
			}
			for i := range of {
				size := Taper(i+1, of, n) - Taper(i, of, n)
				if i+1 < of && size < Taper(i+2, of, n)-Taper(i+1, of, n)-1 {
					t.Fatalf("%d of %d: piece %d is shorter than the next one", n, of, i)
				}
				if least := n / (of * (of + 1) / 2); size < least {
					t.Fatalf("%d of %d: piece %d has %d elements, not %d", n, of, i, size, least)
				}
			}
		}
	}
}
