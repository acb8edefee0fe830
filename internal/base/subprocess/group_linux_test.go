package subprocess

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKill ends processes that a program started, also those that left its process group, whose
// parent has ended, or that have a group of their own inside.
func TestKill(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is missing")
	}
	c := exec.Command("sh", "-c", "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; (setsid sh -c 'echo $$; exec sleep 1000' &); OPMETER_CHILD=$OPMETER_CHILD,inner setsid sleep 1000 & echo $!; wait")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var g Group
	g.Prepare(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	g.Started(c)
	lines := bufio.NewScanner(out)
	pids := []int{c.Process.Pid}
	for len(pids) < 5 && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	g.Kill()
	_ = c.Wait()
	for _, pid := range pids {
		for limit := time.Now().Add(time.Minute); alive(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("process %d is alive", pid)
			}
		}
	}
	if !alive(bystander.Process.Pid) {
		t.Error("a process of nobody's group was killed")
	}
	g.Kill() // a second time does no harm
}

// alive reports whether a process computes or waits: one that has ended does not, also
// before its parent has waited for it.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// TestKilled ends a program when the process that started it is killed: what both write to has no
// writer then.
func TestKilled(t *testing.T) {
	t.Parallel()
	const variable = "OPMETER_TEST_KILLED"
	if os.Getenv(variable) != "" {
		c := exec.Command("sleep", "1000")
		c.Stdout = os.Stdout
		var g Group
		g.Prepare(c)
		if err := g.Start(c); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString("started\n"); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	c.Env = append(os.Environ(), variable+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if l, err := lines.ReadString('\n'); err != nil || l != "started\n" {
		t.Fatalf("%q, %v", l, err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	_ = c.Wait()
}

// TestStartBound binds a program to processors, and not the programs that are started after it.
func TestStartBound(t *testing.T) {
	t.Parallel()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	last := -1
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			last = i
		}
	}
	allowed := func(cpus ...int) string {
		c := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status")
		var out strings.Builder
		c.Stdout = &out
		var g Group
		g.Prepare(c)
		if err := g.Start(c, cpus...); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		g.Kill()
		return strings.TrimSpace(strings.TrimPrefix(out.String(), "Cpus_allowed_list:"))
	}
	before := allowed()
	if got := allowed(last); got != strconv.Itoa(last) {
		t.Errorf("bound to %q, want %d", got, last)
	}
	if after := allowed(); after != before {
		t.Errorf("later programs run on %q, before on %q", after, before)
	}
	c := exec.Command("true")
	var g Group
	g.Prepare(c)
	if err := g.Start(c, 1023); err == nil {
		t.Error("a processor that is absent")
	}
}
