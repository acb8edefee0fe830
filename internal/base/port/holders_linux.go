package port

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// holders returns the other processes that have a device open. Processes of other users are
// visible to an administrator only.
func holders(path string) []Holder { return holdersOf([]string{path})[path] }

// holdersOf is holders for several devices in one scan.
func holdersOf(paths []string) map[string][]Holder { return holdersIn("/proc", paths) }

func holdersIn(proc string, paths []string) map[string][]Holder {
	found := map[string][]Holder{}
	if len(paths) == 0 {
		return found
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return found
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		fds, err := os.ReadDir(filepath.Join(proc, e.Name(), "fd"))
		if err != nil {
			continue // another user's process, or it has ended
		}
		for _, fd := range fds {
			to, err := os.Readlink(filepath.Join(proc, e.Name(), "fd", fd.Name()))
			if err != nil || !slices.Contains(paths, to) {
				continue
			}
			if slices.ContainsFunc(found[to], func(h Holder) bool { return h.PID == pid }) {
				continue
			}
			found[to] = append(found[to], Holder{PID: pid, Program: strings.TrimSpace(line(filepath.Join(proc, e.Name(), "comm")))})
		}
	}
	return found
}
