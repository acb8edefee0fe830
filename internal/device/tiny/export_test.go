package tiny

import (
	"context"
	"time"

	"github.com/opmeter/opmeter/internal/device"
)

// Impatient makes a host wait a tenth of a second only.
func Impatient(p *device.Protocol) {
	p.Run = func(ctx context.Context, c *device.Conn, j *device.Job) error {
		s := &session{o: Options{Window: 20 * time.Millisecond}, c: c, job: j, patience: 100 * time.Millisecond}
		err := s.host(ctx)
		if e := s.finish(); err == nil {
			err = e
		}
		return err
	}
}
