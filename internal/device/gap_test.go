package device

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
)

// away is a port whose device was away, is back, and says nothing for a while.
type away struct {
	port.Port
	reads int
}

func (a *away) Read(ctx context.Context, p []byte) (int, error) {
	switch a.reads++; a.reads {
	case 1:
		return 0, port.ErrReopened
	case 2:
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return copy(p, "x"), nil
}

// A gap is told with the first bytes behind it, however late these come, and once.
func TestGapBeforeSilence(t *testing.T) {
	t.Parallel()
	a := &away{}
	c := &Conn{port: a, timeout: time.Minute}
	for a.reads < 2 { // on a busy machine, the time may be over before the port is asked
		if _, err := c.Read(t.Context(), time.Millisecond); !errors.Is(err, ErrSilent) {
			t.Fatalf("%v", err)
		}
	}
	for _, want := range []bool{true, false} {
		x, err := c.Read(t.Context(), 0)
		if err != nil || string(x.Data) != "x" || x.Gap != want {
			t.Errorf("%+v, %v, want a gap: %v", x, err, want)
		}
	}
}

// unplugged is a port that waits for its device to come back, which it does not.
type unplugged struct {
	port.Port
	reads int
}

func (u *unplugged) Away() bool { return u.reads < 5 }

func (u *unplugged) Read(ctx context.Context, _ []byte) (int, error) {
	if u.reads++; u.reads > 5 {
		return 0, &port.GoneError{Waited: time.Second}
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

// A device that is away is not silent: the port says when the wait for it is over.
func TestAwayIsNotSilent(t *testing.T) {
	t.Parallel()
	u := &unplugged{}
	c := &Conn{port: u, timeout: time.Minute}
	_, err := c.Read(t.Context(), time.Millisecond)
	if !errors.Is(err, ErrSilent) || u.reads != 5 {
		t.Errorf("after %d reads: %v", u.reads, err)
	}
	if _, ok := errors.AsType[*port.GoneError](func() error { _, err := c.Read(t.Context(), time.Millisecond); return err }()); !ok {
		t.Error("it is not gone")
	}
}
