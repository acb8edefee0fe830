// Package ab compares alternatives that are measured interleaved: processes of all alternatives run
// at the same time, and answer short blocks of inferences one after the other, in random order.
// The statistic of two alternatives is the median of the log-ratios of their blocks. Its interval
// is a bootstrap over processes and blocks: samples of one process are not independent, because
// each process has a speed of its own. docs/reference/ab.md states the rules.
//
// The package starts no process and reads no clock by itself: both come from the caller, so that
// simulations test the statistics.
package ab

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schema names the format of a [Result] in JSON.
const Schema = "opmeter/ab/v1"

// MinProcesses is the least number of processes of each alternative that a verdict is based on.
const MinProcesses = 5

// Alternative is one of the things that are compared.
type Alternative struct {
	// Name is how reports call it.
	Name string `json:"name"`
	// Command is the program that is measured with its arguments; empty for a worker of opmeter
	// itself.
	Command []string `json:"command,omitempty"`
	// Options are the options of an opmeter worker as a user writes them, for reports.
	Options []string `json:"options,omitempty"`
}

// Block is what one process answers to one request: a few consecutive inferences.
type Block struct {
	// Seconds is the interquartile mean of the durations of the undisturbed inferences, or of all
	// if too few were undisturbed. A command that is timed as a whole counts as one inference.
	Seconds float64 `json:"seconds"`
	// Inferences is how many were timed.
	Inferences int `json:"inferences"`
	// Disturbed says that too few inferences were undisturbed: the block should be repeated.
	Disturbed bool `json:"disturbed,omitzero"`
}

// Blocks is the source of samples. A round is one process of each alternative; rounds are numbered
// from 0. The methods are called by one goroutine.
type Blocks interface {
	// Begin starts the processes of a round, loads the models and warms up. If the context ends
	// before, it returns an [Unfinished], if it knows which alternative it waited for.
	Begin(ctx context.Context, process int) error
	// Block measures a block of inferences of an alternative in the round that was begun.
	Block(ctx context.Context, process, alternative int) (Block, error)
	// End ends the processes of a round. It is called for each round that was begun.
	End(process int)
}

// Unfinished is the error of an alternative that was still busy when the context ended.
type Unfinished struct {
	Alternative int // its index
	Err         error
}

func (e *Unfinished) Error() string { return e.Err.Error() }
func (e *Unfinished) Unwrap() error { return e.Err }

// Options say when a comparison is settled.
type Options struct {
	// Precision is the half-width of the interval at which a decided comparison ends, as a
	// fraction: 0.01 is ±1 %. 0 means the larger of 1 % and a tenth of the difference.
	Precision float64
	// Margin is the largest difference that counts as equal, as a fraction; 0 means 1 %.
	Margin float64
	// Floor is an absolute difference of one inference that counts as equal. The larger of Margin
	// and Floor is the allowance.
	Floor time.Duration
	// Budget is the time that may be used; 0 means a minute. A process that is busy then is ended.
	Budget time.Duration
	// Processes is the least number of processes of each alternative, at least [MinProcesses]; 0
	// means that.
	Processes int
	// Single says that each block is a process of its own: a round has one block then.
	Single bool
	// Tests is the number of comparisons that are decided together with those of this run, as in a
	// matrix of models; 0 means none. The interval is corrected for all of them.
	Tests int
	// Settled decides after each look whether to stop, for callers with a rule of their own; nil
	// stops when all verdicts are decided and precise enough.
	Settled func([]Comparison) bool
	// Seed chooses the order of blocks and the bootstrap.
	Seed uint64
	// Now reads the clock that the budget is counted on; nil is the clock of the system.
	Now func() time.Time
	// Limit ends a context when a time is over, as [context.WithTimeout] does. nil is that, or no
	// limit where Now is another clock.
	Limit func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	// Quiet waits, before a round, until no other load runs, at most a time, and returns how long
	// it waited; nil does not wait. All waits together take at most a tenth of the budget.
	Quiet func(ctx context.Context, most time.Duration) time.Duration
	// Planned is called once, after the pilot and before the rest is measured; may be nil.
	Planned func(Plan)
	// Progress is called after each block with the fraction of the budget that is used; may be nil.
	Progress func(done float64, processes int)
}

// Plan is what the pilot shows: how the budget is split, and what it can show.
type Plan struct {
	// Processes and Blocks are the number of processes of each alternative that the budget allows,
	// and of block pairs in each.
	Processes int `json:"processes"`
	Blocks    int `json:"blocks"`
	// Between and Within are the standard deviations of log-ratios: of processes, and of blocks
	// within a process.
	Between float64 `json:"between"`
	Within  float64 `json:"within"`
	// Detectable is the smallest relative difference that the budget shows in 95 of 100
	// comparisons.
	Detectable float64 `json:"detectable"`
	// StartS and BlockS are the seconds of starting all processes of a round, and of one block of
	// all alternatives.
	StartS float64 `json:"start_s"`
	BlockS float64 `json:"block_s"`
}

// Verdict is the answer of a comparison.
type Verdict string

// The verdicts are about B, compared with A.
const (
	// Better means that B takes less time than A.
	Better Verdict = "better"
	// Worse means that B takes more time than A.
	Worse Verdict = "worse"
	// Equivalent means that the whole interval lies within the allowance.
	Equivalent Verdict = "equivalent"
	// Undecided means that the interval allows several of them.
	Undecided Verdict = "undecided"
)

// Comparison is the answer for one pair of alternatives, by their indices.
type Comparison struct {
	A int `json:"a"`
	B int `json:"b"`
	// Ratio is the time of B by that of A; Low and High are its 95 % interval, corrected for the
	// number of looks and of comparisons.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Verdict is the answer; Allowance is the relative difference that counted as equal.
	Verdict   Verdict `json:"verdict"`
	Allowance float64 `json:"allowance"`
	// Detectable is the smallest relative difference that this number of processes and blocks
	// shows in 95 of 100 comparisons.
	Detectable float64 `json:"detectable"`
	// Blocks and Processes are the number of pairs of blocks and of processes of each alternative.
	Blocks    int `json:"blocks"`
	Processes int `json:"processes"`
	// Level is the confidence level of the interval before the corrections: above 0.95.
	Level float64 `json:"level"`
}

// Hidden is the largest relative difference that the interval allows: what could still hide behind
// an undecided comparison.
func (c *Comparison) Hidden() float64 { return max(1-c.Low, c.High-1, 0) }

// Measured is an alternative with its samples.
type Measured struct {
	Alternative
	// Inputs are the shapes of the model's inputs, such as "1x3x32x32", absent if unknown.
	Inputs []string `json:"inputs,omitempty"`
	// Seconds is the median over processes of their median blocks, per inference.
	Seconds float64 `json:"seconds"`
	// Processes holds for each process the means of its blocks in seconds per inference, in
	// chronological order. The same places of all alternatives were measured together.
	Processes [][]float64 `json:"processes"`
	// Inferences is how many were measured, also in repeated blocks; Disturbed is how many blocks
	// of the processes are disturbed.
	Inferences int `json:"inferences"`
	Disturbed  int `json:"disturbed"`
}

// OtherInputs reports whether two alternatives are known to take inputs of different shapes. items
// is how many times as many items an inference of b has if only the batch differs, else 0.
func OtherInputs(a, b *Measured) (differ bool, items float64) {
	if len(a.Inputs) == 0 || len(b.Inputs) == 0 || slices.Equal(a.Inputs, b.Inputs) {
		return false, 0
	}
	if len(a.Inputs) != len(b.Inputs) {
		return true, 0
	}
	for i := range a.Inputs {
		m, x, _ := strings.Cut(a.Inputs[i], "x")
		n, y, _ := strings.Cut(b.Inputs[i], "x")
		p, err := strconv.ParseFloat(m, 64)
		q, err2 := strconv.ParseFloat(n, 64)
		if err != nil || err2 != nil || x != y || !(p > 0) || !(q > 0) || i > 0 && q/p != items {
			return true, 0
		}
		items = q / p
	}
	return true, items
}

// Stop says why the measurement ended.
type Stop string

// Reasons to stop.
const (
	// Settled means that all comparisons are decided and precise enough.
	Settled Stop = "settled"
	// BudgetOver means that the budget is used.
	BudgetOver Stop = "budget"
	// Cancelled means that the user stopped it: what was measured until then is kept.
	Cancelled Stop = "cancelled"
	// Failed means that a process failed: what was measured until then is kept.
	Failed Stop = "failed"
)

// Result is the outcome of [Run].
type Result struct {
	Schema       string       `json:"schema"`
	Alternatives []Measured   `json:"alternatives"`
	Comparisons  []Comparison `json:"comparisons"`
	Stop         Stop         `json:"stop"`
	// Plan is nil if the measurement ended within the pilot.
	Plan *Plan `json:"plan,omitempty"`
	// Margin, Precision, FloorS and BudgetS are the options with their defaults; Precision is
	// absent if it follows from the difference.
	Margin    float64 `json:"margin"`
	Precision float64 `json:"precision,omitempty"`
	FloorS    float64 `json:"floor_s,omitempty"`
	BudgetS   float64 `json:"budget_s"`
	Seed      uint64  `json:"seed"`
	// TookS is the time of the whole measurement, PausedS the part of it spent waiting for other
	// load to end.
	TookS   float64 `json:"took_s"`
	PausedS float64 `json:"paused_s,omitempty"`
	// Repeated is the number of rows of blocks, one of each alternative, that were measured again
	// because one of them was disturbed.
	Repeated int `json:"repeated,omitempty"`
	// Looks is how often the samples were evaluated.
	Looks int `json:"looks"`
}
