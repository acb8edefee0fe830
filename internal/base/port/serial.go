//go:build linux || darwin || freebsd || openbsd || windows

package port

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"go.bug.st/serial"
)

// poll is how long a read of a serial port blocks in the system: Close waits for it.
const poll = 50 * time.Millisecond

// presence is the interval at which a silent device is checked: the system does not report every
// disconnection.
const presence = 500 * time.Millisecond

// serialPort opens a serial device, also again after a disconnection.
type serialPort struct {
	addr    Address
	lockDir string
	id      identity // of the device as it was first opened
}

// identity identifies a USB device under another name.
type identity struct {
	vid, pid uint16
	serial   string
}

// open opens the device under its name. If the name is absent and the device was open before, it
// uses the device's current name.
func (s *serialPort) open(ctx context.Context, baud int) (way, error) {
	w, err := s.openName(ctx, s.addr.Name, baud)
	e, ok := errors.AsType[*OpenError](err)
	if !ok || e.Cause != Missing || s.id == (identity{}) {
		return w, err
	}
	list, lerr := List()
	if lerr != nil {
		return nil, err
	}
	for _, i := range list {
		if i.USB && s.id == (identity{i.VID, i.PID, i.Serial}) {
			return s.openName(ctx, i.Name, baud)
		}
	}
	return nil, err
}

// openName opens a device by name.
func (s *serialPort) openName(ctx context.Context, name string, baud int) (way, error) {
	look := inspect(name)
	if e := look.refusal(s.addr); e != nil {
		return nil, e
	}
	lock, holder := acquire(s.lockDir, look.Path)
	if holder != nil {
		list := []Holder{*holder}
		return nil, &OpenError{Address: s.addr, Cause: Busy, Holders: list, Advice: BusyAdvice(list)}
	}
	// Two readers of a port get half of the bytes each, which no system lock prevents for an
	// administrator.
	if list := holders(look.Path); len(list) > 0 && !look.Pseudo {
		lock.release()
		return nil, &OpenError{Address: s.addr, Cause: Busy, Holders: list, Advice: BusyAdvice(list)}
	}
	type result struct {
		p   serial.Port
		err error
	}
	over := make(chan result, 1)
	go func() {
		p, err := serial.Open(look.Path, mode(baud))
		over <- result{p, err}
	}()
	select {
	case r := <-over:
		if r.err == nil {
			r.err = r.p.SetReadTimeout(poll)
			if r.err != nil {
				_ = r.p.Close()
			}
		}
		if r.err != nil {
			lock.release()
			return nil, s.told(r.err, look, baud)
		}
		if look.Info != nil && look.Info.USB {
			s.id = identity{look.Info.VID, look.Info.PID, look.Info.Serial}
		}
		return &device{addr: s.addr, path: look.Path, file: look.file, p: r.p, lock: lock, last: time.Now(), looked: time.Now()}, nil
	case <-ctx.Done():
		go func() {
			if r := <-over; r.err == nil {
				_ = r.p.Close()
			}
			lock.release()
		}()
		return nil, ctx.Err()
	}
}

// mode is 8 data bits, no parity, one stop bit, as in all the protocols.
func mode(baud int) *serial.Mode {
	return &serial.Mode{BaudRate: baud, DataBits: 8, Parity: serial.NoParity, StopBits: serial.OneStopBit}
}

// told converts the system's error of opening a port.
func (s *serialPort) told(err error, look Inspection, baud int) error {
	e := &OpenError{Address: s.addr, Cause: Failed, Err: err}
	code := serial.PortErrorCode(-1)
	if p, ok := errors.AsType[*serial.PortError](err); ok {
		code = p.Code()
	}
	switch {
	case code == serial.PortBusy || errors.Is(err, syscall.EBUSY):
		e.Cause, e.Holders = Busy, holders(look.Path)
		e.Advice = BusyAdvice(e.Holders)
	case code == serial.PermissionDenied || errors.Is(err, fs.ErrPermission):
		e.Cause, e.Advice = Permission, look.permissionAdvice()
	case code == serial.PortNotFound || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO):
		e.Cause, e.Advice = Missing, missingAdvice(s.addr.Name)
	case code == serial.InvalidSpeed:
		e.Cause, e.Err, e.Advice = BadSpeed, fmt.Errorf("%d baud", baud), "try --speed 115200"
	case code == serial.InvalidSerialPort:
		// A speed that the driver rejects gives the same error.
		e.Cause = NotSerial
	}
	return e
}

// device is an open serial port.
type device struct {
	addr   Address
	path   string
	file   fs.FileInfo // what the path led to, nil where that means nothing
	p      serial.Port
	lock   *lock
	last   time.Time // when the last byte came
	looked time.Time // when it was last looked for

	writing sync.Mutex // held while a write is in the system
	mu      sync.Mutex
	sent    bool // something was written
	ended   bool
}

func (d *device) gone(err error) error { return &GoneError{Port: d.addr, Err: err} }

func (d *device) read(p []byte) (n int, err error) {
	defer func() {
		// The library waits with select, which accepts small descriptors only.
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("%s: cannot be waited for: too many files are open in this process: %v", d.addr, r)
		}
	}()
	n, err = d.p.Read(p)
	now := time.Now()
	if n > 0 {
		d.last = now
		return n, nil
	}
	if err != nil {
		return 0, d.gone(err)
	}
	// No data and no error is a timeout, or a disconnected device.
	if now.Sub(d.last) > presence && now.Sub(d.looked) > presence {
		d.looked = now
		if err := stillThere(d.path, d.file, d.p); err != nil {
			return 0, d.gone(err)
		}
	}
	return 0, nil
}

func (d *device) write(p []byte) (int, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	done := 0
	for done < len(p) {
		d.mu.Lock()
		ended := d.ended
		d.sent = true
		d.mu.Unlock()
		if ended {
			return done, d.gone(nil)
		}
		n, err := d.p.Write(p[done:min(done+1024, len(p))])
		done += max(n, 0)
		if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN) {
			continue
		}
		if err != nil {
			return done, d.gone(err)
		}
	}
	return done, nil
}

// interrupt discards unsent output, so that a blocked write returns.
func (d *device) interrupt() {
	if d.writing.TryLock() {
		d.writing.Unlock()
		return
	}
	// It fails if the device is gone, and then nothing waits.
	_ = d.p.ResetOutputBuffer()
}

func (d *device) setSpeed(baud int) error {
	bad := func(err error) error {
		return &OpenError{Address: d.addr, Cause: BadSpeed, Err: fmt.Errorf("%d baud: %w", baud, err)}
	}
	if baud <= 0 || baud > maxSpeed {
		return bad(errors.New("no speed of a serial port"))
	}
	// Bytes that arrive in between are received at the new speed; buffered ones are garbage.
	_ = d.p.ResetInputBuffer()
	if err := d.p.SetMode(mode(baud)); err != nil {
		return bad(err)
	}
	return nil
}

// maxSpeed exceeds the speed of any serial port.
const maxSpeed = 100_000_000

// quit lets writes end; a read ends by itself.
func (d *device) quit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
}

func (d *device) close() error {
	defer d.lock.release()
	d.quit()
	d.mu.Lock()
	sent := d.sent
	d.mu.Unlock()
	over := make(chan error, 1)
	go func() {
		d.writing.Lock() // a descriptor closed during a write may be reused for another file
		defer d.writing.Unlock()
		if sent {
			_ = d.p.Drain()
		}
		over <- d.p.Close()
	}()
	select {
	case err := <-over:
		return err
	case <-time.After(closePatience / 4):
	}
	// The system waits up to half a minute for a wire that takes nothing.
	_ = d.p.ResetOutputBuffer()
	select {
	case err := <-over:
		return err
	case <-time.After(closePatience / 4):
		return nil
	}
}
