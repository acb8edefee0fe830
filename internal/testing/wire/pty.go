//go:build linux || darwin

package wire

import (
	"os"
	"sync"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Open connects a device to a pseudo-terminal and returns its path. The function pulls the
// plug: the terminal is gone for whoever has it open, and its name ends to exist.
//
// As on a real wire, the device does not notice whether anybody has opened the port; what
// it sends before that waits in the system's buffer of some kilobytes, and then the device.
func (l Line) Open(t testing.TB, device Device) (path string, unplug func()) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal can be opened here: %v", err)
	}
	err = raw(slave)
	if err == nil {
		master, err = polled(master)
	}
	if err != nil {
		master.Close()
		slave.Close()
		t.Fatalf("pseudo-terminal: %v", err)
	}
	path = slave.Name()
	far := &terminal{File: master, slave: slave}
	return path, l.run(t, device, far, far.speed)
}

// terminal is the device's end of a pseudo-terminal. The host's end is held open, too:
// otherwise the device would read an error before the host has opened it.
type terminal struct {
	*os.File
	slave *os.File
	once  sync.Once
}

func (t *terminal) Close() error {
	var err error
	t.once.Do(func() {
		err = t.File.Close()
		t.slave.Close()
	})
	return err
}

// speed is the speed in baud that the host has set, 0 where it cannot be told.
func (t *terminal) speed() int {
	n := 0
	_ = control(t.File, func(fd int) error {
		s, err := unix.IoctlGetTermios(fd, getTermios)
		if err == nil {
			n = baud(s)
		}
		return err
	})
	return n
}

// polled returns the file in the system's poller, so that closing it ends a read that
// waits; the library leaves it out.
func polled(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return f, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return f, err
	}
	f.Close()
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// raw keeps the terminal from echoing and changing bytes before a host has set it up.
func raw(f *os.File) error {
	return control(f, func(fd int) error {
		s, err := unix.IoctlGetTermios(fd, getTermios)
		if err != nil {
			return err
		}
		s.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		s.Oflag &^= unix.OPOST
		s.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		s.Cflag &^= unix.CSIZE | unix.PARENB
		s.Cflag |= unix.CS8
		return unix.IoctlSetTermios(fd, setTermios, s)
	})
}

// control calls a function with the descriptor of a file and leaves the file in the
// system's poller, which File.Fd would not: reads have to end when it is closed.
func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := c.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
