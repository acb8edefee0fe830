// Package talk lets protocols talk with made-up devices in tests: over memory, without a
// serial port or a file. Only tests import it.
package talk

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

// Bytes measures what stands in a recording, which comes in pieces of a few bytes.
func Bytes(t testing.TB, p *device.Protocol, data []byte, r device.Rules) (*profile.Profile, error) {
	t.Helper()
	return run(t, port.Address{Kind: port.File, Name: "recording"}, &replay{data: data, rnd: rand.New(rand.NewPCG(uint64(len(data)), 1))}, p, r, time.Second)
}

// Device measures a made-up device over a wire in memory. timeout is how long it may be silent.
func Device(t testing.TB, p *device.Protocol, l wire.Line, d wire.Device, r device.Rules, timeout time.Duration) (*profile.Profile, error) {
	t.Helper()
	return run(t, port.Address{Kind: port.Exec, Name: "device"}, Port(l.Memory(t, d)), p, r, timeout)
}

func run(t testing.TB, a port.Address, open port.Port, p *device.Protocol, r device.Rules, timeout time.Duration) (*profile.Profile, error) {
	t.Helper()
	s := device.New(a, device.Options{
		Rules: r, Protocols: []*device.Protocol{p}, Timeout: timeout,
		Open: func(context.Context, port.Address, port.Options) (port.Port, error) { return open, nil },
	})
	out, err := source.Collect(context.Background(), s, source.Options{})
	if out != nil {
		if e := out.Validate(); e != nil {
			t.Fatalf("the profile is not valid: %v", e)
		}
	}
	return out, err
}

// Port makes a port of one end of a wire.
func Port(rw io.ReadWriteCloser) port.Port {
	w := &memory{rw: rw, in: make(chan []byte), closed: make(chan struct{})}
	go w.pump()
	return w
}

// memory is a port over one end of a wire.
type memory struct {
	rw     io.ReadWriteCloser
	in     chan []byte
	rest   []byte
	closed chan struct{}
}

func (m *memory) pump() {
	defer close(m.in)
	for {
		b := make([]byte, 4096)
		n, err := m.rw.Read(b)
		if n > 0 {
			select {
			case m.in <- b[:n]:
			case <-m.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (m *memory) Read(ctx context.Context, p []byte) (int, error) {
	if len(m.rest) == 0 {
		select {
		case b, ok := <-m.in:
			if !ok {
				return 0, &port.GoneError{Port: port.Address{Kind: port.Exec, Name: "device"}, Err: errors.New("unplugged")}
			}
			m.rest = b
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *memory) Write(ctx context.Context, p []byte) (int, error) {
	done := make(chan struct{})
	var n int
	var err error
	go func() {
		defer close(done)
		n, err = m.rw.Write(p)
	}()
	select {
	case <-done:
		return n, err
	case <-ctx.Done():
		_ = m.rw.Close()
		<-done
		return n, ctx.Err()
	}
}

func (m *memory) SetSpeed(int) error { return port.ErrNoSpeed }

func (m *memory) Close() error {
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
	return m.rw.Close()
}

// replay is a recording.
type replay struct {
	data []byte
	rnd  *rand.Rand
}

func (r *replay) Read(ctx context.Context, p []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+r.rnd.IntN(200))], r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *replay) Write(_ context.Context, p []byte) (int, error) { return len(p), nil }
func (r *replay) SetSpeed(int) error                             { return port.ErrNoSpeed }
func (r *replay) Close() error                                   { return nil }
