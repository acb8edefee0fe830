package benchtext

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// measured is what the lines of one benchmark say.
type measured struct {
	name   string
	units  []string
	values map[string][]float64
	counts []float64 // iterations of each line
}

// suite is benchmarks under one configuration.
type suite struct {
	config [][2]string
	list   []*measured
	at     map[string]*measured
	// threads from a remark, 0 if absent.
	threads int64
}

var (
	configLine = regexp.MustCompile(`^([a-z][^\sA-Z:]*):\s+(\S.*)$`)
	processors = regexp.MustCompile(`^(.*)-(\d+)$`)
	ownLayer   = regexp.MustCompile(`^BenchmarkModel/layer=(\d+):(.*)$`)
)

// maxLines bounds the lines of a file that are kept.
const maxLines = 1_000_000

func readGo(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		s := textscan.NewScanner(r)
		cur := &suite{at: map[string]*measured{}}
		suites := []*suite{cur}
		total, bad := 0, int64(0)
		for s.Scan() {
			l := s.Text()
			if m := goLine.FindStringSubmatch(l); m != nil {
				if total++; total > maxLines || !cur.add(m) {
					bad++
				}
				continue
			}
			if n, ok := textscan.Whole(strings.TrimPrefix(l, "# threads: ")); ok && n > 0 && strings.HasPrefix(l, "# threads: ") {
				cur.threads = n
			}
			m := configLine.FindStringSubmatch(l)
			if m == nil || strings.HasPrefix(l, "ok ") {
				continue
			}
			if cur.differs(m[1], m[2]) && len(suites) < 1000 {
				cur = cur.next()
				suites = append(suites, cur)
			}
			cur.set(m[1], m[2])
		}
		var runs []*runlog.Run
		for i, c := range suites {
			if len(c.list) > 0 {
				runs = append(runs, c.run(draft.Stem(f), bad*int64(map[bool]int{true: 1}[i == 0])))
			}
		}
		if s.Err() != nil {
			return runs, draft.At(f, s.Number(), s.Err())
		}
		if len(runs) == 0 {
			return nil, draft.ErrNothing
		}
		return runs, nil
	})
}

// differs reports whether a line of configuration begins another suite.
func (c *suite) differs(key, value string) bool {
	return len(c.list) > 0 && slices.ContainsFunc(c.config, func(p [2]string) bool { return p[0] == key && p[1] != value })
}

func (c *suite) next() *suite {
	return &suite{config: slices.Clone(c.config), at: map[string]*measured{}}
}

func (c *suite) set(key, value string) {
	for i := range c.config {
		if c.config[i][0] == key {
			c.config[i][1] = value
			return
		}
	}
	if len(c.config) < 100 {
		c.config = append(c.config, [2]string{key, value})
	}
}

func (c *suite) get(key string) string {
	for _, p := range c.config {
		if p[0] == key {
			return p[1]
		}
	}
	return ""
}

// add takes a line of results; it reports whether it is one.
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
		if !ok {
			continue
		}
		if b.values[fields[i+1]] == nil {
			if len(b.units) >= 100 {
				continue
			}
			b.units = append(b.units, fields[i+1])
		}
		b.values[fields[i+1]] = append(b.values[fields[i+1]], v)
	}
	return true
}

// run makes a run of a suite: each benchmark is a layer. Of opmeter's own output layers are
// those of the model, and its first benchmark is the whole.
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
	if h := (profile.Host{OS: c.get("goos"), Arch: c.get("goarch"), CPUModel: c.get("cpu")}); h.OS != "" || h.CPUModel != "" {
		d.P.Host = &profile.Host{OS: draft.Text(h.OS), Arch: draft.Text(h.Arch), CPUModel: draft.Text(h.CPUModel)}
	}
	if t := c.get("target"); t != "" {
		d.P.Target.Description = draft.Text(t)
	}
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

// seconds are the times of an operation, one a line.
func (b *measured) seconds() []float64 {
	out := make([]float64, 0, len(b.values["ns/op"]))
	for _, v := range b.values["ns/op"] {
		out = append(out, v/1e9)
	}
	return out
}

// metric makes a figure of lines; a single one has no spread.
func metric(vs []float64) (*profile.Metric, []float64) {
	if len(vs) == 1 {
		return draft.Value(vs[0]), nil
	}
	return draft.Samples(vs, "")
}

func (b *measured) total(d *draft.Draft) {
	d.P.Totals.Latency, d.P.Totals.LatencySamples = metric(b.seconds())
	n := 0.0
	for _, c := range b.counts {
		n += c
	}
	if n > 0 && n < 1e15 {
		d.P.Settings.Runs = new(int64(n))
	}
	for _, u := range b.units {
		if m, _ := metric(b.values[u]); m != nil && u != "ns/op" {
			if q, scale, ok := quantity(u); ok {
				v, _ := m.Best()
				d.Total(q, v*scale)
			}
		}
	}
}

// figures puts the figures of a benchmark into a layer.
func (b *measured) figures(d *draft.Draft, i int) {
	y := d.Layer(i)
	y.Latency, y.Samples = metric(b.seconds())
	if n := len(b.counts); n > 0 {
		d.Set(i, profile.Quantity{Key: "iterations", Name: "Iterations of a line", Group: "Record", Whole: true}, math.Round(mean(b.counts)))
	}
	for _, u := range b.units {
		if u == "ns/op" {
			continue
		}
		if len(b.values[u]) == 0 {
			continue
		}
		v := mean(b.values[u])
		switch s := b.seconds(); {
		case u == "MACs/s" && len(s) == len(b.values[u]):
			// The rate is the work divided by the time of its line.
			if n := math.Round(b.values[u][0] * s[0]); n >= 0 && n < 1<<53 {
				y.MACs = new(int64(n))
			}
		case u == "moved-B/s" && len(s) == len(b.values[u]):
			d.Set(i, profile.Quantity{Key: "moved_bytes", Unit: "B", Name: "Bytes read and written", Group: "Memory", Adds: true, Whole: true}, math.Round(b.values[u][0]*s[0]))
		default:
			if q, scale, ok := quantity(u); ok {
				d.Set(i, q, v*scale)
			}
		}
	}
}

func mean(vs []float64) float64 {
	s := 0.0
	for _, v := range vs {
		s += v
	}
	// What is the same in all lines stays so whatever rounding does.
	return min(max(s/float64(len(vs)), slices.Min(vs)), slices.Max(vs))
}

// quantity says what a unit of a benchmark stands for.
func quantity(unit string) (q profile.Quantity, scale float64, ok bool) {
	known := map[string]struct {
		q     profile.Quantity
		scale float64
	}{
		"B/op":                  {profile.Quantity{Key: "allocated_bytes", Unit: "B", Name: "Memory allocated", Group: "Memory", Adds: true, Better: -1}, 1},
		"allocs/op":             {profile.Quantity{Key: "allocations", Name: "Allocations", Group: "Memory", Adds: true, Better: -1}, 1},
		"MB/s":                  {profile.Quantity{Key: "recorded_bytes_per_s", Unit: "B/s", Name: "Bytes per second as recorded", Group: "Rates", Better: 1}, 1e6},
		"cycles/op":             {profile.Quantity{Key: "cpu_cycles"}, 1},
		"accelerator-cycles/op": {profile.Quantity{Key: "accelerator_cycles"}, 1},
		"simulator-cycles/op":   {profile.Quantity{Key: "simulator_cycles"}, 1},
		"J/op":                  {profile.Quantity{Key: "energy_j"}, 1},
		"MACs/s":                {profile.Quantity{Key: "recorded_macs_per_s", Unit: "/s", Name: "MACs per second as recorded", Group: "Rates", Better: 1}, 1},
		"moved-B/s":             {profile.Quantity{Key: "recorded_moved_bytes_per_s", Unit: "B/s", Name: "Bytes per second as recorded", Group: "Rates"}, 1},
	}
	if k, ok := known[unit]; ok {
		return k.q, k.scale, true
	}
	base, each := strings.CutSuffix(unit, "/op")
	q = profile.Quantity{Key: runlog.Key(base), Name: unit, Adds: each}
	if k, ok := profile.Lookup(q.Key); ok && k.Derived() {
		q.Key = "recorded_" + q.Key
	}
	return q, 1, q.Key != ""
}
