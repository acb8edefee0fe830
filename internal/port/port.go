// Package port opens ways to a device: serial ports, TCP, the output of a program,
// standard input and recordings, all by one kind of address.
package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kind says what sort of way an address is.
type Kind string

// Kinds of ways.
const (
	Serial Kind = "serial" // /dev/ttyACM0, COM3
	TCP    Kind = "tcp"    // tcp:HOST:PORT
	Exec   Kind = "exec"   // exec:COMMAND
	Stdin  Kind = "stdin"  // -
	File   Kind = "file"   // file:PATH
)

// Address names a way to a device.
type Address struct {
	Kind Kind
	// Name is the device's path or name, HOST:PORT, the command line, "" for standard
	// input, the path of a recording.
	Name string
}

// String is the address as users write it.
func (a Address) String() string {
	switch a.Kind {
	case Serial:
		return a.Name
	case Stdin:
		return "-"
	}
	return string(a.Kind) + ":" + a.Name
}

// Options says how a port is opened.
type Options struct {
	// Speed of a serial port in baud, 0 for 115200.
	Speed int
	// Record takes every byte that is received, as it came, before Read returns it; nil for
	// none.
	Record io.Writer
	// Reconnect is how long to wait for a device that went away, 0 not at all.
	Reconnect time.Duration
	// Stdin is what "-" reads.
	Stdin io.Reader
}

// Port is an open way to a device.
type Port interface {
	// Read waits until a byte is there or the context ends, and then returns its error.
	// Other errors are [io.EOF] where a file or program has ended, a [GoneError], and once,
	// with no byte, [ErrReopened].
	Read(ctx context.Context, p []byte) (n int, err error)
	// Write sends bytes.
	Write(ctx context.Context, p []byte) (n int, err error)
	// SetSpeed changes the speed of a serial port in baud; [ErrNoSpeed] where there is none.
	SetSpeed(baud int) error
	Close() error
}

// ErrReopened says that the device was away and is back: bytes between are lost.
var ErrReopened = errors.New("the device was away and is back")

// ErrNoSpeed says that a port has no speed.
var ErrNoSpeed = errors.New("this port has no speed")

// GoneError says that a device that was there is not any more.
type GoneError struct {
	Port Address
	Err  error
}

// Error names the port.
func (e *GoneError) Error() string { return fmt.Sprintf("%s: the device went away: %v", e.Port, e.Err) }

// Unwrap returns the reason.
func (e *GoneError) Unwrap() error { return e.Err }

// Open opens the way to a device.
func Open(_ context.Context, a Address, _ Options) (Port, error) {
	return nil, fmt.Errorf("%s: %w", a, errors.ErrUnsupported)
}

// Parse reads an address as users write it.
func Parse(s string) (Address, error) {
	switch {
	case s == "":
		return Address{}, errors.New("name a port, such as /dev/ttyACM0, COM3, tcp:HOST:PORT, exec:COMMAND, - or file:PATH")
	}
	return Address{Kind: Serial, Name: s}, nil
}
