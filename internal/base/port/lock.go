package port

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A lock file says which process uses a port. The system holds a lock on the file as long as the
// process lives, so that the file of a dead process is not an obstacle. The contents are
// informative: for people, and for the list of ports.

// lockHead is the first line of a lock file.
const lockHead = "opmeter port lock 1"

// lockSize is the maximum size of a lock file in bytes.
const lockSize = 4 << 10

// errHeld says that another process holds the lock of a file.
var errHeld = errors.New("held")

// LockDir returns the folder of the user's lock files: opmeter/ports in the cache folder, or in
// the folder for temporary files if absent.
func LockDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "opmeter", "ports")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("opmeter-%d", os.Getuid()), "ports")
}

// lock is a held lock, or nil.
type lock struct {
	f    *os.File
	path string
}

// lockPath returns the lock file of a device, given its path without links.
func lockPath(dir, device string) string {
	if dir == "" {
		dir = LockDir()
	}
	sum := sha256.Sum256([]byte(device))
	name := strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '-'
	}, filepath.Base(device))
	return filepath.Join(dir, clip(name, 40)+"-"+hex.EncodeToString(sum[:4])+".lock")
}

// acquire locks a device. It returns the holder if another process, or another port of this one,
// has the lock. If lock files cannot be written, it returns neither: access to the port matters
// more than its lock.
func acquire(dir, device string) (*lock, *Holder) {
	path := lockPath(dir, device)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil
	}
	// Listing the ports holds a lock for a moment to see whether it is free.
	for limit := time.Now().Add(300 * time.Millisecond); ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, nil
		}
		err = tryLock(f, true)
		if err == nil && !same(f, path) {
			// Its holder has removed it in the meantime.
			f.Close()
			continue
		}
		if err == nil {
			if err := writeLock(f, device); err != nil {
				f.Close()
				os.Remove(path)
				return nil, nil
			}
			return &lock{f, path}, nil
		}
		h := readHolder(f)
		f.Close()
		if !errors.Is(err, errHeld) {
			return nil, nil // this file system has no locks
		}
		if time.Now().After(limit) {
			return nil, &h
		}
	}
}

// same reports whether an open file is still the file at its path.
func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// writeLock writes the holder into the lock file.
func writeLock(f *os.File, device string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	text := fmt.Sprintf("%s\npid %d\nport %s\nprogram %s\n", lockHead, os.Getpid(), oneLine(device), oneLine(commandLine()))
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// commandLine returns the command line of this process, without the program's folder.
func commandLine() string {
	if len(os.Args) == 0 {
		return "opmeter"
	}
	return clip(strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " "), 200)
}

// oneLine converts a text to one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// release releases a lock.
func (l *lock) release() {
	if l == nil || l.f == nil {
		return
	}
	// Remove it while it is held, so that no one waits for a file that disappears. A system that
	// cannot remove open files keeps an empty one.
	if os.Remove(l.path) != nil {
		_ = l.f.Truncate(0)
	}
	l.f.Close()
	l.f = nil
}

// lockedBy returns the holder of a device's lock, nil for none.
func lockedBy(dir, device string) *Holder {
	f, err := os.OpenFile(lockPath(dir, device), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if !errors.Is(tryLock(f, false), errHeld) {
		return nil
	}
	h := readHolder(f)
	return &h
}

// readHolder reads the holder from a lock file.
func readHolder(f *os.File) Holder {
	b := make([]byte, lockSize)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		n = 0
	}
	h, _ := parseLock(b[:n])
	h.Lock = true
	return h
}

// parseLock parses a lock file: the holder and the device. From a damaged file it returns what is
// readable.
func parseLock(b []byte) (h Holder, device string) {
	h.Lock = true
	b = b[:min(len(b), lockSize)]
	lines := strings.Split(string(b), "\n")
	if lines[0] != lockHead {
		return h, ""
	}
	for _, l := range lines[1:] {
		key, value, ok := strings.Cut(l, " ")
		if !ok {
			continue
		}
		value = oneLine(value)
		switch key {
		case "pid":
			if n, err := strconv.ParseInt(value, 10, 32); err == nil && n > 0 {
				h.PID = int(n)
			}
		case "port":
			device = value
		case "program":
			h.Program = clip(value, 256)
		}
	}
	return h, device
}
