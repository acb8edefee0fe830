package subprocess

import (
	"bytes"
	"strings"
	"sync"
)

// maxTail limits how much of the beginning and of the end of a text is kept.
const maxTail = 64 << 10

// Tail keeps the beginning and the end of what a program writes. Several goroutines may use it.
type Tail struct {
	mu    sync.Mutex
	first []byte
	last  []byte
}

// Write implements [io.Writer]. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if room := maxTail - len(t.first); room > 0 {
		k := min(room, len(p))
		t.first = append(t.first, p[:k]...)
		p = p[k:]
	}
	t.last = append(t.last, p...)
	if d := len(t.last) - maxTail; d > 0 {
		t.last = append(t.last[:0], t.last[d:]...)
	}
	return n, nil
}

// Lines returns the lines that are kept.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Split(string(bytes.ToValidUTF8(append(bytes.Clone(t.first), t.last...), []byte("?"))), "\n")
}

// Starved reports whether a process ended because memory ran out, judged by what it printed. The
// messages of Go are conclusive; the messages of C++, the loader and thread creation count only
// if memory was limited.
func Starved(lines []string, limited bool) bool {
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "fatal error: "); ok && (strings.Contains(rest, "out of memory") || strings.Contains(rest, "cannot allocate") || strings.Contains(rest, "cannot map pages")) {
			return true
		}
		for _, words := range []string{"annot allocate", "std::bad_alloc", "failed to map segment", "failed to create new OS thread", "pthread_create failed"} {
			if limited && strings.Contains(l, words) {
				return true
			}
		}
	}
	return false
}
