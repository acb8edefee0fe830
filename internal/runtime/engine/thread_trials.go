package engine

import "time"

// threadTrials decides whether the worker threads take part in short runs. The gain depends on
// where the operating system has placed the threads: dispatching work takes 0.2 µs or 1.5 µs,
// and transferring a cache line from one core to another takes 6 ns or 30 ns. If two threads are
// on hyperthreads of one core, there is nothing to gain. Runs are tried in the other mode from
// time to time and continue in the faster one. Results are the same.
type threadTrials struct {
	alone  bool // current mode
	trying bool
	n      int              // runs since the mode changed
	last   [3]time.Duration // durations of the last runs
	best   time.Duration    // minimum duration before a trial
	since  time.Time        // when the last trial ended
	wait   int              // runs until the next one
}

const (
	// minTrialInterval is the minimum time between trials, which take four runs. At least
	// minTrialRuns runs pass before each trial, twice as many after each one without a gain, up
	// to maxTrialRuns: other load may have disturbed the first ones.
	minTrialInterval = 20 * time.Millisecond
	minTrialRuns     = 16
	maxTrialRuns     = 256
	// longRun is the duration above which runs are not tried: their loops are long too.
	longRun = 3 * time.Millisecond
	// minGain is the fraction of the time that the other mode must stay below to be chosen.
	minGain = 0.97
)

// record evaluates a run that ended at now.
func (s *threadTrials) record(took time.Duration, now time.Time) {
	if s.n++; s.n == 1 {
		return // caches warm up, and threads wake
	}
	s.last[s.n%len(s.last)] = took
	if s.n <= len(s.last) {
		return
	}
	least := min(s.last[0], s.last[1], s.last[2])
	switch {
	case s.trying:
		s.trying, s.since = false, now
		if float64(least) >= minGain*float64(s.best) {
			s.wait = min(max(2*s.wait, minTrialRuns), maxTrialRuns)
			s.switchMode()
		} else {
			s.wait = minTrialRuns
		}
	case least < longRun && s.n >= max(s.wait, minTrialRuns) && (s.wait == 0 || now.Sub(s.since) >= minTrialInterval):
		s.trying, s.best = true, least
		s.switchMode()
	}
}

// switchMode switches to the other mode.
func (s *threadTrials) switchMode() { s.alone, s.n = !s.alone, 0 }
