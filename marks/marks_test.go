package marks_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/marks"
)

var (
	camera     = marks.Named("camera")
	decode     = marks.Named("decode")
	resize     = marks.Named("resize")
	infer      = marks.Named("infer")
	inputBytes = marks.Named("input_bytes")
	queue      = marks.Named("queue")
)

// The marks of a process go one way: these tests run one after the other.

type collected struct {
	stages.Collector
	d      stages.Decoder
	cut    int
	frames []*stages.Frame
	bars   int
}

func collect(data []byte) *collected {
	c := &collected{}
	c.Frame = func(f *stages.Frame) { c.frames = append(c.frames, f) }
	c.Bar = func(stages.Bar) { c.bars++ }
	c.d.Feed(data, c.Block)
	c.cut = c.d.End(c.Block)
	c.End()
	return c
}

func file(t *testing.T, path string) *collected {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return collect(b)
}

func (c *collected) calm(t *testing.T) {
	t.Helper()
	if c.cut != 0 || c.d.Foreign != 0 {
		t.Errorf("%d bytes cut, %d foreign", c.cut, c.d.Foreign)
	}
	for i, n := range c.Problems {
		if n != 0 {
			t.Errorf("problem %d: %d", i, n)
		}
	}
	for _, p := range c.Processes {
		if !p.Ended || !p.Go || p.PID != uint64(os.Getpid()) {
			t.Errorf("%+v", p)
		}
	}
}

// open opens a file and closes it with the test.
func open(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "marks")
	if err := marks.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = marks.Close() })
	return path
}

func frame(l *marks.Lane) {
	f := l.BeginFrame(camera)
	l.Begin(decode)
	l.End(decode)
	l.Begin(infer)
	l.End(infer)
	l.EndFrame(f)
}

func TestThreads(t *testing.T) {
	path := open(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			l := marks.NewLane(fmt.Sprint("worker ", i))
			for range 5000 {
				frame(l)
			}
		})
	}
	wg.Wait()
	if err := marks.Close(); err != nil {
		t.Fatal(err)
	}
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 30000 || len(c.Nodes) != 2 {
		t.Errorf("%d frames, %d stages", len(c.frames), len(c.Nodes))
	}
	names := map[string]bool{}
	for i := range 6 {
		names[c.Processes[0].Lane(i)] = true
	}
	if len(names) != 6 || !names["worker 3"] {
		t.Errorf("%v", names)
	}
}

// TestHanded: a frame goes from goroutine to goroutine, while others are under way.
func TestHanded(t *testing.T) {
	path := open(t)
	const n = 2000
	ch := make(chan marks.Frame, 8)
	var wg sync.WaitGroup
	wg.Go(func() {
		l := marks.NewLane("infer")
		defer l.Close()
		for f := range ch {
			l.Enter(f)
			l.Begin(infer)
			l.End(infer)
			l.EndFrame(f)
		}
	})
	l := marks.NewLane("decode")
	for range n {
		f := l.BeginFrame(camera)
		l.Begin(decode)
		l.End(decode)
		l.Leave()
		ch <- f
	}
	close(ch)
	wg.Wait()
	if err := marks.Close(); err != nil {
		t.Error(err)
	}
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != n {
		t.Fatalf("%d frames", len(c.frames))
	}
	for _, f := range c.frames {
		if len(f.Shares) != 2 || c.Nodes[f.Shares[0].Node].Name != "decode" || c.Nodes[f.Shares[1].Node].Name != "infer" {
			t.Fatalf("%+v", f)
		}
	}
}

// TestLanes: lanes that are closed give their row to others, and lose nothing.
func TestLanes(t *testing.T) {
	path := open(t)
	for range 2500 {
		l := marks.NewLane("")
		frame(l)
		l.Close()
	}
	if err := marks.Close(); err != nil {
		t.Error(err)
	}
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 2500 {
		t.Errorf("%d frames", len(c.frames))
	}
}

// TestOff: without Open marks cost nothing and no memory.
func TestOff(t *testing.T) {
	l := marks.NewLane("")
	if n := testing.AllocsPerRun(100, func() { frame(l); l.Count(inputBytes, 1); l.Level(queue, 1); l.Model(infer, "x", "") }); n != 0 || marks.Enabled() {
		t.Errorf("%g allocations", n)
	}
	if err := marks.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("OPMETER_MARKS", "")
	if err := marks.Open(""); err != nil || marks.Enabled() {
		t.Error(err)
	}
	for _, to := range []string{t.TempDir(), "fd:", "fd:x", "fd:9999", "tcp:127.0.0.1:1", filepath.Join(t.TempDir(), "none", "x")} {
		if err := marks.Open(to); err == nil || marks.Enabled() {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestOn: a mark allocates nothing.
func TestOn(t *testing.T) {
	open(t)
	l := marks.NewLane("")
	frame(l)
	if n := testing.AllocsPerRun(3000, func() { frame(l) }); n >= 1 {
		t.Errorf("%g allocations a frame", n)
	}
}

// TestSilent: marks of a lane that makes no more are written after a while, without Close.
func TestSilent(t *testing.T) {
	path := open(t)
	l := marks.NewLane("")
	frame(l)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c := file(t, path); len(c.frames) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing was written")
		}
	}
	frame(l)
	marks.Flush()
	if c := file(t, path); len(c.frames) != 2 {
		t.Errorf("%d frames after Flush", len(c.frames))
	}
}

// TestReopen: streams come one after the other; lanes outlive them.
func TestReopen(t *testing.T) {
	path := open(t)
	l := marks.NewLane("main")
	frame(l)
	if err := marks.Close(); err != nil {
		t.Error(err)
	}
	frame(l)
	if err := marks.Open(path); err != nil {
		t.Fatal(err)
	}
	frame(l)
	if err := marks.Close(); err != nil {
		t.Error(err)
	}
	c := file(t, path)
	c.calm(t)
	if len(c.frames) != 2 || len(c.Processes) != 2 {
		t.Errorf("%d frames of %d streams", len(c.frames), len(c.Processes))
	}
}

func pipe(t *testing.T) *os.File {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("descriptors have no numbers here")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := marks.Open(fmt.Sprintf("fd:%d", w.Fd())); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { _ = marks.Close() })
	return r
}

// TestFullPipe: nobody reads. Marks are left out and counted, Close waits no longer than it says,
// and what was written is whole.
func TestFullPipe(t *testing.T) {
	r := pipe(t)
	before := marks.Dropped()
	l := marks.NewLane("")
	for range 500_000 {
		frame(l)
	}
	lost := marks.Dropped() - before
	if lost == 0 {
		t.Fatal("nothing was dropped")
	}
	data := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r)
		data <- b
	}()
	if err := marks.Close(); err != nil {
		t.Error(err)
	}
	c := collect(<-data)
	if c.d.Foreign != 0 || c.cut != 0 || len(c.frames) == 0 || c.Problems[stages.LostBlocks] != 0 || c.Problems[stages.DroppedMarks] != int64(lost) {
		t.Errorf("%d foreign, %d cut, %d frames, %v, %d lost", c.d.Foreign, c.cut, len(c.frames), c.Problems, lost)
	}
	for _, f := range c.frames {
		if len(f.Shares) != 2 || f.Shares[0].Calls != 1 || f.Shares[1].Calls != 1 {
			t.Fatalf("a frame that was counted lacks something: %+v", f)
		}
	}
}

// TestUnread: nobody ever reads; Close comes back.
func TestUnread(t *testing.T) {
	pipe(t)
	l := marks.NewLane("")
	for range 100_000 {
		frame(l)
	}
	if err := marks.Close(); err == nil {
		t.Error("Close says that all was written")
	}
}

// TestClosedPipe: the reader is gone: marks go off, and the program goes on.
func TestClosedPipe(t *testing.T) {
	r := pipe(t)
	r.Close()
	l := marks.NewLane("")
	for range 200_000 {
		frame(l)
	}
	for end := time.Now().Add(time.Minute); marks.Enabled(); time.Sleep(time.Millisecond) {
		frame(l)
		marks.Flush()
		if time.Now().After(end) {
			t.Fatal("marks are on, and nobody is there")
		}
	}
}

// TestMany: ten million marks need no more memory than a thousand.
func TestMany(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	if err := marks.Open(os.DevNull); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = marks.Close() })
	l := marks.NewLane("")
	for range 10_000 {
		frame(l)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 1_700_000 {
		frame(l)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	// What runtime and test themselves hold moves by some kilobytes.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes more are held", grown)
	}
}

// script is what marks/native/testdata/drive.c does, call by call.
func script(l *marks.Lane) {
	l.Model(infer, "mobilenet.tflite", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	for i := range 40 {
		f := l.BeginFrame(camera)
		l.Begin(decode)
		n := int64(-i)
		if i%2 == 0 {
			n = int64(1000 + i)
		}
		l.Count(inputBytes, n)
		l.Begin(resize)
		l.End(resize)
		l.End(decode)
		l.Level(queue, float64(i)/4)
		l.Begin(infer)
		l.End(infer)
		if i%3 == 0 {
			l.Leave()
			l.Enter(f)
		}
		l.EndFrame(f)
	}
	l.End(resize)
	f := l.BeginFrame(camera)
	l.Begin(decode)
	l.Begin(resize)
	l.End(decode)
	l.Begin(infer)
	l.EndFrame(f)
	l.EndFrame(f)
	l.End(infer)
}
