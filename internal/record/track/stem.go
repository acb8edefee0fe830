package track

import (
	"cmp"
	"strings"
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
