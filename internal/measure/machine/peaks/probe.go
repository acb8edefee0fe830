package peaks

import (
	"context"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/rates"
)

const (
	// share is the part of a measurement that slices may take.
	share = 0.05
	// leastSlices and mostSlices bound the slices of a part.
	leastSlices, mostSlices = 2, 6
	// lastTime is the time after the inferences beyond which no part is measured more often than
	// leastSlices times.
	lastTime = 300 * time.Millisecond
)

// Probe measures rates in short slices between the inferences of a measurement, so that both
// experience the same machine. The last-level cache and the memory are measured at the end: their
// buffers would count as memory of the model.
type Probe struct {
	o       Options
	r       rates.Rates
	earlier bool
	parts   []*part
	spent   time.Duration
	now     func() time.Time
}

// part is one kind of work: a product size of a type, or a cache.
type part struct {
	dtype  string // of a product
	name   string // of a cache
	bytes  int64  // capacity of the cache
	reads  bool   // only
	round  func()
	amount float64
	slices int
	rounds []float64
	// calm are the rounds of undisturbed slices, best has the best one of each such slice.
	calm, best []float64
}

// Begin prepares the measurement. What was measured before in this process with as many threads on
// the same processors is not measured again.
func Begin(o Options) *Probe {
	p := &Probe{o: o, now: time.Now}
	start := p.now()
	if r, ok := lookUp(o.key(), o.types()); ok {
		p.r, p.earlier = r.Only(o.types()), true
		return p
	}
	p.r = rates.Rates{Clock: rates.Clock()}
	for _, k := range []struct {
		dtype string
		work  func(product) func()
	}{{"float32", floatProduct}, {"int8", integerProduct}} {
		if !slices.Contains(o.types(), k.dtype) {
			continue
		}
		for _, s := range products {
			round, macs := productRound(o.Pool, s, k.work)
			p.parts = append(p.parts, &part{dtype: k.dtype, round: round, amount: macs})
		}
	}
	l1, l2, _ := o.caches()
	n := int64(o.Pool.Threads())
	p.cache("L1", n*l1, l1/2)
	p.cache("L2", n*l2, l2/2)
	p.spent = p.now().Sub(start)
	return p
}

// caches returns the sizes in bytes, 0 if unknown.
func (o *Options) caches() (l1, l2, l3 int64) {
	for i, to := range []*int64{&l1, &l2, &l3} {
		if v := []*int64{o.L1, o.L2, o.L3}[i]; v != nil {
			*to = *v
		}
	}
	return l1, l2, l3
}

// cache adds a cache with a buffer of touch bytes for each thread.
func (p *Probe) cache(name string, bytes, touch int64) {
	if bytes <= 0 || touch < 4096 {
		return
	}
	for _, reads := range []bool{false, true} {
		round, moved := cacheRound(p.o.Pool, touch, reads)
		p.parts = append(p.parts, &part{name: name, bytes: bytes, reads: reads, round: round, amount: moved})
	}
}

// Slices takes the slices that are due when the measurement has taken so long, and reports whether
// it took any. Call it between inferences.
func (p *Probe) Slices(elapsed time.Duration) (any bool) {
	for p.spent < time.Duration(share*float64(elapsed)) {
		next := p.next(mostSlices)
		if next == nil {
			return any
		}
		any = true
		p.r.Interleaved++
		p.slice(next)
	}
	return any
}

// next is the part with the fewest slices, nil if all have most.
func (p *Probe) next(most int) *part {
	var next *part
	for _, x := range p.parts {
		if x.slices < most && (next == nil || x.slices < next.slices) {
			next = x
		}
	}
	return next
}

// slice measures a part once.
func (p *Probe) slice(x *part) {
	start := p.now()
	var cpu, preemptions int64
	if p.o.Usage != nil {
		cpu, preemptions = p.o.Usage()
	}
	rs := rates.Rounds(p.now, sliceTime, 1, x.amount, x.round)
	took := p.now().Sub(start)
	disturbed := false
	if p.o.Usage != nil {
		c, n := p.o.Usage()
		disturbed = n > preemptions
		if p.o.Pool.Threads() == 1 { // threads that wait for each other are not disturbed
			disturbed = disturbed || float64(took)-float64(c-cpu) > busyWait*float64(took)
		}
	}
	x.add(rs, disturbed)
	p.spent += took
}

// busyWait is the part of a slice from which waiting for a processor is a disturbance.
const busyWait = 0.02

// add adds the rounds of a slice.
func (x *part) add(rs []float64, disturbed bool) {
	x.slices++
	x.rounds = append(x.rounds, rs...)
	if !disturbed && len(rs) > 0 {
		x.calm = append(x.calm, rs...)
		x.best = append(x.best, slices.Max(rs))
	}
}

// settled reports whether the fastest undisturbed slices agree.
func (x *part) settled() bool {
	n := len(x.best)
	if n < leastSlices {
		return false
	}
	slices.Sort(x.best)
	return x.best[n-leastSlices] >= (1-rates.BusySpread)*x.best[n-1]
}

// slower reports whether another product size of the type is faster, so that this one needs no
// exact rate.
func (p *Probe) slower(x *part) bool {
	return x.dtype != "" && slices.ContainsFunc(p.parts, func(y *part) bool {
		return y.dtype == x.dtype && y.rate().Best > x.rate().Best
	})
}

// rate is that of the undisturbed slices, or of all slices if each was disturbed.
func (x *part) rate() rates.Rate {
	if len(x.calm) > 0 {
		return rateOf(x.calm)
	}
	return rateOf(x.rounds)
}

func rateOf(rs []float64) rates.Rate {
	if len(rs) == 0 {
		return rates.Rate{}
	}
	return rates.Rate{Best: slices.Max(rs), Median: stats.Median(rs)}
}

// End takes the slices that each part still needs, measures the rest and returns the rates; earlier
// says that they were measured before. The error is the context's if it ended first.
func (p *Probe) End(ctx context.Context) (r rates.Rates, earlier bool, err error) {
	if r, ok := lookUp(p.o.key(), p.o.types()); ok { // another probe has ended since
		p.r, p.earlier = r.Only(p.o.types()), true
	}
	if p.earlier {
		return p.r, true, nil
	}
	start := p.now()
	before := p.spent
	_, l2, l3 := p.o.caches()
	n := int64(p.o.Pool.Threads())
	// Well beyond the level before, and well within the share of the last-level cache that one
	// of several virtual machines may have.
	p.cache("L3", l3, min(4*l2, l3/(2*n)))
	p.r.Passes = 1
	for _, x := range p.parts {
		for x.slices < leastSlices {
			if err := ctx.Err(); err != nil {
				return rates.Rates{}, false, err
			}
			p.slice(x)
		}
	}
	for _, x := range p.parts {
		extra := 0
		for !x.settled() && !p.slower(x) && x.slices < rates.MostPasses*leastSlices && p.now().Sub(start) < lastTime {
			if err := ctx.Err(); err != nil {
				return rates.Rates{}, false, err
			}
			p.slice(x)
			extra++
		}
		p.r.Passes = max(p.r.Passes, 1+(extra+leastSlices-1)/leastSlices)
	}
	for _, x := range p.parts {
		rate := x.rate()
		switch {
		case x.name != "" && x.reads:
			p.r.Levels[len(p.r.Levels)-1].Read = rate // of the same level
			continue
		case x.name != "":
			p.r.Levels = append(p.r.Levels, rates.Level{Name: x.name, Bytes: x.bytes, Rate: rate})
			continue
		}
		if of := p.r.Of(x.dtype); rate.Best > of.Best { // the fastest product size
			*of = rate
		}
	}
	if err := ctx.Err(); err != nil {
		return rates.Rates{}, false, err
	}
	p.memory(l3, start)
	p.r.Took = before + p.now().Sub(start)
	note(p.o.key(), p.r)
	p.earlier = true
	return p.r, false, nil
}

// memory measures the main memory, given the size of the last-level cache and the time at which the
// inferences ended.
func (p *Probe) memory(cache int64, start time.Time) {
	r := &p.r
	r.Cache, r.Buffer = cache, rates.Buffer(cache)
	// Do not push a small computer into swapping, nor the process beyond its limits.
	if n := machine.MemoryBytes(); n != nil && *n < 8*r.Buffer || !spare(r.Buffer) {
		r.Buffer = 0
		return
	}
	buf := buffer(r.Buffer)
	level := rates.Level{Name: "memory"}
	for i, rate := range []*rates.Rate{&level.Rate, &level.Read} {
		x := &part{round: memoryRound(p.o.Pool, buf, i > 0), amount: float64(r.Buffer)}
		for x.slices < leastSlices || !x.settled() && x.slices < rates.MostPasses*leastSlices && p.now().Sub(start) < lastTime {
			p.slice(x)
		}
		*rate = x.rate()
	}
	r.Levels = append(r.Levels, level)
}
