package loop

// MaxSpans bounds the memory of a timeline, 24 bytes each.
const MaxSpans = 1_000_000

// Span is the start and end of a step, in nanoseconds of the clock.
type Span struct {
	Start, End int64
	Step       int32
}

// SpanRun is a run whose spans were kept: its number from 0, its bounds, and its part of
// [Spans.Kept].
type SpanRun struct {
	Number     int
	Start, End int64
	From, To   int
	Missed     int64 // steps that were not recorded
}

// Spans keeps the times of the steps of whole runs in preallocated memory. If there are more runs
// than fit, it keeps every second, fourth, eighth …, so that the kept ones are spread evenly over
// all.
type Spans struct {
	spans  []Span
	runs   []SpanRun
	limit  int // spans and runs together
	every  int
	number int // number of the next run
}

// NewSpans allocates limit spans; each run itself counts as one.
func NewSpans(limit int) *Spans {
	return &Spans{spans: make([]Span, 0, limit), runs: make([]SpanRun, 0, min(limit, 1<<16)), limit: limit, every: 1}
}

// Add adds the next run: its start and end, its spans in chronological order, and the number of
// steps that the caller could not record. The slice is copied.
func (s *Spans) Add(start, end int64, steps []Span, missed int64) {
	n := s.number
	s.number++
	if n%s.every != 0 {
		return
	}
	if 1+len(steps) > s.limit {
		missed += int64(len(steps))
		steps = nil
	}
	for len(s.spans)+len(s.runs)+len(steps)+1 > s.limit || len(s.runs) == cap(s.runs) {
		s.halve()
		if n%s.every != 0 {
			return
		}
	}
	from := len(s.spans)
	s.spans = append(s.spans, steps...)
	s.runs = append(s.runs, SpanRun{Number: n, Start: start, End: end, From: from, To: len(s.spans), Missed: missed})
}

// halve drops every second run.
func (s *Spans) halve() {
	s.every *= 2
	runs, spans := s.runs[:0], s.spans[:0]
	for _, r := range s.runs {
		if r.Number%s.every != 0 {
			continue
		}
		from := len(spans)
		spans = append(spans, s.spans[r.From:r.To]...)
		r.From, r.To = from, len(spans)
		runs = append(runs, r)
	}
	s.runs, s.spans = runs, spans
}

// Runs returns the number of runs added.
func (s *Spans) Runs() int { return s.number }

// Every returns which runs are kept: 1 for all, 2 for every second and so on.
func (s *Spans) Every() int { return s.every }

// Kept returns the runs and their spans, which must not be changed.
func (s *Spans) Kept() ([]SpanRun, []Span) { return s.runs, s.spans }
