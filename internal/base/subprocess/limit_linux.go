package subprocess

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits reports whether [Group.Limit] and [Group.Memory] work on this system.
const Limits = true

// Limit bounds what the command and all processes that it starts may use from now on, each of them:
// bytes of private memory, and bytes of a file that is written.
func (g *Group) Limit(memory, file int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.pid <= 0 {
		return nil
	}
	set := func(resource int, n int64) error {
		if n <= 0 {
			return nil
		}
		var old unix.Rlimit
		if err := unix.Prlimit(g.pid, resource, nil, &old); err != nil {
			return err
		}
		most := min(uint64(n), old.Max) // one that is tighter stays
		return unix.Prlimit(g.pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	err := errors.Join(set(unix.RLIMIT_DATA, memory), set(unix.RLIMIT_FSIZE, file))
	if errors.Is(err, unix.ESRCH) {
		return nil // it has ended
	}
	return err
}

// Memory is how many bytes of private memory the processes of the group hold now, those that were
// started by it and by each other.
func (g *Group) Memory() (bytes int64) {
	g.mu.Lock()
	pid, ended := g.pid, g.ended
	g.mu.Unlock()
	if ended || pid <= 0 {
		return 0
	}
	page := int64(os.Getpagesize())
	all := []string{strconv.Itoa(pid)}
	for i := 0; i < len(all) && i < maxProcesses; i++ {
		dir := filepath.Join("/proc", all[i])
		statm, err := os.ReadFile(filepath.Join(dir, "statm"))
		if err != nil {
			continue // it has ended
		}
		if f := strings.Fields(string(statm)); len(f) > 2 {
			resident, err1 := strconv.ParseInt(f[1], 10, 64)
			shared, err2 := strconv.ParseInt(f[2], 10, 64) // files and what is shared
			if err1 == nil && err2 == nil {
				bytes += (resident - shared) * page
			}
		}
		// A child belongs to the thread that started it.
		lists, _ := filepath.Glob(filepath.Join(dir, "task", "*", "children"))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			all = append(all, strings.Fields(string(text))...)
		}
	}
	return bytes
}

// maxProcesses bounds the processes of a group that are looked at.
const maxProcesses = 4096
