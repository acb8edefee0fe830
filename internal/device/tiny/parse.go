package tiny

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Answers of the firmware. Behind an interface board they have the prefix "[dut]: ".
var (
	nameLine    = lazyregexp.New(`^m-name-\[?([^\]\[]*?)\]?-\[(.*)\]$`)
	profileLine = lazyregexp.New(`^m-(profile|model)-\[(.*)\]$`)
	lapLine     = lazyregexp.New(`^m-lap-us-(\d{1,20})$`)
	startLine   = lazyregexp.New(`^m-infer-start-(\d{1,9})$`)
	warmLine    = lazyregexp.New(`^m-warmup-start-(\d{1,9})$`)
	resultLine  = lazyregexp.New(`^m-results-\[([^\]]*)\]$`)
	faultLine   = lazyregexp.New(`^e-\[(.*)\]$`)
	modeLine    = lazyregexp.New(`^m-timestamp-mode-(\w+)$`)
)

// lap is a time stamp of the firmware, in microseconds of its clock, and its time of arrival.
type lap struct {
	us uint64
	at time.Time
}

// window is the result of an infer command.
type window struct {
	n, warm int64
	laps    []lap
	results []float64
	done    bool
	damaged bool // a line of it was
}

// seconds returns the time of one inference; ok says that both time stamps arrived.
func (w *window) seconds() (s float64, ok bool) {
	if !w.done || w.damaged || w.n <= 0 || len(w.laps) != 2 {
		return 0, false
	}
	from, to := w.laps[0].us, w.laps[1].us
	d := to - from
	if to < from {
		if from > math.MaxUint32 {
			return 0, false
		}
		d = to + 1<<32 - from // a 32-bit counter that wrapped around
	}
	return float64(d) / 1e6 / float64(w.n), d > 0
}

// host returns the time between the stamps by this computer's clock.
func (w *window) host() float64 { return w.laps[1].at.Sub(w.laps[0].at).Seconds() }

// answer is everything that a device printed since a command.
type answer struct {
	ready    bool // the last word
	loaded   bool // all bytes of the input are there
	expects  bool // it waits for them
	faults   []string
	window   *window
	lines    int
	damaged  int
	overflow string // a buffer that is too small says so without a mark of its own
}

// about is the identification of a device.
type about struct {
	name, vendor, profile, model, mode string
}

// parser parses lines of the firmware. The zero value is ready to use.
type parser struct {
	about about
	a     answer
}

// begin forgets the previous answer, for the next command.
func (p *parser) begin() { p.a = answer{} }

// line handles a line.
func (p *parser) line(text string, dirty bool, at time.Time) {
	s := strings.TrimSpace(text)
	s = strings.TrimPrefix(s, "[dut]: ")
	if s == "" {
		return
	}
	p.a.lines++
	if dirty {
		p.a.damaged++
		if w := p.a.window; w != nil {
			w.damaged = true
		}
		return
	}
	switch s {
	case "m-ready":
		p.a.ready = true
		return
	case "m-load-done":
		p.a.loaded = true
		return
	case "m-warmup-done", "m-init-done":
		return
	case "m-infer-done":
		if w := p.a.window; w != nil {
			w.done = true
		}
		return
	}
	switch {
	case lapLine.MatchString(s):
		us, err := strconv.ParseUint(lapLine.FindStringSubmatch(s)[1], 10, 64)
		if w := p.a.window; w != nil && w.n > 0 && !w.done {
			if err != nil || len(w.laps) == 2 {
				w.damaged = true
				return
			}
			w.laps = append(w.laps, lap{us, at})
		}
	case warmLine.MatchString(s):
		p.a.window = &window{warm: number(warmLine.FindStringSubmatch(s)[1])}
	case startLine.MatchString(s):
		if p.a.window == nil || p.a.window.n > 0 {
			p.a.window = &window{}
		}
		p.a.window.n = number(startLine.FindStringSubmatch(s)[1])
	case resultLine.MatchString(s):
		if w := p.a.window; w != nil {
			w.results = results(resultLine.FindStringSubmatch(s)[1])
		}
	case faultLine.MatchString(s):
		if len(p.a.faults) < 10 {
			p.a.faults = append(p.a.faults, clip(faultLine.FindStringSubmatch(s)[1]))
		}
	case nameLine.MatchString(s):
		m := nameLine.FindStringSubmatch(s)
		p.about.name, p.about.vendor = clip(m[1]), clip(m[2])
	case profileLine.MatchString(s):
		if m := profileLine.FindStringSubmatch(s); m[1] == "model" {
			p.about.model = clip(m[2])
		} else {
			p.about.profile = clip(m[2])
		}
	case modeLine.MatchString(s):
		p.about.mode = modeLine.FindStringSubmatch(s)[1]
	case strings.Contains(s, "exceeds maximum"):
		p.a.overflow = clip(s)
	case strings.HasPrefix(s, "m-[Expecting"):
		p.a.expects = true
	default:
		p.odd(s)
	}
}

// odd handles an unknown line: fragments of a known one make the window unreliable.
func (p *parser) odd(s string) {
	if w := p.a.window; w != nil && (strings.HasPrefix(s, "m-") || strings.Contains(s, "lap") || strings.Contains(s, "infer")) {
		w.damaged = true
		p.a.damaged++
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// results parses a vector; nil if a component is not a number.
func results(s string) []float64 {
	var out []float64
	for _, f := range strings.Split(s, ",") {
		f = strings.TrimSpace(f)
		if f == "" {
			continue
		}
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || len(out) >= 100_000 {
			return nil
		}
		out = append(out, v)
	}
	return out
}

func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// known reports whether a line is one that this firmware prints.
func known(s string) bool {
	s = strings.TrimPrefix(strings.TrimSpace(s), "[dut]: ")
	switch s {
	case "m-ready", "m-init-done", "m-infer-done", "m-warmup-done", "m-load-done":
		return true
	}
	return nameLine.MatchString(s) || lapLine.MatchString(s) || modeLine.MatchString(s) || startLine.MatchString(s) || warmLine.MatchString(s) || profileLine.MatchString(s)
}
