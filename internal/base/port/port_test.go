package port_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/testing/wire"
)

// patience is how long anything here may take at most: a busy machine takes its time, and
// only a hang is longer.
const patience = 30 * time.Second

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, name string, o port.Options) port.Port {
	t.Helper()
	a, err := port.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	if o.LockDir == "" {
		o.LockDir = t.TempDir()
	}
	p, err := port.Open(within(t, patience), a, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// read reads n bytes, or until an error.
func read(t testing.TB, p port.Port, n int) ([]byte, error) {
	t.Helper()
	ctx := within(t, patience)
	var out []byte
	b := make([]byte, 10000)
	for len(out) < n {
		m, err := p.Read(ctx, b[:min(len(b), n-len(out))])
		out = append(out, b[:m]...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// all reads until an error.
func all(t testing.TB, p port.Port) ([]byte, error) { return read(t, p, 1<<40) }

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// speeds are the usual ones, and two that no table has.
var speeds = []int{9600, 19200, 38400, 57600, 115200, 230400, 460800, 500000, 576000, 912600, 921600, 1000000, 1500000, 2000000, 3000000, 123456}

// At every speed every byte arrives, both ways, and the recording has the same bytes. At
// another speed nothing of it arrives.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	want := noise(20000)
	for _, baud := range speeds {
		path, _ := wire.Line{Baud: baud}.Open(t, func(w io.Writer, r io.Reader) {
			b := make([]byte, 5)
			for {
				if _, err := io.ReadFull(r, b); err != nil {
					return
				}
				if string(b) == "hello" {
					if _, err := w.Write(want); err != nil {
						return
					}
				}
			}
		})
		var rec bytes.Buffer
		p := open(t, path, port.Options{Speed: baud, Record: &rec})
		if _, err := p.Write(within(t, patience), []byte("hello")); err != nil {
			t.Fatalf("%d: %v", baud, err)
		}
		got, err := read(t, p, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: %d bytes, %v", baud, len(got), err)
		}
		_ = p.Close()
		if !bytes.Equal(rec.Bytes(), want) {
			t.Errorf("%d: the recording has %d bytes, not those that came", baud, rec.Len())
		}
	}
}

// A port that was opened at a wrong speed hears the device once the speed is right, and
// nothing from before.
func TestSetSpeed(t *testing.T) {
	t.Parallel()
	line := []byte("the quick brown fox\n")
	path, _ := wire.Line{Baud: 921600}.Open(t, func(w io.Writer, _ io.Reader) {
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	p := open(t, path, port.Options{})
	got, err := read(t, p, 200)
	if err != nil || bytes.Contains(got, line[:5]) {
		t.Fatalf("%q, %v", got, err)
	}
	if err := p.SetSpeed(921600); err != nil {
		t.Fatal(err)
	}
	got, err = read(t, p, 2000)
	if err != nil || bytes.Count(got, line) < 50 {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []int{0, -1, 1 << 30} {
		err := p.SetSpeed(bad)
		if e, ok := errors.AsType[*port.OpenError](err); !ok || e.Cause != port.BadSpeed {
			t.Errorf("%d: %v", bad, err)
		}
	}
	a := port.Over(port.Address{Kind: port.TCP, Name: "x:1"}, wire.Line{}.Memory(t, wire.Silent), port.Options{})
	defer func() { _ = a.Close() }()
	if err := a.SetSpeed(9600); !errors.Is(err, port.ErrNoSpeed) {
		t.Errorf("a connection: %v", err)
	}
}

// ways opens a device in each way that has one.
func ways(t *testing.T, l wire.Line, d wire.Device, o port.Options) map[string]port.Port {
	t.Helper()
	path, _ := l.Open(t, d)
	addr, _ := l.TCP(t, d)
	return map[string]port.Port{
		"serial": open(t, path, o),
		"tcp":    open(t, "tcp:"+addr, o),
		"over":   port.Over(port.Address{Kind: port.TCP, Name: "memory:1"}, l.Memory(t, d), o),
	}
}

// A silent device keeps nobody: reads end with their context, and say so.
func TestSilent(t *testing.T) {
	t.Parallel()
	for name, p := range ways(t, wire.Line{}, wire.Silent, port.Options{}) {
		start := time.Now()
		n, err := p.Read(within(t, 20*time.Millisecond), make([]byte, 10))
		if n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if d := time.Since(start); d < 20*time.Millisecond {
			t.Errorf("%s: over after %v", name, d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := p.Read(ctx, make([]byte, 10)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		// Closing ends a read that waits for ever.
		over := make(chan error, 1)
		go func() {
			_, err := p.Read(context.Background(), make([]byte, 10))
			over <- err
		}()
		if err := p.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		select {
		case err := <-over:
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s: after Close: %v", name, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: a read does not end with Close", name)
		}
		if _, err := p.Write(t.Context(), []byte("x")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: a write after Close: %v", name, err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: Close again: %v", name, err)
		}
	}
}

// The plug is pulled after any number of bytes: what came before is there (a terminal
// forgets what nobody has read), nothing else is, and the error says that it is gone.
func TestUnplug(t *testing.T) {
	t.Parallel()
	want := noise(5000)
	for _, after := range []int64{1, 2, 100, 4095, 4097, 5000} {
		var rec lockedBuffer
		// It waits for its host, which cannot open it otherwise.
		device := func(w io.Writer, r io.Reader) {
			if _, err := r.Read(make([]byte, 1)); err == nil {
				wire.Play(want)(w, r)
			}
		}
		for name, p := range ways(t, wire.Line{UnplugAfter: after}, device, port.Options{Record: &rec}) {
			if _, err := p.Write(within(t, patience), []byte("x")); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := all(t, p)
			g, ok := errors.AsType[*port.GoneError](err)
			if !ok || g.Waited != 0 {
				t.Errorf("%s, %d: %v", name, after, err)
			}
			if !bytes.Equal(got, want[:min(len(got), int(after))]) || name != "serial" && len(got) != int(after) {
				t.Errorf("%s, %d: %d bytes came, or other ones", name, after, len(got))
			}
			if _, again := p.Read(t.Context(), make([]byte, 1)); !errors.Is(again, err) {
				t.Errorf("%s, %d: then %v", name, after, again)
			}
			_ = p.Close()
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// A flood that no one reads takes a bounded amount of memory, is recorded as far as it was
// taken, and comes out in order.
func TestFlood(t *testing.T) {
	t.Parallel()
	line := noise(4093)
	var rec lockedBuffer
	p := port.Over(port.Address{Kind: port.TCP, Name: "memory:1"}, wire.Line{}.Memory(t, wire.Flood(line)), port.Options{Record: &rec})
	defer func() { _ = p.Close() }()
	size := func() int {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		return rec.Len()
	}
	// It has stopped when it is full and does not grow any more for some time.
	const most = 8<<20 + 128<<10
	for end := time.Now().Add(time.Minute); size() < 8<<20 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	for last := -1; size() != last; time.Sleep(200 * time.Millisecond) {
		if last = size(); last > most {
			break
		}
	}
	if n := size(); n > most || n < 8<<20 {
		t.Errorf("%d bytes are held, at least %d and at most %d are expected", n, 8<<20, most)
	}
	got, err := read(t, p, 9<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != line[i%len(line)] {
			t.Fatalf("byte %d is another one", i)
		}
	}
}

// A device that comes back under its name goes on, once marked; bytes from before and
// after are there.
func TestReconnect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "board")
	plug := func(text string) (unplug func()) {
		path, unplug := wire.Open(t, wire.Play([]byte(text)))
		next := filepath.Join(dir, "next")
		if err := os.Symlink(path, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, link); err != nil {
			t.Fatal(err)
		}
		return unplug
	}
	unplug := plug("before")
	var rec lockedBuffer
	p := open(t, link, port.Options{Reconnect: patience, Record: &rec})
	if got, err := read(t, p, 6); err != nil || string(got) != "before" {
		t.Fatalf("%q, %v", got, err)
	}
	os.Remove(link)
	unplug()
	// While it is away reads wait, and end with their context.
	if _, err := p.Read(within(t, 200*time.Millisecond), make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is away: %v", err)
	}
	if a, ok := p.(interface{ Away() bool }); !ok || !a.Away() {
		t.Error("it is not said to be away")
	}
	plug("after")
	if got, err := read(t, p, 1); !errors.Is(err, port.ErrReopened) || len(got) != 0 {
		t.Errorf("when it is back: %q, %v", got, err)
	}
	if got, err := read(t, p, 5); err != nil || string(got) != "after" {
		t.Errorf("%q, %v", got, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if rec.String() != "beforeafter" {
		t.Errorf("recorded: %q", rec.String())
	}
}

// One that does not come back is gone after the time that was given.
func TestReconnectInVain(t *testing.T) {
	t.Parallel()
	path, unplug := wire.Open(t, wire.Silent)
	// The number of a terminal that is gone may at once be that of another process's.
	link := filepath.Join(t.TempDir(), "board")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	p := open(t, link, port.Options{Reconnect: 300 * time.Millisecond})
	os.Remove(link)
	unplug()
	_, err := read(t, p, 1)
	if g, ok := errors.AsType[*port.GoneError](err); !ok || g.Waited != 300*time.Millisecond || !strings.Contains(err.Error(), "did not come back within 300ms") {
		t.Errorf("%v", err)
	}
}

// A connection comes back too: the second one is another device here.
func TestReconnectTCP(t *testing.T) {
	t.Parallel()
	addr, _ := wire.Line{UnplugAfter: 3}.TCP(t, wire.Play([]byte("abcdef")))
	p := open(t, "tcp:"+addr, port.Options{Reconnect: patience})
	for range 3 {
		if got, err := read(t, p, 3); err != nil || string(got) != "abc" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := read(t, p, 1); !errors.Is(err, port.ErrReopened) {
			t.Errorf("%v", err)
		}
	}
}

// A device that takes nothing does not hold whoever sends.
func TestWriteEnds(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	deaf := func(io.Writer, io.Reader) { <-hold }
	for name, p := range ways(t, wire.Line{}, deaf, port.Options{}) {
		big := make([]byte, 64<<20)
		n, err := p.Write(within(t, 50*time.Millisecond), big)
		if !errors.Is(err, context.DeadlineExceeded) || n >= len(big) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		over := make(chan error, 1)
		go func() {
			_, err := p.Write(context.Background(), big)
			over <- err
		}()
		time.Sleep(10 * time.Millisecond) // usually it waits by now
		_ = p.Close()
		select {
		case err := <-over:
			if err == nil {
				t.Errorf("%s: it was sent", name)
			}
		case <-time.After(patience):
			t.Fatalf("%s: a write does not end with Close", name)
		}
	}
}

// What cannot be opened is told with its cause and what to do.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("names of devices are those of Unix here")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "board.rec")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	closed := lis.Addr().String()
	_ = lis.Close()
	for _, c := range []struct {
		name  string
		cause port.Cause
		text  string
	}{
		{"/dev/ttyNOSUCH7", port.Missing, "/dev/ttyNOSUCH7: no such device; "},
		{"COM3", port.Missing, "COM3: no such device; COM names are those of Windows: opmeter devices lists what is connected here"},
		{file, port.NotSerial, file + ": no serial port: it is a file; file:" + file + " replays a recording"},
		{dir, port.NotSerial, dir + ": no serial port: it is a folder"},
		{"/dev/null", port.NotSerial, "/dev/null: no serial port: "},
		{"tcp:" + closed, port.Refused, "tcp:" + closed + ": connection refused: nothing listens there; start the program that offers the port, or check the number"},
		{"exec:opmeter-no-such-program", port.Missing, `exec:opmeter-no-such-program: no such program; "opmeter-no-such-program" is neither a path nor found on PATH; one in this folder is ./opmeter-no-such-program`},
		{"exec:" + file, port.Permission, "exec:" + file + ": permission denied; make it executable: chmod +x " + file},
		{"file:" + filepath.Join(dir, "none"), port.Missing, "file:" + filepath.Join(dir, "none") + ": no such file; check the path; --record FILE makes such a file"},
		{"file:" + dir, port.Failed, "file:" + dir + ": cannot be opened: is a folder, a file was expected; a device is named without file:, a pipe is read with - from standard input"},
	} {
		a, err := port.Parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := port.Open(within(t, patience), a, port.Options{LockDir: dir})
		if err == nil {
			_ = p.Close()
		}
		e, ok := errors.AsType[*port.OpenError](err)
		if !ok || e.Cause != c.cause || !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%s: got %v\nwant %s: %s", c.name, err, c.cause, c.text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := port.Open(ctx, port.Address{Kind: port.TCP, Name: closed}, port.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}

// A port that is open is busy, and it is told by whom; afterwards it is free.
func TestBusy(t *testing.T) {
	t.Parallel()
	path, _ := wire.Open(t, wire.Silent)
	dir := t.TempDir()
	p := open(t, path, port.Options{LockDir: dir})
	a := port.Address{Kind: port.Serial, Name: path}
	link := filepath.Join(t.TempDir(), "by-id")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := port.Open(t.Context(), port.Address{Kind: port.Serial, Name: name}, port.Options{LockDir: dir})
		e, ok := errors.AsType[*port.OpenError](err)
		if !ok || e.Cause != port.Busy || len(e.Holders) != 1 || e.Holders[0].PID != os.Getpid() {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = p.Close()
	p, err := port.Open(t.Context(), a, port.Options{LockDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
}

// A recording replays bit for bit, in every way that a file is read, and a replay can be
// recorded.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	sent := noise(300000)
	faults := wire.Faults{Seed: 7, Corrupt: 0.01, Cut: 0.005, Duplicate: 0.005, Reorder: 0.005}
	arrives, places := faults.Apply(sent)
	if len(places) < 5000 {
		t.Fatalf("%d faults", len(places))
	}
	file := filepath.Join(t.TempDir(), "board.rec")
	rec, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := wire.Line{Faults: faults}.Open(t, wire.Play(sent))
	p := open(t, path, port.Options{Record: rec})
	got, err := read(t, p, len(arrives))
	if err != nil || !bytes.Equal(got, arrives) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	// What is recorded is in the file, though nobody has closed it.
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, arrives) {
		t.Errorf("in the file: %d bytes of %d, %v", len(b), len(arrives), err)
	}
	_ = p.Close()
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	var second bytes.Buffer
	p = open(t, "file:"+file, port.Options{Record: &second})
	if got, err := all(t, p); !errors.Is(err, io.EOF) || !bytes.Equal(got, arrives) {
		t.Errorf("replayed: %d bytes, %v", len(got), err)
	}
	if _, err := p.Write(t.Context(), []byte("x")); !errors.Is(err, port.ErrReadOnly) {
		t.Errorf("%v", err)
	}
	_ = p.Close()
	if !bytes.Equal(second.Bytes(), arrives) {
		t.Error("a replay is recorded as something else")
	}
	p = open(t, "-", port.Options{Stdin: bytes.NewReader(arrives)})
	if got, err := all(t, p); !errors.Is(err, io.EOF) || !bytes.Equal(got, arrives) {
		t.Errorf("standard input: %d bytes, %v", len(got), err)
	}
}

// limited is a disk that becomes full.
type limited struct {
	left   int
	silent bool // takes less and says nothing
}

var errFull = errors.New("no space left on device")

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if n < len(p) && !l.silent {
		return n, errFull
	}
	return n, nil
}

// A recording that fails is told once and stops; reading goes on.
func TestRecordFails(t *testing.T) {
	t.Parallel()
	want := noise(200000)
	for _, l := range []*limited{{left: 0}, {left: 1000}, {left: 1000, silent: true}} {
		var told []error
		var mu sync.Mutex
		p := open(t, "-", port.Options{Stdin: bytes.NewReader(want), Record: l, RecordFailed: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err)
		}})
		got, err := all(t, p)
		if !errors.Is(err, io.EOF) || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		cause := errFull
		if l.silent {
			cause = io.ErrShortWrite
		}
		if err := p.Close(); !errors.Is(err, cause) {
			t.Errorf("Close: %v", err)
		}
		mu.Lock()
		if len(told) != 1 || !errors.Is(told[0], cause) {
			t.Errorf("told: %v", told)
		}
		mu.Unlock()
	}
}

// Standard input that no one writes to does not hold the end.
func TestStdinWaits(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	p := open(t, "-", port.Options{Stdin: r})
	if _, err := p.Read(within(t, 20*time.Millisecond), make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	go func() { _, _ = w.Write([]byte("late")) }()
	if got, err := read(t, p, 4); err != nil || string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if p := open(t, "-", port.Options{}); p != nil {
		if _, err := all(t, p); !errors.Is(err, io.EOF) {
			t.Errorf("none at all: %v", err)
		}
	}
}

// A device that is in the list has a name that opens it.
func TestList(t *testing.T) {
	t.Parallel()
	list, err := port.List()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(list))
	for _, i := range list {
		names = append(names, i.Name)
		if a, err := port.Parse(i.Name); err != nil || a.Kind != port.Serial {
			t.Errorf("%s: %+v, %v", i.Name, a, err)
		}
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("twice in the list: %v", names)
	}
}
