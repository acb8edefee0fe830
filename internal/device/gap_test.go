package device

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/port"
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
	c := &Conn{port: &away{}, timeout: time.Minute}
	if _, err := c.Read(t.Context(), time.Millisecond); !errors.Is(err, ErrSilent) {
		t.Fatalf("%v", err)
	}
	for _, want := range []bool{true, false} {
		x, err := c.Read(t.Context(), 0)
		if err != nil || string(x.Data) != "x" || x.Gap != want {
			t.Errorf("%+v, %v, want a gap: %v", x, err, want)
		}
	}
}
