package machine

import (
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bounds returns what bounds the memory of this process, each as far as the system reports it.
func (s system) bounds() (out []Bound) {
	if n, ok := s.kilobytes("proc/meminfo", "MemAvailable"); ok {
		b := Bound{By: "the free memory of this computer", Free: n, Most: math.MaxInt64}
		if total, ok := s.kilobytes("proc/meminfo", "MemTotal"); ok {
			swap, _ := s.kilobytes("proc/meminfo", "SwapTotal")
			b.Most = total + swap
		}
		out = append(out, b)
	}
	for _, l := range []struct {
		resource int
		used     string // field of /proc/self/status
		by       string
	}{
		{unix.RLIMIT_AS, "VmSize", "the address space of the process (ulimit -v)"},
		{unix.RLIMIT_DATA, "VmData", "the data segment of the process (ulimit -d)"},
	} {
		var r unix.Rlimit
		if unix.Getrlimit(l.resource, &r) != nil || r.Cur > math.MaxInt64/2 {
			continue
		}
		if used, ok := s.kilobytes("proc/self/status", l.used); ok {
			free := max(0, int64(r.Cur)-used)
			out = append(out, Bound{By: l.by, Free: free, Most: free - Reserve(free)})
		}
	}
	return append(out, s.groupBounds()...)
}

// kilobytes returns a field of a /proc file in bytes.
func (s system) kilobytes(file, name string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(s.field(file, name), "kB")), 10, 64)
	return n << 10, err == nil
}

// groupBounds returns the bounds of the control groups of the process, for both versions. A group
// is bounded by its parents too. Within a container the path of the group is often that of the
// host, and its files are at the root.
func (s system) groupBounds() (out []Bound) {
	const root = "sys/fs/cgroup"
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
				free := max(0, most-max(0, used-s.stat(dir, idle)))
				out = append(out, Bound{By: "the memory limit of the container or control group", Free: free, Most: most})
			}
			if at == "/" {
				break
			}
		}
	}
	return out
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
