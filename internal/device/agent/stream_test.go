package agent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// net is a model that a board runs in tests: nested operators, one that runs twice, one of no
// time, counters.
type truth struct {
	whole    uint64
	own      [6]uint64 // by operator
	calls    [6]int
	counters uint64
}

// infer runs the net once and says what each operator took by itself.
func infer(b *board, rnd *rand.Rand) truth {
	var w truth
	work := func(op int, n uint64) {
		b.clock += n
		w.whole += n
		if op >= 0 {
			w.own[op] += n
		}
	}
	op := func(i int, f func()) {
		b.opBegin(uint16(i), new(fmt.Sprintf("OP_%d", i)))
		w.calls[i]++
		f()
		b.opEnd(uint16(i))
	}
	take := func() uint64 { return 1 + rnd.Uint64N(100000) }
	b.inferenceBegin()
	op(0, func() { work(0, take()) })
	work(-1, take())
	op(1, func() {
		work(1, take())
		op(2, func() {
			work(2, take())
			b.counter("macs of mine", 7)
			op(3, func() { work(3, take()) })
		})
		op(3, func() { work(3, take()) })
		work(1, take())
		b.text("within")
	})
	w.counters = 7
	op(4, func() {})
	b.counter("of the whole", 9)
	op(5, func() { work(5, take()) })
	b.inferenceEnd()
	return w
}

// pure is the time of an operator by itself, without the agent's.
func pure(h *Hello, o *Op) float64 {
	return float64(o.Counts) - float64(int64(o.Calls)-o.Inner)*float64(h.Cost) - float64(o.Agent)*h.perCall()
}

// check compares an inference with the truth. A whole one has all of it, a partial one nothing
// that is wrong: an operator of which a call was lost is known by its number of calls.
func check(h *Hello, r *Run, w *truth) error {
	if !r.Partial {
		if got := float64(r.Counts-r.Own) - float64(h.Cost) - float64(r.Calls)*h.perCall(); got != float64(w.whole) {
			return fmt.Errorf("inference %d: %g counts, want %d", r.Number, got, w.whole)
		}
		if len(r.Ops) != 6 {
			return fmt.Errorf("inference %d: %d operators", r.Number, len(r.Ops))
		}
		if len(r.Counters) != 2 || r.Counters[0] != (Counter{2, "macs of mine", 7}) || r.Counters[1] != (Counter{-1, "of the whole", 9}) {
			return fmt.Errorf("inference %d: counters %v", r.Number, r.Counters)
		}
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		if int(o.Index) >= len(w.own) {
			return fmt.Errorf("inference %d: operator %d", r.Number, o.Index)
		}
		if r.Partial && o.Calls != w.calls[o.Index] {
			continue
		}
		if got := pure(h, o); got != float64(w.own[o.Index]) || o.Calls != w.calls[o.Index] {
			return fmt.Errorf("inference %d: operator %d: %g counts in %d calls, want %d in %d", r.Number, o.Index, got, o.Calls, w.own[o.Index], w.calls[o.Index])
		}
	}
	return nil
}

// record is a stream of a board that ran its net some times, with the truth, and where each
// frame begins.
func record(runs int, seed uint64) (stream []byte, frames []int, truths []truth) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBoard(func(p []byte) {
		frames = append(frames, len(stream))
		stream = append(stream, p...)
	})
	b.start()
	b.memory("arena", 4096)
	for range runs {
		truths = append(truths, infer(b, rnd))
		if rnd.IntN(3) == 0 {
			stream = append(stream, "a line of the firmware\n"...)
		}
		b.data("out", 0, make([]byte, 200))
	}
	b.done()
	return stream, frames, truths
}

// play feeds a stream in parts of random sizes.
func play(stream []byte, rnd *rand.Rand) (events []Event, s *Stream) {
	s = NewStream(func(e Event) {
		if e.Output != nil {
			e.Output = append([]byte{}, e.Output...)
		}
		events = append(events, e)
	})
	for len(stream) > 0 {
		n := min(len(stream), 1+rnd.IntN(100))
		s.Feed(stream[:n], time.Time{})
		stream = stream[n:]
	}
	s.End()
	return events, s
}

func TestStream(t *testing.T) {
	t.Parallel()
	stream, _, truths := record(40, 1)
	events, s := play(stream, rand.New(rand.NewPCG(2, 2)))
	var h *Hello
	runs, hellos, data, remarks, lines, done := 0, 0, 0, 0, 0, 0
	for _, e := range events {
		switch {
		case e.Hello != nil:
			h = e.Hello
			hellos++
		case e.Run != nil:
			if e.Run.Partial || e.Run.Wrong || !e.Run.Sure || e.Run.Number != uint64(runs) {
				t.Errorf("inference %d: %+v", runs, e.Run)
			} else if err := check(h, e.Run, &truths[runs]); err != nil {
				t.Error(err)
			}
			runs++
		case e.Data != nil:
			if len(e.Data.Bytes) != 200 || e.Data.Name != "out" {
				t.Errorf("data %+v", e.Data)
			}
			data++
		case e.Memory != nil:
			if *e.Memory != (Memory{"arena", 4096}) {
				t.Errorf("memory %+v", e.Memory)
			}
		case e.Text != "":
			remarks++
		case e.Output != nil:
			lines++
		case e.Done:
			done++
		default:
			t.Errorf("event %+v", e)
		}
	}
	// Hellos come at the start, after 1, 2, 4, 8, 16 and after 32.
	if runs != 40 || hellos != 7 || data != 40 || remarks != 40 || lines == 0 || done != 1 {
		t.Errorf("%d inferences, %d hellos, %d blocks, %d remarks, %d lines, %d ends", runs, hellos, data, remarks, lines, done)
	}
	if s.Lost != (Lost{}) {
		t.Errorf("lost %+v", s.Lost)
	}
	if len(s.Tags) != 6 || s.Tags[3] != "OP_3" || s.Info[infoName] != "net" || s.Info[infoBoard] != "bench" || s.Info[infoCounter] != "user" {
		t.Errorf("tags %v, info %v", s.Tags, s.Info)
	}
	if h.Cost != 3 || h.perCall() != 3 || h.Hz != 1e6 {
		t.Errorf("hello %+v", h)
	}
}

// TestFaults plays 10,000 streams with random faults: bytes cut out, sent twice, out of order,
// changed, frames left out. An inference that is not marked has exactly the figures that the device
// measured, and a marked one no wrong figure of an operator.
func TestFaults(t *testing.T) {
	t.Parallel()
	stream, frames, truths := record(12, 3)
	rnd := rand.New(rand.NewPCG(4, 4))
	var whole, partial, restarts, lost int64
	for i := range 10000 {
		bad := append([]byte{}, stream...)
		var what []string
		for range 1 + rnd.IntN(4) {
			var s string
			bad, s = fault(bad, frames, rnd)
			what = append(what, s)
		}
		events, s := play(bad, rnd)
		var h *Hello
		var queue []*Run
		for _, e := range events {
			switch {
			case e.Hello != nil:
				h = e.Hello
			case e.Restart:
				restarts++
			case e.Run != nil:
				queue = append(queue, e.Run)
			}
		}
		if h == nil {
			continue
		}
		for _, r := range queue {
			if r.Wrong || r.Number >= uint64(len(truths)) {
				t.Fatalf("%d %v: %+v", i, what, r)
			}
			if r.Partial {
				partial++
				if !ofOne(h, r, truths) {
					t.Fatalf("%d %v: partial inference %d has figures of none", i, what, r.Number)
				}
				continue
			}
			whole++
			if err := check(h, r, &truths[r.Number]); err != nil {
				t.Fatalf("%d %v: %v", i, what, err)
			}
		}
		lost += s.Lost.Frames
	}
	if whole < 80000 || partial < 5000 || lost < 10000 {
		t.Errorf("%d whole inferences, %d partial, %d restarts, %d frames lost: too few faults or too few figures", whole, partial, restarts, lost)
	}
	t.Logf("%d whole inferences, %d partial, %d restarts, %d frames lost", whole, partial, restarts, lost)
}

// ofOne reports whether each figure of a partial inference is that of some inference: which one is
// not always known.
func ofOne(h *Hello, r *Run, truths []truth) bool {
	for i := range r.Ops {
		o := &r.Ops[i]
		ok := false
		for k := range truths {
			w := &truths[k]
			ok = ok || o.Calls != w.calls[o.Index] || pure(h, o) == float64(w.own[o.Index])
		}
		if !ok {
			return false
		}
	}
	return true
}

// fault changes a stream.
func fault(p []byte, frames []int, rnd *rand.Rand) ([]byte, string) {
	at := rnd.IntN(len(p))
	n := 1 + rnd.IntN(int(math.Pow(10, 1+2.5*rnd.Float64())))
	end := min(at+n, len(p))
	if rnd.IntN(2) == 0 { // whole frames of the first part
		k := rnd.IntN(len(frames) - 10)
		if m := k + 1 + rnd.IntN(9); frames[m] < len(p) {
			at, end = frames[k], frames[m]
		}
	}
	switch rnd.IntN(6) {
	case 0:
		return append(append([]byte{}, p[:at]...), p[end:]...), fmt.Sprintf("cut %d:%d", at, end)
	case 1:
		out := append([]byte{}, p[:end]...)
		out = append(out, p[at:end]...)
		return append(out, p[end:]...), fmt.Sprintf("twice %d:%d", at, end)
	case 2: // what comes later comes first
		far := min(end+1+rnd.IntN(200), len(p))
		out := append([]byte{}, p[:at]...)
		out = append(out, p[end:far]...)
		out = append(out, p[at:end]...)
		return append(out, p[far:]...), fmt.Sprintf("order %d:%d:%d", at, end, far)
	case 3:
		for range 1 + rnd.IntN(5) {
			p[min(at+rnd.IntN(30), len(p)-1)] ^= 1 << rnd.IntN(8)
		}
		return p, fmt.Sprintf("bits at %d", at)
	case 4:
		for i := at; i < min(end, at+50); i++ {
			p[i] = byte(rnd.IntN(256))
		}
		return p, fmt.Sprintf("noise %d:%d", at, end)
	}
	out := append([]byte{}, p[:at]...)
	out = append(out, "ERROR: assert\r\n"...)
	return append(out, p[at:]...), fmt.Sprintf("text at %d", at)
}

// TestRestart has a device that starts anew with and without its hello being heard.
func TestRestart(t *testing.T) {
	t.Parallel()
	one, frames, truths := record(20, 5)
	two, later, again := record(20, 6)
	for _, x := range []struct {
		name          string
		stream        []byte
		whole, starts int
	}{
		{"after all", append(append([]byte{}, one...), two...), 40, 1},
		{"within an inference", append(append([]byte{}, one[:frames[80]]...), two...), -1, 1},
		{"hello lost", append(append([]byte{}, one...), two[later[60]:]...), -1, 1},
	} {
		events, _ := play(x.stream, rand.New(rand.NewPCG(7, 7)))
		var h *Hello
		starts, whole, silent := 0, 0, 0
		for _, e := range events {
			switch {
			case e.Restart:
				starts++
				h = nil
			case e.Hello != nil:
				h = e.Hello
			case e.Run != nil && !e.Run.Partial:
				whole++
				if h == nil {
					silent++
					continue
				}
				w := truths
				if starts > 0 {
					w = again
				}
				if err := check(h, e.Run, &w[e.Run.Number]); err != nil {
					t.Errorf("%s: %v", x.name, err)
				}
			}
		}
		if starts != x.starts || x.whole >= 0 && whole != x.whole || whole < 20 {
			t.Errorf("%s: %d starts, %d whole inferences", x.name, starts, whole)
		}
		if x.name == "hello lost" && silent == 0 {
			t.Errorf("%s: what was known before the start is held to be known after it", x.name)
		}
	}
}

// TestGoneRound marks an inference during which a 32-bit counter may have gone round unseen.
func TestGoneRound(t *testing.T) {
	t.Parallel()
	// 1 MHz, round after 2^24
	hello := []byte{1, 0, unitCycles, 0xC0, 0x84, 0x3D, 1, 1, 0, 0, 16, 0x80, 0x80, 0x80, 8, 0}
	for _, x := range []struct {
		took time.Duration
		want bool
	}{{16 * time.Second, false}, {17 * time.Second, true}} {
		var run *Run
		s := NewStream(func(e Event) {
			if e.Run != nil {
				run = e.Run
			}
		})
		at := time.Unix(1000, 0)
		s.Feed(encode(THello, 0, hello), at)
		s.Feed(encode(TBegin, 1, []byte{0}), at)
		s.Feed(encode(TEnd, 2, []byte{0, 100, 0, 0, 0}), at.Add(x.took))
		if s.Lost.Malformed > 0 || run == nil || run.Partial != x.want {
			t.Errorf("%s: %+v, %+v", x.took, run, s.Lost)
		}
	}
}

// FuzzStream plays anything to the reader: it keeps its bounds, and no inference has figures that
// cannot be.
func FuzzStream(f *testing.F) {
	stream, frames, _ := record(3, 8)
	f.Add(stream, uint8(7))
	f.Add(stream[frames[3]+2:], uint8(1))
	f.Add(append(append([]byte{}, stream[:frames[20]]...), stream...), uint8(64))
	f.Add([]byte("\x00\x01\x00\x00text\n"), uint8(3))
	f.Fuzz(func(t *testing.T, p []byte, size uint8) {
		// Bytes with a right check get to the parts behind it: the body is the fuzzer's.
		var sequence uint16
		for i, raw := range [][]byte{p, reframe(p, &sequence)} {
			s := NewStream(func(e Event) {
				r := e.Run
				if r == nil {
					return
				}
				if r.Own > r.Counts || r.Partial && r.Counts != 0 || len(r.Counters) > len(raw) {
					t.Errorf("%d: %+v", i, r)
				}
				for _, o := range r.Ops {
					if o.Calls < 1 || !r.Wrong && o.Counts < 0 || o.Agent < 0 || o.Inner < 0 {
						t.Errorf("%d: %+v", i, o)
					}
				}
			})
			for n := int(size) + 1; len(raw) > 0; raw = raw[min(n, len(raw)):] {
				s.Feed(raw[:min(n, len(raw))], time.Time{})
			}
			s.End()
			if len(s.Tags) > 1<<16 || len(s.Info) > 256 || len(s.names) > maxCounters || cap(s.remark) > 4*maxText {
				t.Error("more is held than there may be")
			}
		}
	})
}

// reframe takes the first byte of every line as a type and the rest as a body.
func reframe(p []byte, sequence *uint16) (out []byte) {
	for len(p) > 0 {
		n := min(len(p), 1+int(p[0])%40)
		out = append(out, encode(Type(1+p[0]/8%13), *sequence, p[1:n])...)
		*sequence++
		p = p[n:]
	}
	return out
}
