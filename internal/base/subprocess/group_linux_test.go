package subprocess

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
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
