// Package port opens connections to a device: serial ports, TCP, the output of a program,
// standard input, and recordings of received data.
//
// All of them are a [Port] and can be ended: every wait takes a context, an unplugged device is
// an error of its own type, and buffers are bounded. A goroutine reads received bytes at once,
// writes them to the recording, and queues up to [queueSize] bytes for Read. When the queue is
// full, a program or connection is blocked, and a serial device loses what exceeds the system's
// buffer.
//
// Opening a serial port has only the system's usual effects on the wire. DTR and RTS are on,
// which resets boards whose reset is connected to DTR (Arduino boards with a bridge, not boards
// with native USB). Received data is not discarded. Such a board sends from its start, as a
// profiler needs.
package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultSpeed is the default speed of serial ports in baud.
const DefaultSpeed = 115200

// Port is an open connection to a device. Its methods are safe for concurrent use, but only one
// goroutine at a time may read.
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
	// Write sends bytes. What is unsent when ctx ends stays unsent. Errors are ctx's,
	// [ErrReadOnly] for files and standard input, or the errors of Read.
	Write(ctx context.Context, p []byte) (n int, err error)
	// SetSpeed sets the speed of a serial port in baud. Unread data received at the previous
	// speed is discarded, but stays in the recording. Ports without a speed return [ErrNoSpeed].
	SetSpeed(baud int) error
	// Close closes the port and ends a program with all processes that it started. It returns the
	// error of the recording if that has failed. Pending reads and writes return.
	Close() error
}

// Options configures how a port is opened. The zero value has the defaults.
type Options struct {
	// Speed of a serial port in baud, 0 for [DefaultSpeed].
	Speed int
	// Record receives every byte, once and in order, before Read returns it; may be nil. It is
	// written as bytes arrive: an unbuffered file is complete even if the process is killed.
	Record io.Writer
	// RecordFailed is called once if Record has failed; recording then stops, and reading
	// continues. It is called from another goroutine.
	RecordFailed func(error)
	// Reconnect is how long to wait for a serial or TCP device that was disconnected, 0 for not
	// at all. A serial device may come back under another name: it is identified by its USB ids
	// and serial number.
	Reconnect time.Duration
	// Errors also reads the program's standard error, for programs that print there.
	Errors bool
	// Stdin is what "-" reads; nil is empty.
	Stdin io.Reader
	// LockDir is the folder of lock files, "" for the user's: see [LockDir].
	LockDir string
}

// ErrReopened says that the device was disconnected and is back: what it sent in between is lost.
var ErrReopened = errors.New("the device was away and is back; what it sent between is lost")

// ErrNoSpeed says that a port has no speed setting.
var ErrNoSpeed = errors.New("only serial ports have a speed")

// ErrReadOnly says that nothing can be sent to a port.
var ErrReadOnly = errors.New("nothing can be sent to a file or standard input")

// GoneError says that a device was unplugged or a connection was lost.
type GoneError struct {
	Port Address
	// Closed says that the other side has closed the connection in an orderly way.
	Closed bool
	// Waited is how long a reconnection was awaited, 0 for not at all.
	Waited time.Duration
	// Err is the system's error, nil for none.
	Err error
}

// Error returns what is gone.
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

// ExitError says that a program has failed.
type ExitError struct {
	Command string
	// Status is its exit status, -1 if a signal ended it.
	Status int
	// Signal is the name of that signal, "" for none.
	Signal string
	// Stderr is the last few kilobytes of its standard error.
	Stderr string
}

// Error returns the command, how it ended, and its last line on standard error.
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

// Open opens a port. It waits at most until ctx ends. Errors are ctx's or an [*OpenError].
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
		return nil, &OpenError{Address: a, Cause: BadAddress, Err: fmt.Errorf("%q is not a kind of port", a.Kind)}
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Over returns a port over an existing connection, for tests. Closing the port closes the
// connection, which must end its reads and writes.
func Over(a Address, c io.ReadWriteCloser, o Options) Port {
	s := newStream(a, o)
	s.dial = func(context.Context, int) (way, error) { return &connection{addr: a, c: c}, nil }
	s.o.Reconnect = 0
	// Nothing is dialled, so this cannot fail.
	_ = s.start(context.Background())
	return s
}
