package loop

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// DefaultTime is how long a command measures if neither time nor number of runs is given.
const DefaultTime = 2 * time.Second

// Options says how [Measure] warms up, how long it measures and what it keeps out of the timed
// regions. The zero value measures 50 runs after half a second of warm-up.
type Options struct {
	// Clock to use; nil makes a new one.
	Clock *Clock
	// Runs is the number of samples of each pass. 0 means 50, or as many as fit if Time is set.
	Runs int
	// Time is the time for all measured runs; 0 means no bound. With Runs set too, whichever ends
	// first.
	Time time.Duration
	// MinRuns is the minimum number of samples even when Time is over; 0 means 3.
	MinRuns int
	// WarmupTime and WarmupRuns must both be reached before measuring; the zero values mean half
	// a second and 3 runs. Negative values mean none. Warm-up continues, for at most three times
	// as long, while its latest runs are not steady.
	WarmupTime time.Duration
	WarmupRuns int
	// After runs after each run, outside the timed region. May be nil.
	After func()
	// Instrumented does the same work with profiling. If set, groups of plain and instrumented
	// runs are interleaved in the order ABBA, so that slow changes of the machine affect both
	// equally. AfterInstrumented runs after each of its runs, outside the timed region, and is told
	// whether the system reported a disturbance during the run.
	Instrumented      func() error
	AfterInstrumented func(disturbed bool)
	// Apart says that plain and instrumented runs use two copies of the model, as in engines that
	// load it again to profile it. After each switch between the copies, and after other
	// measurements ran, the caches hold the wrong data and the first runs do not count. Groups
	// are longer then.
	Apart bool
	// Reference is one round of fixed work, such as [Reference.Round]. If set, some rounds of it
	// run before, between and after the groups, so that the machine's speed during each group is
	// known: see [Result.AtReference].
	Reference func()
	// CPUTime reads the CPU time of the calling thread in nanoseconds, ProcessTime that of all
	// threads of the process; nil if the system does not provide it. They separate work from
	// waiting.
	CPUTime, ProcessTime func() int64
	// Usage reads the CPU time of the computing threads in nanoseconds and how often the system
	// took the processor from them; nil if the system does not provide it. It is read before and
	// after samples, or before and after several short ones, and tells which were disturbed.
	Usage func() (cpu, preemptions int64)
	// Parallel says that runs use several threads: the CPU time of the calling thread is then not
	// the time of the work.
	Parallel bool
	// KeepGC leaves garbage collection on in timed regions.
	KeepGC bool
	// HeapGrowth is by how many bytes the memory of the process may grow while garbage collection
	// is off. Above that it runs anyway, and is counted. 0 means 2 GiB.
	HeapGrowth int64
	// Bind binds the calling thread, which is locked to its goroutine, to a processor before the
	// warm-up and returns a function that restores it, on the same thread; nil does not bind. A
	// failure is reported and does not stop the measurement.
	Bind func() (restore func(), err error)
	// Turn is called before each round of plain and instrumented groups, including the first, and
	// returns when it is this measurement's turn. Several engines that measure interleaved, round
	// by round, experience the same changes of the machine. The wait does not count as
	// [Options].Time. nil if there are no others.
	Turn func(context.Context) error
	// Between is called between rounds of groups, outside timed regions, for other short
	// measurements. It is told the time since the first round, and reports whether it measured
	// anything. Its time does not count as [Options].Time. May be nil.
	Between func(elapsed time.Duration) bool
	// Leased says that the caller holds the lease: see [Lease]. Otherwise Measure takes it, and
	// waits while others measure.
	Leased bool
	// Snapshot is called with the results so far, outside timed regions: first after a second,
	// then with growing intervals, so that its cost stays a small part of the total. Its error
	// ends the measurement. May be nil.
	Snapshot func(*Result) error
	// Over is called when no function runs any more, before the results are evaluated. May be
	// nil.
	Over func()
	// Progress is called with the progress from 0 to 1, at most ten times per second and outside
	// timed regions. May be nil.
	Progress func(fraction float64)
}

// Result holds the results of [Measure]. All times are in seconds, in chronological order.
type Result struct {
	// First is the time of the first run, NaN without one.
	First float64
	// Warmup holds the runs before measuring, including the first one (the first million of
	// them). WarmupRuns is their number and WarmupTime their total time including pauses.
	Warmup     []float64
	WarmupRuns int
	WarmupTime float64
	// WarmupSteady says whether the last warm-up runs passed the checks.
	WarmupSteady bool
	// Plain and Profiled are the samples of the two passes.
	Plain, Profiled []float64
	// Disturbed says of each sample of Plain whether the system reported a disturbance. Work is
	// its CPU time in seconds, NaN if unknown.
	Disturbed []bool
	Work      []float64
	// Groups holds the bounds of the ABBA groups: samples [from, to) of Plain or Profiled.
	Groups []Group
	// Slots holds the intervals of the reference loop: one before each group and one after it,
	// which also precedes the next group unless another measurement ran in between. Empty without
	// a reference loop.
	Slots []Slot
	// Batch is the number of runs in one sample of Plain: 1, or more if a single run is too short
	// for the clock.
	Batch int
	// GC is the number of garbage collections within timed regions, ForcedGC the number between
	// them.
	GC, ForcedGC int
	// AllocatedBytes is the average heap memory that a run of the plain pass allocates, NaN if
	// absent.
	AllocatedBytes float64
	// Pinned says whether the thread was bound as requested; PinError why not.
	Pinned   bool
	PinError error
	// Stability judges Plain.
	Stability stats.Stability
	// Clock that was used, nil if none was given and the wait for the lease failed.
	Clock *Clock
}

// Group is a sequence of runs of one pass.
type Group struct {
	Instrumented bool
	From, To     int
	// Slot is the index of the slot before the group; the one after it follows that.
	Slot int
	// Took is the time of the whole group, CPU the CPU time of the thread in it, and Processor
	// that of all threads, in seconds. NaN if the system does not provide it; CPU also for runs
	// with several threads.
	Took, CPU, Processor float64
}

// Slot is an interval of the reference loop: the median time of its rounds, by the wall clock and
// in CPU time, in seconds. CPU is NaN if the system does not provide it.
type Slot struct{ Took, CPU float64 }

// Measure times f, one measurement at a time in the process: it waits for the lease before it
// does anything. It restores the settings of garbage collection when it returns, panics or ends
// with its goroutine. The error is f's own, or the context's if it ended first, also while
// waiting. The result always holds what was measured until then and is never nil. Functions of
// the options must not measure themselves.
func Measure(ctx context.Context, o Options, f func() error) (*Result, error) {
	m := &measurer{ctx: ctx, o: o, f: f, res: &Result{First: math.NaN(), Batch: 1, AllocatedBytes: math.NaN(), Clock: o.Clock}}
	release, err := leaseUnlessHeld(ctx, o.Leased)
	if err != nil {
		m.res.Stability = stats.Judge(nil)
		return m.res, err
	}
	defer release()
	if m.o.Clock == nil {
		m.o.Clock = NewClock()
	}
	m.defaults()
	m.clock = m.o.Clock
	m.res.Clock = m.clock
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if o.Bind != nil {
		restore, err := o.Bind()
		m.res.Pinned, m.res.PinError = err == nil, err
		if err == nil {
			defer restore()
		}
	}
	err = m.warmup()
	if err == nil {
		if !o.KeepGC {
			defer disableGC(o.HeapGrowth)()
		}
		err = m.measure()
	}
	if o.Over != nil {
		o.Over()
	}
	if n := len(m.res.Plain) * m.res.Batch; n > 0 {
		m.res.AllocatedBytes = float64(m.allocated) / float64(n)
	}
	m.res.Stability = stats.Judge(m.res.Plain)
	return m.res, err
}

type measurer struct {
	ctx      context.Context
	o        Options
	f        func() error
	clock    *Clock
	res      *Result
	reported int64
	shot     int64  // time of the last snapshot, in nanoseconds after the start
	heap     uint64 // total bytes allocated at the last collection
	// allocated sums the bytes that the plain groups allocated.
	allocated uint64
	// rounds is the number of rounds of the reference loop between two groups.
	rounds int
	// settle is the number of samples that do not count after a switch of the copy or after other
	// measurements ran, and with several threads in each group. due is how many of them are still
	// to come.
	settle, due int
	// calm counts undisturbed samples.
	calm int
}

func (m *measurer) defaults() {
	o := &m.o
	if o.Runs <= 0 {
		o.Runs = 50
		if o.Time > 0 {
			o.Runs = math.MaxInt32
		}
	}
	if o.Time <= 0 {
		o.Time = math.MaxInt64
	}
	if o.MinRuns <= 0 {
		o.MinRuns = 3
	}
	o.MinRuns = min(o.MinRuns, o.Runs)
	if o.WarmupTime == 0 {
		o.WarmupTime = 500 * time.Millisecond
	}
	if o.WarmupRuns == 0 {
		o.WarmupRuns = 3
	}
}

// timed runs f once and returns its time.
func (m *measurer) timed(f func() error, after func()) (float64, error) {
	start := m.clock.Now()
	err := f()
	d := m.clock.Now() - start
	if err == nil && after != nil {
		after()
	}
	return float64(d) / 1e9, err
}

// warmup runs until both bounds are reached and the latest runs look steady, or three times the
// bounds are over.
func (m *measurer) warmup() error {
	start := m.clock.Now()
	elapsed := func() time.Duration { return time.Duration(m.clock.Now() - start) }
	defer func() { m.res.WarmupTime = elapsed().Seconds() }()
	if m.o.WarmupTime < 0 && m.o.WarmupRuns < 0 {
		return m.ctx.Err()
	}
	const window = 30
	check := 0
	for {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		t, err := m.timed(m.f, m.o.After)
		if err != nil {
			return err
		}
		if len(m.res.Warmup) == 0 {
			m.res.First = t
		}
		m.res.WarmupRuns++
		if len(m.res.Warmup) < 1<<20 {
			m.res.Warmup = append(m.res.Warmup, t)
		}
		if m.o.Instrumented != nil && len(m.res.Warmup) <= 3 {
			// The first instrumented run has a cold start of its own.
			if _, err := m.timed(m.o.Instrumented, nil); err != nil {
				return err
			}
		}
		n, e := m.res.WarmupRuns, elapsed()
		if n < m.o.WarmupRuns || e < m.o.WarmupTime {
			continue
		}
		over := n >= 3*m.o.WarmupRuns && e >= 3*m.o.WarmupTime
		if n >= check || over {
			j := stats.Judge(m.res.Warmup[max(0, len(m.res.Warmup)-window):])
			m.res.WarmupSteady = j.Steady != nil && *j.Steady
			if m.res.WarmupSteady || j.Steady == nil || over {
				return nil
			}
			check = n + window/3
		}
	}
}

const (
	groupTime = 0.005 // duration of a group of short samples, in seconds
	apartTime = 0.01  // the same for two copies: a switch costs up to a millisecond
	// The same for several threads: the work between groups is single-threaded and other threads
	// fall asleep meanwhile. On virtual processors milliseconds can pass until they are awake.
	parallelTime = 0.03
	settlePart   = 0.1     // uncounted part before a group, at least one sample
	maxSamples   = 200_000 // of a measurement bounded by time only
	// usageEvery is the least time between two readings of the usage, in seconds: they cost
	// almost a microsecond.
	usageEvery = 100e-6
	// enoughCalm is the number of undisturbed samples until which the time is extended.
	enoughCalm = 20
)

// measure takes the samples.
func (m *measurer) measure() error {
	each := m.estimate()
	m.res.Batch = m.clock.Batch(each)
	if t := m.o.Time.Seconds(); m.o.Runs == math.MaxInt32 && each > 0 && t < math.MaxInt32 {
		// Long measurements of short runs: more runs per sample, not more samples than are
		// useful.
		m.res.Batch = max(m.res.Batch, int(min(1<<20, t/each/maxSamples)))
	}
	// A group is long enough to settle after the switch, and short enough that the machine stays
	// the same over an ABBA round.
	sample := max(each*float64(m.res.Batch), m.clock.Cost)
	group, most := 1, groupTime
	if m.o.Apart {
		most = apartTime
	}
	if m.o.Parallel {
		most = parallelTime
	}
	if sample < most {
		group = max(1, min(int(most/sample), m.o.Runs/8))
	}
	asleep := m.o.Parallel && group > 1 // other threads are asleep when a group begins
	if m.o.Apart || m.o.Turn != nil || asleep {
		m.settle = int(math.Ceil(settlePart * float64(group)))
	}
	end := int64(math.MaxInt64)
	start := m.clock.Now()
	if m.o.Time < math.MaxInt64 {
		end = start + int64(m.o.Time)
	}
	m.collect()
	// Without a warm-up the first group determines the duration of a group.
	known := len(m.res.Warmup) > 0
	if known {
		m.rounds = m.roundsFor(sample * float64(group))
	} else {
		m.rounds = m.roundsFor(0)
	}
	m.runReference()
	order := []bool{false}
	if m.o.Instrumented != nil {
		order = []bool{false, true, true, false}
	}
	for turn := 0; ; turn++ {
		enough := len(m.res.Plain) >= m.o.Runs && (m.o.Instrumented == nil || len(m.res.Profiled) >= m.o.Runs)
		if enough || m.late(start, end) {
			return nil
		}
		if turn%len(order) == 0 && m.o.Turn != nil {
			waited, err := m.waitTurn()
			if err != nil {
				return err
			}
			start += waited
			if end < math.MaxInt64 {
				end += waited
			}
		}
		if turn > 0 && turn%len(order) == 0 && m.o.Between != nil {
			took := m.between(time.Duration(m.clock.Now()-start), group)
			start += took
			if end < math.MaxInt64 {
				end += took
			}
		}
		instrumented := order[turn%len(order)]
		n := len(m.res.Groups)
		if m.o.Apart && (n == 0 || m.res.Groups[n-1].Instrumented != instrumented) || asleep {
			m.due = m.settle
		}
		if err := m.group(instrumented, group); err != nil {
			return err
		}
		if !known {
			known, m.rounds = true, m.roundsFor(m.res.Groups[0].Took)
		}
		m.runReference()
		m.progress(start, end)
		if err := m.snapshot(start); err != nil {
			return err
		}
	}
}

// late reports whether the time is over. While there are too few undisturbed samples it is
// extended, to at most twice the time.
func (m *measurer) late(start, end int64) bool {
	now := m.clock.Now()
	if now < end || len(m.res.Plain) < m.o.MinRuns || m.o.Instrumented != nil && len(m.res.Profiled) < m.o.MinRuns {
		return false
	}
	return m.calm >= min(enoughCalm, m.o.Runs) || m.calm == len(m.res.Plain) || now >= end+(end-start)
}

// waitTurn waits for this measurement's turn, and returns how long it waited, in nanoseconds. The
// reference loop runs again, because the machine's speed may have changed.
func (m *measurer) waitTurn() (waited int64, err error) {
	from := m.clock.Now()
	if err := m.o.Turn(m.ctx); err != nil {
		return 0, err
	}
	m.due = m.settle
	if len(m.res.Groups) > 0 {
		m.runReference()
	}
	return m.clock.Now() - from, nil
}

// between lets other measurements run between two rounds of groups, and returns how long that took,
// in nanoseconds. They fill the caches: the first runs of short groups after them do not count.
func (m *measurer) between(elapsed time.Duration, group int) (took int64) {
	from := m.clock.Now()
	if !m.o.Between(elapsed) {
		return 0
	}
	if group > 1 {
		m.due = max(m.settle, int(math.Ceil(settlePart*float64(group))))
	}
	m.runReference()
	return m.clock.Now() - from
}

// estimate returns the time of one run, from the second half of the warm-up.
func (m *measurer) estimate() float64 {
	if n := len(m.res.Warmup); n > 0 {
		return stats.Median(m.res.Warmup[n/2:])
	}
	return math.MaxFloat64 // unknown: no batches, no groups
}

func (m *measurer) group(instrumented bool, size int) error {
	dst, f, after, batch := &m.res.Plain, m.f, func(bool) {}, m.res.Batch
	if m.o.After != nil {
		after = func(bool) { m.o.After() }
	}
	if instrumented {
		dst, f, batch = &m.res.Profiled, m.o.Instrumented, 1
		after = func(bool) {}
		if m.o.AfterInstrumented != nil {
			after = m.o.AfterInstrumented
		}
	}
	from := len(*dst)
	if !m.o.KeepGC {
		m.collectIfGrown()
	}
	// one computes a sample.
	one := func() (float64, error) {
		start := m.clock.Now()
		for range batch {
			if err := f(); err != nil {
				return 0, err
			}
		}
		d := m.clock.Now() - start
		return float64(d) / float64(batch) / 1e9, nil
	}
	for ; m.due > 0; m.due-- {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if _, err := one(); err != nil {
			return err
		}
		after(true) // it does not count
	}
	// Reading runtime metrics costs microseconds: once per group, not once per sample.
	gcs, heap := automaticGCs(), readMetric("/gc/heap/allocs:bytes")
	g := m.beginGroup(instrumented, from)
	defer func() {
		m.endGroup(&g)
		if !instrumented {
			m.allocated += readMetric("/gc/heap/allocs:bytes") - heap
		}
		m.res.GC += int(automaticGCs() - gcs)
		g.To = len(*dst)
		m.res.Groups = append(m.res.Groups, g)
	}()
	watch := &usage{m: m, plain: !instrumented}
	if watch.plain {
		watch.every = usageEvery * 1e9
	}
	defer watch.close()
	for range min(size, max(m.o.Runs-from, 1)) {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		watch.begin()
		took, err := one()
		if err != nil {
			return err
		}
		*dst = append(*dst, took)
		after(watch.end())
		if m.o.Apart && float64(m.clock.Now())-g.Took >= apartTime*1e9 {
			break // profiling in external engines may cost a multiple of the work
		}
	}
	return nil
}

// snapshot passes on the results so far after a second, and then whenever another twentieth of
// the time has passed.
func (m *measurer) snapshot(start int64) error {
	if m.o.Snapshot == nil {
		return nil
	}
	now := m.clock.Now() - start
	if now < 1e9 || now < m.shot+max(1e9, m.shot/20) {
		return nil
	}
	m.shot = now
	return m.o.Snapshot(m.res)
}

func (m *measurer) progress(start, end int64) {
	now := m.clock.Now()
	if m.o.Progress == nil || now-m.reported < 1e8 {
		return
	}
	m.reported = now
	have, want := len(m.res.Plain), m.o.Runs
	if m.o.Instrumented != nil {
		have, want = have+len(m.res.Profiled), 2*want
	}
	m.o.Progress(min(1, max(float64(have)/float64(want), float64(now-start)/float64(end-start))))
}

// collectEvery is the growth of the heap after which it is collected between timed regions. It is
// large enough to leave the caches alone.
const collectEvery = 256 << 20

func (m *measurer) collectIfGrown() {
	if readMetric("/gc/heap/allocs:bytes")-m.heap > collectEvery {
		m.collect()
	}
}

func (m *measurer) collect() {
	if m.o.KeepGC {
		return
	}
	runtime.GC()
	m.res.ForcedGC++
	m.heap = readMetric("/gc/heap/allocs:bytes")
}

func automaticGCs() uint64 { return readMetric("/gc/cycles/automatic:gc-cycles") }

func readMetric(name string) uint64 {
	s := [1]metrics.Sample{{Name: name}}
	metrics.Read(s[:])
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
