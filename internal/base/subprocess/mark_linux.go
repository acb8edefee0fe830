package subprocess

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// rounds bounds how often marked processes are looked for: one may start others meanwhile.
const rounds = 50

// killMarked kills processes whose environment has a mark, wherever they went.
func killMarked(mark string) {
	if mark == "" {
		return
	}
	for range rounds {
		if !killRound(mark) {
			return
		}
		time.Sleep(time.Millisecond) // the system takes down what was killed
	}
}

// killRound kills the processes that it finds, and reports whether it found any.
func killRound(mark string) (found bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	names, err := proc.Readdirnames(-1)
	_ = proc.Close()
	if err != nil {
		return false
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !marked(pid, mark) {
			continue
		}
		found = true
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// The number may belong to another process by now.
		if marked(pid, mark) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
	return found
}

// marked reports whether the environment of a process has a mark. Those of other users cannot be
// read, and those of processes that have ended are empty.
func marked(pid int, mark string) bool {
	if pid == os.Getpid() {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool {
		v, ok := bytes.CutPrefix(v, []byte(markVariable+"="))
		return ok && slices.ContainsFunc(bytes.Split(v, []byte(",")), func(m []byte) bool { return string(m) == mark })
	})
}
