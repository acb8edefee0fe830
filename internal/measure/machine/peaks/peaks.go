package peaks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/rates"
)

// sliceTime is the minimum time of a slice.
const sliceTime = 3 * time.Millisecond

// Options configures the measurement.
type Options struct {
	// Pool is the thread pool.
	Pool *workers.Pool
	// CPUs are the processors that its threads are bound to, nil for none.
	CPUs []int64
	// L1, L2 and L3 are the cache sizes in bytes: L1 and L2 of each processor, L3 shared by all;
	// nil if unknown.
	L1, L2, L3 *int64
	// Types are the element types to measure, nil for all that have a kernel: see [rates.Types].
	Types []string
	// Usage tells disturbed slices, see [loop.Options].Usage; nil if unknown.
	Usage func() (cpu, preemptions int64)
	// Leased says that the caller holds the lease: see [loop.Lease].
	Leased bool
}

// known caches the rates by threads and processors: they belong to the computer, not to a model,
// and one process measures many models. The mutex is held only for lookups and updates, never
// while measuring.
var known = struct {
	sync.Mutex
	rates map[string]rates.Rates
}{rates: map[string]rates.Rates{}}

func lookUp(key string, types []string) (rates.Rates, bool) {
	known.Lock()
	defer known.Unlock()
	r, ok := known.rates[key]
	for _, t := range types {
		ok = ok && r.Of(t).Best > 0
	}
	return r, ok
}

// note stores rates, and those of other types that were stored before.
func note(key string, r rates.Rates) {
	known.Lock()
	defer known.Unlock()
	before := known.rates[key]
	for _, t := range rates.Types {
		if v := r.Of(t); v.Best == 0 {
			*v = *before.Of(t)
		}
	}
	known.rates[key] = r
}

// key is what rates depend on.
func (o *Options) key() string { return fmt.Sprint(o.Pool.Threads(), o.CPUs) }

// types are the types to measure.
func (o *Options) types() []string {
	if o.Types == nil {
		return rates.Types
	}
	return o.Types
}

// Of returns the rates for some threads and processors. The first call in a process measures them
// under the lease; earlier says that they were measured before. The error is the context's if it
// ended first. It takes some 80 ms, up to four times that on a busy machine, plus the wait for
// the lease.
func Of(ctx context.Context, o Options) (r rates.Rates, earlier bool, err error) {
	if r, ok := lookUp(o.key(), o.types()); ok {
		return r.Only(o.types()), true, nil
	}
	if !o.Leased {
		release, err := loop.Lease(ctx)
		if err != nil {
			return rates.Rates{}, false, err
		}
		defer release()
	}
	return Begin(o).End(ctx)
}

// spare reports whether a buffer leaves a reserve of the memory of this process.
func spare(bytes int64) bool {
	free, ok := machine.Free()
	return !ok || bytes <= free-min(machine.Reserve(free), 64<<20)
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

// productRound returns a round of a product size, of all threads together and each on its own data,
// and its multiply-accumulates.
func productRound(pool *workers.Pool, s product, make func(product) func()) (round func(), macs float64) {
	// Some tens of microseconds: long compared with the distribution of the work.
	repeat := max(1, 1<<18/s.macs())
	n := pool.Threads()
	var work []func()
	for range n {
		work = append(work, make(s))
	}
	return func() {
		pool.For(n, 1, func(lo, hi int) {
			for _, f := range work[lo:hi] {
				for range repeat {
					f()
				}
			}
		})
	}, float64(n * repeat * s.macs())
}

// mover returns a function that copies one half of a buffer to the other, or reads both: it moves
// as many bytes as the buffer has.
func mover(reads bool) func(b []float32) {
	if reads {
		return func(b []float32) { vectors.Dot(b[:len(b)/2], b[len(b)/2:]) }
	}
	return func(b []float32) { copy(b[len(b)/2:], b[:len(b)/2]) }
}

// cacheRound returns a round that copies within buffers of touch bytes, one for each thread, or
// reads them, and the bytes that it reads and writes.
func cacheRound(pool *workers.Pool, touch int64, reads bool) (round func(), bytes float64) {
	n := pool.Threads()
	bufs := make([][]float32, n)
	for i := range bufs {
		bufs[i] = buffer(touch / 8 * 8)
	}
	half, move := touch/2, mover(reads)
	repeat := int(max(1, 1<<18/half)) // tens of microseconds, as above
	return func() {
		pool.For(n, 1, func(lo, hi int) {
			for _, b := range bufs[lo:hi] {
				for range repeat {
					move(b)
				}
			}
		})
	}, float64(touch/8*8) * float64(n*repeat)
}

// buffer allocates a buffer in the kind of pages that tensors and weights have. It writes to every
// page, because the system allocates pages on first write.
func buffer(size int64) []float32 {
	buf := hugepages.Make[float32](int(size / 4))
	const page = 4096 / 4
	for i := 0; i < len(buf); i += page {
		buf[i] = 1
	}
	return buf
}

// memoryRound returns a round that copies one half of every block of a buffer to the other half, or
// reads it.
func memoryRound(pool *workers.Pool, buf []float32, reads bool) func() {
	const block = 1 << 19
	move := mover(reads)
	return func() {
		pool.For(len(buf)/block, 4, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				move(buf[i*block:][:block])
			}
		})
	}
}
