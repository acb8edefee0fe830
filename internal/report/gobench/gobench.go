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
	"strconv"
	"strings"
	"unicode"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/timeline"
	"github.com/opmeter/opmeter/profile"
)

// MaxLines is the number of result lines of a layer. More samples are gathered
// into that many batches of neighbours, whose means are written with the number of
// iterations in them, as Go's own benchmarks do.
const MaxLines = 20

// Write writes p: lines for the whole model, then for every layer in order of
// execution. A layer without samples has one line with its best figure.
func Write(w io.Writer, p *profile.Profile) error {
	b := bufio.NewWriterSize(w, 1<<16)
	head(b, p)
	suffix := ""
	if t := p.Settings.Threads; t != nil {
		suffix = "-" + strconv.FormatInt(*t, 10)
	}
	model := facts{latency: p.Totals.Latency, samples: p.Totals.LatencySamples, macs: p.Totals.MACs, cpu: p.Totals.CPUCycles, acc: p.Totals.AcceleratorCycles, energy: p.Totals.Energy}
	model.write(b, "BenchmarkModel/layer=all"+suffix)
	digits := len(strconv.Itoa(max(0, len(p.Layers)-1)))
	for i := range p.Layers {
		l := &p.Layers[i]
		if !timeline.Runs(l) {
			continue
		}
		f := facts{latency: l.Latency, samples: l.Samples, macs: l.MACs, cpu: l.CPUCycles, acc: l.AcceleratorCycles, energy: l.Energy}
		if l.BytesRead != nil && l.BytesWritten != nil {
			n := *l.BytesRead + *l.BytesWritten
			f.moved = &n
		}
		f.write(b, fmt.Sprintf("BenchmarkModel/layer=%0*d:%s%s", digits, i, Name(timeline.LayerName(l)), suffix))
	}
	return b.Flush()
}

// head writes the configuration. Only what makes figures comparable stands here:
// benchstat keeps apart what differs in any of it.
func head(b *bufio.Writer, p *profile.Profile) {
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
	_, _ = b.WriteString("Unit MACs/s better=higher\nUnit moved-B/s better=higher\n\n")
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

// facts are the figures of one benchmark.
type facts struct {
	latency, cpu, acc, energy *profile.Metric
	samples                   []float64
	macs, moved               *int64
}

func (f *facts) write(b *bufio.Writer, name string) {
	n := len(f.samples)
	if n == 0 {
		if s, ok := f.latency.Best(); ok {
			f.line(b, name, 1, s)
		}
		return
	}
	lines := min(n, MaxLines)
	for i := range lines {
		batch := f.samples[i*n/lines : (i+1)*n/lines]
		sum := 0.0
		for _, s := range batch {
			sum += s
		}
		f.line(b, name, len(batch), sum/float64(len(batch)))
	}
}

// line writes one result: figures of one inference, and rates.
func (f *facts) line(b *bufio.Writer, name string, n int, seconds float64) {
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
	if f.macs != nil && *f.macs > 0 && seconds > 0 {
		put(math.Round(float64(*f.macs)/seconds), "MACs/s")
	}
	if f.moved != nil && *f.moved > 0 && seconds > 0 {
		put(math.Round(float64(*f.moved)/seconds), "moved-B/s")
	}
	for _, m := range []struct {
		v    *profile.Metric
		unit string
	}{{f.cpu, "cycles/op"}, {f.acc, "accelerator-cycles/op"}, {f.energy, "J/op"}} {
		if v, ok := m.v.Best(); ok {
			put(v, m.unit)
		}
	}
	_, _ = b.Write(append(out, '\n'))
}
