//go:build !linux

package machine

import (
	"strconv"

	"github.com/opmeter/opmeter/profile"
)

// What this system tells is not read yet: absent, not guessed.

func (s system) static(*profile.Host)      {}
func (s system) state() *profile.HostState { return nil }
func (s system) counters() counters        { return counters{} }
func (s system) core(cpu int) string       { return strconv.Itoa(cpu) }

// ProcessPeakBytes is the largest resident size of the process so far, nil since
// this system is not asked.
func ProcessPeakBytes() *int64 { return nil }

func (s system) free() (int64, bool) { return 0, false }
