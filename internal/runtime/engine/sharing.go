package engine

import "time"

// sharing decides whether the workers take part in short runs. What they gain depends on where the system has just put the processors:
// handing a loop over takes 0.2 µs or 1.5, and the lines of memory that one core wrote and another reads 6 ns each or 30; and where both are
// halves of one core, there is nothing to gain. Runs are tried the other way from time to time, and go on as was faster. Results are the same.
type sharing struct {
	alone  bool // how runs go at present
	trying bool
	n      int              // runs since that changed
	last   [3]time.Duration // what the last of them took
	kept   time.Duration    // the least of those before a trial
	since  time.Time        // when the last trial ended
	wait   int              // runs until the next one
}

const (
	// rarely is the least time between trials, which take four runs. At least fewRuns pass before each, twice as many after one that changes
	// nothing, up to manyRuns: the first ones may have met others at work.
	rarely   = 20 * time.Millisecond
	fewRuns  = 16
	manyRuns = 256
	// longRun is the time of runs that are not tried: their loops are long, too.
	longRun = 3 * time.Millisecond
	// gained is the part of the time that the other way must not take to be chosen.
	gained = 0.97
)

// ran takes note of a run that ended at now.
func (s *sharing) ran(took time.Duration, now time.Time) {
	if s.n++; s.n == 1 {
		return // caches follow, and threads wake
	}
	s.last[s.n%len(s.last)] = took
	if s.n <= len(s.last) {
		return
	}
	least := min(s.last[0], s.last[1], s.last[2])
	switch {
	case s.trying:
		s.trying, s.since = false, now
		if float64(least) >= gained*float64(s.kept) {
			s.wait = min(max(2*s.wait, fewRuns), manyRuns)
			s.turn()
		} else {
			s.wait = fewRuns
		}
	case least < longRun && s.n >= max(s.wait, fewRuns) && (s.wait == 0 || now.Sub(s.since) >= rarely):
		s.trying, s.kept = true, least
		s.turn()
	}
}

// turn goes on the other way.
func (s *sharing) turn() { s.alone, s.n = !s.alone, 0 }
