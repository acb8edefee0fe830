// Package device measures models on connected hardware. A port (internal/base/port) delivers
// bytes, a [Protocol] recognises them and decodes inferences, and a [Recorder] turns these into
// events. [Session] is the source that combines them; [Probe] only listens.
//
// The packages below it implement protocols; internal/device/all lists them.
package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/profile"
)

// Protocol decodes inferences from what a device sends.
type Protocol struct {
	// Name is the name on the command line, Title describes the sender.
	Name, Title string
	// Speeds are the usual speeds of serial ports in baud, most common first.
	Speeds []int
	// Sure returns the confidence, from 0 to 100, that a device whose output begins with these
	// bytes speaks the protocol. It is called again as more bytes arrive, up to [HeadBytes]. The
	// first bytes may be in the middle of a line or frame.
	Sure func(head []byte) int
	// Ask is sent to a device that is silent until it is asked; nil to listen only.
	Ask []byte
	// Warm says that the device warms up by itself, or gives one inference per start: none is
	// skipped. Once says that a start gives one inference, and that no more are wanted.
	Warm, Once bool
	// Run reads bytes from the port until the stream ends or the recorder has enough. It returns
	// the reason: nil, [ErrEnough] or the error of [Conn.Read]. The recorder keeps what it has.
	Run func(ctx context.Context, c *Conn, j *Job) error
}

// HeadBytes is how many bytes protocols may examine to recognise a stream.
const HeadBytes = 64 << 10

// Job is the context of a protocol's run.
type Job struct {
	// Model is the static profile of the model, nil if none was named.
	Model *profile.Profile
	*Recorder
}

// Chunk is at least one byte as received.
type Chunk struct {
	Data []byte
	// At is when the bytes were read.
	At time.Time
	// Gap says that bytes before them were lost: the device was disconnected.
	Gap bool
	// Again says that the program was restarted before these bytes: anything unfinished is over.
	// Cut says that it was ended on purpose, so that an incomplete inference is not a loss.
	Again, Cut bool
}

// ErrSilent says that nothing arrived within the timeout.
var ErrSilent = errors.New("the device is silent")

// SilentError is an [ErrSilent] with the time waited.
type SilentError struct {
	Port   port.Address
	Waited time.Duration
	// Before is the number of bytes that arrived before.
	Before int64
}

// Error returns how long nothing arrived.
func (e *SilentError) Error() string {
	if e.Before == 0 {
		return fmt.Sprintf("%s: nothing came within %s", e.Port, seconds(e.Waited))
	}
	return fmt.Sprintf("%s: nothing more came within %s, after %d bytes", e.Port, seconds(e.Waited), e.Before)
}

// Is makes it match [ErrSilent].
func (e *SilentError) Is(target error) bool { return target == ErrSilent }

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

// Conn is an open port as a protocol sees it. It is not safe for concurrent use.
type Conn struct {
	port    port.Port
	addr    port.Address
	timeout time.Duration
	head    []byte // bytes examined before, to be read again
	headAt  time.Time
	buf     [32 << 10]byte
	got     int64
	gap     bool // bytes before the next ones are lost
	starts  *starts
	watch   *watch
	waiting func(Waiting) // told while no protocol is recognised; may be nil
}

// Read returns the next bytes. It waits at most for wait, or for the session's timeout if wait is
// 0. Errors are a [SilentError], a [StuckError], [io.EOF] if a file or program has ended,
// [ErrEnough] if the program was ended because its time is over, a [port.GoneError] if the device
// was disconnected, and the context's.
func (c *Conn) Read(ctx context.Context, wait time.Duration) (Chunk, error) {
	if len(c.head) > 0 {
		x := Chunk{Data: c.head, At: c.headAt}
		c.head = nil
		return x, nil
	}
	if wait <= 0 {
		wait = c.timeout
	}
	for {
		if c.starts.mustStop() {
			if err := c.again(ctx, true); err != nil {
				return Chunk{}, err
			}
		}
		x, err := c.read(ctx, wait)
		if errors.Is(err, ErrSilent) && c.away() {
			continue // the port ends the wait for a device that does not come back
		}
		if errors.Is(err, io.EOF) && c.starts.canRestart() {
			if err := c.again(ctx, false); err != nil {
				return Chunk{}, err
			}
			continue
		}
		if err == nil {
			c.starts.flagChunk(&x)
			err = c.watch.came(x.At, c.got, c.addr)
		}
		return x, err
	}
}

// away reports whether the port waits for a disconnected device.
func (c *Conn) away() bool {
	a, ok := c.port.(interface{ Away() bool })
	return ok && a.Away()
}

// read waits for bytes once.
func (c *Conn) read(ctx context.Context, wait time.Duration) (Chunk, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		n, err := c.port.Read(limited, c.buf[:])
		switch {
		case n > 0:
			c.got += int64(n)
			x := Chunk{Data: c.buf[:n:n], At: time.Now(), Gap: c.gap}
			c.gap = false
			return x, nil
		case errors.Is(err, port.ErrReopened):
			c.gap = true // also where nothing follows within this wait
		case ctx.Err() != nil:
			return Chunk{}, ctx.Err()
		case err == nil:
			// A port that returns nothing without waiting must not make this loop spin.
			select {
			case <-limited.Done():
			case <-time.After(time.Millisecond):
			}
		case errors.Is(err, context.DeadlineExceeded):
		default:
			return Chunk{}, err
		}
		if limited.Err() != nil {
			return Chunk{}, &SilentError{Port: c.addr, Waited: wait, Before: c.got}
		}
	}
}

// Write sends all bytes to the device, or returns an error.
func (c *Conn) Write(ctx context.Context, p []byte) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for len(p) > 0 {
		n, err := c.port.Write(limited, p)
		if err != nil {
			if ctx.Err() == nil && limited.Err() != nil {
				return fmt.Errorf("%s: does not take what is sent to it: %w", c.addr, err)
			}
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s: %w", c.addr, io.ErrShortWrite)
		}
		p = p[n:]
	}
	return nil
}

// Address returns the address of the port.
func (c *Conn) Address() port.Address { return c.addr }

// Live reports whether a device answers, rather than a recording.
func (c *Conn) Live() bool { return c.addr.Kind != port.File && c.addr.Kind != port.Stdin }

// Received returns the number of bytes received so far.
func (c *Conn) Received() int64 { return c.got }
