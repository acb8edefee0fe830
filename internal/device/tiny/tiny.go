// Package tiny is the host of boards with MLPerf Tiny firmware. It asks them for their name and
// model, loads an input, runs inferences in windows and reads the board's time stamps, as the
// benchmark's performance mode does.
//
// Source of the protocol: the benchmark's API and rules in the mlcommons/tiny project. A command
// ends with '%', an answer with the line m-ready.
package tiny

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/lines"
)

// Options configures the measurement.
type Options struct {
	// Input is the input data, nil for zeros of the size of the model's input.
	Input []byte
	// Window is how long consecutive inferences run for one figure, 0 for a second. The
	// benchmark's rules require five windows of ten seconds.
	Window time.Duration
	// Expected is another engine's output for the input, nil if unknown.
	Expected []float64
	// Results receives the board's results; may be nil.
	Results func([]float64)
}

// FaultError is an unexpected answer of a board.
type FaultError struct {
	Command string // the command sent
	Text    string // the answer
	Advice  string
}

// Error returns the board's answer with advice.
func (e *FaultError) Error() string {
	s := fmt.Sprintf("the board answers %q with %q", e.Command, e.Text)
	if e.Text == "" {
		s = fmt.Sprintf("the board does not answer %q as MLPerf Tiny's firmware does", e.Command)
	}
	if e.Advice != "" {
		s += ": " + e.Advice
	}
	return s
}

// Protocol returns the protocol.
func Protocol(o Options) *device.Protocol {
	if o.Window <= 0 {
		o.Window = time.Second
	}
	return &device.Protocol{
		Name:   "tiny",
		Title:  "the firmware of MLPerf Tiny",
		Speeds: []int{115200, 9600, 921600},
		Ask:    []byte("name%"),
		Warm:   true,
		Sure:   sure,
		Run: func(ctx context.Context, c *device.Conn, j *device.Job) error {
			s := &session{o: o, c: c, job: j}
			var err error
			if c.Live() {
				err = s.host(ctx)
			} else {
				err = s.replay(ctx)
			}
			if e := s.finish(); err == nil {
				err = e
			}
			return err
		},
	}
}

func sure(head []byte) int {
	n := 0
	var s lines.Splitter
	each := func(l string, dirty bool) {
		if !dirty && known(l) {
			n = min(max(n+10, 85), 95)
		}
	}
	s.Feed(head, each)
	s.End(each)
	return n
}

// inputs are the input sizes of the benchmark's models in bytes, by model name.
var inputs = map[string]int{"ic01": 32 * 32 * 3, "vww01": 96 * 96 * 3, "kws01": 490, "ad01": 5 * 128 * 4}

// session is one connection.
type session struct {
	o     Options
	c     *device.Conn
	job   *device.Job
	split lines.Splitter
	p     parser

	patience  time.Duration // with an answer, 0 for as long as it may take
	described bool
	seconds   []float64 // of an inference, by window
	lengths   []float64 // of the windows
	n         int64     // inferences of a window
	lost      int64     // windows
	against   int64     // windows whose time this computer's clock contradicts
	results   []float64
	different int64 // windows whose results differ from the first
}

// Limits of waiting for a board.
const (
	answerTime = 5 * time.Second
	maxLines   = 20_000 // of an answer
	tries      = 3
)

// ask sends a command and waits for the end of its answer. extra is how long the board may
// compute before it prints more.
func (s *session) ask(ctx context.Context, command string, extra time.Duration) error {
	s.p.begin()
	if err := s.c.Write(ctx, []byte(command+"%")); err != nil {
		return err
	}
	return s.await(ctx, command, cmp.Or(s.patience, answerTime+extra))
}

func (s *session) await(ctx context.Context, command string, patience time.Duration) error {
	limit := time.Now().Add(2 * patience)
	for !s.p.a.ready {
		x, err := s.c.Read(ctx, patience)
		if err != nil {
			return err
		}
		s.feed(x)
		if s.p.a.lines > maxLines || time.Now().After(limit) {
			return &FaultError{Command: command, Advice: "it sends other text without an end"}
		}
	}
	return nil
}

func (s *session) feed(x device.Chunk) {
	line := func(text string, dirty bool) { s.p.line(text, dirty, x.At) }
	if x.Gap {
		s.split.Gap(line)
		if w := s.p.a.window; w != nil {
			w.damaged = true
		}
	}
	s.split.Feed(x.Data, line)
}

// host measures a board.
func (s *session) host(ctx context.Context) error {
	if err := s.meet(ctx); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	n, err := s.size(ctx)
	if err != nil {
		return err
	}
	s.n = n
	for bad := 0; ; {
		w, err := s.infer(ctx, n, min(10, n))
		if err != nil {
			return err
		}
		if w == nil {
			if s.lost++; s.lost > 2 && bad >= tries {
				return &FaultError{Command: fmt.Sprintf("infer %d", n), Advice: "its time stamps are lost on the way again and again: check the cable and the speed"}
			}
			bad++
			continue
		}
		bad = 0
		if err := s.take(w, true); err != nil {
			return err
		}
	}
}

// meet asks a board for its identification. Output of earlier commands is discarded first.
func (s *session) meet(ctx context.Context) error {
	for {
		x, err := s.c.Read(ctx, 200*time.Millisecond)
		if errors.Is(err, device.ErrSilent) {
			break
		}
		if err != nil {
			return err
		}
		s.feed(x)
		if s.p.a.lines > maxLines {
			return &FaultError{Command: "name", Advice: "it sends other text without an end"}
		}
	}
	var err error
	for range tries {
		if err = s.ask(ctx, "name", 0); err != nil && !errors.Is(err, device.ErrSilent) {
			return err
		}
		if err == nil && s.p.about.name != "" {
			break
		}
	}
	if err != nil {
		return err
	}
	if s.p.about.name == "" {
		return &FaultError{Command: "name", Text: strings.Join(s.p.a.faults, "; ")}
	}
	for range tries {
		if err := s.ask(ctx, "profile", 0); err != nil {
			return err
		}
		if s.p.about.model != "" {
			break
		}
	}
	if s.p.about.mode == "energy" {
		return energy()
	}
	return nil
}

func energy() error {
	return &FaultError{Command: "name", Text: "m-timestamp-mode-energy", Advice: "its firmware is built for the measurement of energy and sends no times: build it with EE_CFG_ENERGY_MODE 0"}
}

// load sends the input. A board whose input size is unknown keeps its current input.
func (s *session) load(ctx context.Context) error {
	in := s.o.Input
	if in == nil {
		in = make([]byte, s.inputBytes())
	}
	if len(in) == 0 {
		return nil
	}
	var last error
	for range tries {
		err := s.ask(ctx, fmt.Sprintf("db load %d", len(in)), 0)
		switch {
		case err != nil:
			return err
		case s.p.a.overflow != "":
			return &FaultError{Command: fmt.Sprintf("db load %d", len(in)), Text: s.p.a.overflow, Advice: "the input is larger than the board takes: is it of this model?"}
		case len(s.p.a.faults) > 0:
			last = &FaultError{Command: fmt.Sprintf("db load %d", len(in)), Text: strings.Join(s.p.a.faults, "; ")}
			continue
		}
		loaded := false
		// firmware accepts commands of 80 characters; the benchmark's host sends chunks of this
		// size
		for part := range slices.Chunk(in, 31) {
			if err := s.ask(ctx, fmt.Sprintf("db %x", part), 0); err != nil {
				return err
			}
			if loaded = s.p.a.loaded; len(s.p.a.faults) > 0 {
				last = &FaultError{Command: "db", Text: strings.Join(s.p.a.faults, "; ")}
				loaded = false
				break
			}
		}
		if loaded {
			return nil
		}
		if last == nil {
			last = &FaultError{Command: "db", Advice: fmt.Sprintf("it did not say that all %d bytes of the input are there: some were lost on the way", len(in))}
		}
	}
	return last
}

// inputBytes returns the size of the model's input, 0 if unknown.
func (s *session) inputBytes() int {
	if n, ok := inputs[s.p.about.model]; ok {
		return n
	}
	if s.job.Model == nil || len(s.job.Model.Model.Inputs) != 1 {
		return 0
	}
	t := s.job.Model.Model.Inputs[0]
	n := int64(map[string]int{"int8": 1, "uint8": 1, "int16": 2, "float32": 4}[t.DType])
	for _, d := range t.Shape {
		if d <= 0 || n > 1<<20 {
			return 0
		}
		n *= d
	}
	if n > 1<<20 {
		return 0
	}
	return int(n)
}

// size finds the number of inferences in a window.
func (s *session) size(ctx context.Context) (int64, error) {
	for n := int64(1); ; n *= 10 {
		var w *window
		for range tries {
			var err error
			if w, err = s.infer(ctx, n, 0); err != nil {
				return 0, err
			}
			if w != nil {
				break
			}
			if n < 100_000 && s.p.a.window != nil && s.p.a.window.done && len(s.p.a.window.laps) == 2 && !s.p.a.window.damaged {
				break // too short for the board's clock
			}
		}
		if w == nil && (s.p.a.window == nil || len(s.p.a.window.laps) == 0) {
			if s.p.about.mode == "energy" {
				return 0, energy()
			}
			return 0, &FaultError{Command: fmt.Sprintf("infer %d", n), Text: strings.Join(s.p.a.faults, "; "), Advice: "no time stamps came: firmware that is built for the measurement of energy sends none"}
		}
		if w == nil {
			if n >= 100_000 {
				return 0, &FaultError{Command: fmt.Sprintf("infer %d", n), Advice: "its clock does not run"}
			}
			continue
		}
		t, _ := w.seconds()
		// A time stamp has a resolution of one microsecond, or of the board's clock: enough for
		// sizing.
		if total := t * float64(n); total < 0.001 && n < 100_000 {
			continue
		}
		return int64(min(max(math.Ceil(s.o.Window.Seconds()/t), 1), 1e8)), nil
	}
}

// infer runs a window; nil if its time stamps are damaged.
func (s *session) infer(ctx context.Context, n, warm int64) (*window, error) {
	command := fmt.Sprintf("infer %d %d", n, warm)
	extra := time.Minute // for an inference whose duration is unknown
	if len(s.seconds) > 0 {
		extra = time.Duration(3*float64(n+warm)*s.seconds[len(s.seconds)-1]*1e9) + answerTime
	} else if n > 1 {
		extra = 3*s.o.Window + time.Minute
	}
	if err := s.ask(ctx, command, extra); err != nil {
		return nil, err
	}
	if len(s.p.a.faults) > 0 && s.p.a.window == nil {
		return nil, &FaultError{Command: command, Text: strings.Join(s.p.a.faults, "; ")}
	}
	w := s.p.a.window
	if w == nil {
		return nil, nil //nolint:nilnil // nothing came, and nobody failed
	}
	if _, ok := w.seconds(); !ok || w.n != n {
		return nil, nil //nolint:nilnil // as above
	}
	return w, nil
}

// replay reads the recording of a measurement: no commands can be sent.
func (s *session) replay(ctx context.Context) error {
	var err error
	line := func(text string, dirty bool) {
		s.p.line(text, dirty, time.Time{})
		if !s.p.a.ready || err != nil {
			return
		}
		if w := s.p.a.window; w != nil {
			// Windows of one or a few inferences determined the size of the others.
			if _, ok := w.seconds(); !ok {
				s.lost++
			} else if w.warm > 0 {
				s.n = w.n
				err = s.take(w, false)
			}
		}
		s.p.begin()
	}
	for {
		x, e := s.c.Read(ctx, 0)
		if e != nil {
			s.split.End(line)
			if err != nil {
				return err
			}
			return e
		}
		s.split.Feed(x.Data, line)
		if err != nil {
			return err
		}
	}
}

// take converts a window to an inference.
func (s *session) take(w *window, live bool) error {
	if !s.described {
		if err := s.describe(); err != nil {
			return err
		}
	}
	t, _ := w.seconds()
	total := t * float64(w.n)
	s.seconds, s.lengths = append(s.seconds, t), append(s.lengths, total)
	if live {
		// Time stamps have no checksum. The lines pass a cable and system buffers.
		if here := w.host(); math.Abs(here-total) > 0.25+0.05*total {
			s.against++
		}
	}
	if w.results != nil {
		if s.results == nil {
			s.results = w.results
			if s.o.Results != nil {
				s.o.Results(w.results)
			}
		} else if !slices.Equal(s.results, w.results) {
			s.different++
		}
	}
	return s.job.Inference(device.Inference{Whole: map[string]float64{"latency_s": t}})
}
