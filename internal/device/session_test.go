package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// script is a port that says what a test wants: pieces with what happens after them.
type script struct {
	steps   []step
	wrote   bytes.Buffer
	speeds  []int
	speed   int
	at      map[int][]step // what is heard at a speed other than the first, nil the same
	record  io.Writer
	closed  bool
	answers map[string][]step // what follows when this is written
}

type step struct {
	data  string
	after time.Duration
	err   error
}

func (s *script) Read(ctx context.Context, p []byte) (int, error) {
	if len(s.steps) == 0 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	x := &s.steps[0]
	if x.after > 0 {
		begun := time.Now()
		select {
		case <-time.After(x.after):
			x.after = 0
		case <-ctx.Done():
			x.after -= time.Since(begun)
			return 0, ctx.Err()
		}
	}
	if x.err != nil {
		err := x.err
		if !errors.Is(err, io.EOF) {
			s.steps = s.steps[1:]
		}
		return 0, err
	}
	n := copy(p, x.data)
	if x.data = x.data[n:]; x.data == "" {
		s.steps = s.steps[1:]
	}
	return n, nil
}

func (s *script) Write(_ context.Context, p []byte) (int, error) {
	s.wrote.Write(p)
	if next, ok := s.answers[string(p)]; ok {
		s.steps = append(s.steps, next...)
	}
	return len(p), nil
}

func (s *script) SetSpeed(baud int) error {
	s.speeds = append(s.speeds, baud)
	if s.at != nil {
		s.steps = s.at[baud]
	}
	return nil
}

func (s *script) Close() error { s.closed = true; return nil }

// counts is a protocol for tests: "#n" describes n layers, "a,b,c" is an inference, "!" a part of
// which was lost, "hz=N" the clock, "." the end.
func counts(name string, ask string) *Protocol {
	p := &Protocol{Name: name, Title: "the test's " + name, Speeds: []int{115200, 9600}, Sure: func(head []byte) int {
		switch {
		case bytes.Contains(head, []byte(name+"#")):
			return 100
		case bytes.HasPrefix(head, []byte("maybe "+name)):
			return 40
		}
		return 0
	}}
	if ask != "" {
		p.Ask = []byte(ask)
	}
	p.Run = func(ctx context.Context, c *Conn, j *Job) error {
		var rest string
		for {
			x, err := c.Read(ctx, 0)
			if err != nil {
				return err
			}
			if x.Gap {
				j.Lost(-1, 1, profile.ByRecord, "the device was away")
			}
			rest += string(x.Data)
			for {
				line, after, ok := strings.Cut(rest, "\n")
				if !ok {
					break
				}
				rest = after
				if err := countLine(j, line); err != nil {
					return err
				}
			}
		}
	}
	return p
}

func countLine(j *Job, line string) error {
	if _, n, ok := strings.Cut(line, "#"); ok {
		p := &profile.Profile{}
		for i := range atoi(n) {
			p.Layers = append(p.Layers, profile.Layer{Name: fmt.Sprint("l", i), Op: "op"})
		}
		return j.Describe(p, nil)
	}
	if hz, ok := strings.CutPrefix(line, "hz="); ok {
		j.Clock(float64(atoi(hz)), Cycles)
		return nil
	}
	if line == "." {
		return nil
	}
	if line == "stop" {
		return io.EOF
	}
	x := Inference{Partial: strings.HasPrefix(line, "!")}
	for i, f := range strings.Split(strings.TrimPrefix(line, "!"), ",") {
		v, err := strconv.ParseFloat(f, 64)
		if err == nil {
			x.Layers = append(x.Layers, LayerFigures{Layer: i, Figures: map[string]float64{"cpu_cycles": v}})
		}
	}
	return j.Inference(x)
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func session(s *script, o Options) *Session {
	o.Rules.Model = nil
	x := New(port.Address{Kind: port.Serial, Name: "tty"}, o)
	x.open = func(_ context.Context, _ port.Address, po port.Options) (port.Port, error) {
		s.speed, s.record = po.Speed, po.Record
		return s, nil
	}
	return x
}

func collect(t *testing.T, s *script, o Options) (*profile.Profile, error) {
	t.Helper()
	p, err := source.Collect(t.Context(), session(s, o), source.Options{Version: "test", Created: time.Unix(1, 0)})
	if p != nil {
		if e := p.Validate(); e != nil {
			t.Errorf("profile: %v", e)
		}
	}
	if !s.closed {
		t.Error("the port was left open")
	}
	return p, err
}

func text2(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// Two speeds of a device are two modes; the latency is that of the more frequent one, which no
// inference between them has.
func TestMeasuredModes(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	lines.WriteString("counts#2\nhz=1000\n")
	for i := range 60 {
		if i%5 < 2 {
			fmt.Fprintf(&lines, "%d,%d\n", 20+i%3, 40)
		} else {
			fmt.Fprintf(&lines, "%d,%d\n", 10+i%3, 20)
		}
	}
	p, err := collect(t, &script{steps: []step{{data: lines.String()}}}, Options{Protocols: []*Protocol{counts("counts", "")}, Rules: Rules{Runs: 60}})
	if err != nil {
		t.Fatal(err)
	}
	m := p.Totals.Latency
	if m == nil || *m.Median != 31e-3 || m.CI95 == nil || m.CI95[1] > 33e-3 || !strings.Contains(m.Method, "median of one of several speeds") {
		t.Errorf("latency %+v", m)
	}
	if p.Trust == nil || len(p.Trust.Modes) != 2 || !p.Trust.Modes[0].Headline || math.Abs(p.Trust.Modes[0].Part-0.6) > 1e-9 || p.Trust.Modes[1].LatencyS != 61e-3 {
		t.Errorf("trust %+v", p.Trust)
	}
	if !slices.ContainsFunc(p.Trust.Doubts, func(d profile.Doubt) bool { return d.Code == profile.DoubtModes }) {
		t.Errorf("doubts %+v", p.Trust.Doubts)
	}
}

// A device that speaks tells of inferences until there are enough; warm-up is left out, cycles
// become times by the clock, and the layers' sum is the whole.
func TestMeasured(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{{data: "counts#2\nhz=1000\n900,900\n"}, {data: "10,20\n12,2"}, {data: "2\n14,24\n16,26\n"}}}
	var told []Progress
	p, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}, Rules: Rules{Runs: 3, Warmup: 1, Progress: func(g Progress) { told = append(told, g) }}})
	if err != nil {
		t.Fatal(err)
	}
	if got := *p.Layers[1].Latency.Median; got != 22e-3 {
		t.Errorf("second layer: %v s, want the middle of 20, 22 and 24 cycles at 1000 Hz", got)
	}
	if m := p.Totals.Latency; *m.N != 3 || *m.Median != 34e-3 || m.Method != "sum of the layers" {
		t.Errorf("whole: %+v", m)
	}
	if p.Phases == nil || *p.Phases.FirstRunS != 1.8 || *p.Phases.Warmup.Count != 1 {
		t.Errorf("phases: %+v", p.Phases)
	}
	if p.Incomplete != nil || p.Target.Kind != profile.TargetDevice || *p.Target.ClockHz != 1000 || *p.Settings.Runs != 3 {
		t.Errorf("%+v %+v %+v", p.Incomplete, p.Target, p.Settings)
	}
	if p.Trust == nil || p.Trust.Verdict != profile.Unreliable && p.Trust.Doubts[0].Code != profile.DoubtFewRuns {
		t.Errorf("trust of three runs: %+v", p.Trust)
	}
	if len(told) != 4 || !told[0].Warming || told[3].Runs != 3 || told[3].Median != 34e-3 || told[3].Layers[0].Last != 14e-3 || !(math.Abs(told[3].Layers[0].Mean-12e-3) < 1e-15) || !math.IsNaN(told[3].Half) {
		t.Errorf("progress: %+v", told)
	}
}

// What ends a session early stands in the profile as a code, with an error beside it; nothing
// that came before is lost.
func TestEnds(t *testing.T) {
	t.Parallel()
	head := step{data: "counts#1\nhz=1000\n10\n10\n"}
	gone := &port.GoneError{Port: port.Address{Kind: port.Serial, Name: "tty"}, Err: io.ErrUnexpectedEOF}
	for _, tt := range []struct {
		name  string
		steps []step
		runs  int
		cause profile.CauseCode
		is    error
		words string
	}{
		{"silent", []step{head}, 9, profile.ByDeadline, ErrSilent, "tty: nothing more came within 3 s, after 23 bytes"},
		{"gone", []step{head, {err: gone}}, 9, profile.ByEnd, gone, "the device went away"},
		{"ended early", []step{head, {err: io.EOF}}, 9, profile.ByEnd, nil, "tty: ended after 2 of 9 inferences"},
		{"ended", []step{head, {err: io.EOF}}, 0, "", nil, ""},
		{"broken", []step{head, {err: errors.New("boom")}}, 9, profile.ByError, nil, "boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, err := collect(t, &script{steps: tt.steps}, Options{Protocols: []*Protocol{counts("counts", "")}, Timeout: 3 * time.Second, Rules: Rules{Runs: tt.runs}})
				if tt.words == "" && err != nil || tt.words != "" && (err == nil || !strings.Contains(err.Error(), tt.words)) || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %v, want %q", err, tt.words)
				}
				if *p.Totals.Latency.N != 2 || *p.Totals.Latency.Median != 0.01 {
					t.Errorf("whole %+v", p.Totals.Latency)
				}
				switch {
				case tt.cause == "" && p.Incomplete != nil:
					t.Errorf("incomplete: %+v", p.Incomplete)
				case tt.cause != "" && (len(p.Incomplete) != 1 || p.Incomplete[0].Cause != tt.cause || *p.Incomplete[0].Got != 2 || *p.Incomplete[0].Want != 9):
					t.Errorf("incomplete: %+v, want %s", p.Incomplete, tt.cause)
				}
			})
		})
	}
}

// Losses, impossible figures, a contradicted clock and a device that was away leave marks.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{{data: "counts#2\nhz=1000\n10,20\n!10\n-1,20\n10,20,30\n"}, {err: port.ErrReopened}, {data: "10,20\n"}, {err: io.EOF}}}
	p, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}, Rules: Rules{ClockHz: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	// The impossible figure leaves its inference without a whole.
	if m := p.Totals.Latency; *m.N != 3 || *m.Median != 15e-3 {
		t.Errorf("whole %+v", m)
	}
	if m := p.Layers[0].Latency; *m.N != 4 || *m.Median != 5e-3 {
		t.Errorf("first layer %+v", m)
	}
	for id, want := range map[string]string{
		"device.clock":   "The device says that its clock has 1000 Hz, --clock says 2000 Hz",
		"device.partial": "Parts of 1 of 5 inferences were lost",
	} {
		if got := text2(p, id); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if got := len(p.Incomplete); got != 1 || p.Incomplete[0].Cause != profile.ByRecord || *p.Incomplete[0].Want != 1 {
		t.Errorf("incomplete %+v", p.Incomplete)
	}
	impossible := 0
	for _, f := range p.Findings {
		if f.ID == "device.impossible" {
			impossible++
		}
	}
	if impossible != 2 { // one of a figure, one of a layer
		t.Errorf("%d findings of impossible figures: %+v", impossible, p.Findings)
	}
}

// With --until the runs end when the interval is narrow enough.
func TestUntil(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("counts#1\nhz=1000\n")
	for i := range 1000 {
		fmt.Fprintln(&b, 1000+i*7%40)
	}
	for _, tt := range []struct {
		until float64
		least int
	}{{0.05, 6}, {0.005, 20}} {
		s := &script{steps: []step{{data: b.String()}}}
		p, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}, Rules: Rules{Runs: 10000, Until: tt.until}})
		if err != nil {
			t.Fatal(err)
		}
		m := p.Totals.Latency
		if half := (m.CI95[1] - m.CI95[0]) / 2 / *m.Median; !(half <= tt.until) || *m.N < int64(tt.least) || *m.N == 1000 || p.Incomplete != nil {
			t.Errorf("until %v: %v of %d runs, %+v", tt.until, half, *m.N, p.Incomplete)
		}
	}
}

// Speeds are tried when noise comes, and not while nothing does.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	noise := strings.Repeat("\xfe\x80\x00\x07", 20)
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			steps: []step{{after: 8 * time.Second, data: noise}},
			at:    map[int][]step{9600: {{data: "counts#1\nhz=1000\n5\n"}, {err: io.EOF}}, 460800: {{data: noise}}},
		}
		var seen *Seen
		p, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}, Recognised: func(x *Seen) { seen = x }})
		if err != nil || *p.Totals.Latency.Median != 5e-3 {
			t.Fatalf("%v %+v", err, p)
		}
		if s.speed != 115200 || fmt.Sprint(s.speeds) != "[9600]" || seen.Speed != 9600 || seen.Protocol != "counts" || len(seen.Tried) != 2 {
			t.Errorf("speeds %d %v, %+v", s.speed, s.speeds, seen)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}})
		if !errors.Is(err, ErrSilent) || len(s.speeds) != 0 || err.Error() != "tty: nothing came within 10 s" {
			t.Errorf("%v, speeds %v", err, s.speeds)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{data: noise}}, at: map[int][]step{}}
		for _, b := range usualSpeeds {
			s.at[b] = []step{{data: noise}}
		}
		_, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}})
		e, ok := errors.AsType[*UnknownError](err)
		if !ok || len(e.Seen.Tried) != len(usualSpeeds) || e.Seen.Text || !strings.Contains(err.Error(), "fe 80 00 07") || !strings.Contains(err.Error(), "uses another speed, name it") {
			t.Errorf("%v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{data: "Hello from a board that does something else entirely.\r\nSecond line of it, to be sure that it is one.\r\n"}}}
		_, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", ""), counts("other", "")}})
		if err == nil || !strings.Contains(err.Error(), `"Hello from a board that does something else entirely."`) || !strings.Contains(err.Error(), "protocols tried: counts, other") || len(s.speeds) != 0 {
			t.Errorf("%v, speeds %v", err, s.speeds)
		}
	})
}

// A device that is silent until it is asked gets asked: at once where the user named its
// protocol, else after it was silent.
func TestAsked(t *testing.T) {
	t.Parallel()
	answers := map[string][]step{"who%": {{data: "shy#1\nhz=1000\n5\n"}, {err: io.EOF}}}
	for _, ps := range [][]*Protocol{{counts("shy", "who%")}, {counts("loud", ""), counts("shy", "who%")}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := &script{answers: answers}
			p, err := collect(t, s, Options{Protocols: ps})
			if err != nil || *p.Totals.Latency.Median != 5e-3 {
				t.Fatalf("%v %+v", err, p)
			}
			if took := time.Since(start); len(ps) == 1 && took > time.Second || took > 5*time.Second {
				t.Errorf("%d protocols: asked after %v", len(ps), took)
			}
		})
	}
}

// Nothing that is complete: an error says so, and there is no profile of nothing.
func TestNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ stream, want string }{
		{"counts#1\n", "no inference of it was complete"},
		{"", "ended before anything came"},
	} {
		s := &script{steps: []step{{data: tt.stream}, {err: io.EOF}}}
		if tt.stream == "" {
			s.steps = s.steps[1:]
		}
		_, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}, Rules: Rules{Warmup: 5}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.stream, err, tt.want)
		}
	}
}

// Where nothing came but what is left out as warm-up, it counts, and a finding says so.
func TestRescued(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{{data: "counts#1\nhz=1000\n1\n3\n"}, {err: io.EOF}}}
	p, err := collect(t, s, Options{Protocols: []*Protocol{counts("counts", "")}, Rules: Rules{Warmup: 5}})
	if err != nil || *p.Totals.Latency.N != 2 || *p.Totals.Latency.Median != 2e-3 || p.Phases != nil && p.Phases.Warmup != nil {
		t.Fatalf("%v: %+v, %+v", err, p.Totals.Latency, p.Phases)
	}
	if got := text2(p, "device.warmup"); !strings.Contains(got, "Only the first 2 inferences came") {
		t.Errorf("finding %q", got)
	}
}

// What is cut short because the session was stopped was not lost on the way.
func TestStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := counts("counts", "")
		run := p.Run
		p.Run = func(ctx context.Context, c *Conn, j *Job) error {
			err := run(ctx, c, j)
			if e := j.Inference(Inference{Partial: true, Layers: []LayerFigures{{Layer: 0, Figures: map[string]float64{"cpu_cycles": 3}}}}); e != nil {
				return e
			}
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := &script{steps: []step{{data: "counts#1\nhz=1000\n10\n10\n"}}}
		got, err := source.Collect(ctx, session(s, Options{Protocols: []*Protocol{p}}), source.Options{})
		if err != nil || *got.Totals.Latency.N != 2 || *got.Layers[0].Latency.N != 2 || len(got.Incomplete) != 1 || got.Incomplete[0].Cause != profile.ByCancel || text2(got, "device.partial") != "" {
			t.Errorf("%v: %+v, %+v, %+v", err, got.Totals.Latency, got.Incomplete, got.Findings)
		}
	})
}

// Probe says what it heard, of an unknown stream too.
func TestProbe(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{"counts#1\n": "counts", "something else\n": ""} {
		s := &script{steps: []step{{data: stream}, {err: io.EOF}}}
		x := session(s, Options{Protocols: []*Protocol{counts("counts", "")}})
		c, err := x.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, seen, err := c.recognise(t.Context(), x.o.Protocols, 0, time.Second)
		if seen.Protocol != want || seen.Bytes != len(stream) || !seen.Text || (err == nil) != (want != "") {
			t.Errorf("%q: %+v, %v", stream, seen, err)
		}
	}
}
