package subprocess

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
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
// cannot end the group itself. With processors, the group is bound to them.
func (g *Group) Start(c *exec.Cmd, cpus ...int) error {
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	starter() <- func() { done <- bound(c, cpus) }
	if err := <-done; err != nil {
		return err
	}
	g.Started(c)
	return nil
}

// bound starts a command that inherits a binding to processors from the calling thread.
func bound(c *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return c.Start()
	}
	var old, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return err
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("processors %v: %w", cpus, err)
	}
	err := c.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &old))
}
