//go:build !linux

package machine

import (
	"strconv"

	"github.com/opmeter/opmeter/profile"
)

// Not implemented for this system: values are absent, not guessed.

func (s system) static(*profile.Host)      {}
func (s system) state() *profile.HostState { return nil }
func (s system) counters() counters        { return counters{} }
func (s system) core(cpu int) string       { return strconv.Itoa(cpu) }

// ProcessPeakBytes returns nil: it is not implemented for this system.
func ProcessPeakBytes() *int64 { return nil }

// ResidentBytes returns nil: it is not implemented for this system.
func ResidentBytes() (own, files *int64) { return nil, nil }

func (s system) bounds() []Bound { return nil }
