package port

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "locks")
	a, h := acquire(dir, "/dev/ttyX0")
	if a == nil || h != nil {
		t.Fatalf("the first one: %v, %v", a, h)
	}
	if b, h := acquire(dir, "/dev/ttyX0"); b != nil || h == nil || h.PID != os.Getpid() || !h.Lock || h.Program == "" {
		t.Errorf("a second one: %v, %+v", b, h)
	}
	if h := lockedBy(dir, "/dev/ttyX0"); h == nil || h.PID != os.Getpid() {
		t.Errorf("the list: %+v", h)
	}
	if b, h := acquire(dir, "/dev/ttyX1"); b == nil || h != nil {
		t.Errorf("another device: %v, %v", b, h)
	} else {
		b.release()
	}
	a.release()
	a.release()
	if h := lockedBy(dir, "/dev/ttyX0"); h != nil {
		t.Errorf("after release: %+v", h)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files that are left: %v, %v", left, err)
	}
	b, h := acquire(dir, "/dev/ttyX0")
	if b == nil || h != nil {
		t.Fatalf("once more: %v, %v", b, h)
	}
	b.release()
}

// The lock file of a process that does not live any more is not an obstacle, whatever it says.
func TestLockOfTheDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, text := range []string{"", "x", fmt.Sprintf("%s\npid %d\nprogram init\n", lockHead, os.Getppid()), strings.Repeat("long ", 10000)} {
		if err := os.WriteFile(lockPath(dir, "/dev/ttyX0"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, h := acquire(dir, "/dev/ttyX0")
		if l == nil || h != nil {
			t.Fatalf("%.20q: %v, %v", text, l, h)
		}
		l.release()
	}
}

// A process that is killed leaves no lock behind.
func TestLockOfTheKilled(t *testing.T) {
	if dir := os.Getenv("OPMETER_TEST_LOCK"); dir != "" {
		if l, _ := acquire(dir, "/dev/ttyX0"); l != nil {
			fmt.Println("locked")
			time.Sleep(time.Minute)
		}
		return
	}
	t.Parallel()
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockOfTheKilled$")
	c.Env = append(os.Environ(), "OPMETER_TEST_LOCK="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 7)
	if _, err := out.Read(b); err != nil || string(b[:6]) != "locked" {
		t.Fatalf("%q, %v", b, err)
	}
	if _, h := acquire(dir, "/dev/ttyX0"); h == nil || h.PID != c.Process.Pid {
		t.Errorf("while it lives: %+v, its process is %d", h, c.Process.Pid)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it says that it was killed
	l, h := acquire(dir, "/dev/ttyX0")
	if l == nil || h != nil {
		t.Fatalf("after it was killed: %v, %+v", l, h)
	}
	l.release()
}

// Where no lock file can be written, there is no lock and no refusal.
func TestNoLockDir(t *testing.T) {
	t.Parallel()
	f := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(f, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, h := acquire(f, "/dev/ttyX0")
	if l != nil || h != nil {
		t.Errorf("%v, %v", l, h)
	}
	l.release()
}

// What a lock file says is one line each, bounded, and its process has a number.
func FuzzLock(f *testing.F) {
	f.Add([]byte(lockHead + "\npid 12\nport /dev/ttyACM0\nprogram opmeter profile\n"))
	f.Add([]byte(lockHead + "\npid -1\npid 99999999999999999999\nprogram \x1b[2J\xff\n"))
	f.Add([]byte("opmeter port lock 2\npid 3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, device := parseLock(b)
		if h.PID < 0 || len(h.Program) > 300 || len(device) > 2*lockSize || !h.Lock {
			t.Errorf("%+v, %q", h, device)
		}
		for _, s := range []string{h.Program, device, h.String()} {
			if s != oneLine(s) {
				t.Errorf("%q is not a line", s)
			}
		}
	})
}
