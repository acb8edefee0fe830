package testengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// model is a file that all tests measure: y = relu(x).
var model string

// TestMain builds the helper that opens the engines of this package, for all tests.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && os.Args[1] == "ab-worker" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	_ = os.Setenv("OPMETER_DEFAULT_ENGINE", "opmeter") // not what this computer has
	os.Exit(with(m))
}

func with(m *testing.M) int {
	dir, err := os.MkdirTemp("", "engines")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	shared = dir
	helper := filepath.Join(dir, "opmeter-engine")
	if runtime.GOOS == "windows" {
		helper += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", helper, "./engine").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n", out)
		return 1
	}
	model = filepath.Join(dir, "relu.onnx")
	err = testengine.Model(model)
	// What children leave behind is looked for where they make files.
	temp := filepath.Join(dir, "temp")
	if err == nil {
		err = os.Mkdir(temp, 0o700)
	}
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("OPMETER_ENGINE", helper)
	_ = os.Setenv("TMPDIR", temp)
	status := m.Run()
	// However they ended, no child and no file of one is left.
	if list, err := os.ReadDir(temp); err != nil || len(list) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: files are left in %s: %v (%v)\n", temp, list, err)
		status = 1
	}
	if left := running(helper); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: processes are left: %v\n", left)
		status = 1
	}
	return status
}

// running lists the processes of a program, as far as the system has them as files.
func running(program string) (pids []string) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil && exe == program {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// opmeter runs the program with a library that behaves so.
func opmeter(t *testing.T, b testengine.Behaviour, args ...string) (status int, out, errs string) {
	t.Helper()
	lib, err := testengine.Write(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	args = append([]string{"profile", model, "--engine", "onnxruntime=" + lib}, args...)
	status = cli.Main(args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// Each fault is one clear line, with the status that says whose it is. What an engine does that
// does not keep it from computing is not a fault.
func TestFaults(t *testing.T) {
	t.Parallel()
	const engine, input = 4, 3
	anywhere := []testengine.Place{testengine.Open, testengine.About, testengine.Load, testengine.First, testengine.Outputs, testengine.Profiled, testengine.Run, testengine.After, testengine.Recorded}
	if !material.Required() { // each takes a second or more
		anywhere = []testengine.Place{testengine.Open, testengine.Run, testengine.Recorded}
	}
	for _, c := range []struct {
		what   testengine.What
		at     []testengine.Place
		status int
		want   string
		unix   bool
	}{
		{what: testengine.Crash, at: anywhere, status: engine, want: "crashed", unix: true},
		{what: testengine.Abort, at: []testengine.Place{testengine.Open, testengine.Run}, status: engine, want: "SIGABRT", unix: true},
		{what: testengine.Kill, at: []testengine.Place{testengine.Load, testengine.Run}, status: engine, want: "was killed from outside", unix: true},
		{what: testengine.Exit, at: anywhere, status: engine, want: "ended the process"},
		{what: testengine.Exit3, at: []testengine.Place{testengine.Open, testengine.Run}, status: engine, want: "exit status 3"},
		{what: testengine.Hang, at: anywhere, status: engine, want: "did not respond for 1s"},
		{what: testengine.Spin, at: []testengine.Place{testengine.Open, testengine.Run}, status: engine, want: "did not respond for 1s"},
		{what: testengine.Error, at: []testengine.Place{testengine.Open, testengine.Load, testengine.First, testengine.Outputs, testengine.Profiled, testengine.Run, testengine.After, testengine.Recorded}, status: engine, want: "does not feel like it"},
		{what: testengine.Reject, at: []testengine.Place{testengine.Load, testengine.First}, status: input, want: "refuses the model"},
		{what: testengine.Panic, at: anywhere, status: engine, want: "internal error of opmeter-engine"},
		{what: testengine.Print, at: []testengine.Place{testengine.Open, testengine.First, testengine.Recorded}},
		{what: testengine.Flood, at: []testengine.Place{testengine.Run}},
		{what: testengine.Scrawl, at: []testengine.Place{testengine.Load, testengine.Run}, status: engine, want: "Fake Engine", unix: true},
		{what: testengine.Shut, at: []testengine.Place{testengine.Load, testengine.Run}, status: engine, want: "Fake Engine", unix: true},
		{what: testengine.Threads, at: []testengine.Place{testengine.Load}},
		{what: testengine.Nap, at: []testengine.Place{testengine.Profiled}},
	} {
		for _, at := range c.at {
			t.Run(string(c.what)+" at "+string(at), func(t *testing.T) {
				t.Parallel()
				if c.unix && runtime.GOOS == "windows" {
					t.Skip("there are no signals")
				}
				f := testengine.Fault{At: at, What: c.what}
				patience := "2m" // whatever else the machine does
				if c.what == testengine.Hang || c.what == testengine.Spin {
					patience = "1s"
				}
				if at == testengine.Run {
					f.After = 10 // after the first runs
				}
				out := filepath.Join(t.TempDir(), "p.opmeter")
				status, stdout, errs := opmeter(t, testengine.Behaviour{Faults: []testengine.Fault{f}, NoCeilings: true}, "--runs", "20", "--warmup", "0", "--engine-timeout", patience, "-o", out)
				if status != c.status || c.status != 0 && (!strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "opmeter: ")) {
					t.Errorf("status %d, want %d: %q\n%s", status, c.status, errs, stdout)
				}
				if _, err := os.Stat(out); (err == nil) != (c.status == 0) && !(at == testengine.Run) {
					t.Errorf("the file: %v", err)
				}
			})
		}
	}
}

// Where memory does not suffice the one line says so, and what gives more.
func TestMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process can be limited on Linux only")
	}
	for _, at := range []testengine.Place{testengine.Open, testengine.Load, testengine.Run} {
		b := testengine.Behaviour{Faults: []testengine.Fault{{At: at, What: testengine.Eat}}, NoCeilings: true}
		status, _, errs := opmeter(t, b, "--runs", "20", "--warmup", "0", "--max-memory", "512MiB")
		if status != 4 || !strings.Contains(errs, "ran out of memory") || !strings.Contains(errs, "--max-memory allows 512 MiB") || strings.Count(errs, "\n") != 1 {
			t.Errorf("at %s: status %d: %s", at, status, errs)
		}
	}
}

// What was measured before an engine failed is written, and says that it is not all.
func TestLateFaults(t *testing.T) {
	t.Parallel()
	for _, what := range []testengine.What{testengine.Crash, testengine.Hang, testengine.Error, testengine.Exit} {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			// Figures are told after the first second, and then each second.
			b := testengine.Behaviour{Run: time.Millisecond, Faults: []testengine.Fault{{At: testengine.Run, What: what, Later: 4 * time.Second}}}
			out := filepath.Join(t.TempDir(), "p.opmeter")
			status, stdout, errs := opmeter(t, b, "--time", "1m", "--warmup", "0", "--engine-timeout", "5s", "-o", out)
			if status != 4 || !strings.Contains(stdout, "Latency") || !strings.Contains(stdout, "Incomplete: an error: ") || strings.Count(errs, "\n") != 1 {
				t.Errorf("status %d: %q\n%s", status, errs, stdout)
			}
			var o, e bytes.Buffer
			if status := cli.Main([]string{"report", out}, strings.NewReader(""), &o, &e); status != 0 || !strings.Contains(o.String(), "Latency") || !strings.Contains(o.String(), "Incomplete") {
				t.Errorf("the file: status %d, %s%s", status, e.String(), o.String())
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) != 1 {
				t.Errorf("files: %v", left)
			}
		})
	}
}

// An engine of two that is killed is at fault, whatever the other one does: what it had measured is
// kept, and it is called an engine and not a model.
func TestOneOfTwo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	for name, f := range map[string]testengine.Fault{
		"late": {At: testengine.Run, What: testengine.Kill, Later: 4 * time.Second}, "early": {At: testengine.Load, What: testengine.Kill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{Run: time.Millisecond, Faults: []testengine.Fault{f}, NoCeilings: true})
			if err != nil {
				t.Fatal(err)
			}
			out := t.TempDir()
			var o, e bytes.Buffer
			args := []string{"profile", model, "--engine", "opmeter,onnxruntime=" + lib, "--time", "6s", "--warmup", "0", "-o", filepath.Join(out, "p.opmeter")}
			status := cli.Main(args, strings.NewReader(""), &o, &e)
			if status != 4 || !strings.Contains(e.String(), "was killed from outside") || !strings.Contains(e.String(), "1 of 2 engines failed") || strings.Contains(o.String()+e.String(), "refused") {
				t.Errorf("status %d: %s%s", status, e.String(), o.String())
			}
			files, _ := filepath.Glob(filepath.Join(out, "*"))
			if want := map[string]int{"late": 2, "early": 1}[name]; len(files) != want {
				t.Errorf("files %q, want %d", files, want)
			}
			if compared := strings.Contains(o.String(), "incomplete profile"); compared != (name == "late") {
				t.Errorf("compared with an incomplete profile: %v\n%s", compared, o.String())
			}
		})
	}
}

// A thousand starts, most of them in vain, leave no process, no file and no goroutine; [TestMain]
// looks for the first two at the end.
func TestStarts(t *testing.T) {
	t.Parallel()
	starts := 100
	if material.Required() {
		starts = 1000
	}
	kinds := []testengine.Behaviour{{}}
	for _, what := range []testengine.What{testengine.Crash, testengine.Exit, testengine.Kill, testengine.Error, testengine.Panic, testengine.Print, testengine.Shut, testengine.Fork, testengine.Threads} {
		at := testengine.Open
		if what == testengine.Shut {
			at = testengine.About
		}
		kinds = append(kinds, testengine.Behaviour{Faults: []testengine.Fault{{At: at, What: what}}})
	}
	libs := make([]string, len(kinds))
	for i, b := range kinds {
		var err error
		if libs[i], err = testengine.Write(t.TempDir(), b); err != nil {
			t.Fatal(err)
		}
	}
	var next, good atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= starts {
					return
				}
				about, err := external.Probe(t.Context(), os.Getenv("OPMETER_ENGINE"), "onnxruntime", libs[n%len(libs)])
				if _, ok := errors.AsType[*external.Error](err); err != nil && !ok {
					t.Errorf("start %d: %v", n, err)
				}
				if err == nil && about.Version == "9.9.9" {
					good.Add(1)
				}
			}
		})
	}
	wait.Wait()
	// Those that do nothing wrong, print, start processes or threads say what they are.
	if want := int64(starts / len(kinds) * 4); good.Load() != want {
		t.Errorf("%d of %d starts succeeded, want %d", good.Load(), starts, want)
	}
}

// What an engine started ends with it, however it ended.
func TestProcessesEnd(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("processes have no groups")
	}
	for _, then := range []testengine.What{"", testengine.Crash, testengine.Exit, testengine.Hang, testengine.Kill} {
		t.Run("then "+string(then), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			b := testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Load, What: testengine.Fork, File: file}}, NoCeilings: true}
			if then != "" {
				b.Faults = append(b.Faults, testengine.Fault{At: testengine.Run, What: then, After: 5})
			}
			opmeter(t, b, "--runs", "20", "--warmup", "0", "--engine-timeout", "1s")
			gone(t, file)
		})
	}
}

// A process that left the group of the engine, and holds its output, holds up nothing.
func TestEscaped(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("processes have no sessions")
	}
	file := filepath.Join(t.TempDir(), "pid")
	status, _, errs := opmeter(t, testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Load, What: testengine.Escape, File: file}}, NoCeilings: true}, "--runs", "20", "--warmup", "0")
	if status != 0 {
		t.Errorf("status %d: %s", status, errs)
	}
	for _, l := range testengine.Lines(file) {
		if pid, err := strconv.Atoi(l); err == nil {
			p, _ := os.FindProcess(pid)
			_ = p.Kill()
		}
	}
}

// gone fails where a process whose number is in a file is still there.
func gone(t *testing.T, file string) {
	t.Helper()
	pids := testengine.Lines(file)
	if len(pids) == 0 {
		t.Fatal("no process was started")
	}
	for _, pid := range pids {
		for range 100 {
			if !alive(pid) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if alive(pid) {
			t.Errorf("process %s is still there", pid)
		}
	}
}

// alive reports whether a process runs; one that no one has asked after its end does not.
func alive(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return exec.Command("ps", "-p", pid, "-o", "pid=").Run() == nil && runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}
