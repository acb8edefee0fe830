// Package wire connects a made-up device with a port, over a wire with faults: bytes that
// are cut, doubled, in the wrong order or wrong, a plug that is pulled, a device that is
// silent, that floods, or that speaks at another speed. Only tests import it.
//
//	path, unplug := wire.Open(t, func(w io.Writer, r io.Reader) { fmt.Fprintln(w, "ready") })
//
// gives the name of a pseudo-terminal that behaves as a serial port; [Line] has the faults.
// A device is a function that writes what it sends and reads what it is sent. When it
// returns, the wire stays open and silent. When the plug is pulled or the test ends, its
// writes and reads fail, and it has to return.
package wire

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Device is a made-up device: it writes to w what the host receives, and reads from r what
// the host sends. It returns when one of them fails.
type Device func(w io.Writer, r io.Reader)

// ErrUnplugged is what a device has from its writer and reader when the plug is out.
var ErrUnplugged = errors.New("unplugged")

// Line is a wire with its faults. The zero value is a good one.
type Line struct {
	// Faults happen to what the device sends.
	Faults Faults
	// UnplugAfter pulls the plug when the device has sent so many bytes, 0 for never. Faults
	// come behind: it counts what was sent, not what arrives.
	UnplugAfter int64
	// Baud is the speed of the device in baud, 0 for one that any speed does for. Over a
	// pseudo-terminal, a host that has set another speed receives and sends garbage, and the
	// device waits until a host has set one at all, as a board does that is reset when its port
	// is opened.
	Baud int
	// Paced makes the bytes come no faster than Baud has it (10 bits a byte).
	Paced bool
}

// Open connects a device to a pseudo-terminal without faults: see [Line.Open].
func Open(t testing.TB, device Device) (path string, unplug func()) {
	t.Helper()
	return Line{}.Open(t, device)
}

// TCP connects a device to a TCP port without faults: see [Line.TCP].
func TCP(t testing.TB, device Device) (address string, unplug func()) {
	t.Helper()
	return Line{}.TCP(t, device)
}

// Memory connects a device to nothing but memory: what it sends is read from the result,
// what is written to it the device reads. Closing it pulls the plug.
func (l Line) Memory(t testing.TB, device Device) io.ReadWriteCloser {
	t.Helper()
	host, dev := net.Pipe()
	l.run(t, device, dev, nil)
	return host
}

// TCP connects a device to a TCP port on the loopback interface and returns HOST:PORT.
// Every connection has a device of its own. The function closes the connections and the
// port.
func (l Line) TCP(t testing.TB, device Device) (address string, unplug func()) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no TCP port can be opened here: %v", err)
	}
	var mu sync.Mutex
	var pull []func()
	var ended bool
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if ended {
				_ = c.Close()
			} else {
				pull = append(pull, l.start(device, c, nil))
			}
			mu.Unlock()
		}
	}()
	unplug = sync.OnceFunc(func() {
		_ = lis.Close()
		mu.Lock()
		ended = true
		list := pull
		mu.Unlock()
		for _, f := range list {
			f()
		}
	})
	t.Cleanup(unplug)
	return lis.Addr().String(), unplug
}

// run starts a device on the far end of a wire, which ends with the test at the latest.
// speed tells the speed that the host has set, nil if absent.
func (l Line) run(t testing.TB, device Device, far io.ReadWriteCloser, speed func() int) (unplug func()) {
	t.Helper()
	unplug = l.start(device, far, speed)
	t.Cleanup(unplug)
	return unplug
}

// start is run without a test. The function that it returns closes the far end once and
// waits for the device, though not for ever: one that does not end is not the fault of
// what is tested.
func (l Line) start(device Device, far io.ReadWriteCloser, speed func() int) (unplug func()) {
	closing := sync.OnceFunc(func() { far.Close() })
	over := make(chan struct{})
	go func() {
		defer close(over)
		device(l.sender(far, speed, closing), l.receiver(far, speed))
	}()
	return func() {
		closing()
		select {
		case <-over:
		case <-time.After(5 * time.Second):
		}
	}
}

// sender is what the device writes to.
func (l Line) sender(far io.Writer, speed func() int, unplug func()) io.Writer {
	w := far
	if l.Baud > 0 && speed != nil {
		w = &mismatched{w: w, baud: l.Baud, speed: speed}
	}
	if l.Paced && l.Baud > 0 {
		w = &paced{w: w, perByte: 10 * time.Second / time.Duration(l.Baud)}
	}
	if l.Faults.some() {
		w, _ = l.Faults.Writer(w)
	}
	if l.UnplugAfter > 0 {
		w = &limited{w: w, left: l.UnplugAfter, unplug: unplug}
	}
	return &failing{w}
}

// receiver is what the device reads from.
func (l Line) receiver(far io.Reader, speed func() int) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		n, err := far.Read(p)
		if l.Baud > 0 && speed != nil && speed() != l.Baud && err == nil {
			garble(p[:n])
		}
		if err != nil {
			return n, ErrUnplugged
		}
		return n, nil
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// failing tells every error of a wire in the same way.
type failing struct{ w io.Writer }

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil {
		return n, ErrUnplugged
	}
	return n, nil
}

// limited pulls the plug after so many bytes.
type limited struct {
	w      io.Writer
	left   int64
	unplug func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrUnplugged
	}
	n, err := l.w.Write(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if l.left <= 0 {
		l.unplug()
		return n, ErrUnplugged
	}
	return n, err
}

// paced keeps the bytes to the speed of a wire.
type paced struct {
	w       io.Writer
	perByte time.Duration
	free    time.Time // when the wire is free again
}

func (w *paced) Write(p []byte) (int, error) {
	// Pieces of about 2 ms: often enough to look like a wire, seldom enough for a timer.
	piece := max(1, int(2*time.Millisecond/max(w.perByte, 1)))
	for done := 0; done < len(p); {
		n := min(piece, len(p)-done)
		now := time.Now()
		if w.free.Before(now) {
			w.free = now
		}
		w.free = w.free.Add(time.Duration(n) * w.perByte)
		time.Sleep(time.Until(w.free))
		m, err := w.w.Write(p[done : done+n])
		done += m
		if err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// mismatched garbles what the host would read at another speed.
type mismatched struct {
	w     io.Writer
	baud  int
	speed func() int
}

// fifo is how many bytes are on the way when a host sets another speed: these come as the speed
// before made them.
const fifo = 32

func (m *mismatched) Write(p []byte) (int, error) {
	for n := 0; n < len(p); n += fifo {
		if err := m.send(p[n:min(len(p), n+fifo)]); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// send sends what is on the way at once.
func (m *mismatched) send(p []byte) error {
	host := m.speed()
	for ; host == 0; host = m.speed() {
		time.Sleep(time.Millisecond)
	}
	if host == m.baud {
		_, err := m.w.Write(p)
		return err
	}
	// A host that is too fast sees several bytes where one was sent, one that is too slow
	// one for several.
	out := make([]byte, 0, len(p))
	for i, b := range p {
		switch {
		case host > m.baud:
			out = append(out, b, 0xe0|b>>4)
		case i%2 == 0:
			out = append(out, b)
		}
	}
	garble(out)
	_, err := m.w.Write(out)
	return err
}

// garble makes of bytes what a wrong speed makes of them: nothing that means anything.
func garble(p []byte) {
	for i, b := range p {
		p[i] = b*0x9d ^ 0xa6 | 0x80
	}
}

// Silent is a device that sends nothing, and reads and forgets what it is sent.
func Silent(_ io.Writer, r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// Flood is a device that sends a text again and again, as fast as the wire takes it.
func Flood(text []byte) Device {
	return func(w io.Writer, _ io.Reader) {
		for {
			if _, err := w.Write(text); err != nil {
				return
			}
			runtime.Gosched()
		}
	}
}

// Play is a device that sends a stream once and is silent from then on.
func Play(stream []byte) Device {
	return func(w io.Writer, r io.Reader) {
		if _, err := w.Write(stream); err == nil {
			Silent(w, r)
		}
	}
}
