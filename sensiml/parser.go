package sensiml

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
)

// Defaults of Options.
const (
	DefaultMessages = 100
	DefaultSpeed    = 115200
	DefaultTimeout  = 10 * time.Second
)

// Options say what a ProfileParser reads, and how.
type Options struct {
	// ModelJSON is the path of the pack's model.json, Pack the same read already. Without both,
	// figures are of numbered slots.
	ModelJSON string
	Pack      *Pack
	// Port is where the device is: /dev/ttyACM0, COM3, tcp:HOST:PORT, exec:COMMAND, file:PATH, or -
	// for Stdin. Input is read instead of a port where it is set.
	Port         string
	Stdin, Input io.Reader
	// Messages is how many inferences with figures are wanted of each model after warm-up; with
	// Compat the number of accepted lines. 0 is for DefaultMessages, a negative one for all until
	// the stream ends.
	Messages int
	// Speed of a serial port in baud; 0 tries DefaultSpeed, 460800 and 921600.
	Speed int
	// Debug takes a line for everything that is not read, nil for nobody.
	Debug io.Writer
	// Compat gives the results of the vendor's parser, mistakes included.
	Compat bool
	// Rules make the figures. A port that runs a program has nanoseconds.
	Rules
	// Timeout is for how long a device may be silent, 0 for DefaultTimeout. Reconnect is how long
	// to wait for one that went away.
	Timeout, Reconnect time.Duration
	// Record takes every byte as it came, nil for none.
	Record io.Writer
	// Progress is told after lines came, nil for nobody.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	// Runs of Want inferences came, warm-up included; Want is 0 where all are wanted.
	Runs, Want int
	Bytes      int64
}

// ProfileParser reads the figures of a profiled pack from a device.
type ProfileParser struct {
	o    Options
	pack *Pack

	mu        sync.Mutex
	running   bool
	stop      context.CancelFunc
	decoder   *Decoder
	collector *Collector
	original  *original
	rest      []byte
	ended     string
	ran       bool
}

// NewProfileParser reads the model.json and makes a parser. The port is opened by Run.
func NewProfileParser(o Options) (*ProfileParser, error) {
	p := &ProfileParser{o: o, pack: o.Pack, decoder: &Decoder{}}
	p.o.Messages, p.o.Timeout = cmp.Or(o.Messages, DefaultMessages), cmp.Or(o.Timeout, DefaultTimeout)
	if o.Debug != nil {
		p.decoder.OnReject = func(why Reason, line int64, text []byte) {
			fmt.Fprintf(o.Debug, "line %d: %s: %.200q\n", line, why, text)
		}
	}
	if o.ModelJSON != "" {
		var err error
		if p.pack, err = OpenPack(o.ModelJSON); err != nil {
			return nil, err
		}
	}
	p.collector = NewCollector(p.pack)
	if o.Compat {
		if p.pack == nil {
			return nil, errors.New("the vendor's parser needs a model.json: name it")
		}
		var err error
		if p.original, err = newOriginal(p.pack); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// A NothingError says that a stream had no figures of a profiled pack, and what it had.
type NothingError struct {
	Port     string
	Bytes    int64
	Results  int
	Rejected map[Reason]int64
	Disabled bool
	// Unknown is the number of lines of models that model.json has not.
	Unknown int64
}

// Error says what came and what to do.
func (e *NothingError) Error() string {
	name := cmp.Or(e.Port, "the stream")
	switch {
	case e.Bytes == 0:
		return name + ": nothing came: check cable and port, and that the pack classifies something"
	case e.Disabled || e.Results > 0:
		return fmt.Sprintf("%s: %d results came and no figures: build the pack with debug and profile, for a processor that can be profiled", name, e.Results)
	}
	if e.Unknown > 0 {
		return fmt.Sprintf("%s: %d lines came of models that model.json has not: it is that of another pack", name, e.Unknown)
	}
	return fmt.Sprintf("%s: %d bytes came and no line of a knowledge pack among them: check the speed (115200, 460800 and 921600 baud are usual) and that the firmware prints", name, e.Bytes)
}

// Run opens the port and reads until it has what was asked for, the stream ends, ctx ends or Stop
// is called. Results are there at any time, also after an error. It may be called again: figures
// add to those that are there.
func (p *ProfileParser) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	if p.running {
		p.mu.Unlock()
		return errors.New("the parser runs already")
	}
	p.running, p.ran, p.stop, p.ended = true, true, cancel, ""
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.running, p.stop = false, nil
		p.finish()
		p.mu.Unlock()
	}()
	in, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return p.read(ctx, in)
}

// source is what a parser reads.
type source interface {
	Read(ctx context.Context, b []byte) (int, error)
	Close() error
}

func (p *ProfileParser) open(ctx context.Context) (source, error) {
	if p.o.Input != nil {
		return newPipe(p.o.Input), nil
	}
	a, err := port.Parse(p.o.Port)
	if err != nil {
		return nil, err
	}
	if a.Kind == port.Exec {
		p.o.Nanoseconds = true
	}
	return port.Open(ctx, a, port.Options{Speed: cmp.Or(p.o.Speed, DefaultSpeed), Reconnect: p.o.Reconnect, Record: p.o.Record, Stdin: p.o.Stdin})
}

func (p *ProfileParser) read(ctx context.Context, in source) error {
	buf := make([]byte, 32<<10)
	tries := p.newTries(in)
	for idle := 0; ; {
		limited, cancel := context.WithTimeout(ctx, p.o.Timeout)
		n, err := in.Read(limited, buf)
		silent := limited.Err() != nil
		cancel()
		if n > 0 && p.o.Input != nil && p.o.Record != nil {
			if _, e := p.o.Record.Write(buf[:n]); e != nil {
				return fmt.Errorf("the recording: %w", e)
			}
		}
		if p.feed(buf[:n]) {
			return nil
		}
		if err := tries.next(p, n); err != nil {
			return err
		}
		switch {
		case n > 0 && err == nil:
			idle = 0
		case errors.Is(err, port.ErrReopened):
			p.mu.Lock()
			p.decoder.Gap()
			p.rest = p.rest[:0]
			p.mu.Unlock()
		case ctx.Err() != nil:
			p.end("it was stopped")
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return p.over()
		case silent:
			p.end(fmt.Sprintf("nothing came for %s", p.o.Timeout))
			if e := p.nothing(); e != nil {
				return e
			}
			return fmt.Errorf("%s: nothing more came for %s, after %d bytes and %d inferences", cmp.Or(p.o.Port, "the stream"), p.o.Timeout, p.decoder.Bytes(), p.collector.Runs())
		case err != nil:
			p.end(err.Error())
			return err
		default:
			// A port that has nothing to say must not spin.
			if idle++; idle > 10 {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// tries are the speeds of a serial port that are tried while nothing but noise comes.
type tries struct {
	port interface{ SetSpeed(baud int) error }
	left []int
	from int64 // bytes that came before this speed
}

// noise is how many bytes without a line of a pack say that a speed is wrong: the longest lines
// have some thousand.
const noise = 8 << 10

func (p *ProfileParser) newTries(in source) *tries {
	x, ok := in.(interface{ SetSpeed(baud int) error })
	if !ok || p.o.Speed > 0 {
		return &tries{}
	}
	return &tries{port: x, left: []int{460800, 921600}}
}

// next sets another speed where n more bytes still made no sense.
func (t *tries) next(p *ProfileParser, n int) error {
	if n == 0 || len(t.left) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.decoder.Messages() > 0 {
		t.left = nil
		return nil
	}
	if p.decoder.Bytes()-t.from < noise {
		return nil
	}
	err := t.port.SetSpeed(t.left[0])
	if errors.Is(err, port.ErrNoSpeed) {
		t.left = nil
		return nil
	}
	t.left, t.from = t.left[1:], p.decoder.Bytes()
	p.decoder.Forget()
	return err
}

// over is the end of the stream, which is right for a recording and a program.
func (p *ProfileParser) over() error {
	p.mu.Lock()
	p.finish()
	p.mu.Unlock()
	if want := p.want(); want > 0 && !p.o.Compat && !p.collector.Has(want) {
		p.end(fmt.Sprintf("the stream ended after %d of %d inferences", p.collector.Runs(), want))
	}
	return p.nothing()
}

// nothing is the error of a stream without figures, nil for one that has some.
func (p *ProfileParser) nothing() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.collector.Runs() > 0 || p.o.Compat && p.original.runs > 0 {
		return nil
	}
	e := &NothingError{Port: p.o.Port, Bytes: p.decoder.Bytes(), Rejected: p.decoder.Rejected(), Unknown: p.collector.unknown}
	for _, d := range p.collector.devices {
		e.Results += d.results
		e.Disabled = e.Disabled || d.disabled
	}
	return e
}

func (p *ProfileParser) end(why string) {
	p.mu.Lock()
	p.ended = why
	p.mu.Unlock()
}

// want is how many inferences are wanted with warm-up, 0 for all.
func (p *ProfileParser) want() int {
	if p.o.Messages < 0 {
		return 0
	}
	return p.o.Messages + max(p.o.Warmup, 0)
}

// feed takes bytes, and reports whether they are enough.
func (p *ProfileParser) feed(b []byte) (enough bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := p.want()
	p.decoder.Feed(b, func(m *Message) bool {
		p.collector.Add(m)
		// What comes behind the last one that is wanted does not count.
		enough = enough || !p.o.Compat && want > 0 && p.collector.Has(want)
		return !enough
	})
	if p.o.Compat {
		enough = p.lines(b)
	} else if want > 0 && p.collector.Silent(2*want+20) {
		p.ended = "the pack prints classes and no figures"
		enough = true
	}
	if enough && !p.o.Compat {
		p.collector.drop()
		p.decoder.Forget()
	}
	if p.o.Progress != nil && len(b) > 0 {
		g := Progress{Runs: p.collector.Runs(), Want: want, Bytes: p.decoder.Bytes()}
		if p.o.Compat {
			g.Runs, g.Want = p.original.runs, max(p.o.Messages, 0)
		}
		p.o.Progress(g)
	}
	return enough
}

// lines gives the vendor's parser its lines, which end in LF.
func (p *ProfileParser) lines(b []byte) (enough bool) {
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if len(p.rest)+len(line) <= maxLine {
			p.rest = append(p.rest, line...)
		}
		if !whole {
			return false
		}
		b = rest
		p.original.line(p.rest)
		p.rest = p.rest[:0]
		if p.o.Messages > 0 && p.original.runs >= p.o.Messages {
			return true
		}
	}
	return false
}

// finish reads the line that the stream ended in.
func (p *ProfileParser) finish() {
	p.decoder.End(func(m *Message) bool { p.collector.Add(m); return true })
	p.collector.End()
	if p.o.Compat && len(p.rest) > 0 && (p.o.Messages < 0 || p.original.runs < p.o.Messages) {
		p.original.line(p.rest)
		p.rest = p.rest[:0]
	}
}

// Stop ends Run soon; results stay.
func (p *ProfileParser) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
	}
}

// IsRunning reports whether Run is under way.
func (p *ProfileParser) IsRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Result is everything that is known until now.
func (p *ProfileParser) Result() *Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.collector.Result(p.o.Rules)
	p.decoder.To(r)
	r.Incomplete = p.ended
	return r
}

// To adds what was read and rejected to a result.
func (d *Decoder) To(r *Result) {
	r.Messages, r.Repaired, r.Bytes = d.messages, d.repaired, d.offset
	for why, n := range d.rejected {
		r.count(why, n)
	}
	damaged := d.rejected[ReasonCut] + d.rejected[ReasonSyntax] + d.rejected[ReasonIncomplete] + d.rejected[ReasonForeign] + d.rejected[ReasonNumber] + d.rejected[ReasonTooLong] + d.rejected[ReasonLength]
	if damaged > 0 {
		var parts []string
		for _, why := range reasons {
			if n := d.rejected[why]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", why, n))
			}
		}
		r.found(true, "rejected", "%d lines were damaged or none of a profiled pack's and were left out (%s).", damaged, strings.Join(parts, ", "))
	}
	if d.repaired > 0 {
		r.found(false, "repaired", "%d lines have a comma too much, as this firmware prints its times, and were read.", d.repaired)
	}
}

var reasons = []Reason{ReasonCut, ReasonSyntax, ReasonIncomplete, ReasonForeign, ReasonNumber, ReasonTooLong, ReasonLength, ReasonModel, ReasonText}

// Metrics is the result under the keys of the vendor's parser: FeatureTimePerInference,
// FeatureCyclesPerInference, ClassifierAverageTime, ClassifierAverageCycles (lists of a map a
// model, from name to figure) and RunCount. It is empty before the first run. Numbers are int64,
// seconds texts with nine decimals; nil is a figure that is not known, which only results without
// Compat have.
func (p *ProfileParser) Metrics() map[string]any { return p.metrics().values() }

// JSON is Metrics as one line of JSON, in the layout of the vendor's parser.
func (p *ProfileParser) JSON() []byte { return p.metrics().json() }

// YAML is Metrics as YAML, in the layout of the vendor's parser.
func (p *ProfileParser) YAML() []byte { return p.metrics().yaml() }

func (p *ProfileParser) metrics() *metrics {
	p.mu.Lock()
	ran := p.ran
	p.mu.Unlock()
	switch {
	case !ran:
		return nil
	case p.o.Compat:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.original.metrics()
	}
	return p.Result().metrics()
}

// pipe reads a reader that knows no context, in a goroutine that ends when the reader does.
type pipe struct {
	r     io.Reader
	parts chan part
	rest  part
	done  chan struct{}
}

type part struct {
	b   []byte
	err error
}

func newPipe(r io.Reader) *pipe {
	p := &pipe{r: r, parts: make(chan part), done: make(chan struct{})}
	go func() {
		for {
			b := make([]byte, 16<<10)
			n, err := r.Read(b)
			select {
			case p.parts <- part{b[:n], err}:
			case <-p.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// Read waits for bytes or the end of ctx.
func (p *pipe) Read(ctx context.Context, b []byte) (int, error) {
	if len(p.rest.b) == 0 && p.rest.err == nil {
		select {
		case p.rest = <-p.parts:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if len(p.rest.b) > 0 {
		n := copy(b, p.rest.b)
		p.rest.b = p.rest.b[n:]
		return n, nil
	}
	return 0, p.rest.err
}

// Close ends the goroutine, at the latest when the reader returns.
func (p *pipe) Close() error {
	close(p.done)
	if c, ok := p.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
