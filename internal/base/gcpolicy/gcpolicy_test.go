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

// TestTight: a section that wants a small heap gives way to others, and the value from before
// returns at the end.
func TestTight(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	now := func() int { p := debug.SetGCPercent(-1); debug.SetGCPercent(p); return p }
	tight := Tight()
	if got := now(); got != tightPercent {
		t.Errorf("tight: %d, want %d", got, tightPercent)
	}
	wide := At(400)
	if got := now(); got != 400 {
		t.Errorf("with another section: %d, want 400", got)
	}
	wide()
	if got := now(); got != tightPercent {
		t.Errorf("after the other section: %d, want %d", got, tightPercent)
	}
	tight()
	tight()
	if got := now(); got != 100 {
		t.Errorf("at the end: %d, want 100", got)
	}
}
