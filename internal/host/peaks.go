package host

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/machine"
	"github.com/opmeter/opmeter/internal/workers"
	"github.com/opmeter/opmeter/profile"
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

// rates are the limits of this computer as the engine can use it.
type rates struct {
	float, integer float64 // multiply-accumulates a second, 0 for not measured
	memory         float64 // bytes a second, read and written
	buffer, cache  int64   // sizes of the buffer and of the last-level cache, 0 for not known
	took           time.Duration
}

// ratesOf keeps the rates by the number of threads: they are the computer's, not
// the model's, and one process measures many models.
var ratesOf = struct {
	sync.Mutex
	byThreads map[string]rates
}{byThreads: map[string]rates{}}

// peaks measures what the roofline of this computer needs, after the timed runs
// and with their threads.
func (b *builder) peaks(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	b.progress("peaks", 0)
	pool := b.s.Pool()
	key := fmt.Sprint(pool.Threads(), b.p.Settings.PinnedCPUs)
	ratesOf.Lock()
	defer ratesOf.Unlock()
	r, earlier := ratesOf.byThreads[key]
	if !earlier {
		r = measurePeaks(pool, b.p.Host)
		ratesOf.byThreads[key] = r
		b.phases().PeaksS = new(r.took.Seconds())
	}
	r.describe(&b.p.Target, pool.Threads(), earlier)
}

func measurePeaks(pool *workers.Pool, h *profile.Host) rates {
	start := time.Now()
	r := rates{float: kernelRate(pool, floatProduct), integer: kernelRate(pool, integerProduct)}
	if h != nil && h.CacheL3Bytes != nil {
		r.cache = *h.CacheL3Bytes
	}
	r.buffer = memoryUsual
	if r.cache > 0 {
		r.buffer = min(max(4*r.cache, memoryUsual), memoryMost)
	}
	// A small computer must not be pushed into swapping for this.
	if n := machine.MemoryBytes(); n == nil || *n >= 8*r.buffer {
		r.memory = memoryRate(pool, r.buffer)
	} else {
		r.buffer = 0
	}
	r.took = time.Since(start)
	return r
}

// describe puts the rates into a target.
func (r *rates) describe(t *profile.Target, threads int, earlier bool) {
	var said []string
	if best := max(r.float, r.integer); best > 0 {
		// Two operations to a multiply-accumulate, as everywhere: docs/counting.md.
		t.PeakOpsPerSecond = new(2 * best)
		name, other, rate := "float32", "8-bit", r.integer
		if r.integer > r.float {
			name, other, rate = "8-bit", "float32", r.float
		}
		said = append(said, fmt.Sprintf("operations from the quickest of many short rounds of this engine's %s matrix kernel (%s: %.3g GMAC/s) on data in the caches, a multiply-accumulate being two",
			name, other, rate/1e9))
	}
	if r.memory > 0 {
		t.PeakBytesPerSecond = new(r.memory)
		s := fmt.Sprintf("bytes from copying half of a buffer of %d MiB onto the other, read and written", r.buffer>>20)
		if r.cache > 0 {
			s += fmt.Sprintf(" (last-level cache %d MiB)", r.cache>>20)
		}
		said = append(said, s)
	}
	if len(said) == 0 {
		return
	}
	when := "measured here after the runs"
	if earlier {
		when = "measured here earlier in the same process"
	}
	n := "1 thread"
	if threads != 1 {
		n = fmt.Sprintf("%d threads", threads)
	}
	t.PeakMethod = fmt.Sprintf("%s, %s: %s", when, n, strings.Join(said, "; "))
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
