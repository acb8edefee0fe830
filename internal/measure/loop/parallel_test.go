package loop

import (
	"testing"
)

// TestParallelGroups: with several threads groups are longer, and each begins with runs that do
// not count, because threads have slept.
func TestParallelGroups(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		parallel bool
		each     int64 // nanoseconds per run
		uncounted,
		inGroup int
	}{
		{"one thread", false, 1e6, 0, 5},
		{"several threads", true, 1e6, 3, 30},
		{"several threads, longer than a group", true, 40e6, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var f fake
			calls := 0
			r, err := Measure(t.Context(), Options{
				Clock: f.clock(), Runs: 240, WarmupRuns: 3, WarmupTime: -1, Parallel: tt.parallel,
			}, func() error {
				calls++
				f.t += tt.each
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			groups := len(r.Groups)
			if got, want := r.Groups[0].To-r.Groups[0].From, tt.inGroup; got != want {
				t.Errorf("%d runs in a group, want %d", got, want)
			}
			if got, want := calls-len(r.Warmup)-len(r.Plain), tt.uncounted*groups; got != want {
				t.Errorf("%d runs do not count in %d groups, want %d", got, groups, want)
			}
		})
	}
}
