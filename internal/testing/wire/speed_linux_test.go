package wire

import (
	"bytes"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A device waits for a host that has set a speed. At another one than the device's nothing
// arrives that it sent, at its own all of it.
func TestSpeed(t *testing.T) {
	t.Parallel()
	const text = "hello\n"
	path, _ := Line{Baud: 921600}.Open(t, func(w io.Writer, r io.Reader) {
		for {
			if _, err := w.Write([]byte(text)); err != nil {
				return
			}
			if _, err := r.Read(make([]byte, 1)); err != nil {
				return
			}
		}
	})
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64)
	for _, speed := range []uint32{9600, 921600} {
		if err := control(f, func(fd int) error {
			s, err := unix.IoctlGetTermios(fd, getTermios)
			if err != nil {
				return err
			}
			s.Cflag = s.Cflag&^unix.CBAUD | unix.BOTHER
			s.Ispeed, s.Ospeed = speed, speed
			return unix.IoctlSetTermios(fd, setTermios, s)
		}); err != nil {
			t.Fatal(err)
		}
		if speed == 921600 {
			if _, err := f.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		n, err := f.Read(b)
		if err != nil || n == 0 || bytes.Contains(b[:n], []byte(text)) != (speed == 921600) {
			t.Errorf("%d: %q, %v", speed, b[:n], err)
		}
	}
}
