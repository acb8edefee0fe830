package peaks

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/machine"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/workers"
)

// Times that the measurement of the peaks may take: for each product of each
// kernel, and for the memory without the time to make the buffer.
const (
	kernelTime = 6 * time.Millisecond
	memoryTime = 12 * time.Millisecond
)

// Bounds of the buffer that the memory is measured with. A pass over the largest
// takes some 10 ms, making it several times that.
const (
	memoryUsual = 64 << 20
	memoryMost  = 128 << 20
)

// Rates are the limits of this computer as the engine can use it.
type Rates struct {
	// Float and Integer are multiply-accumulates a second of float32 and of 8-bit
	// integers, Memory is bytes a second, read and written; 0 for not measured.
	Float, Integer, Memory float64
	// Buffer is the size of the buffer that Memory was measured with and Cache that of
	// the last-level cache, in bytes; 0 for none and for not known.
	Buffer, Cache int64
	// Took is the time of the measurement.
	Took time.Duration
}

// Options says what to measure with.
type Options struct {
	// Pool has the threads.
	Pool *workers.Pool
	// CPUs are the processors that its threads are bound to, nil for none.
	CPUs []int64
	// CacheBytes is the size of the last-level cache, nil for not known.
	CacheBytes *int64
	// Leased says that the caller holds the lease: see [measure.Lease].
	Leased bool
}

// known keeps the rates by threads and processors: they are the computer's, not a
// model's, and one process measures many models. The mutex is held to look and to
// note, never while measuring.
var known = struct {
	sync.Mutex
	rates map[string]Rates
}{rates: map[string]Rates{}}

func lookUp(key string) (Rates, bool) {
	known.Lock()
	defer known.Unlock()
	r, ok := known.rates[key]
	return r, ok
}

func note(key string, r Rates) {
	known.Lock()
	defer known.Unlock()
	known.rates[key] = r
}

// Of returns the rates for some threads and processors, measured under the lease the
// first time in this process; earlier says that they were measured before. The error
// is the context's when it ended first. It takes some 60 ms, or the wait for others.
func Of(ctx context.Context, o Options) (r Rates, earlier bool, err error) {
	key := fmt.Sprint(o.Pool.Threads(), o.CPUs)
	if r, ok := lookUp(key); ok {
		return r, true, nil
	}
	if !o.Leased {
		release, err := measure.Lease(ctx)
		if err != nil {
			return Rates{}, false, err
		}
		defer release()
		// Whoever was before may have measured the same.
		if r, ok := lookUp(key); ok {
			return r, true, nil
		}
	}
	if r, err = rates(ctx, o); err != nil {
		return Rates{}, false, err
	}
	note(key, r)
	return r, false, nil
}

// rates measures what the roofline of this computer needs.
func rates(ctx context.Context, o Options) (Rates, error) {
	start := time.Now()
	var r Rates
	for _, k := range []struct {
		to   *float64
		work func(product) func()
	}{{&r.Float, floatProduct}, {&r.Integer, integerProduct}} {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		*k.to = kernelRate(o.Pool, k.work)
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if o.CacheBytes != nil {
		r.Cache = *o.CacheBytes
	}
	r.Buffer = memoryUsual
	if r.Cache > 0 {
		r.Buffer = min(max(4*r.Cache, memoryUsual), memoryMost)
	}
	// A small computer must not be pushed into swapping for this.
	if n := machine.MemoryBytes(); n == nil || *n >= 8*r.Buffer {
		r.Memory = memoryRate(o.Pool, r.Buffer)
	} else {
		r.Buffer = 0
	}
	r.Took = time.Since(start)
	return r, nil
}

// products are the sizes that kernels are measured with. All of the first one
// stays in a usual first-level cache; the second one spends less of its time on
// the ends of sums and takes its weights from the second-level cache. Which of
// the two is quicker depends on the processor.
var products = []product{{8, 32, 128}, {8, 128, 256}}

type product struct{ rows, cols, depth int }

func (s product) macs() int { return s.rows * s.cols * s.depth }

// floatProduct returns a function that multiplies matrices of float32.
func floatProduct(s product) func() {
	a, b, c := make([]float32, s.rows*s.depth), make([]float32, s.depth*s.cols), make([]float32, s.rows*s.cols)
	for i := range a {
		a[i] = float32(i%7) / 8
	}
	for i := range b {
		b[i] = float32(i%5) / 8
	}
	packed := kernel.PackB(s.depth, s.cols, b, 0, false)
	g := kernel.GemmParams{M: s.rows, N: s.cols, K: s.depth}
	return func() { kernel.GemmPacked(nil, g, a, packed, c) }
}

// integerProduct is the same with 8-bit integers.
func integerProduct(s product) func() {
	x, y := make([]uint8, s.rows*s.depth), make([]int32, s.rows*s.cols)
	w := make([]int32, s.cols*s.depth)
	for i := range x {
		x[i] = uint8(i * 31)
	}
	for i := range w {
		w[i] = int32(i*37%255) - 127
	}
	packed := kernel.NewPackedQ(s.cols, s.depth)
	packed.Fill(w, s.depth, 1)
	tables := make([]kernel.ByteTable, 1)
	tables[0].Fill(false, 128)
	return func() { kernel.GemmQ(nil, s.rows, x, tables, packed, y) }
}

// kernelRate is the multiply-accumulates a second of all threads together, each
// on its own data. Other load only ever slows a round down, so the quickest counts.
func kernelRate(pool *workers.Pool, make func(product) func()) float64 {
	best := 0.0
	for _, s := range products {
		best = max(best, productRate(pool, s, make))
	}
	return best
}

func productRate(pool *workers.Pool, s product, make func(product) func()) float64 {
	// Some tens of microseconds: long against handing out the work.
	repeat := max(1, 1<<18/s.macs())
	n := pool.Threads()
	var work []func()
	for range n {
		work = append(work, make(s))
	}
	least := time.Duration(0)
	for start := time.Now(); time.Since(start) < kernelTime; {
		t := time.Now()
		pool.For(n, 1, func(lo, hi int) {
			for _, f := range work[lo:hi] {
				for range repeat {
					f()
				}
			}
		})
		if d := time.Since(t); d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	if least == 0 {
		return 0
	}
	return float64(n*repeat*s.macs()) / least.Seconds()
}

// memoryRate copies one half of a buffer onto the other and counts the bytes
// that were read and written.
func memoryRate(pool *workers.Pool, size int64) float64 {
	buf := make([]byte, size)
	from, to := buf[:size/2], buf[size/2:]
	const page = 4096
	for i := 0; i < len(buf); i += page {
		buf[i] = 1 // the system gives pages when they are first written
	}
	const block = 1 << 20
	least := time.Duration(0)
	for start, rounds := time.Now(), 0; rounds < 2 || time.Since(start) < memoryTime; rounds++ {
		t := time.Now()
		pool.For(len(from)/block, 4, func(lo, hi int) {
			copy(to[lo*block:hi*block], from[lo*block:hi*block])
		})
		if d := time.Since(t); d > 0 && (least == 0 || d < least) {
			least = d
		}
		if time.Since(start) > 2*memoryTime {
			break
		}
	}
	runtime.KeepAlive(buf)
	if least == 0 {
		return 0
	}
	return float64(size) / least.Seconds()
}
