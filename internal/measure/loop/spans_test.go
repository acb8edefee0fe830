package loop

import (
	"testing"
)

// TestSpansSpread adds more runs than fit and checks that whole runs stay, evenly spread and with
// their own spans.
func TestSpansSpread(t *testing.T) {
	t.Parallel()
	const limit = 100
	for _, steps := range []int{0, 1, 7, 40, 99} {
		for _, n := range []int{1, 2, 3, 64, 1001} {
			s := NewSpans(limit)
			run := make([]Span, steps)
			for i := range n {
				for k := range run {
					run[k] = Span{Start: int64(1000*i + k), End: int64(1000*i + k + 1), Step: int32(k)}
				}
				s.Add(int64(1000*i), int64(1000*i+steps), run, 2)
			}
			runs, spans := s.Kept()
			if s.Runs() != n || len(runs)+len(spans) > limit || len(spans) != steps*len(runs) {
				t.Fatalf("%d runs of %d steps: %d added, %d runs and %d spans kept", n, steps, s.Runs(), len(runs), len(spans))
			}
			if want := (n + s.Every() - 1) / s.Every(); len(runs) != want {
				t.Errorf("%d runs of %d steps: %d kept, want %d (every %d)", n, steps, len(runs), want, s.Every())
			}
			if s.Every() > 1 && 4*(len(runs)+1)*(steps+1) < limit {
				t.Errorf("%d runs of %d steps: only %d kept", n, steps, len(runs))
			}
			for i, r := range runs {
				if r.Number != i*s.Every() || r.Start != int64(1000*r.Number) || r.Missed != 2 {
					t.Fatalf("run %d is %+v, every %d", i, r, s.Every())
				}
				for k, sp := range spans[r.From:r.To] {
					if sp.Step != int32(k) || sp.Start != int64(1000*r.Number+k) {
						t.Fatalf("span %d of run %d is %+v", k, r.Number, sp)
					}
				}
			}
		}
	}
}

func TestSpansTooLong(t *testing.T) {
	t.Parallel()
	s := NewSpans(4)
	s.Add(5, 9, make([]Span, 4), 1)
	if runs, spans := s.Kept(); len(runs) != 1 || len(spans) != 0 || runs[0].Missed != 5 {
		t.Errorf("a run beyond the limit gave %+v with %d spans; want its bounds and 5 missed", runs, len(spans))
	}
}

func TestSpansDoNotAllocate(t *testing.T) {
	s := NewSpans(1000)
	run := make([]Span, 30)
	if n := testing.AllocsPerRun(1000, func() { s.Add(0, 1, run, 0) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
