// Package device measures models on hardware behind a cable. A port (internal/base/port)
// brings bytes, a [Protocol] recognises them and makes inferences of them, a [Recorder]
// makes events of these. [Session] is the source that holds them together; [Probe] only
// listens.
//
// Packages below it are protocols; internal/device/all lists them.
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

// Protocol makes inferences of what a device sends.
type Protocol struct {
	// Name is what users name it by, Title says what sends it.
	Name, Title string
	// Speeds are the usual speeds of serial ports in baud, the most usual first.
	Speeds []int
	// Sure says how sure it is, from 0 to 100, that a device that began with these bytes
	// speaks it. It is asked again as more come, up to [HeadBytes]. The first bytes may lie
	// in the middle of a line or frame.
	Sure func(head []byte) int
	// Ask is what to send to a device that is silent until it is asked, nil to listen only.
	Ask []byte
	// Warm says that it warms up by itself, or that a start of the device gives one inference:
	// none is left out. Once says that a start gives one, and that no more are asked for.
	Warm, Once bool
	// Run takes bytes from the port until the stream ends or the recorder has enough, and
	// returns why: nil, [ErrEnough] or what [Conn.Read] said. What the recorder has stays.
	Run func(ctx context.Context, c *Conn, j *Job) error
}

// HeadBytes is how many bytes protocols look at to recognise theirs.
const HeadBytes = 64 << 10

// Job is what a protocol works for.
type Job struct {
	// Model is what is known of the model without running it, nil where none was named.
	Model *profile.Profile
	*Recorder
}

// Chunk is bytes as they came, at least one.
type Chunk struct {
	Data []byte
	// At is when they were read.
	At time.Time
	// Gap says that bytes before them were lost: the device was away.
	Gap bool
	// Again says that the program was started again before them: what was under way is over. Cut says
	// that it was ended before, so that what is not whole is no loss.
	Again, Cut bool
}

// ErrSilent says that nothing came for as long as was waited.
var ErrSilent = errors.New("the device is silent")

// SilentError is an [ErrSilent] with the time that was waited.
type SilentError struct {
	Port   port.Address
	Waited time.Duration
	// Before is the number of bytes that had come before.
	Before int64
}

// Error says how long nothing came.
func (e *SilentError) Error() string {
	if e.Before == 0 {
		return fmt.Sprintf("%s: nothing came within %s", e.Port, seconds(e.Waited))
	}
	return fmt.Sprintf("%s: nothing more came within %s, after %d bytes", e.Port, seconds(e.Waited), e.Before)
}

// Is makes it an [ErrSilent].
func (e *SilentError) Is(target error) bool { return target == ErrSilent }

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

// Conn is an open port as a protocol sees it. It is not for several goroutines.
type Conn struct {
	port    port.Port
	addr    port.Address
	timeout time.Duration
	head    []byte // what was looked at before, to be read again
	headAt  time.Time
	buf     [32 << 10]byte
	got     int64
	gap     bool // bytes before the next ones are lost
	starts  *starts
}

// Read returns the next bytes. It waits for them as long as wait says, the session's time
// where that is 0. Errors are a [SilentError], [io.EOF] where a file or program has ended, [ErrEnough]
// where the program was ended since its time is over,
// a [port.GoneError] where the device went away, and the context's.
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
		if c.starts.over() {
			if err := c.again(ctx, true); err != nil {
				return Chunk{}, err
			}
		}
		x, err := c.read(ctx, wait)
		if errors.Is(err, ErrSilent) && c.away() {
			continue // the port ends the wait for a device that does not come back
		}
		if errors.Is(err, io.EOF) && c.starts.may() {
			if err := c.again(ctx, false); err != nil {
				return Chunk{}, err
			}
			continue
		}
		if err == nil {
			c.starts.mark(&x)
		}
		return x, err
	}
}

// away reports whether the port waits for a device that was unplugged.
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
			// A port that has nothing to say and does not say so must not spin.
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

// Write sends bytes to the device, all of them or an error.
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

// Address is where the port leads.
func (c *Conn) Address() port.Address { return c.addr }

// Live reports whether a device answers, and not a recording.
func (c *Conn) Live() bool { return c.addr.Kind != port.File && c.addr.Kind != port.Stdin }

// Received is the number of bytes that came until now.
func (c *Conn) Received() int64 { return c.got }
