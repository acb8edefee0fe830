package benchtext

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// measured holds the lines of one benchmark.
type measured struct {
	name   string
	units  []string
	values map[string][]float64
	counts []float64 // iterations of each line
}

// suite holds the benchmarks under one configuration.
type suite struct {
	config [][2]string
	list   []*measured
	at     map[string]*measured
	// threads comes from a comment, 0 if absent.
	threads int64
}

var (
	goLine     = lazyregexp.New(`^(Benchmark\S*)\s+(\d+)\s+([\d.eE+-]+ \S.*)$`)
	configLine = lazyregexp.New(`^([a-z][^\sA-Z:]*):\s+(\S.*)$`)
	processors = lazyregexp.New(`^(.*)-(\d+)$`)
	ownLayer   = lazyregexp.New(`^BenchmarkModel/layer=(\d+):(.*)$`)
)

// maxLines limits the lines that are kept of a file.
const maxLines = 1_000_000

func readGo(_ context.Context, _ *record.Input, f *record.File) (runs []*runlog.Run, err error) {
	cur := &suite{at: map[string]*measured{}}
	suites := []*suite{cur}
	total, bad := 0, int64(0)
	err = f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		if m := goLine.FindStringSubmatch(l); m != nil {
			if total++; total > maxLines || !cur.add(m) {
				bad++
			}
			return
		}
		if t, ok := strings.CutPrefix(l, "# threads: "); ok {
			if n, ok := textscan.Whole(t); ok && n > 0 {
				cur.threads = n
			}
		}
		m := configLine.FindStringSubmatch(l)
		if m == nil || strings.HasPrefix(l, "ok ") {
			return
		}
		if old := cur.get(m[1]); old != "" && old != m[2] && len(cur.list) > 0 && len(suites) < 1000 {
			cur = &suite{config: slices.Clone(cur.config), at: map[string]*measured{}}
			suites = append(suites, cur)
		}
		cur.set(m[1], m[2])
	})
	for i, c := range suites {
		if i > 0 {
			bad = 0
		}
		if len(c.list) > 0 {
			runs = append(runs, c.run(draft.Stem(f), bad))
		}
	}
	return draft.NotEmpty(runs, err)
}

func (c *suite) index(key string) int {
	return slices.IndexFunc(c.config, func(p [2]string) bool { return p[0] == key })
}

// get returns a value of the configuration, "" if absent.
func (c *suite) get(key string) string {
	if i := c.index(key); i >= 0 {
		return c.config[i][1]
	}
	return ""
}

func (c *suite) set(key, value string) {
	if i := c.index(key); i >= 0 {
		c.config[i][1] = value
	} else if len(c.config) < 100 {
		c.config = append(c.config, [2]string{key, value})
	}
}

// add adds a line of results, a match of goLine. It reports whether the line is valid.
func (c *suite) add(m []string) bool {
	fields := strings.Fields(m[3])
	n, ok := textscan.Number(m[2])
	if !ok || len(fields)%2 != 0 {
		return false
	}
	b := c.at[m[1]]
	if b == nil {
		if len(c.list) >= draft.MaxLayers {
			return false
		}
		b = &measured{name: m[1], values: map[string][]float64{}}
		c.at[m[1]] = b
		c.list = append(c.list, b)
	}
	b.counts = append(b.counts, n)
	for i := 0; i < len(fields); i += 2 {
		v, ok := textscan.Number(fields[i])
		unit := fields[i+1]
		if !ok || b.values[unit] == nil && len(b.units) >= 100 {
			continue
		}
		if b.values[unit] == nil {
			b.units = append(b.units, unit)
		}
		b.values[unit] = append(b.values[unit], v)
	}
	return true
}

// run makes the run of a suite: each benchmark is a layer. In opmeter's own output, layers are
// those of the model, and the first benchmark is the whole model.
func (c *suite) run(name string, bad int64) *runlog.Run {
	if m := c.get("model"); m != "" {
		name = m
	} else if p := c.get("pkg"); p != "" {
		name = p
	}
	d := draft.New("go-bench", name, "")
	d.Dropped.Add("lines that are not a result", bad)
	for _, p := range c.config {
		d.Note(p[0], p[1])
	}
	if h := (profile.Host{OS: draft.Text(c.get("goos")), Arch: draft.Text(c.get("goarch")), CPUModel: draft.Text(c.get("cpu"))}); h.OS != "" || h.CPUModel != "" {
		d.P.Host = &h
	}
	d.P.Target.Description = draft.Text(c.get("target"))
	own := c.at["BenchmarkModel/layer=all"] != nil
	threads := c.threads
	for _, b := range c.list {
		if b.name == "BenchmarkModel/layer=all" {
			b.total(d)
			continue
		}
		l := profile.Layer{Name: strings.TrimPrefix(b.name, "Benchmark"), Op: "benchmark"}
		h := runlog.Hint{}
		if m := ownLayer.FindStringSubmatch(b.name); m != nil {
			own = true
			l.Name, l.Op = m[2], "layer"
			h.Nodes = []string{m[2]}
		} else if m := processors.FindStringSubmatch(l.Name); m != nil && !own {
			n, err := strconv.ParseInt(m[2], 10, 32)
			if err == nil && (threads == 0 || threads == n) {
				threads, l.Name = n, m[1]
			}
		}
		i := d.Add(l, h)
		if i < 0 {
			break
		}
		b.figures(d, i)
	}
	if threads > 0 {
		d.P.Settings.Threads = &threads
	}
	if !own {
		d.Found("gobench.suite", profile.Info, "Each layer is a benchmark of its own: their sum is the time to run each of them once.")
	}
	return d.Run()
}

// seconds returns the times of an operation, one per line.
func (b *measured) seconds() []float64 {
	out := slices.Clone(b.values["ns/op"])
	for i := range out {
		out[i] /= 1e9
	}
	return out
}

func (b *measured) total(d *draft.Draft) {
	d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Figure(b.seconds(), "")
	n := 0.0
	for _, c := range b.counts {
		n += c
	}
	if n > 0 && n < 1e15 {
		d.P.Settings.Runs = new(int64(n))
	}
	for _, u := range b.units {
		if m, _ := draft.Figure(b.values[u], ""); m != nil && u != "ns/op" {
			v, _ := m.Best()
			fieldOf(u).Total(d, u, v)
		}
	}
}

// figures sets the figures of a benchmark in a layer.
func (b *measured) figures(d *draft.Draft, i int) {
	y := d.Layer(i)
	s := b.seconds()
	y.Latency, y.Samples = draft.Figure(s, "")
	d.Set(i, profile.Quantity{Key: "iterations", Name: "Iterations of a line", Group: "Record", Whole: true}, math.Round(mean(b.counts)))
	for _, u := range b.units {
		vs := b.values[u]
		// A rate is the work divided by the time of its line.
		rated := len(s) == len(vs)
		switch {
		case u == "ns/op":
		case u == "MACs/s" && rated:
			if n := math.Round(vs[0] * s[0]); n >= 0 && n < 1<<53 {
				y.MACs = new(int64(n))
			}
		case u == "moved-B/s" && rated:
			d.Set(i, profile.Quantity{Key: "moved_bytes", Unit: "B", Name: "Bytes read and written", Group: "Memory", Adds: true, Whole: true}, math.Round(vs[0]*s[0]))
		default:
			fieldOf(u).Layer(d, i, u, mean(vs))
		}
	}
}

func mean(vs []float64) float64 {
	s := 0.0
	for _, v := range vs {
		s += v
	}
	// A value that is equal in all lines must not change by rounding.
	return min(max(s/float64(len(vs)), slices.Min(vs)), slices.Max(vs))
}

// goUnits are the units of benchmarks whose meaning is known.
var goUnits = draft.Fields{
	"B/op":                  {Q: profile.Quantity{Key: "allocated_bytes", Unit: "B", Name: "Memory allocated", Group: "Memory", Adds: true, Better: -1}},
	"allocs/op":             {Q: profile.Quantity{Key: "allocations", Name: "Allocations", Group: "Memory", Adds: true, Better: -1}},
	"MB/s":                  {Q: profile.Quantity{Key: "recorded_bytes_per_s", Unit: "B/s", Name: "Bytes per second as recorded", Group: "Rates", Better: 1}, Scale: 1e6},
	"cycles/op":             {Q: profile.Quantity{Key: "cpu_cycles"}},
	"accelerator-cycles/op": {Q: profile.Quantity{Key: "accelerator_cycles"}},
	"simulator-cycles/op":   {Q: profile.Quantity{Key: "simulator_cycles"}},
	"J/op":                  {Q: profile.Quantity{Key: "energy_j"}},
	"MACs/s":                {Q: profile.Quantity{Key: "recorded_macs_per_s", Unit: "/s", Name: "MACs per second as recorded", Group: "Rates", Better: 1}},
	"moved-B/s":             {Q: profile.Quantity{Key: "recorded_moved_bytes_per_s", Unit: "B/s", Name: "Bytes per second as recorded", Group: "Rates"}},
}

// fieldOf returns fields with the unit of a benchmark; a unit without letters and digits has none.
func fieldOf(unit string) draft.Fields {
	if _, ok := goUnits[unit]; ok {
		return goUnits
	}
	base, each := strings.CutSuffix(unit, "/op")
	q := profile.Quantity{Key: runlog.Key(base), Name: unit, Adds: each}
	if k, ok := profile.Lookup(q.Key); ok && k.Derived() {
		q.Key = "recorded_" + q.Key
	}
	if q.Key == "" {
		return nil
	}
	return draft.Fields{unit: {Q: q}}
}
