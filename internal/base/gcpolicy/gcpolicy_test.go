package gcpolicy

import (
	"runtime/debug"
	"testing"
)

// set reads the setting of the process.
func set() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

// TestAt looks at parts that overlap. It changes the setting of the process, so that nothing runs
// beside it.
func TestAt(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int
		begin  []int // percentages of parts, in the order in which they begin
		during []int // what holds after each has begun
		end    []int // parts, in the order in which they end
		after  []int // what holds after each has ended
	}{
		{"one", 100, []int{400}, []int{400}, []int{0}, []int{100}},
		{"nested", 100, []int{400, Off}, []int{400, Off}, []int{1, 0}, []int{400, 100}},
		{"overlapping", 100, []int{400, Off}, []int{400, Off}, []int{0, 1}, []int{Off, 100}},
		{"less than before", 500, []int{400}, []int{500}, []int{0}, []int{500}},
		{"off before", Off, []int{400, 200}, []int{Off, Off}, []int{0, 1}, []int{Off, Off}},
		{"equal ones", 100, []int{400, 400}, []int{400, 400}, []int{1, 0}, []int{400, 100}},
		{"smaller inside", 100, []int{400, 200}, []int{400, 400}, []int{0, 1}, []int{200, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(c.before))
			var restore []func()
			for i, p := range c.begin {
				restore = append(restore, At(p))
				if got := set(); got != c.during[i] {
					t.Errorf("%d after part %d began, want %d", got, i, c.during[i])
				}
			}
			for i, k := range c.end {
				restore[k]()
				restore[k]()
				if got := set(); got != c.after[i] {
					t.Errorf("%d after part %d ended, want %d", got, k, c.after[i])
				}
			}
		})
	}
}
