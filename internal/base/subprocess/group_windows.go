package subprocess

import (
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job that ends with its last handle.
type group struct {
	job windows.Handle
	cmd *exec.Cmd
}

func (g *group) prepare(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// started puts the program into a job. If that fails, only the program itself is killed later.
func (g *group) started(c *exec.Cmd) {
	g.cmd = c
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	limit := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limit)), uint32(unsafe.Sizeof(limit)))
	if err == nil {
		var p windows.Handle
		if p, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(c.Process.Pid)); err == nil {
			err = windows.AssignProcessToJobObject(job, p)
			// A handle that does not close is released with this process.
			_ = windows.CloseHandle(p)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	g.job = job
}

func (g *group) kill() {
	switch {
	case g.job != 0:
		// A job that has ended cannot be terminated.
		_ = windows.TerminateJobObject(g.job, 1)
		_ = windows.CloseHandle(g.job)
	case g.cmd != nil:
		_ = g.cmd.Process.Kill()
	}
}
