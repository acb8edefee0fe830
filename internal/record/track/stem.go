package track

import (
	"cmp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/profile"
)

// Stem makes the name of a model or program of a file's: without the endings of traces.
func Stem(name string) string {
	s := name
	for {
		low := strings.ToLower(s)
		cut := len(s)
		for _, end := range []string{".json", ".trace", ".pt", ".pftrace", ".perfetto-trace", ".pb", ".prof", ".pprof", ".cpuprofile", ".txt", ".folded", ".speedscope", ".gz"} {
			if strings.HasSuffix(low, end) && len(end) < len(s) {
				cut = len(s) - len(end)
				break
			}
		}
		if cut == len(s) {
			return cmp.Or(s, "unnamed")
		}
		s = s[:cut]
	}
}

// NewRun returns a run whose model has the name of a file, see [Stem].
func NewRun(f *record.File, format string) *runlog.Run {
	return &runlog.Run{Profile: &profile.Profile{
		Model: profile.Model{Name: Stem(f.Name), Path: f.Path, Format: format},
	}}
}
