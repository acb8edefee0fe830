// Package console reads the text that the firmware of the MLTK model profiler prints on
// a board: the model, the work of each operator, then the times of an inference and of each
// operator. It reads line by line, so that a log on disk and a live board have the same
// meaning.
//
// The text has no checksum. Its shape shows damage: figures have columns of one width with a fixed
// number of decimals, operators come in order, a figure is printed once, rates are quotients of
// other figures, the whole is the sum of its parts. Figures that contradict this are skipped and
// counted.
//
// Source of the format: the model_profiler application and the profiling library of the
// SiliconLabs/mltk project.
package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

var (
	opLine     = lazyregexp.New(`^Op(\d+)-([A-Za-z]\w*)$`)
	refused    = lazyregexp.New(`^(?:.*\s)?Op(\d+)-(\S+) not supported: (.*)$`)
	timeLine   = lazyregexp.New(`^([\d.]+)\s?(ms|us|s)(?:\s*\(([^)]*)\))?$`)
	figureLine = lazyregexp.New(`^([\d.]+)\s?([kMGT]?)\s?(OPs|MACs|CPU cycles|Accelerator cycles|OP/s|MAC/s)(?:\s*\(([^)]*)\))?$`)
	customLine = lazyregexp.New(`^([A-Za-z][\w \-/%]*?)\s?[=:]\s?([\d.]+[kMGTmunp]?)$`)
	detailLine = lazyregexp.New(`^(Name|Version|Date|Hash|Accelerator|Description|Tensor runtime memory|Input|Output|CPU clock|Classes)\s?:\s*(\S.*)$`)
	failure    = lazyregexp.New(`(?i)hardfault|\berror\b|failed to alloc|failed to load model|\bassert`)
)

// Limits of figures of one operator or of the model, and of details.
const (
	maxFigures = 100
	maxDetails = 100
)

// Starts reports whether a line is the first of a run.
func Starts(line string) bool { return strings.Contains(line, "Starting Model Profiler") }

// Known reports whether only this firmware prints such a line.
func Known(line string) bool {
	line = strings.TrimSpace(textscan.Strip(line))
	return Starts(line) || line == "Loading model" || strings.HasPrefix(line, "Tensor runtime memory:") || strings.HasPrefix(line, "Profiler Metrics") || opLine.MatchString(line)
}

// Figure is a number as it was printed.
type Figure struct {
	// Unit follows the number, "=NAME" for a custom figure; Note follows the unit in parentheses.
	Unit, Note string
	// Value is the number in its base unit. The firmware cuts digits off: the true value lies
	// between Value and High.
	Value, High float64

	text     string
	decimals int // -1 without decimal point
	prefix   string
	column   int // of the end of the number
	digits   int // characters of the number with its prefix
	bad      bool
}

// Op is an operator, or the whole model.
type Op struct {
	Index   int64
	Name    string
	Figures []*Figure
	Refused string // why the accelerator does not support it
}

// get returns the figure with this unit, nil if absent. Of several with the same unit it returns
// the one with the note.
func (o *Op) get(unit, note string) *Figure {
	if i := slices.IndexFunc(o.Figures, func(f *Figure) bool { return !f.bad && f.Unit == unit && f.Note == note }); i >= 0 {
		return o.Figures[i]
	}
	return nil
}

// Log is the text of one run. The zero value is ready.
type Log struct {
	Details [][2]string
	Ops     map[int64]*Op
	Whole   Op
	// Started and Done are set by the first and the last line; Failed is the line of a failure.
	Started, Done bool
	Failed        string
	// Damaged counts lines and figures that are wrong, or whose operator is unknown.
	Damaged int64

	at   *Op
	last int64 // highest index
}

// Empty reports whether no figure was printed.
func (l *Log) Empty() bool { return len(l.Ops) == 0 && len(l.Whole.Figures) == 0 }

// Line reads a line without its end, including leading blanks. dirty means that bytes of it
// are lost or not text.
func (l *Log) Line(raw string, dirty bool) {
	raw = textscan.Strip(raw)
	s := strings.TrimSpace(raw)
	pad := len(raw) - len(strings.TrimLeft(raw, " \t"))
	if l.head(s, dirty) {
		return
	}
	if m := detailLine.FindStringSubmatch(s); m != nil {
		l.at = nil
		if len(l.Details) < maxDetails && !dirty {
			l.Details = append(l.Details, [2]string{m[1], strings.TrimSpace(m[2])})
		}
		return
	}
	if f := parse(s, pad); f != nil {
		l.figure(f, dirty)
		return
	}
	if failure.MatchString(s) && l.Failed == "" {
		l.Failed = draft.Text(s)
	}
	if dirty || strings.ContainsAny(s, "-=") && !strings.Contains(s, " ") || l.at != nil && len(s) < 60 {
		// It may be a damaged heading of another operator, or a part that the firmware measures
		// inside of one: the figures that follow may not belong to this operator.
		l.at = nil
	}
}

// Gap notes that bytes were lost here: the operator of figures that follow is unknown.
func (l *Log) Gap() {
	l.Damaged++
	l.at = nil
}

// head reads headings.
func (l *Log) head(s string, dirty bool) bool {
	starts, done := Starts(s) || s == "Loading model", strings.EqualFold(s, "done")
	if starts || done || s == "Inference" || s == "" || strings.HasPrefix(s, "Profiler Metrics") || strings.HasPrefix(s, "--") {
		l.Started, l.Done = l.Started || starts, l.Done || done
		l.at = nil
		if s == "Inference" && !dirty {
			l.at = &l.Whole
		}
		return true
	}
	if m := refused.FindStringSubmatch(s); m != nil {
		if dirty {
			return true
		}
		if o := l.op(m[1], m[2]); o != nil {
			o.Refused = draft.Text(m[3])
		}
		return true
	}
	m := opLine.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	l.at = nil
	if dirty {
		l.Damaged++
	} else {
		l.at = l.op(m[1], m[2])
	}
	return true
}

// op returns an operator, nil if its index or name is wrong.
func (l *Log) op(index, name string) *Op {
	n, ok := textscan.Whole(index)
	if !ok || n < 0 || n >= draft.MaxLayers || n > l.last+1000 {
		l.Damaged++
		return nil
	}
	if l.Ops == nil {
		l.Ops = map[int64]*Op{}
	}
	o := l.Ops[n]
	if o == nil {
		o = &Op{Index: n, Name: draft.Text(name)}
		l.Ops[n] = o
		l.last = max(l.last, n)
	}
	if o.Name != name {
		l.Damaged++
		return nil
	}
	return o
}

// parse parses a figure, nil for other lines. pad is the number of blanks before s.
func parse(s string, pad int) *Figure {
	f := &Figure{}
	var number string
	if m := timeLine.FindStringSubmatch(s); m != nil {
		number, f.Unit, f.Note = m[1], m[2], m[3]
	} else if m := figureLine.FindStringSubmatch(s); m != nil {
		number, f.prefix, f.Unit, f.Note = m[1], m[2], m[3], m[4]
	} else if m := customLine.FindStringSubmatch(s); m != nil {
		number, f.Unit = m[2], "="+strings.TrimSpace(m[1])
		if c := number[len(number)-1]; c > '9' {
			number, f.prefix = number[:len(number)-1], string(c)
		}
	} else {
		return nil
	}
	f.text = number + f.prefix
	whole, fraction, dot := strings.Cut(number, ".")
	f.decimals = -1
	if dot {
		f.decimals = len(fraction)
	}
	f.bad = whole == "" || len(whole) > 12 || len(fraction) > 12 || dot && fraction == ""
	power := exponents[f.prefix]
	if p, ok := timePowers[f.Unit]; ok {
		power = p
	}
	// The exponent is appended to the digits, so that the figure is rounded once.
	at := func(digits string, power int) float64 {
		v, err := strconv.ParseFloat(fmt.Sprintf("%se%d", digits, power), 64)
		f.bad = f.bad || err != nil
		return v
	}
	f.Value = at(number, power)
	f.High = f.Value
	if _, isTime := timePowers[f.Unit]; !isTime && (f.prefix != "" || dot) {
		f.High += at("1", power-len(fraction))
	}
	f.digits = len(f.text)
	f.column = pad + f.digits
	return f
}

// exponents and timePowers are powers of ten of prefixes and units of time.
var (
	exponents  = map[string]int{"T": 12, "G": 9, "M": 6, "k": 3, "": 0, "m": -3, "u": -6, "n": -9, "p": -12}
	timePowers = map[string]int{"s": 0, "ms": -3, "us": -6}
)

// units are the order in which figures of one part of an operator are printed.
var units = map[string]int{"OPs": 1, "MACs": 2, "ms": 1, "us": 1, "s": 1, "CPU cycles": 2, "Accelerator cycles": 3, "OP/s": 4, "MAC/s": 5}

// figure keeps a figure of the operator in the last heading.
func (l *Log) figure(f *Figure, dirty bool) {
	if l.at == nil || f.bad || dirty || len(l.at.Figures) >= maxFigures {
		l.Damaged++
		if dirty {
			l.at = nil
		}
		return
	}
	for _, old := range l.at.Figures {
		if old.Unit != f.Unit || old.Note != f.Note {
			continue
		}
		l.Damaged++
		if old.text != f.text {
			// A heading between them is lost, or one of them is damaged: neither is reliable.
			old.bad, l.at = true, nil
		}
		return
	}
	if n := len(l.at.Figures); n > 0 {
		before := l.at.Figures[n-1]
		work := f.Unit == "OPs" || f.Unit == "MACs"
		was := before.Unit == "OPs" || before.Unit == "MACs"
		if a, b := units[before.Unit], units[f.Unit]; work == was && a > 0 && b > 0 && b < a {
			l.Damaged++
			l.at = nil
			return
		}
	}
	l.at.Figures = append(l.at.Figures, f)
}
