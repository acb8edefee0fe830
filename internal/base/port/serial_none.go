//go:build !linux && !darwin && !freebsd && !openbsd && !windows

package port

import "context"

// serialPort is a serial port on a system without support for them.
type serialPort struct {
	addr    Address
	lockDir string
}

func (s *serialPort) open(context.Context, int) (way, error) {
	return nil, &OpenError{Address: s.addr, Cause: Unsupported, Advice: "there are no serial ports on this system: use tcp:HOST:PORT, exec:COMMAND or file:PATH"}
}
