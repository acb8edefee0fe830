package machine

import (
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (s system) free() (int64, bool) {
	least := int64(math.MaxInt64)
	if n, ok := s.kilobytes("proc/meminfo", "MemAvailable"); ok {
		least = min(least, n)
	}
	for _, l := range []struct {
		resource int
		used     string // field of /proc/self/status
	}{{unix.RLIMIT_AS, "VmSize"}, {unix.RLIMIT_DATA, "VmData"}} {
		var r unix.Rlimit
		if unix.Getrlimit(l.resource, &r) != nil || r.Cur > math.MaxInt64/2 {
			continue
		}
		if used, ok := s.kilobytes("proc/self/status", l.used); ok {
			least = min(least, max(0, int64(r.Cur)-used))
		}
	}
	if n, ok := s.groupFree(); ok {
		least = min(least, n)
	}
	return least, least < math.MaxInt64
}

// kilobytes returns a field of a /proc file in bytes.
func (s system) kilobytes(file, name string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(s.field(file, name), "kB")), 10, 64)
	return n << 10, err == nil
}

// groupFree returns the free memory within the control groups of the process, for both versions.
// A group is bounded by its parents too. Within a container the path of the group is often that
// of the host, and its files are at the root.
func (s system) groupFree() (int64, bool) {
	const root = "sys/fs/cgroup"
	least := int64(math.MaxInt64)
	groups, _ := s.text("proc/self/cgroup")
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, limit, usage, idle := root, "memory.max", "memory.current", "inactive_file"
		switch {
		case parts[0] == "0" && parts[1] == "":
		case contains(parts[1], "memory"):
			base, limit, usage, idle = path.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		default:
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			dir := path.Join(base, at)
			most, ok := s.integer(dir, limit)
			used, known := s.integer(dir, usage)
			// Inactive page cache is reclaimed under memory pressure.
			if ok && known && most < math.MaxInt64/2 {
				least = min(least, max(0, most-max(0, used-s.stat(dir, idle))))
			}
			if at == "/" {
				break
			}
		}
	}
	return least, least < math.MaxInt64
}

func contains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// stat returns a value of a group's memory.stat, 0 if absent.
func (s system) stat(dir, name string) int64 {
	t, _ := s.text(dir, "memory.stat")
	for line := range strings.Lines(t) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
