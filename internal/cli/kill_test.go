package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// program names the variable that makes the test binary the program itself, so that
// a test can kill it.
const program = "OPMETER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" || len(os.Args) > 1 && os.Args[1] == workerVerb {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	_ = os.Setenv(engineVariable, ownEngine) // not what this computer has
	_ = os.Unsetenv("COLUMNS")               // the width of whoever runs the tests
	done := engines()
	status := m.Run()
	done()
	os.Exit(status)
}

// engines makes one engine and the program that opens it known to commands, where the tests have
// some.
func engines() (done func()) {
	found, _ := filepath.Glob(filepath.Join(os.Getenv("OPMETER_TEST_ENGINES"), "onnxruntime-1.20.*", "onnxruntime", "capi"))
	// the last one: a test started this process
	if os.Getenv("OPMETER_TEST_ENGINES") == "" || len(found) == 0 || os.Getenv("OPMETER_ENGINE") != "" {
		return func() {}
	}
	dir, err := os.MkdirTemp("", "opmeter-cli-")
	if err != nil {
		panic(err)
	}
	out, err := exec.Command("go", "build", "-o", dir, "github.com/opmeter/opmeter/cmd/opmeter-engine").CombinedOutput()
	if err != nil {
		panic(string(out))
	}
	if err := errors.Join(os.Setenv("OPMETER_ENGINE", dir), os.Setenv("OPMETER_ONNXRUNTIME", found[0])); err != nil {
		panic(err)
	}
	return func() { _ = os.RemoveAll(dir) }
}

// child is the program as a process of its own.
func child(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), program+"=1")
	return c
}

// start starts a child that ends with the test at the latest.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
}

// here runs the program in this process.
func here(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(t.Context(), args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// awaitLine waits until a file has a whole line with a text.
func awaitLine(t *testing.T, file, text string) {
	t.Helper()
	for range 3000 {
		if b, err := os.ReadFile(file); err == nil {
			if _, rest, ok := bytes.Cut(b, []byte(text)); ok && bytes.ContainsRune(rest, '\n') {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s has no %q", file, text)
}

// TestKilledJournal kills the program at several moments. The journal stays, a
// report shows what was known until then and says where it ends, and a later run
// into the same file leaves it alone.
func TestKilledJournal(t *testing.T) {
	t.Parallel()
	spec := filepath.Join(material.Root(), "examples", "ds_cnn.yaml")
	for _, tt := range []struct{ moment, event, ends string }{
		{"described", `{"described":`, `: (nothing was measured yet|\d+ measured inferences)$`},
		{"ready", `{"noted":{`, `: (nothing was measured yet|\d+ measured inferences)$`},
		{"measured", `{"counted":`, `: \d+ measured inferences?$`},
	} {
		t.Run(tt.moment, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "run.opmeter")
			journal := strings.TrimSuffix(file, profile.Extension) + profile.JournalExtension
			c := child("profile", spec, "--time", "10m", "--warmup", "0s", "-o", file)
			start(t, c)
			awaitLine(t, journal, tt.event)
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err == nil {
				t.Fatal("the program ended by itself")
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("a killed run wrote its file")
			}
			status, out, errs := here(t, "report", journal)
			last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
			if want := regexp.MustCompile(`^Incomplete: the source ended unexpectedly; .*` + tt.ends); status != 0 || !want.MatchString(strings.TrimSpace(last)) {
				t.Errorf("status %d, ends with %q, want %s (%s)", status, last, want, errs)
			}
			if !strings.Contains(out, "DEPTHWISE_CONV_2D") {
				t.Errorf("no layers in\n%s", out)
			}
			before, err := os.ReadFile(journal)
			if err != nil {
				t.Fatal(err)
			}
			if status, _, errs := here(t, "profile", spec, "--runs", "1", "--warmup", "0s", "-o", file); status != 0 || errs != "" {
				t.Fatalf("status %d: %s", status, errs)
			}
			if after, err := os.ReadFile(journal); err != nil || !bytes.Equal(before, after) {
				t.Errorf("a later run changed the journal (%v)", err)
			}
			if names, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(names) != 2 {
				t.Errorf("files %q (%v)", names, err)
			}
		})
	}
}

// TestInterrupted ends the program as Ctrl-C does: the file is there, complete as a
// file, and no journal.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.opmeter")
	journal := strings.TrimSuffix(file, profile.Extension) + profile.JournalExtension
	c := child("profile", filepath.Join(material.Root(), "examples", "ds_cnn.yaml"), "--time", "10m", "--warmup", "0s", "-o", file)
	start(t, c)
	awaitLine(t, journal, `{"counted":`)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Skipf("no such signal here: %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByCancel {
		t.Errorf("incomplete %+v", p.Incomplete)
	}
	if _, err := os.Stat(journal); err == nil {
		t.Error("the journal is still there")
	}
}

// TestNoJournal measures where no journal can be kept, and says so in a line.
func TestNoJournal(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open(filepath.Join(material.Root(), "examples", "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	var errs bytes.Buffer
	a := &app{err: &errs}
	p, err := a.kept([]string{filepath.Join(t.TempDir(), "absent", "x.json")}, func(journal string) (*profile.Profile, error) {
		return opmeter.Profile(t.Context(), m, opmeter.Options{Runs: 1, Warmup: -1, Journal: journal})
	})
	if err != nil || p.Totals.Latency == nil {
		t.Errorf("%v", err)
	}
	if got := errs.String(); !strings.HasPrefix(got, "no journal of this run is kept: ") || strings.Count(got, "\n") != 1 {
		t.Errorf("said %q", got)
	}
}

// limited profiles an example into a file under a limit on the size of files, in blocks
// of the shell.
func limited(t *testing.T, blocks int, example, file string) (out, errs *bytes.Buffer, err error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the limit is set by a shell of Linux")
	}
	c := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, blocks), os.Args[0],
		"profile", filepath.Join(material.Root(), "examples", example+".yaml"), "--runs", "2", "--warmup", "0s", "-o", file)
	c.Env = append(os.Environ(), program+"=1")
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	c.Stdout, c.Stderr = out, errs
	return out, errs, c.Run()
}

// TestFullDisk runs under a limit on the size of files, as on a disk that is full.
// Neither a journal nor a file that cannot be written loses the figures.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for blocks, want := range map[int]string{8: "the figures are in no file: ", 40: "a part of the figures, which are in "} {
		t.Run(fmt.Sprint(blocks), func(t *testing.T) {
			t.Parallel()
			fullDisk(t, blocks, want)
		})
	}
}

// fullDisk checks what becomes of a journal that has no room for all, nor for the description of
// the model at worst.
func fullDisk(t *testing.T, blocks int, said string) {
	t.Helper()
	dir := t.TempDir()
	out, errs, err := limited(t, blocks, "resnet8", filepath.Join(dir, "x.json"))
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != statusSource {
		t.Errorf("ended with %v", err)
	}
	for _, want := range []string{"\nLatency ", "The journal of this run ends early (", "too large); the profile is complete."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	journal := filepath.Join(dir, "x.json"+profile.JournalExtension)
	if got := errs.String(); !strings.Contains(got, said) || !strings.Contains(got, "x.json: file too large") || strings.Count(got, "\n") != 2 {
		t.Errorf("said %q", got)
	}
	_, err = os.Stat(journal)
	if kept := strings.Contains(said, "a part"); kept {
		if p, err := profile.Read(journal); err != nil || len(p.Layers) == 0 || !strings.Contains(errs.String(), journal) {
			t.Errorf("the journal holds %+v (%v)", p, err)
		}
	} else if !os.IsNotExist(err) {
		t.Errorf("a journal without content is left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.json")); !os.IsNotExist(err) {
		t.Errorf("a cut file is left: %v", err)
	}
}

// TestPageTooLarge runs under a limit that the journal keeps and the page does not:
// the table is shown and the journal stays.
func TestPageTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, errs, err := limited(t, 256, "ds_cnn", filepath.Join(dir, "x.html"))
	journal := filepath.Join(dir, "x.html"+profile.JournalExtension)
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != statusSource || !strings.Contains(out.String(), "\nLatency ") || !strings.Contains(errs.String(), "the figures are in "+journal) {
		t.Errorf("ended with %v, said %q and showed\n%s", err, errs.String(), out.String())
	}
	p, err := profile.Read(journal)
	if err != nil || len(p.Incomplete) != 0 || p.Totals.Latency == nil || *p.Totals.Latency.N != 2 {
		t.Errorf("the journal holds %+v (%v)", p, err)
	}
}

func TestJournalName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file string
		n    int
		want string
	}{
		{"a/x.opmeter", 1, "a/x.opmeter-journal"},
		{"a/x.opmeter", 3, "a/x-3.opmeter-journal"},
		{"x.csv", 1, "x.csv.opmeter-journal"},
		{"out/", 1, "out.opmeter-journal"},
	} {
		if got := filepath.ToSlash(journalName(tt.file, tt.n)); got != tt.want {
			t.Errorf("%s, %d: %s, want %s", tt.file, tt.n, got, tt.want)
		}
	}
}

// TestEnds: what is made into figures and files when a measurement is stopped is waited for, for
// longer than work that may go on for minutes.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		measures, gathers bool
		writes            bool
		want              bool
	}{
		{"a measurement that gathers", true, true, false, true},
		{"a result that is being written", true, false, true, true},
		{"a measurement that goes on", true, false, false, false},
		{"a command that measures nothing", false, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newApp(strings.NewReader(""), io.Discard, io.Discard)
			if tt.measures {
				a.measures(longPatience)
			}
			if tt.writes {
				defer a.writing()()
			}
			done := make(chan int, 1)
			time.AfterFunc(3*longPatience, func() { done <- statusDone })
			if status, got := a.ends(done, func() bool { return tt.gathers }, nil); got != tt.want || status != statusDone {
				t.Errorf("ended %v with status %d, want %v", got, status, tt.want)
			}
		})
	}
}

// Two signals at once are one, such as those of a terminal and of a launcher. A later one ends the
// wait.
func TestEndsAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {sameSignal / 2, true}, {sameSignal + 20*time.Millisecond, false}} {
		synctest.Test(t, func(t *testing.T) {
			a := newApp(strings.NewReader(""), io.Discard, io.Discard)
			a.measures(longPatience)
			done, again := make(chan int, 1), make(chan os.Signal, 1)
			time.AfterFunc(tt.after, func() { again <- os.Interrupt })
			time.AfterFunc(longPatience-20*time.Millisecond, func() { done <- statusDone })
			if _, got := a.ends(done, func() bool { return false }, again); got != tt.want {
				t.Errorf("signal after %v: ended %v, want %v", tt.after, got, tt.want)
			}
			synctest.Wait()
			time.Sleep(longPatience)
		})
	}
}
