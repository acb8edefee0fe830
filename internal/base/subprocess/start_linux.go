package subprocess

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter starts commands on a thread that lives as long as this process: the system kills a child
// when the thread that started it ends, and Go ends threads.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// Start starts a prepared command. The system kills its first process if this one is killed, and
// cannot end the group itself.
func (g *Group) Start(c *exec.Cmd) error {
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	starter() <- func() { done <- c.Start() }
	if err := <-done; err != nil {
		return err
	}
	g.Started(c)
	return nil
}
