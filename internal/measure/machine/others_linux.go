package machine

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processorTimes reads the processor time of all programs and of this one with its children that
// have ended, in seconds.
func processorTimes() (all, own float64, ok bool) {
	t, ok := system{"/"}.text("proc/stat")
	if !ok {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(t, "\n")
	f := strings.Fields(line)
	if len(f) < 8 || f[0] != "cpu" {
		return 0, 0, false
	}
	// cpu user nice system idle iowait irq softirq …
	for _, k := range []int{1, 2, 3, 6, 7} {
		v, err := strconv.ParseFloat(f[k], 64)
		if err != nil {
			return 0, 0, false
		}
		all += v / ticksPerSecond
	}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) != nil {
			return 0, 0, false
		}
		own += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	return all, own, true
}
