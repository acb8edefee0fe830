package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Values of flags that say in words what they take. pflag puts the flag's name before
// the text; [badFlag] writes both.

// whole is a number of a range.
type whole struct {
	p         *int
	low, high int
	hint      string // what else may be done, "" for nothing
}

func (w *whole) String() string {
	if w.p == nil {
		return "0"
	}
	return strconv.Itoa(*w.p)
}
func (w *whole) Type() string { return "N" }

func (w *whole) Set(s string) error {
	n, err := strconv.Atoi(s)
	switch {
	case err == nil && w.low <= n && n <= w.high:
		*w.p = n
		return nil
	case w.high == most:
		return fmt.Errorf("use %d or more, not %s%s", w.low, s, w.hint)
	}
	return fmt.Errorf("use %d to %d, not %s%s", w.low, w.high, s, w.hint)
}

// most is the upper end of a range without one.
const most = math.MaxInt32

// wholeVar adds a flag for a number from low to high.
func wholeVar(c *cobra.Command, p *int, name string, value, low, high int, usage, hint string) {
	*p = value
	if hint != "" {
		hint = "; " + hint
	}
	c.Flags().Var(&whole{p, low, high, hint}, name, usage)
}

// span is a time with a unit.
type span struct {
	p     *time.Duration
	least time.Duration // what is below is refused
	what  string        // such as "a time above zero"
}

func (s *span) String() string {
	if s.p == nil {
		return "0s"
	}
	return s.p.String()
}
func (s *span) Type() string { return "TIME" }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d >= s.least:
		*s.p = d
		return nil
	case err == nil:
		return fmt.Errorf("write %s, not %s", s.what, text)
	}
	if v, bare := strconv.ParseFloat(text, 64); bare == nil && v > 0 {
		return fmt.Errorf("write %ss for seconds, or %sms for milliseconds", text, text)
	}
	return fmt.Errorf("write %s, not %q", s.what, text)
}

// spanVar adds a flag for a time of at least some length.
func spanVar(c *cobra.Command, p *time.Duration, name string, value, least time.Duration, usage, what string) {
	*p = value
	c.Flags().Var(&span{p, least, what}, name, usage)
}

// perSecond is a rate: 100/s, 30/min, 1000.
type perSecond struct{ p *float64 }

func (r *perSecond) String() string {
	if r.p == nil || *r.p == 0 {
		return "0"
	}
	return strconv.FormatFloat(*r.p, 'g', -1, 64) + "/s"
}
func (r *perSecond) Type() string { return "RATE" }

func (r *perSecond) Set(s string) error {
	number, unit, _ := strings.Cut(s, "/")
	each, ok := map[string]float64{"": 1, "s": 1, "min": 60, "h": 3600}[unit]
	v, err := strconv.ParseFloat(number, 64)
	if v /= each; err != nil || !ok || !(v > 0 && v <= 1e7) {
		return fmt.Errorf("write a rate above zero, such as 100/s or 30/min, not %q", s)
	}
	*r.p = v
	return nil
}

// natural is a number from 0 that takes 64 bits, as seeds do.
type natural struct{ p *uint64 }

func (n *natural) String() string {
	if n.p == nil {
		return "0"
	}
	return strconv.FormatUint(*n.p, 10)
}
func (n *natural) Type() string { return "N" }

func (n *natural) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return fmt.Errorf("use an integer from 0 to 18446744073709551615, not %q", s)
	}
	*n.p = v
	return nil
}

// badFlag says what is wrong with a flag, in its own words and not in those of the
// function that read it.
func badFlag(c *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name := "--" + e.GetFlag().Name
		if e.GetFlag().Value.Type() == "bool" {
			return useError("%s: use true or false, not %q", name, e.GetValue())
		}
		if number, ok := errors.AsType[*strconv.NumError](err); ok {
			return useError("%s: expected a number, not %q", name, number.Num)
		}
		return useError("%s: %w", name, e.Unwrap())
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(c, e)
	}
	return useError("%w: see %s --help", err, strings.TrimSpace(c.CommandPath()))
}

// percentage is one above or equal to zero, as a fraction.
type percentage float64

func (f *percentage) String() string {
	if f == nil || *f == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(*f), 'g', -1, 64) + "%"
}
func (f *percentage) Type() string { return "PERCENT" }

func (f *percentage) Set(s string) error {
	number, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0 && v <= 100) {
		return fmt.Errorf("write a percentage from 0%% to 100%%, such as 2%%, not %q", s)
	}
	*f = percentage(v / 100)
	return nil
}
