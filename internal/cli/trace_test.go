package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opmeter/opmeter/marks"
)

// TestTraceApplication is not a test but the application of TestTrace, where that runs it.
func TestTraceApplication(t *testing.T) {
	what := os.Getenv("OPMETER_TEST_APPLICATION")
	if what == "" {
		t.Skip("the application of another test")
	}
	in, _ := io.ReadAll(os.Stdin)
	fmt.Printf("application: %s\n", in)
	if what != "silent" {
		if err := marks.Open(""); err != nil {
			fmt.Println(err)
			os.Exit(9)
		}
		camera, decode, infer := marks.Named("camera"), marks.Named("decode"), marks.Named("infer")
		l := marks.NewLane("main")
		for range 20 {
			f := l.BeginFrame(camera)
			l.Begin(decode)
			l.End(decode)
			l.Begin(infer)
			l.End(infer)
			l.EndFrame(f)
		}
		switch what {
		case "killed":
			marks.Flush()
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
			time.Sleep(time.Minute)
		case "waits":
			marks.Flush()
			fmt.Println("waiting")
			time.Sleep(time.Minute)
		}
		_ = marks.Close() // what is lost is missed by the test
	}
	if what == "fails" {
		os.Exit(7)
	}
	os.Exit(0)
}

func TestTrace(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	application := []string{"--", self, "-test.run=^TestTraceApplication$"}
	trace := func(what string, flags ...string) (status int, out, errs string) {
		t.Helper()
		t.Setenv("OPMETER_TEST_APPLICATION", what)
		var o, e bytes.Buffer
		status = run(t.Context(), append(append([]string{"trace"}, flags...), application...), strings.NewReader("hello"), &o, &e)
		return status, o.String(), e.String()
	}
	dir := t.TempDir()
	page, kept := filepath.Join(dir, "page.html"), filepath.Join(dir, "run.marks")
	status, out, errs := trace("runs")
	if status != 0 || out != "application: hello\n" || !strings.Contains(errs, "camera") || !strings.Contains(errs, "decode") {
		t.Errorf("%d\n%s\n%s", status, out, errs)
	}
	if status, _, errs = trace("runs", "--keep", kept, "-o", page); status != 0 {
		t.Errorf("%d %s", status, errs)
	}
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("<html")) {
		t.Error(err)
	}
	if status, _, errs = trace("runs", "--keep", kept); status != statusUse || !strings.Contains(errs, "exists") {
		t.Errorf("%d %s", status, errs)
	}
	var o, e bytes.Buffer
	if status := run(t.Context(), []string{"import", kept}, nil, &o, &e); status != 0 || !strings.Contains(o.String(), "infer") {
		t.Errorf("%d %s %s", status, &o, &e)
	}
	if status, _, errs = trace("fails"); status != 7 || !strings.Contains(errs, "exit status 7") || !strings.Contains(errs, "infer") {
		t.Errorf("%d %s", status, errs)
	}
	if status, _, errs = trace("silent"); status != statusInput || !strings.Contains(errs, "made no marks") {
		t.Errorf("%d %s", status, errs)
	}
	if runtime.GOOS != "windows" {
		if status, _, errs = trace("killed"); status != 128+int(syscall.SIGKILL) || !strings.Contains(errs, "infer") || !strings.Contains(errs, "last word") {
			t.Errorf("%d %s", status, errs)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"trace"}, "name a program"},
		{[]string{"trace", "--", filepath.Join(dir, "none")}, "cannot run"},
		{[]string{"trace", "--native", dir, "x"}, "only writes the C files"},
	} {
		var o, e bytes.Buffer
		if status := run(t.Context(), test.args, nil, &o, &e); status != statusUse || !strings.Contains(e.String(), test.want) {
			t.Errorf("%v: %d %s", test.args, status, &e)
		}
	}
	o.Reset()
	if status := run(t.Context(), []string{"trace", "--native", filepath.Join(dir, "src")}, nil, &o, &e); status != 0 {
		t.Error(status, e.String())
	}
	for _, name := range []string{"opmeter_marks.h", "opmeter_marks.c"} {
		if st, err := os.Stat(filepath.Join(dir, "src", name)); err != nil || st.Size() < 1000 || !strings.Contains(o.String(), name) {
			t.Error(name, err)
		}
	}
}

// TestTraceStop: when the user stops it, what was marked until then is shown, and nothing is left
// running or lying about.
func TestTraceStop(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPMETER_TEST_APPLICATION", "waits")
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	var e bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"trace", "--", self, "-test.run=^TestTraceApplication$"}, strings.NewReader(""), w, &e)
	}()
	b := make([]byte, 4096)
	for seen := ""; !strings.Contains(seen, "waiting"); {
		n, err := r.Read(b)
		if seen += string(b[:n]); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	cancel()
	if status := <-done; status != 0 || !strings.Contains(e.String(), "infer") {
		t.Errorf("%d %s", status, &e)
	}
	if list, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}
