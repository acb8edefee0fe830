package fit

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
)

// Encode writes a target file. Order and format are fixed, so that equal targets give equal
// bytes.
func Encode(t *chip.Target, comment string) []byte {
	e := &encoder{}
	for _, l := range strings.Split(strings.TrimSpace(comment), "\n") {
		if l != "" {
			e.b.WriteString("# " + l + "\n")
		}
	}
	e.text(0, "id", t.ID)
	e.text(0, "name", t.Name)
	e.text(0, "vendor", t.Vendor)
	e.text(0, "description", t.Description)
	e.key(0, "core")
	e.text(1, "name", t.Core.Name)
	e.text(1, "arch", t.Core.Arch)
	e.text(1, "simd", t.Core.SIMD)
	e.text(1, "fpu", t.Core.FPU)
	if t.Core.Cores > 1 {
		e.line(1, "cores", strconv.FormatInt(t.Core.Cores, 10))
	}
	if t.Core.PeakMACs > 0 {
		e.number(1, "peak_macs_per_cycle", t.Core.PeakMACs)
	}
	if t.Core.LoadBytes > 0 {
		e.number(1, "load_bytes_per_cycle", t.Core.LoadBytes)
	}
	e.key(0, "clock")
	if t.Clock.Min > 0 {
		e.hertz(1, "min", t.Clock.Min)
	}
	e.hertz(1, "max", t.Clock.Max)
	e.hertz(1, "default", t.Clock.Default)
	e.memories(t.Memories)
	if s := t.Supply; s != nil {
		e.key(0, "supply")
		e.number(1, "volts", s.Volts)
		e.text(1, "regulator", s.Regulator)
	}
	e.energy(t.Energy)
	if a := t.Accelerator; a != nil {
		e.key(0, "accelerator")
		e.text(1, "name", a.Name)
		if a.Clock > 0 {
			e.hertz(1, "clock", a.Clock)
		}
		if a.PeakMACs > 0 {
			e.number(1, "peak_macs_per_cycle", a.PeakMACs)
		}
		e.text(1, "description", a.Description)
	}
	e.key(0, "runtimes")
	for i := range t.Runtimes {
		e.runtime(&t.Runtimes[i])
	}
	e.list(0, "sources", t.Sources)
	return e.b.Bytes()
}

type encoder struct{ b bytes.Buffer }

func (e *encoder) indent(n int) { e.b.WriteString(strings.Repeat("  ", n)) }

func (e *encoder) key(n int, k string) {
	e.indent(n)
	e.b.WriteString(k + ":\n")
}

func (e *encoder) line(n int, k, v string) {
	e.indent(n)
	e.b.WriteString(k + ": " + v + "\n")
}

// text omits empty values.
func (e *encoder) text(n int, k, v string) {
	if v != "" {
		e.line(n, k, quote(v))
	}
}

func quote(s string) string { return strconv.Quote(s) }

func (e *encoder) number(n int, k string, v float64) { e.line(n, k, Digits(v)) }

// Digits formats a figure for target files with four significant digits, which is more than the
// accuracy of any fit and makes files independent of the last bits of a sum.
func Digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	if a := math.Abs(r); a >= 1e-4 && a < 1e7 {
		return strconv.FormatFloat(r, 'f', -1, 64)
	}
	return strconv.FormatFloat(r, 'e', -1, 64)
}

func (e *encoder) hertz(n int, k string, v chip.Hertz) {
	e.line(n, k, strconv.FormatFloat(float64(v)/1e6, 'f', -1, 64)+"MHz")
}

func size(v chip.Bytes) string {
	switch {
	case v%(1<<20) == 0:
		return strconv.FormatInt(int64(v>>20), 10) + "MiB"
	case v%(1<<10) == 0:
		return strconv.FormatInt(int64(v>>10), 10) + "KiB"
	}
	return strconv.FormatInt(int64(v), 10)
}

func (e *encoder) memories(list []chip.Memory) {
	if len(list) == 0 {
		return
	}
	e.key(0, "memories")
	for _, m := range list {
		e.b.WriteString("  - name: " + quote(m.Name) + "\n")
		e.line(2, "role", m.Role)
		e.line(2, "size", size(m.Size))
		if m.WaitStates != nil {
			e.line(2, "wait_states", strconv.FormatInt(*m.WaitStates, 10))
		}
		if m.Cache > 0 {
			e.line(2, "cache", size(m.Cache))
		}
		if m.ReadCyclesPerByte != nil {
			e.number(2, "read_cycles_per_byte", *m.ReadCyclesPerByte)
		}
	}
}

func (e *encoder) energy(g *chip.Energy) {
	if g == nil {
		return
	}
	e.key(0, "energy")
	e.text(1, "reference", g.Reference)
	for _, p := range []struct {
		k string
		v float64
	}{{"watts", g.Watts}, {"elapsed_cycle_j", g.ElapsedCycle}, {"cpu_cycle_j", g.CPUCycle}, {"mac_j", g.MAC}} {
		if p.v != 0 {
			e.number(1, p.k, p.v)
		}
	}
	e.band(1, g.Band)
	e.calibration(1, g.Calibration)
}

func (e *encoder) band(n int, b *[2]float64) {
	if b != nil {
		e.line(n, "band", "["+Digits(b[0])+", "+Digits(b[1])+"]")
	}
}

func (e *encoder) runtime(r *chip.Runtime) {
	e.b.WriteString("  - name: " + quote(r.Name) + "\n")
	e.text(2, "title", r.Title)
	e.text(2, "versions", r.Versions)
	e.text(2, "arena", r.Arena)
	if r.Release > 0 {
		e.line(2, "release", strconv.FormatInt(r.Release, 10))
	}
	if c := r.Code; c != nil {
		e.line(2, "code", "["+size(c[0])+", "+size(c[1])+"]")
	}
	e.structural(r.Cortexm)
	e.counted(r.MVP)
	e.builds(r.Builds)
	e.calibration(2, r.Calibration)
}

func (e *encoder) calibration(n int, c *chip.Calibration) {
	if c == nil {
		return
	}
	e.key(n, "calibration")
	e.list(n+1, "on", c.On)
	e.text(n+1, "from", c.From)
	e.text(n+1, "method", c.Method)
	e.line(n+1, "rows", strconv.FormatInt(c.Rows, 10))
	e.line(n+1, "sources", strconv.FormatInt(c.Sources, 10))
	if c.MedianError != nil {
		e.number(n+1, "median_error", *c.MedianError)
	}
	if c.P90Error != nil {
		e.number(n+1, "p90_error", *c.P90Error)
	}
	if u := c.Unfamiliar; u != nil {
		e.key(n+1, "unfamiliar")
		e.line(n+2, "group", quote(u.Group))
		e.line(n+2, "rows", strconv.FormatInt(u.Rows, 10))
		e.number(n+2, "median_error", u.MedianError)
		e.number(n+2, "p90_error", u.P90Error)
		e.number(n+2, "bias", u.Bias)
	}
	e.band(n+1, c.Band)
	if c.Coverage != nil {
		e.number(n+1, "coverage", *c.Coverage)
	}
	if len(c.Errors) > 0 {
		e.key(n+1, "errors")
		for _, r := range c.Errors {
			e.indent(n + 2)
			e.b.WriteString("- group: " + quote(r.Group) + "\n")
			e.line(n+3, "rows", strconv.FormatInt(r.Rows, 10))
			e.number(n+3, "median_error", r.MedianError)
			e.number(n+3, "p90_error", r.P90Error)
			e.number(n+3, "bias", r.Bias)
		}
	}
}

func (e *encoder) list(n int, k string, list []string) {
	if len(list) == 0 {
		return
	}
	e.key(n, k)
	for _, s := range list {
		e.indent(n + 1)
		e.b.WriteString("- " + quote(s) + "\n")
	}
}

func (e *encoder) structural(s *chip.Structural) {
	if s == nil {
		return
	}
	e.key(2, "cortexm")
	e.text(3, "family", s.Family)
	e.text(3, "tier", s.Tier)
	if s.Pruned {
		e.line(3, "pruned", "true")
	}
	e.key(3, "integer")
	e.number(4, "band_near", s.Integer.Near)
	e.number(4, "band_far", s.Integer.Far)
	e.number(4, "band_layer", s.Integer.Layer)
	if s.Integer.Overhead > 0 {
		e.number(4, "band_overhead", s.Integer.Overhead)
	}
	e.terms("cycles", &s.Integer.Cycles, cortexm.PlainMAC)
	e.terms("bands", &s.Integer.Bands, 0)
	e.typed("int16", s.Int16)
	e.typed("float", s.Float)
	if len(s.Seen) > 0 {
		e.key(3, "seen")
		for i := range s.Seen {
			e.indent(4)
			e.b.WriteString("- {" + strings.Join(shares(&s.Seen[i]), ", ") + "}\n")
		}
	}
}

func (e *encoder) typed(key string, f *chip.Typed) {
	if f == nil {
		return
	}
	e.key(3, key)
	e.text(4, "from", f.From)
	e.text(4, "measured", f.Measured)
	e.number(4, "band_near", f.Near)
	e.number(4, "band_far", f.Far)
	if f.Overhead > 0 {
		e.number(4, "band_overhead", f.Overhead)
	}
	e.terms("cycles", &f.Cycles, 0)
}

// builds writes the build configurations of a runtime.
func (e *encoder) builds(list []chip.Build) {
	if len(list) == 0 {
		return
	}
	e.key(2, "builds")
	for i := range list {
		b := &list[i]
		e.b.WriteString("      - name: " + quote(b.Name) + "\n")
		e.text(4, "title", b.Title)
		e.text(4, "from", b.From)
		e.terms("integer", &b.Integer, 0)
		e.terms("int16", &b.Int16, 0)
		e.terms("float", &b.Float, 0)
		e.terms("integer_bound", &b.IntegerBound, 0)
		e.terms("float_bound", &b.FloatBound, 0)
		e.number(4, "band", b.Band)
	}
}

// terms writes a table of figures by kind of work. Terms below least are always written, others
// if they are not 0.
func (e *encoder) terms(key string, t *chip.Terms, least int) {
	if least == 0 && *t == (chip.Terms{}) {
		return
	}
	e.key(4, key)
	for i, v := range t {
		if i < least || v != 0 {
			e.number(5, chip.TermNames[i], v)
		}
	}
}

// shares writes a mix of work in hundredths, which exceeds its accuracy.
func shares(t *chip.Terms) []string {
	var out []string
	for i, v := range t {
		if r := math.Round(100*v) / 100; r > 0 {
			out = append(out, chip.TermNames[i]+": "+strconv.FormatFloat(r, 'f', -1, 64))
		}
	}
	return out
}

func (e *encoder) counted(c *chip.Counted) {
	if c == nil {
		return
	}
	e.key(2, "mvp")
	e.text(3, "library", c.Library)
	e.text(3, "processor", c.Processor)
	if len(c.Cycles) > 0 {
		e.key(3, "cycles")
		for _, k := range slices.Sorted(maps.Keys(c.Cycles)) {
			e.number(4, k, c.Cycles[k])
		}
	}
	if len(c.Operators) > 0 {
		e.key(3, "operators")
	}
	for _, op := range slices.Sorted(maps.Keys(c.Operators)) {
		e.key(4, op)
		for _, typ := range slices.Sorted(maps.Keys(c.Operators[op])) {
			o := c.Operators[op][typ]
			e.key(5, typ)
			for _, f := range []struct {
				k string
				v float64
			}{{"fixed", o.Fixed}, {"element", o.Element}, {"input", o.Input}, {"padded", o.Padded}, {"byte", o.Byte}, {"mac", o.MAC}, {"tap", o.Tap}} {
				if f.v != 0 {
					e.number(6, f.k, f.v)
				}
			}
		}
	}
}

// EncodeRuntime writes one entry of the list of runtimes.
func EncodeRuntime(r *chip.Runtime) []byte {
	e := &encoder{}
	e.runtime(r)
	return e.b.Bytes()
}
