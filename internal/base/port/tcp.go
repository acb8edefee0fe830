package port

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// dialPatience is the time limit for connecting.
const dialPatience = 10 * time.Second

// dialTCP connects. TCP keep-alive is on, so that a cut cable ends a connection after some
// minutes.
func dialTCP(ctx context.Context, a Address) (way, error) {
	d := net.Dialer{Timeout: dialPatience}
	c, err := d.DialContext(ctx, "tcp", a.Name)
	if err == nil {
		return &connection{addr: a, c: c}, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e := &OpenError{Address: a, Cause: Failed, Err: err}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	timeout, isTimeout := errors.AsType[net.Error](err)
	switch {
	case isDNS && dns.IsNotFound:
		e.Cause, e.Advice = Missing, "check the name"
	case isDNS:
		e.Cause, e.Advice = Missing, "the name could not be looked up: check it and the network"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Cause, e.Advice = Refused, "start the program that offers the port, or check the number"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		e.Cause, e.Advice = Unreachable, "check the address and the network"
	case isTimeout && timeout.Timeout():
		e.Cause, e.Advice = Silent, "check the address, the network and firewalls"
	}
	return nil, e
}

// connection is a way over a TCP connection.
type connection struct {
	addr Address
	c    io.ReadWriteCloser
}

func (c *connection) read(p []byte) (int, error) {
	n, err := c.c.Read(p)
	if n > 0 || err == nil {
		return n, nil // the error is returned again
	}
	gone := &GoneError{Port: c.addr, Err: err}
	if errors.Is(err, io.EOF) {
		gone.Closed, gone.Err = true, nil
	}
	return 0, gone
}

func (c *connection) write(p []byte) (int, error) {
	if d, ok := c.c.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Time{})
	}
	n, err := c.c.Write(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = &GoneError{Port: c.addr, Err: err}
	}
	return n, err
}

func (c *connection) interrupt() {
	if d, ok := c.c.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now())
	}
}

func (c *connection) setSpeed(int) error { return ErrNoSpeed }

func (c *connection) quit() { c.c.Close() }

func (c *connection) close() error {
	// A connection closed by quit reports that.
	if err := c.c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
