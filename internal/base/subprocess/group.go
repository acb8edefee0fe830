// Package subprocess ends programs together with all processes that they started, and makes
// temporary folders that the next start removes if this process is killed.
package subprocess

import (
	"crypto/rand"
	"os"
	"os/exec"
	"sync"
)

// markVariable holds a mark of each group that a process belongs to, separated by commas.
const markVariable = "OPMETER_CHILD"

// Group is a program with all processes that it starts.
type Group struct {
	mu    sync.Mutex
	mark  string
	ended bool
	group
}

// running are the groups that were started and not killed.
var running struct {
	sync.Mutex
	groups map[*Group]bool
}

// Prepare makes a command the first process of the group, before it is started. Ctrl-C at the
// terminal does not reach it: whoever started it ends it.
func (g *Group) Prepare(c *exec.Cmd) {
	g.mark = rand.Text()
	if c.Env == nil {
		c.Env = os.Environ()
	}
	marks := g.mark
	if outer := os.Getenv(markVariable); outer != "" {
		marks = outer + "," + marks
	}
	c.Env = append(c.Env, markVariable+"="+marks)
	g.prepare(c)
}

// Started notes that the command was started.
func (g *Group) Started(c *exec.Cmd) {
	g.mu.Lock()
	g.started(c)
	g.mu.Unlock()
	running.Lock()
	defer running.Unlock()
	if running.groups == nil {
		running.groups = map[*Group]bool{}
	}
	running.groups[g] = true
}

// Kill kills all processes of the group, once: numbers of processes are used again. On Linux
// these include processes that left the process group, recognised by their environment.
func (g *Group) Kill() {
	running.Lock()
	delete(running.groups, g)
	running.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.ended = true
		g.kill()
		killMarked(g.mark)
	}
}

// EndAll kills all groups and removes all folders of this process: it is about to end.
func EndAll() {
	running.Lock()
	groups := make([]*Group, 0, len(running.groups))
	for g := range running.groups {
		groups = append(groups, g)
	}
	running.Unlock()
	for _, g := range groups {
		g.Kill()
	}
	removeAll()
}

// Run runs a command made with a context: when that ends, all processes that the command started
// end with it.
func Run(c *exec.Cmd) error {
	var g Group
	g.Prepare(c)
	c.Cancel = func() error {
		g.Kill()
		return nil
	}
	if err := c.Start(); err != nil {
		return err
	}
	g.Started(c)
	defer func() {
		running.Lock()
		defer running.Unlock()
		delete(running.groups, &g)
	}()
	return c.Wait()
}
