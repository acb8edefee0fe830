// Package port opens the ways to a device: serial ports, TCP, the output of a program,
// standard input, and files with what was received before.
//
// All of them are a [Port], and all of them end: every wait is under a context, a plug that
// is pulled is an error of its own type, and what is kept is bounded. Received bytes are
// read by a goroutine as soon as they come, go to the recording, and wait for Read in a
// queue of [queueSize] bytes; when that is full, a program or connection is made to wait,
// and a serial device loses what the system's buffer does not hold.
//
// Opening a serial port changes nothing on the wire but what the system does: DTR and RTS
// are on, which resets boards that have their reset behind DTR (Arduino boards with a
// bridge; those with USB of their own do not), and nothing that was received is thrown
// away. Such a board sends from its start, which is what a profiler wants to see.
package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultSpeed is the speed of serial ports in baud where none is asked for.
const DefaultSpeed = 115200

// Port is an open way to a device. Its methods may be called from several goroutines, but
// one at a time may read.
type Port interface {
	// Read waits until at least a byte is there or ctx ends, and then returns ctx's error.
	// Other errors are final, but for the second:
	//   - io.EOF: a file, standard input or a program has ended,
	//   - [ErrReopened], once and with n == 0: the device was away and is back, what it sent
	//     meanwhile is lost,
	//   - [*GoneError]: unplugged, or the connection is lost,
	//   - [*ExitError]: a program has failed,
	//   - [os.ErrClosed] after Close.
	Read(ctx context.Context, p []byte) (n int, err error)
	// Write sends bytes. What is not sent when ctx ends stays unsent. Errors are ctx's,
	// [ErrReadOnly] for files and standard input, or those of Read.
	Write(ctx context.Context, p []byte) (n int, err error)
	// SetSpeed sets the speed of a serial port in baud. What was received at another one and
	// was not read yet is thrown away, though not out of the recording. Ports without a
	// speed return [ErrNoSpeed].
	SetSpeed(baud int) error
	// Close ends the port and a program with all that it started. It returns the error of
	// the recording where that has failed. Reads and writes under way return.
	Close() error
}

// Options say how a port is opened. The zero value is usual.
type Options struct {
	// Speed of a serial port in baud, 0 for [DefaultSpeed].
	Speed int
	// Record takes every byte that is received, once and in order, before Read returns it;
	// nil for none. It is given the bytes as they come: a file that is not buffered has all
	// of them when the process is killed.
	Record io.Writer
	// RecordFailed is told, once, that Record has failed; nothing more is recorded then, and
	// reading goes on. It is called from another goroutine.
	RecordFailed func(error)
	// Reconnect is how long a serial or TCP device that went away is waited for, 0 for not
	// at all. A serial device may come back under another name: it is known by its USB
	// numbers and serial number.
	Reconnect time.Duration
	// Errors reads what a program writes to standard error like what it writes to standard
	// output, for programs that print there.
	Errors bool
	// Stdin is what "-" reads; nil is an empty one.
	Stdin io.Reader
	// LockDir is the folder of lock files, "" for the user's: see [LockDir].
	LockDir string
}

// ErrReopened tells that the device was away and is back: what it sent between is lost.
var ErrReopened = errors.New("the device was away and is back; what it sent between is lost")

// ErrNoSpeed tells that a port has no speed to be set.
var ErrNoSpeed = errors.New("only serial ports have a speed")

// ErrReadOnly tells that nothing can be sent to a port.
var ErrReadOnly = errors.New("nothing can be sent to a file or standard input")

// GoneError tells that a device was unplugged or a connection is lost.
type GoneError struct {
	Port Address
	// Closed tells that the other side has closed the connection in order.
	Closed bool
	// Waited is how long it was waited for, 0 for not at all.
	Waited time.Duration
	// Err is what the system said, nil for nothing.
	Err error
}

// Error says what is gone.
func (e *GoneError) Error() string {
	s := ": the device went away: unplugged, switched off or reset"
	if e.Port.Kind == TCP {
		s = ": the connection is lost"
		if e.Closed {
			s = ": the other side has closed the connection"
		}
	}
	if e.Waited > 0 {
		s += fmt.Sprintf(", and did not come back within %v", e.Waited)
	}
	return e.Port.String() + s
}

func (e *GoneError) Unwrap() error { return e.Err }

// ExitError tells that a program has failed.
type ExitError struct {
	Command string
	// Status is its exit status, -1 where a signal ended it.
	Status int
	// Signal is the name of that signal, "" for none.
	Signal string
	// Stderr are the last kilobytes that it wrote to standard error.
	Stderr string
}

// Error names the command, how it ended, and its last line on standard error.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("%s: exit status %d", e.Command, e.Status)
	if e.Signal != "" {
		s = fmt.Sprintf("%s: ended by %s", e.Command, e.Signal)
	}
	if l := lastLine(e.Stderr); l != "" {
		s += ": " + l
	}
	return s
}

// Open opens a port. It waits no longer than ctx lasts. Errors are ctx's or [*OpenError].
func Open(ctx context.Context, a Address, o Options) (Port, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Speed == 0 {
		o.Speed = DefaultSpeed
	}
	s := newStream(a, o)
	switch a.Kind {
	case Serial:
		s.dial = (&serialPort{addr: a, lockDir: o.LockDir}).open
	case TCP:
		s.dial = func(ctx context.Context, _ int) (way, error) { return dialTCP(ctx, a) }
	case Exec:
		s.dial = func(context.Context, int) (way, error) { return start(a, o.Errors) }
	case Stdin:
		s.dial = func(context.Context, int) (way, error) { return newInput(o.Stdin), nil }
	case File:
		s.dial = func(context.Context, int) (way, error) { return openFile(a) }
	default:
		return nil, &OpenError{Address: a, Cause: BadAddress, Err: fmt.Errorf("%q is no kind of port", a.Kind)}
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Over is a port over a connection that is there already, as tests have it. Closing the
// port closes the connection, and has to end its reads and writes.
func Over(a Address, c io.ReadWriteCloser, o Options) Port {
	s := newStream(a, o)
	s.dial = func(context.Context, int) (way, error) { return &connection{addr: a, c: c}, nil }
	s.o.Reconnect = 0
	// Nothing is dialled, so nothing fails.
	_ = s.start(context.Background())
	return s
}
