package peaks

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
)

// Time limits of the measurement: for each product size of each kernel, for a cache, and for the
// memory without the allocation of the buffer.
const (
	kernelTime = 6 * time.Millisecond
	cacheTime  = 3 * time.Millisecond
	memoryTime = 12 * time.Millisecond
)

// If the median of the rounds is more than busySpread below the fastest one, the machine was
// busy: the measurement is repeated, up to mostPasses times in total.
const (
	busySpread = 0.1
	mostPasses = 4
)

// Sizes of the buffer for the memory measurement. A pass over the largest takes some 10 ms, its
// allocation several times that.
const (
	memoryUsual = 64 << 20
	memoryMost  = 128 << 20
)

// Rate is the result of many short rounds of one kind of work, per second. Other load only ever
// slows a round down, so the best one counts.
type Rate struct {
	Best, Median float64
}

// Spread returns how far the median is below the best round, as a fraction of it.
func (r Rate) Spread() float64 {
	if !(r.Best > 0) {
		return 0
	}
	return max(0, 1-r.Median/r.Best)
}

// Level is a level of the memory hierarchy.
type Level struct {
	Name string
	// Bytes is its capacity for all threads together, 0 for main memory.
	Bytes int64
	// Rate is bytes read and written per second.
	Rate
}

// Rates holds the peak rates of this computer as the engine can use it.
type Rates struct {
	// Float and Integer are multiply-accumulates per second of float32 and of 8-bit integers, all
	// 0 if not measured.
	Float, Integer Rate
	// Levels are the levels of the memory hierarchy, fastest first.
	Levels []Level
	// Clock is the highest measured frequency of a thread, 0 if unknown.
	Clock float64
	// Buffer is the size of the buffer for the memory measurement and Cache the size of the
	// last-level cache, in bytes; 0 for none and for unknown.
	Buffer, Cache int64
	// Passes is the maximum number of measurements of a rate: above 1 the machine was busy.
	Passes int
	// Took is the duration of the measurement.
	Took time.Duration
}

// Options configures the measurement.
type Options struct {
	// Pool is the thread pool.
	Pool *workers.Pool
	// CPUs are the processors that its threads are bound to, nil for none.
	CPUs []int64
	// L1, L2 and L3 are the cache sizes in bytes: L1 and L2 of each processor, L3 shared by all;
	// nil if unknown.
	L1, L2, L3 *int64
	// Leased says that the caller holds the lease: see [loop.Lease].
	Leased bool
}

// known caches the rates by threads and processors: they belong to the computer, not to a model,
// and one process measures many models. The mutex is held only for lookups and updates, never
// while measuring.
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

// Of returns the rates for some threads and processors. The first call in a process measures them
// under the lease; earlier says that they were measured before. The error is the context's if it
// ended first. It takes some 80 ms, up to four times that on a busy machine, plus the wait for
// the lease.
func Of(ctx context.Context, o Options) (r Rates, earlier bool, err error) {
	key := fmt.Sprint(o.Pool.Threads(), o.CPUs)
	if r, ok := lookUp(key); ok {
		return r, true, nil
	}
	if !o.Leased {
		release, err := loop.Lease(ctx)
		if err != nil {
			return Rates{}, false, err
		}
		defer release()
		// The previous holder of the lease may have measured the same.
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
	r := Rates{Clock: Clock()}
	for _, k := range []struct {
		to   *Rate
		work func(product) func()
	}{{&r.Float, floatProduct}, {&r.Integer, integerProduct}} {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		*k.to = r.again(func() []float64 { return kernelRates(o.Pool, k.work) })
	}
	n := int64(o.Pool.Threads())
	size := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	l1, l2, l3 := size(o.L1), size(o.L2), size(o.L3)
	for _, c := range []struct {
		name         string
		bytes, touch int64 // capacity, and the buffer size per thread
	}{
		{"L1", n * l1, l1 / 2},
		{"L2", n * l2, l2 / 2},
		// Well beyond the level before, and well within the share of the last-level cache that
		// one of several virtual machines may have.
		{"L3", l3, min(4*l2, l3/(2*n))},
	} {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if c.bytes > 0 && c.touch >= 4096 {
			r.Levels = append(r.Levels, Level{c.name, c.bytes, r.again(func() []float64 { return cacheRates(o.Pool, c.touch) })})
		}
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	r.Cache, r.Buffer = l3, Buffer(l3)
	// Do not push a small computer into swapping, nor the process beyond its limits.
	if n := machine.MemoryBytes(); (n == nil || *n >= 8*r.Buffer) && spare(r.Buffer) {
		buf := buffer(r.Buffer)
		r.Levels = append(r.Levels, Level{"memory", 0, r.again(func() []float64 { return memoryRates(o.Pool, buf) })})
		runtime.KeepAlive(buf)
	} else {
		r.Buffer = 0
	}
	r.Took = time.Since(start)
	return r, nil
}

// spare reports whether a buffer leaves a reserve of the memory of this process.
func spare(bytes int64) bool {
	free, ok := machine.Free()
	return !ok || bytes <= free-min(machine.Reserve(free), 64<<20)
}

// again is [Again] for one of the rates.
func (r *Rates) again(measured func() []float64) Rate {
	out, passes := Again(measured)
	r.Passes = max(r.Passes, passes)
	return out
}

// Again computes a rate from rounds. It repeats the measurement until the rounds agree or the
// maximum is reached; passes is the number of measurements.
func Again(measured func() []float64) (out Rate, passes int) {
	var all []float64
	for passes < mostPasses {
		passes++
		all = append(all, measured()...)
		if len(all) == 0 {
			continue
		}
		out = Rate{slices.Max(all), stats.Median(all)}
		if out.Spread() <= busySpread {
			break
		}
	}
	return out, passes
}

// Buffer returns the size of the buffer, in bytes, that measures the memory for a last-level
// cache of the given size, 0 if unknown.
func Buffer(cache int64) int64 {
	if cache <= 0 {
		return memoryUsual
	}
	return min(max(4*cache, memoryUsual), memoryMost)
}

// products lists the matrix sizes that kernels are measured with. All of the first fits in a
// usual first-level cache. The second spends less of its time on the ends of sums and reads its
// weights from the second-level cache. The third has enough rows for tiles. Which is fastest
// depends on the processor.
var products = []product{{8, 32, 128}, {8, 128, 256}, {128, 128, 256}}

type product struct{ rows, cols, depth int }

func (s product) macs() int { return s.rows * s.cols * s.depth }

// floatProduct returns a function that multiplies float32 matrices.
func floatProduct(s product) func() {
	a, b, c := make([]float32, s.rows*s.depth), make([]float32, s.depth*s.cols), make([]float32, s.rows*s.cols)
	for i := range a {
		a[i] = float32(i%6+1) / 7 // with all bits set: values with many zero bits are sometimes faster
	}
	for i := range b {
		b[i] = float32(i%4+1) / 5
	}
	packed := gemm.PackB(s.depth, s.cols, b, 0, false)
	g := gemm.Params{M: s.rows, N: s.cols, K: s.depth}
	return func() { gemm.MultiplyPacked(nil, g, a, packed, c) }
}

// integerProduct is floatProduct for 8-bit integers.
func integerProduct(s product) func() {
	x, y := make([]uint8, s.rows*s.depth), make([]int32, s.rows*s.cols)
	w := make([]int32, s.cols*s.depth)
	for i := range x {
		x[i] = uint8(i * 31)
	}
	for i := range w {
		w[i] = int32(i*37%255) - 127
	}
	packed := gemm.NewPackedInt8(s.cols, s.depth)
	packed.Fill(w, s.depth, 1)
	tables := make([]gemm.ByteTable, 1)
	tables[0].Fill(false, 128)
	return func() { gemm.MultiplyInt8(nil, s.rows, x, tables, packed, y) }
}

// kernelRates returns the multiply-accumulates per second of all threads together, each on its
// own data, for each round of the fastest product size.
func kernelRates(pool *workers.Pool, make func(product) func()) []float64 {
	var best []float64
	for _, s := range products {
		if r := productRates(pool, s, make); len(best) == 0 || len(r) > 0 && slices.Max(r) > slices.Max(best) {
			best = r
		}
	}
	return best
}

func productRates(pool *workers.Pool, s product, make func(product) func()) []float64 {
	// Some tens of microseconds: long compared with the distribution of the work.
	repeat := max(1, 1<<18/s.macs())
	n := pool.Threads()
	var work []func()
	for range n {
		work = append(work, make(s))
	}
	return rounds(kernelTime, 1, float64(n*repeat*s.macs()), func() {
		pool.For(n, 1, func(lo, hi int) {
			for _, f := range work[lo:hi] {
				for range repeat {
					f()
				}
			}
		})
	})
}

// rounds repeats f for a time, and at least a number of times, and returns for each round the
// amount of work divided by its time in seconds.
func rounds(d time.Duration, least int, amount float64, f func()) []float64 {
	var out []float64
	start := time.Now()
	for k := 0; k < least || time.Since(start) < d; k++ {
		t := time.Now()
		f()
		if took := time.Since(t); took > 0 {
			out = append(out, amount/took.Seconds())
		}
	}
	return out
}

// cacheRates copies within buffers of touch bytes, one for each thread.
func cacheRates(pool *workers.Pool, touch int64) []float64 {
	n := pool.Threads()
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = buffer(touch)
	}
	half := touch / 2
	repeat := int(max(1, 1<<18/half)) // tens of microseconds, as above
	return rounds(cacheTime, 2, float64(2*half)*float64(n*repeat), func() {
		pool.For(n, 1, func(lo, hi int) {
			for _, b := range bufs[lo:hi] {
				for range repeat {
					copy(b[half:2*half], b[:half])
				}
			}
		})
	})
}

// buffer allocates a buffer and writes to every page, because the system allocates pages on first
// write.
func buffer(size int64) []byte {
	buf := make([]byte, size)
	const page = 4096
	for i := 0; i < len(buf); i += page {
		buf[i] = 1
	}
	return buf
}

// memoryRates copies one half of a buffer to the other and counts the bytes read and written.
func memoryRates(pool *workers.Pool, buf []byte) []float64 {
	from, to := buf[:len(buf)/2], buf[len(buf)/2:]
	const block = 1 << 20
	return rounds(memoryTime, 2, float64(len(buf)), func() {
		pool.For(len(from)/block, 4, func(lo, hi int) {
			copy(to[lo*block:hi*block], from[lo*block:hi*block])
		})
	})
}
