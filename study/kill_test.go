package study

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writes is the environment variable that makes the test binary write into the named study.
const writes = "OPMETER_TEST_STUDY"

func TestMain(m *testing.M) {
	if path := os.Getenv(writes); path != "" {
		os.Exit(writer(path))
	}
	os.Exit(m.Run())
}

// writer appends to a study forever: point after point, and prints a line when one is safe.
func writer(path string) int {
	f, err := Open(path, example())
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	if f.Study().Speed("s") == nil {
		if err := f.Append(Record{Speed: &Speed{SpeedSettings: SpeedSettings{Name: "s", Target: "host"}}}); err != nil {
			fmt.Println("error", err)
			return 1
		}
	}
	for n := len(f.Study().Speed("s").Points); ; n++ {
		if err := f.Append(Record{SpeedPoints: &SpeedPoints{Name: "s", Points: []SpeedPoint{point(n%2, float64(n)/1e6, float64(n))}}}); err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println(n)
	}
}

func child(path string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), writes+"="+path)
	return c
}

// TestKilled kills a writing process a hundred times, at random moments. Every point reported
// safe is in the file, and the next process continues after it.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.study")
	safe, held := -1, 0
	for i := range 100 {
		c := child(path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { _ = c.Process.Kill() })
		for in := bufio.NewScanner(out); in.Scan(); {
			n, err := strconv.Atoi(in.Text())
			if err != nil {
				t.Fatalf("kill %d: %s", i, in.Text())
			}
			if n > held {
				t.Fatalf("kill %d: goes on with %d after %d", i, n, held)
			}
			safe, held = n, n+1
		}
		_ = c.Wait()
		kill.Stop()
		s, _, err := Read(path)
		switch {
		case safe < 0 && (errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNotStudy)):
			continue
		case err != nil:
			t.Fatalf("kill %d: %v", i, err)
		case safe < 0:
			// The child may have written points without having reported one.
			if p := s.Speed("s"); p != nil {
				held = len(p.Points)
			}
			continue
		}
		p := s.Speed("s")
		held = len(p.Points)
		if len(p.Points) <= safe {
			t.Fatalf("kill %d: %d points, %d were safe", i, len(p.Points), safe+1)
		}
		for n, x := range p.Points {
			if *x.Ratio.Median != float64(n) {
				t.Fatalf("kill %d: point %d is %v", i, n, *x.Ratio.Median)
			}
		}
	}
	if safe < 0 {
		t.Error("nothing was ever written")
	}
}

// TestBusy opens a study that another process has open.
func TestBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.study")
	c := child(path)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	in := bufio.NewScanner(out)
	in.Scan()
	err = openError(path, example())
	if e, ok := errors.AsType[*BusyError](err); !ok || e.PID != c.Process.Pid || !strings.HasSuffix(err.Error(), fmt.Sprintf(": process %d works on this study", e.PID)) {
		t.Errorf("%v, want process %d", err, c.Process.Pid)
	}
	if _, _, err := Read(path); err != nil {
		t.Errorf("reading: %v", err)
	}
}
