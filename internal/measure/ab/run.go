package ab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// Defaults of [Options].
const (
	DefaultMargin    = 0.01
	DefaultPrecision = 0.01
	DefaultBudget    = time.Minute
)

// precisePart is the part of a difference that the interval may span to either side where no
// precision is given: a factor of two need not be known to 1 %.
const precisePart = 0.1

// pausedPart is the part of the budget that waits for other load may take.
const pausedPart = 0.1

// ErrAlternatives is returned by [Run] for less than two alternatives.
var ErrAlternatives = errors.New("name at least two alternatives")

// Run measures alternatives until every comparison with the first is settled or the budget is
// used. The result holds what was measured until then, also with an error; it is nil if no process
// was measured. If the context ends after that, the result says so, and the error is nil.
func Run(ctx context.Context, alternatives []Alternative, source Blocks, o Options) (*Result, error) {
	if len(alternatives) < 2 {
		return nil, ErrAlternatives
	}
	r := newRunner(alternatives, source, o)
	within, cancel := r.o.Limit(ctx, r.o.Budget)
	defer cancel()
	err := r.measure(within)
	if within.Err() != nil && ctx.Err() == nil {
		err = r.cut(err)
	}
	if r.rounds() == 0 {
		return nil, err
	}
	r.finish(err)
	if ctx.Err() != nil {
		err = nil
	}
	return r.res, err
}

// hangs is from which multiple of the mean time of a round on an unfinished answer is an error, if
// it is longer than hangsS seconds: load of the machine explains less than that.
const hangs, hangsS = 10, 0.5

// UnfinishedError says that an alternative did not answer until the budget was used.
type UnfinishedError struct {
	// Name is the alternative, "" if unknown. Ran is how long its last block took until then.
	Name        string
	Ran, Budget time.Duration
}

func (e *UnfinishedError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("no process of each alternative was measured when the budget of %v was used", e.Budget)
	}
	return fmt.Sprintf("%s: not finished after %v, when the budget of %v was used", e.Name, e.Ran.Round(10*time.Millisecond), e.Budget)
}

// cut is the error of a measurement that ended in a block because the budget was used. It is nil if
// there is a result and the block took no longer than others may.
func (r *runner) cut(err error) error {
	u, ok := errors.AsType[*Unfinished](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err == nil && r.rounds() == 0 {
			err = &UnfinishedError{Budget: r.o.Budget}
		}
		return err
	}
	ran := r.elapsed() - r.asked
	if r.rounds() > 0 && !(ran > hangsS && ran > hangs*r.cost.round(1)) {
		return nil
	}
	return &UnfinishedError{Name: r.res.Alternatives[u.Alternative].Name, Ran: time.Duration(ran * float64(time.Second)), Budget: r.o.Budget}
}

type runner struct {
	o      Options
	source Blocks
	res    *Result
	order  *rand.Rand
	began  time.Time
	cost   costs
	looks  looks
	limits blockLimits
	// asked is when the last request to an alternative began, in seconds from the start.
	asked float64
	// rows counts the rows of blocks that were measured, disturbed those with a disturbed block.
	rows, disturbed int
}

func newRunner(alternatives []Alternative, source Blocks, o Options) *runner {
	if o.Limit == nil {
		o.Limit = context.WithTimeout
		if o.Now != nil { // another clock
			o.Limit = func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
				return context.WithCancel(ctx)
			}
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Margin == 0 {
		o.Margin = DefaultMargin
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	o.Processes = max(o.Processes, MinProcesses)
	r := &runner{o: o, source: source, limits: limitsOf(&o), order: rand.New(rand.NewPCG(o.Seed, 1)), began: o.Now()}
	r.res = &Result{
		Schema: Schema, Comparisons: []Comparison{}, Seed: o.Seed, Margin: o.Margin, Precision: o.Precision,
		FloorS: o.Floor.Seconds(), BudgetS: o.Budget.Seconds(),
	}
	for _, a := range alternatives {
		r.res.Alternatives = append(r.res.Alternatives, Measured{Alternative: a, Processes: [][]float64{}})
	}
	r.looks.tail = falseAlarms / float64(max(len(alternatives)-1, o.Tests))
	return r
}

// rounds is the number of measured processes of each alternative.
func (r *runner) rounds() int { return len(r.res.Alternatives[0].Processes) }

func (r *runner) elapsed() float64 { return r.o.Now().Sub(r.began).Seconds() }

func (r *runner) left() float64 { return r.o.Budget.Seconds() - r.elapsed() }

// measure runs the pilot, plans, and measures on between the looks.
func (r *runner) measure(ctx context.Context) error {
	for r.rounds() < r.o.Processes {
		before := r.rounds()
		if err := r.until(ctx, before+1, r.pilotBlocks()); err != nil || r.rounds() == before {
			return err
		}
	}
	p := r.plan()
	first := p
	r.res.Plan = &first
	if r.o.Planned != nil {
		r.o.Planned(p)
	}
	for look := 1; ; look++ {
		if look > 2 {
			// More processes tell the noise better. It says nothing about the difference, so that
			// the plan may follow it.
			p = r.plan()
		}
		// How many processes fit depends on time alone, not on the figures.
		most := r.rounds() + max(0, int(r.left()/r.cost.round(p.Blocks)))
		if most == r.rounds() || look == mostLooks {
			return nil
		}
		if r.look(most, false); r.settled() {
			r.res.Stop = Settled
			return nil
		}
		growth := math.Pow(float64(most)/float64(r.rounds()), 1/float64(mostLooks-look))
		next := max(r.rounds()+1, int(math.Round(float64(r.rounds())*growth)))
		if err := r.until(ctx, next, p.Blocks); err != nil {
			return err
		}
	}
}

// pilotBlocks is the number of rows of the next round of the pilot: fewer where the budget is
// short, because an answer needs all rounds of the pilot.
func (r *runner) pilotBlocks() int {
	if r.rounds() == 0 || !(r.cost.block > 0) {
		return r.limits.pilot
	}
	each := r.left() / float64(r.o.Processes-r.rounds())
	fit := (each - r.cost.start) / r.cost.block
	return int(min(max(fit, float64(r.limits.least)), float64(r.limits.pilot)))
}

func (r *runner) plan() Plan {
	return planned(r.noise(), r.cost, r.left(), r.looks.tail, r.rounds(), r.limits)
}

// until measures rounds until there are a number of them, or the next one exceeds the budget.
func (r *runner) until(ctx context.Context, rounds, blocks int) error {
	for r.rounds() < rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n := r.rounds(); n > 0 && r.left() < r.cost.round(blocks) {
			return nil
		}
		r.pause(ctx)
		if err := r.round(ctx, blocks); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for other load to end.
func (r *runner) pause(ctx context.Context) {
	most := pausedPart*r.o.Budget.Seconds() - r.res.PausedS
	if r.o.Quiet != nil && most > 0 {
		r.res.PausedS += r.o.Quiet(ctx, time.Duration(most*float64(time.Second))).Seconds()
	}
}

// round measures one process of each alternative. With an error it keeps the complete rows of
// blocks, if there are enough.
func (r *runner) round(ctx context.Context, blocks int) error {
	process := r.rounds()
	from := r.elapsed()
	r.asked = from
	err := r.source.Begin(ctx, process)
	begun := r.elapsed()
	var rows [][]Block
	if err == nil {
		if s, ok := r.source.(interface {
			Inputs(alternative int) []string
		}); ok {
			for i := range r.res.Alternatives {
				r.res.Alternatives[i].Inputs = s.Inputs(i)
			}
		}
		rows, err = r.measureRows(ctx, process, blocks)
	}
	over := r.elapsed()
	r.source.End(process)
	r.keep(rows)
	if err == nil {
		// The mean over the rounds so far: caches of the system make the first one slow.
		n := float64(process + 1)
		r.cost.start += (begun - from + r.elapsed() - over - r.cost.start) / n
		r.cost.block += ((over-begun)/float64(len(rows)) - r.cost.block) / n
	}
	return err
}

// measureRows measures rows of blocks: one block of each alternative, in random order. A row with
// a disturbed block is measured again, as long as less than half of all rows are disturbed: a load
// that does not end disturbs each of them. When the budget is used there may be fewer rows.
func (r *runner) measureRows(ctx context.Context, process, rows int) ([][]Block, error) {
	var out [][]Block
	for repeats := rows; len(out) < rows; {
		if len(out) >= r.limits.least && r.left() <= 0 {
			break // the machine became slow
		}
		row, err := r.row(ctx, process)
		if err != nil {
			return out, err
		}
		r.rows++
		if disturbed := r.count(row); disturbed {
			r.disturbed++
			if repeats > 0 && 2*r.disturbed < r.rows+leastBlocks {
				repeats--
				r.res.Repeated++
				continue
			}
		}
		out = append(out, row)
		if r.o.Progress != nil {
			r.o.Progress(min(1, r.elapsed()/r.o.Budget.Seconds()), r.rounds())
		}
	}
	return out, nil
}

func (r *runner) row(ctx context.Context, process int) ([]Block, error) {
	row := make([]Block, len(r.res.Alternatives))
	for _, i := range r.order.Perm(len(row)) {
		r.asked = r.elapsed()
		b, err := r.source.Block(ctx, process, i)
		if err != nil && ctx.Err() != nil {
			err = &Unfinished{i, ctx.Err()}
		}
		if err == nil && !(b.Seconds > 0 && b.Seconds < math.MaxFloat64) {
			err = fmt.Errorf("%s: a block of %v s per inference", r.res.Alternatives[i].Name, b.Seconds)
		}
		if err != nil {
			return nil, err
		}
		row[i] = b
	}
	return row, nil
}

// count adds the inferences of a row, and reports whether it was disturbed.
func (r *runner) count(row []Block) (disturbed bool) {
	for i, b := range row {
		r.res.Alternatives[i].Inferences += b.Inferences
		disturbed = disturbed || b.Disturbed
	}
	return disturbed
}

// keep adds the rows of a process.
func (r *runner) keep(rows [][]Block) {
	if len(rows) < r.limits.least {
		return
	}
	for i := range r.res.Alternatives {
		m := &r.res.Alternatives[i]
		means := make([]float64, len(rows))
		for k, row := range rows {
			means[k] = row[i].Seconds
			if row[i].Disturbed {
				m.Disturbed++
			}
		}
		m.Processes = append(m.Processes, means)
	}
}

// noise is that of the noisiest comparison.
func (r *runner) noise() (worst noise) {
	for i := 1; i < len(r.res.Alternatives); i++ {
		if n := noiseOf(r.ratios(i)); n.error(1, r.limits.pilot) > worst.error(1, r.limits.pilot) {
			worst = n
		}
	}
	return worst
}

func (r *runner) ratios(b int) [][]float64 {
	return logRatios(r.res.Alternatives[0].Processes, r.res.Alternatives[b].Processes)
}

// look evaluates the samples, of which there will be most in all.
func (r *runner) look(most int, last bool) {
	tail := r.looks.next(r.rounds(), most, last)
	if tail <= 0 {
		return // nothing new since the look before
	}
	r.res.Looks++
	r.res.Comparisons = r.res.Comparisons[:0]
	for i := 1; i < len(r.res.Alternatives); i++ {
		r.res.Comparisons = append(r.res.Comparisons, r.compare(i, tail))
	}
}

func (r *runner) compare(b int, tail float64) Comparison {
	ratios := r.ratios(b)
	e := estimated(ratios, r.o.Seed)
	half := e.interval(tail)
	c := Comparison{
		A: 0, B: b, Ratio: math.Exp(e.ratio), Low: math.Exp(e.ratio - half), High: math.Exp(e.ratio + half),
		Allowance: r.o.Margin, Detectable: detectable(e.se, tail, e.processes),
		Blocks: e.blocks, Processes: e.processes, Level: 1 - tail,
	}
	if r.o.Floor > 0 {
		c.Allowance = max(c.Allowance, r.o.Floor.Seconds()/seconds(r.res.Alternatives[0].Processes))
	}
	c.Verdict = c.judge()
	return c
}

// judge returns the verdict of an interval. Equality is tested and not assumed: both ends lie
// within the allowance, which are two one-sided tests.
func (c *Comparison) judge() Verdict {
	switch {
	case c.Low >= 1-c.Allowance && c.High <= 1+c.Allowance:
		return Equivalent
	case c.High < 1:
		return Better
	case c.Low > 1:
		return Worse
	}
	return Undecided
}

// settled reports whether all comparisons are decided and precise enough.
func (r *runner) settled() bool {
	if r.o.Settled != nil {
		return len(r.res.Comparisons) > 0 && r.o.Settled(r.res.Comparisons)
	}
	for _, c := range r.res.Comparisons {
		precision := r.o.Precision
		if precision == 0 {
			precision = max(DefaultPrecision, precisePart*math.Abs(c.Ratio-1))
		}
		if c.Verdict == Undecided || (c.High-c.Low)/2 > precision {
			return false
		}
	}
	return len(r.res.Comparisons) > 0
}

// finish evaluates what is not evaluated yet, and says why the measurement ended.
func (r *runner) finish(err error) {
	if r.rounds() >= MinProcesses {
		r.look(r.rounds(), r.res.Stop != Settled)
	}
	if r.res.Stop == "" {
		r.res.Stop = stopOf(err)
	}
	for i := range r.res.Alternatives {
		m := &r.res.Alternatives[i]
		m.Seconds = seconds(m.Processes)
	}
	r.res.TookS = r.elapsed()
}

func stopOf(err error) Stop {
	switch {
	case err == nil:
		return BudgetOver
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	}
	return Failed
}

// seconds is the median over processes of their median blocks.
func seconds(processes [][]float64) float64 { return stats.Median(processMedians(processes)) }
