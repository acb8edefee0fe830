// Package gobench writes profiles as the text of Go benchmarks, so that benchstat
// and what reads its format compare two profiles.
//
// Source of the format: design document 14313 of the Go project ("Proposal: Go
// Benchmark Data Format"), with the unit metadata of golang.org/x/perf/benchfmt.
package gobench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// Write writes p: a line for the whole model, then for every layer in order of
// execution, with its best figure and the number of inferences behind it. Inferences of one process
// are not independent samples, for which benchstat takes lines of one name: two runs of a minute
// apart would differ significantly in every layer. Files of several processes have a line each.
func Write(w io.Writer, p *profile.Profile) error {
	b := bufio.NewWriterSize(w, 1<<16)
	us := unitsOf(p)
	head(b, p, us)
	rates := p.Rates()
	model := func(key string) (float64, bool) {
		switch key { // without the work of layers that did not run
		case "macs_per_s":
			return known(rates.MACsPerSecond)
		case "bytes_per_s":
			return known(rates.BytesPerSecond)
		}
		return p.Totals.Value(key)
	}
	write(b, "BenchmarkModel/layer=all", us, p.Totals.LatencySamples, model)
	digits := len(strconv.Itoa(max(0, len(p.Layers)-1)))
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.State == profile.Ran {
			write(b, fmt.Sprintf("BenchmarkModel/layer=%0*d:%s", digits, i, Name(spans.LayerName(l))), us, l.Samples, l.Value)
		}
	}
	return b.Flush()
}

// head writes the configuration. Only what makes figures comparable stands here:
// benchstat keeps apart what differs in any of it, and pairs lines of one name. The
// number of threads is what people compare: it is a remark, which readers pass over.
func head(b *bufio.Writer, p *profile.Profile, us []unit) {
	put := func(key, v string) {
		if v = line(v); v != "" {
			fmt.Fprintf(b, "%s: %s\n", key, v)
		}
	}
	if h := p.Host; h != nil && p.Target.Kind == profile.TargetHost {
		put("goos", h.OS)
		put("goarch", h.Arch)
		put("cpu", h.CPUModel)
	}
	put("model", p.Model.Name)
	put("target", p.Target.ID)
	if t := p.Settings.Threads; t != nil {
		fmt.Fprintf(b, "# threads: %d\n", *t)
	}
	fmt.Fprintf(b, "# one process, one sample: join files of six or more runs (cat *.bench.txt) for benchstat\n")
	for _, u := range us {
		switch {
		case u.Better > 0:
			fmt.Fprintf(b, "Unit %s better=higher\n", u.name)
		case u.Better < 0:
			fmt.Fprintf(b, "Unit %s better=lower\n", u.name)
		}
	}
	_ = b.WriteByte('\n')
}

// line makes one line of a text.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool { return unicode.IsSpace(r) || text.Hidden(r) }), " ")
}

// maxName bounds a name; the number before it tells layers apart.
const maxName = 200

// Name makes a text fit for a benchmark's name: no blanks, which end it, no
// control characters, and a colon for the slash that begins another part.
func Name(s string) string {
	n := 0
	return strings.Map(func(r rune) rune {
		if n++; n > maxName {
			return -1
		}
		switch {
		case r == '/':
			return ':'
		case unicode.IsSpace(r) || text.Hidden(r) || r == unicode.ReplacementChar:
			return '_'
		}
		return r
	}, s)
}

// unit is a quantity with its name in this format.
type unit struct {
	profile.Quantity
	name string
	// rate says that it is divided by the time, so that it follows each sample.
	rate bool
}

// names are the units of known quantities; those with an empty one are not figures of
// a run and stand in no line. Others get their key, by the operation where they add
// up over layers.
var names = map[string]string{
	"macs_per_s": "MACs/s", "bytes_per_s": "moved-B/s", "cpu_cycles": "cycles/op", "accelerator_cycles": "accelerator-cycles/op", "simulator_cycles": "simulator-cycles/op", "energy_j": "J/op",
	"reference_latency_s": "", "undisturbed_latency_s": "", "processor_s": "", "machine_speed": "",
	"latency_s": "", "share": "", "total_s": "", "calls": "", "expected_s": "", "against_expected": "", "macs": "", "ops": "", "ops_per_s": "", "ops_per_byte": "",
	"energy_per_mac_j": "", "energy_per_op_j": "", "power_w": "", "params": "", "weights_bytes": "", "bytes_read": "", "bytes_written": "", "live_bytes": "",
	"macs_executed": "", "mltk_ops": "", "mltk_macs": "", "sparsity_weights": "", "sparsity_activations": "",
}

// unitsOf lists the units of what p has.
func unitsOf(p *profile.Profile) []unit {
	var out []unit
	for _, q := range p.AllQuantities() {
		name, ok := names[q.Key]
		if !ok {
			name = strings.ReplaceAll(q.Key, "_", "-")
			if q.Adds {
				name += "/op"
			}
		}
		_, has := p.Totals.Value(q.Key)
		if name != "" && (has || slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { return l.Figure(q.Key) != nil })) {
			out = append(out, unit{q, name, len(q.Per) == 1 && q.Per[0] == "latency_s"})
		}
	}
	return out
}

func known(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

// write writes the line of one benchmark.
func write(b *bufio.Writer, name string, us []unit, samples []float64, value func(key string) (float64, bool)) {
	best, timed := value("latency_s")
	if n := len(samples); n > 0 && !timed {
		for _, s := range samples {
			best += s / float64(n)
		}
		timed = true
	}
	if timed {
		result(b, name, max(1, len(samples)), best, best, us, value)
	}
}

// result writes one line: figures of one inference, and rates, which are known for
// the time that is best and follow that of the line.
func result(b *bufio.Writer, name string, n int, seconds, best float64, us []unit, value func(key string) (float64, bool)) {
	out := append(b.AvailableBuffer(), name...)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(n), 10)
	put := func(v float64, unit string) {
		out = append(out, ' ')
		out = strconv.AppendFloat(out, v, 'f', -1, 64)
		out = append(append(out, ' '), unit...)
	}
	// A picosecond is far below what a clock tells apart; the rest is rounding.
	put(math.Round(seconds*1e12)/1e3, "ns/op")
	for i := range us {
		u := &us[i]
		v, ok := value(u.Key)
		if u.rate {
			v = math.Round(v * best / seconds)
			ok = ok && v > 0 && !math.IsInf(v, 0)
		}
		if ok {
			put(significant(v), u.name)
		}
	}
	_, _ = b.Write(append(out, '\n'))
}

// significant rounds a mean of counts to nine significant digits, far more than is measured.
// Integers stay exact.
func significant(v float64) float64 {
	if v == math.Trunc(v) {
		return v
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 8, 64), 64)
	if err != nil {
		return v
	}
	return r
}
