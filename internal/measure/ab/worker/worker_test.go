package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/estimator"
)

// variable makes this test program a worker, or what stands in for one.
const variable = "OPMETER_TEST_WORKER"

// fake answers without measuring.
type fake struct{ warm, block error }

func (f *fake) Warm(context.Context) error { return f.warm }

func (f *fake) Block(_ context.Context, d time.Duration) (ab.Block, error) {
	return ab.Block{Seconds: d.Seconds(), Inferences: 3}, f.block
}

func TestMain(m *testing.M) {
	switch how := os.Getenv(variable); how {
	case "":
		os.Exit(m.Run())
	case "good":
		serve(&fake{})
	case "fails":
		serve(&fake{block: errors.New("no more")})
	case "refuses":
		_ = Refuse(os.Stdout, errors.New("model.onnx: is empty"), 3)
	case "dies":
		fmt.Fprintln(os.Stderr, "first words")
		fmt.Fprintln(os.Stderr, "  the disk burns  ")
		os.Exit(7)
	case "dies later":
		fmt.Println(`{"protocol":1}`)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprintln(os.Stderr, "the disk burns")
		os.Exit(7)
	case "other release":
		fmt.Println(`{"protocol":99}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "talks":
		fmt.Println("Hello, world!")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "parent":
		p := &Processes{Alternatives: workers("silent2", "silent2")}
		fmt.Println(p.Begin(context.Background(), 0))
	case "silent2":
		for {
			time.Sleep(time.Hour) // select {} is a deadlock, which ends the process
		}
	}
	os.Exit(0)
}

func serve(t Timer) {
	if err := Serve(context.Background(), os.Stdin, os.Stdout, t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func workers(how ...string) []ab.Alternative {
	var out []ab.Alternative
	for _, h := range how {
		out = append(out, ab.Alternative{Name: h, Command: []string{"/usr/bin/env", variable + "=" + h, os.Args[0]}})
	}
	return out
}

func needEnv(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/env"); err != nil {
		t.Skip("/usr/bin/env is missing")
	}
}

// TestProcesses measures blocks of two workers, in several rounds.
func TestProcesses(t *testing.T) {
	t.Parallel()
	needEnv(t)
	p := &Processes{Alternatives: workers("good", "good")}
	for round := range 2 {
		if err := p.Begin(t.Context(), round); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			b, err := p.Block(t.Context(), round, i)
			if err != nil || b.Seconds != BlockTime.Seconds() || b.Inferences != 3 {
				t.Errorf("%+v, %v", b, err)
			}
		}
		p.End(round)
		if len(p.running) > 0 {
			t.Errorf("%d processes are left", len(p.running))
		}
	}
}

// TestFaults tells which alternative failed, why, and what it said.
func TestFaults(t *testing.T) {
	t.Parallel()
	needEnv(t)
	for how, c := range map[string]struct {
		words  []string
		status int
	}{
		"refuses":       {words: []string{"refuses: model.onnx: is empty"}, status: 3},
		"dies":          {words: []string{"dies: the process ended: exit status 7", "the disk burns", "--command"}},
		"dies later":    {words: []string{"dies later: the process ended: exit status 7", "the disk burns"}},
		"fails":         {words: []string{"fails: the process ended", "no more"}},
		"other release": {words: []string{"another release"}},
		"talks":         {words: []string{"it prints what no worker", "--command"}},
		"silent":        {words: []string{"did not answer for 100ms"}},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := &Processes{Alternatives: workers("good", how)}
			if how == "silent" {
				p.Alternatives, p.Silent = p.Alternatives[1:], 100*time.Millisecond
			}
			err := p.Begin(t.Context(), 0)
			if err == nil {
				_, err = p.Block(t.Context(), 0, 1)
			}
			p.End(0)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Status != c.status {
				t.Fatalf("%v (%T)", err, err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
		})
	}
	p := &Processes{Alternatives: []ab.Alternative{{Name: "absent", Command: []string{"/no/such/program"}}}}
	if err := p.Begin(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "absent: ") {
		t.Errorf("an absent program: %v", err)
	}
	p.End(0)
}

// TestStopped ends a wait for a worker with the context.
func TestStopped(t *testing.T) {
	t.Parallel()
	needEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := &Processes{Alternatives: workers("silent")}
	cancel()
	err := p.Begin(ctx, 0)
	if u, ok := errors.AsType[*ab.Unfinished](err); !ok || u.Alternative != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	p.End(0)
}

// TestOrphans ends workers that do not answer when their parent is killed.
func TestOrphans(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("only Linux ends the children of a killed process")
	}
	needEnv(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), variable+"=parent")
	var out bytes.Buffer
	c.Stdout = &out
	var g subprocess.Group
	g.Prepare(c)
	if err := g.Start(c); err != nil {
		t.Fatal(err)
	}
	mark := "OPMETER_CHILD="
	for _, v := range c.Env {
		if strings.HasPrefix(v, mark) {
			mark = strings.TrimPrefix(v, mark)
		}
	}
	for limit := time.Now().Add(time.Minute); marked(t, mark) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d processes run: %s", marked(t, mark), out.String())
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	for limit := time.Now().Add(time.Minute); marked(t, mark) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d processes outlive their parent", marked(t, mark))
		}
	}
	g.Kill()
}

// marked counts the processes whose environment has a mark.
func marked(t *testing.T, mark string) (n int) {
	t.Helper()
	names, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if env, err := os.ReadFile("/proc/" + e.Name() + "/environ"); err == nil && bytes.Contains(env, []byte(mark)) {
			n++
		}
	}
	return n
}

// TestServe ends with its input, and refuses what no parent asks for.
func TestServe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Serve(t.Context(), strings.NewReader(""), &out, &fake{}); err != nil || strings.TrimSpace(out.String()) != `{"protocol":1}` {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := Serve(t.Context(), strings.NewReader("{\"other\":1}\n"), io.Discard, &fake{}); err == nil {
		t.Error("an unknown request is taken")
	}
}

// TestCommands times programs as a whole with an injected clock.
func TestCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is missing")
	}
	now := time.Unix(0, 0)
	s := &Commands{
		Alternatives: []ab.Alternative{
			{Name: "good", Command: []string{"sh", "-c", "echo output"}},
			{Name: "bad", Command: []string{"sh", "-c", "echo the disk burns >&2; exit 3"}},
		},
		Now: func() time.Time { now = now.Add(time.Second); return now },
	}
	if b, err := s.Block(t.Context(), 0, 0); err != nil || b.Seconds != 1 || b.Inferences != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	if err := s.Begin(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "bad: the command failed: exit status 3; its last words: the disk burns") {
		t.Errorf("%v", err)
	}
	if err := s.Begin(t.Context(), 1); err != nil {
		t.Errorf("a later round runs a command for nothing: %v", err)
	}
	s.End(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Block(ctx, 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	err := s.Begin(ctx, 0)
	if u, ok := errors.AsType[*ab.Unfinished](err); !ok || u.Alternative != 0 {
		t.Errorf("stopped: %v", err)
	}
}

// TestFunction times a function in blocks.
func TestFunction(t *testing.T) {
	t.Parallel()
	runs := 0
	f := &Function{Run: func() error { runs++; return nil }}
	if err := f.Warm(t.Context()); err != nil || runs < 3 {
		t.Errorf("%d runs, %v", runs, err)
	}
	b, err := f.Block(t.Context(), time.Millisecond)
	if err != nil || !(b.Seconds > 0) || b.Inferences < 1 {
		t.Errorf("%+v, %v", b, err)
	}
	broken := errors.New("broken")
	f = &Function{Run: func() error { return broken }}
	if _, err := f.Block(t.Context(), time.Millisecond); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// TestSummary leaves out disturbed inferences, and marks a block that consists of them.
func TestSummary(t *testing.T) {
	t.Parallel()
	samples := func(calm, disturbed int) (out []estimator.Sample) {
		for range calm {
			out = append(out, estimator.Sample{Seconds: 1})
		}
		for range disturbed {
			out = append(out, estimator.Sample{Seconds: 9, Work: 1.1, Disturbed: true})
		}
		return out
	}
	for _, c := range []struct {
		calm, disturbed int
		want            ab.Block
	}{
		{20, 0, ab.Block{Seconds: 1, Inferences: 40}},
		{20, 10, ab.Block{Seconds: 1, Inferences: 60}},
		{12, 20, ab.Block{Seconds: 1, Inferences: 64, Disturbed: true}},
		{1, 0, ab.Block{Seconds: 1, Inferences: 2}},
		{0, 20, ab.Block{Seconds: 1.1, Inferences: 40, Disturbed: true}},
	} {
		got := summary(samples(c.calm, c.disturbed), 2)
		if d := got.Seconds - c.want.Seconds; d < -1e-9 || d > 1e-9 || got.Inferences != c.want.Inferences || got.Disturbed != c.want.Disturbed {
			t.Errorf("%d calm, %d disturbed: %+v, want %+v", c.calm, c.disturbed, got, c.want)
		}
	}
}

// TestErrorNames writes the name of an alternative unless the text begins with the same file.
func TestErrorNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a.onnx", "p/a.onnx: is a saved profile", "p/a.onnx: is a saved profile"},
		{"a.onnx", "a.onnx at byte 3: is cut", "a.onnx at byte 3: is cut"},
		{"q/a.onnx", "p/q/a.onnx: is empty", "p/q/a.onnx: is empty"},
		{"a.onnx", "p/aa.onnx: is empty", "a.onnx: p/aa.onnx: is empty"},
		{"a.onnx", "cannot start: p/a.onnx: is empty", "a.onnx: cannot start: p/a.onnx: is empty"},
		{"a.onnx --threads 2", "a.onnx: is empty", "a.onnx --threads 2: a.onnx: is empty"},
		{"old", "a.onnx: is empty", "old: a.onnx: is empty"},
	} {
		if got := (&Error{Name: c.name, Text: c.text}).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
