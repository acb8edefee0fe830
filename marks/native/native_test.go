package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// warnings are those that the files are free of.
var warnings = []string{"-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-qual", "-Werror"}

// compiler is one that is there.
func compiler(t *testing.T, name, install string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		material.Skip(t, name+" is missing: install "+install)
	}
	return p
}

func compile(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
}

var drive = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "opmeter-marks-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "drive")
	out, err := exec.Command("cc", append(warnings, "-std=c99", "-O2", "-Ic", "-o", path, "testdata/drive.c", "c/opmeter_marks.c", "-pthread")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	status := m.Run()
	if p, err := drive(); err == nil {
		os.RemoveAll(filepath.Dir(p))
	}
	os.Exit(status)
}

// driver is the program of testdata.
func driver(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program of the test is for POSIX")
	}
	compiler(t, "cc", "gcc")
	p, err := drive()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// call runs the driver with marks that go to a file, and returns what it says.
func call(t *testing.T, to string, want int, args ...string) string {
	t.Helper()
	cmd := exec.Command(driver(t), args...)
	cmd.Env = append(os.Environ(), "OPMETER_MARKS="+to)
	out, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == want || err == nil && want == 0 {
		return string(out)
	}
	t.Fatalf("%v: %v\n%s", args, err, out)
	return ""
}

// collected is what a stream holds.
type collected struct {
	stages.Collector
	d      stages.Decoder
	cut    int
	frames []*stages.Frame
	bars   int
}

func collect(data []byte) *collected {
	c := &collected{}
	c.Frame = func(f *stages.Frame) { c.frames = append(c.frames, f) }
	c.Bar = func(stages.Bar) { c.bars++ }
	c.d.Feed(data, c.Block)
	c.cut = c.d.End(c.Block)
	c.End()
	return c
}

func file(t *testing.T, path string) *collected {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return collect(b)
}

// calm checks that nothing was wrong.
func (c *collected) calm(t *testing.T) {
	t.Helper()
	if c.cut != 0 || c.d.Foreign != 0 {
		t.Errorf("%d bytes cut, %d foreign", c.cut, c.d.Foreign)
	}
	for i, n := range c.Problems {
		if n != 0 {
			t.Errorf("problem %d: %d", i, n)
		}
	}
	for _, p := range c.Processes {
		if !p.Ended {
			t.Errorf("process %d did not say its last word", p.Index)
		}
	}
}

// TestCompilers: the source is C99, C11 and C++, without a warning, and so is the header alone.
func TestCompilers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cc, cxx := compiler(t, "cc", "gcc"), compiler(t, "c++", "g++")
	for _, std := range []string{"c99", "gnu99", "c11", "c17"} {
		compile(t, cc, append(warnings, "-std="+std, "-O1", "-c", "c/opmeter_marks.c", "-o", filepath.Join(dir, std+".o"))...)
	}
	for _, std := range []string{"c++98", "c++11", "c++17"} {
		compile(t, cxx, append(warnings, "-x", "c++", "-std="+std, "-O1", "-c", "c/opmeter_marks.c", "-o", filepath.Join(dir, std+".o"))...)
	}
	src := filepath.Join(dir, "scope.cc")
	if err := os.WriteFile(src, []byte("#include \"opmeter_marks.h\"\nvoid f(uint32_t s) { opmeter_stage_scope whole(s); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	compile(t, cxx, append(warnings, "-std=c++11", "-Ic", "-c", src, "-o", filepath.Join(dir, "scope.o"))...)
	if mingw, err := exec.LookPath("x86_64-w64-mingw32-gcc"); err == nil {
		compile(t, mingw, append(warnings, "-std=c99", "-O1", "-c", "c/opmeter_marks.c", "-o", filepath.Join(dir, "windows.o"))...)
	}
}

// TestThreads: every frame of every thread is there.
func TestThreads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	if out := call(t, path, 0, "threads", "6", "5000"); out != "dropped 0\n" {
		t.Error(out)
	}
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 30000 || len(c.Processes) != 1 || len(c.Nodes) != 2 {
		t.Errorf("%d frames, %d processes, %d stages", len(c.frames), len(c.Processes), len(c.Nodes))
	}
	for _, f := range c.frames {
		if len(f.Shares) != 2 || f.Shares[0].Calls != 1 || f.Shares[1].Calls != 1 || f.Shares[0].Self+f.Shares[1].Self+f.Unmarked > f.End-f.Begin {
			t.Fatalf("%+v", f)
		}
	}
}

// TestChurn: threads that come and go share lanes, and lose nothing.
func TestChurn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, 0, "churn", "2500", "2")
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 5000 {
		t.Errorf("%d frames", len(c.frames))
	}
}

// TestHanded: a frame that goes from thread to thread has the stages of both.
func TestHanded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, 0, "handed", "20")
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 20 {
		t.Fatalf("%d frames", len(c.frames))
	}
	for _, f := range c.frames {
		if len(f.Shares) != 2 || f.Shares[0].Self < 500_000 || f.Shares[1].Self < 1_000_000 || f.End-f.Begin < 1_500_000 {
			t.Errorf("%+v", f)
		}
	}
}

// TestFork: the child writes a stream of its own, without what waited in the parent.
func TestFork(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, 0, "fork", "3", "100")
	c := file(t, path)
	c.calm(t)
	of := map[int]int{}
	pids := map[uint64]bool{}
	for _, f := range c.frames {
		of[f.Process.Index]++
		pids[f.Process.PID] = true
	}
	if len(of) != 4 || len(pids) != 4 || len(c.frames) != 500 {
		t.Errorf("%v frames of processes, %v", of, pids)
	}
}

// TestKill: what was written before stays.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, -1, "kill", "300", "10")
	c := file(t, path)
	if len(c.frames) != 300 || c.Processes[0].Ended {
		t.Errorf("%d frames, ended %v", len(c.frames), c.Processes[0].Ended)
	}
}

// TestExit: exit writes what waits.
func TestExit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, 3, "exit", "77")
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 77 {
		t.Errorf("%d frames", len(c.frames))
	}
}

// TestReopen: streams come one after the other, and between them is silence.
func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, 0, "reopen", "50")
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 100 || len(c.Processes) != 2 {
		t.Errorf("%d frames of %d streams", len(c.frames), len(c.Processes))
	}
}

// TestNames: more names than there is room for are one.
func TestNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	call(t, path, 0, "names", "5000")
	c := file(t, path)
	if c.bars != 5000 || c.Problems[stages.Malformed] != 0 {
		t.Errorf("%d stages, %v", c.bars, c.Problems)
	}
}

// TestOff: without the variable nothing is made, and with one that leads nowhere open says so.
func TestOff(t *testing.T) {
	t.Parallel()
	call(t, "", 0, "threads", "2", "10")
	for _, to := range []string{"/nonexistent/x", "fd:99", "fd:", "fd:x", "tcp:127.0.0.1", "tcp:127.0.0.1:1", "tcp:localhost:99", strings.Repeat("x", 3000)} {
		if out := call(t, to, 7, "threads", "2", "10"); !strings.HasPrefix(out, "open: ") {
			t.Errorf("%s: %s", to, out)
		}
	}
}

// TestPath: the number of the process makes a file for each.
func TestPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		call(t, filepath.Join(dir, "run-%p.marks"), 0, "threads", "1", "5")
	}
	list, err := filepath.Glob(filepath.Join(dir, "run-*.marks"))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, path := range list {
		c := file(t, path)
		c.calm(t)
		if want := fmt.Sprintf("run-%d.marks", c.Processes[0].PID); filepath.Base(path) != want {
			t.Errorf("%s, want %s", path, want)
		}
	}
}

// pipe runs the driver with marks that go to a pipe, which is read as the function says.
func pipe(t *testing.T, read func(r *os.File) []byte, args ...string) (*collected, string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(driver(t), args...)
	cmd.Env = append(os.Environ(), "OPMETER_MARKS=fd:3")
	cmd.ExtraFiles = []*os.File{w}
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	ended := make(chan error, 1)
	data := make(chan []byte, 1)
	go func() { data <- read(r) }()
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatal("the application hangs")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	b := <-data
	r.Close()
	return collect(b), out.String()
}

func everything(r *os.File) []byte {
	b, _ := io.ReadAll(r)
	return b
}

// TestFullPipe: an application whose marks nobody reads goes on, says how many it left out, and
// what was read before is whole.
func TestFullPipe(t *testing.T) {
	t.Parallel()
	c, out := pipe(t, func(r *os.File) []byte {
		b := make([]byte, 20000)
		n, _ := io.ReadFull(r, b)
		time.Sleep(time.Second) // by then the application has met a full pipe
		return append(b[:n], everything(r)...)
	}, "threads", "3", "200000")
	var dropped int64
	if _, err := fmt.Sscanf(out, "dropped %d\n", &dropped); err != nil || dropped == 0 {
		t.Fatalf("%q: %v", out, err)
	}
	if c.d.Foreign != 0 || c.cut != 0 || c.Problems[stages.LostBlocks] != 0 || len(c.frames) == 0 {
		t.Errorf("%d foreign, %d cut, %v, %d frames", c.d.Foreign, c.cut, c.Problems, len(c.frames))
	}
	for _, f := range c.frames {
		if len(f.Shares) != 2 || f.Shares[0].Calls != 1 || f.Shares[1].Calls != 1 {
			t.Fatalf("a frame that was counted lacks something: %+v", f)
		}
	}
}

// TestClosedPipe: a reader that goes away does not end the application.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	_, out := pipe(t, func(r *os.File) []byte {
		b := make([]byte, 5000)
		n, _ := io.ReadFull(r, b)
		r.Close()
		return b[:n]
	}, "threads", "3", "60000")
	if !strings.HasPrefix(out, "dropped ") {
		t.Error(out)
	}
}

// TestSharedPipe: parent and children write to one pipe, whole blocks each.
func TestSharedPipe(t *testing.T) {
	t.Parallel()
	c, _ := pipe(t, everything, "fork", "4", "2000")
	if c.d.Foreign != 0 || len(c.Processes) != 5 {
		t.Errorf("%d foreign bytes, %d processes", c.d.Foreign, len(c.Processes))
	}
	if c.Problems[stages.DroppedMarks] == 0 && len(c.frames) != 6*2000 {
		t.Errorf("%d frames", len(c.frames))
	}
}

// TestSanitizers: no fault of memory and no race, in threads, forks, wrong nesting and when the
// stream is opened again.
func TestSanitizers(t *testing.T) {
	t.Parallel()
	cc := compiler(t, "cc", "gcc")
	for _, s := range []string{"address,undefined", "thread"} {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "drive")
			if out, err := exec.Command(cc, "-std=c11", "-g", "-O1", "-fsanitize="+s, "-fno-sanitize-recover=all", "-Ic", "-o", path, "testdata/drive.c", "c/opmeter_marks.c", "-pthread").CombinedOutput(); err != nil {
				material.Skip(t, fmt.Sprintf("cc has no -fsanitize=%s: %s", s, out))
			}
			for i, args := range [][]string{{"script"}, {"threads", "4", "3000"}, {"churn", "50", "3"}, {"fork", "2", "100"}, {"reopen", "20"}, {"names", "4500"}, {"handed", "3"}} {
				cmd := exec.Command(path, args...)
				marks := filepath.Join(dir, fmt.Sprint("marks", i))
				cmd.Env = append(os.Environ(), "OPMETER_MARKS="+marks, "ASAN_OPTIONS=detect_leaks=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					if strings.Contains(string(out), "unexpected memory mapping") {
						t.Skip("the sanitizer does not work under this kernel")
					}
					t.Errorf("%v: %v\n%s", args, err, out)
				}
				if file(t, marks).d.Foreign != 0 {
					t.Errorf("%v: foreign bytes", args)
				}
			}
		})
	}
}
