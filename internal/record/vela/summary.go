package vela

import (
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// maxSummaries limits the rows of a summary.
const maxSummaries = 1000

var (
	inferences = profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}
	opsRate    = profile.Quantity{Key: "network_ops_per_s", Unit: "/s", Name: "Operations per second by the summary", Group: "Rates", Better: 1}
)

// summaryFields are columns of a summary and rows of a printed one.
var summaryFields = draft.Fields{
	"nn_tops":                      {Q: opsRate, Scale: 1e12},
	"inferences_per_second":        {Q: inferences},
	"cycles_total":                 {Q: accCycles},
	"cycles_npu":                   {Q: npuCycles},
	"cycles_sram_access":           {Q: sramCycles},
	"cycles_dram_access":           {Q: dramCycles},
	"cycles_on_chip_flash_access":  {Q: onCycles},
	"cycles_off_chip_flash_access": {Q: offCycles},
	"Total cycles":                 {Q: accCycles},
	"NPU cycles":                   {Q: npuCycles},
	"SRAM Access cycles":           {Q: sramCycles},
	"DRAM Access cycles":           {Q: dramCycles},
	"On-chip Flash Access cycles":  {Q: onCycles},
	"Off-chip Flash Access cycles": {Q: offCycles},
	"Network Tops/s":               {Q: opsRate, Scale: 1e12},
}

// readSummary reads a summary. Columns are found by name: older versions lack some.
func (ns *networks) readSummary(f *record.File) error {
	var cols textscan.Columns
	return f.Lines(func(l string) {
		row := textscan.Fields(strings.TrimSpace(l), ',')
		if strings.Contains(l, "accelerator_configuration") {
			cols = textscan.NewColumns(row)
			return
		}
		if cols.Names() == nil || len(row) < 3 || len(ns.list) > maxSummaries {
			return
		}
		n := ns.list[0]
		if n.n > 0 { // a further row is a further run
			n = ns.add(stem(f), n.clock)
		}
		n.n++
		n.summary(row, cols)
	})
}

// summary reads a row.
func (n *network) summary(row []string, cols textscan.Columns) {
	d := n.d
	if c, ok := cols.Number(row, "core_clock"); ok && c > 0 {
		n.clock = c
		d.P.Target.ClockHz = &c
	}
	if s := cols.Text(row, "network"); s != "" {
		d.P.Model.Name = draft.Text(s)
	}
	d.P.Target.Description = draft.Text(cols.Text(row, "accelerator_configuration"))
	for k, name := range cols.Names() {
		text := textscan.Cell(row, k)
		v, number := textscan.Number(text)
		q := profile.Quantity{Key: name, Name: words(name)}
		switch {
		case name == "" || name == "network" || name == "core_clock" || text == "":
			continue
		case textscan.NotFinite(text):
			d.Dropped.Add(draft.NotFinite, 1)
			continue
		case !number:
			d.Note(name, text)
			continue
		case v < 0:
			d.Dropped.Add("figures below zero", 1)
			continue
		case summaryFields.Total(d, name, v):
			continue
		case name == "inference_time":
			d.P.Totals.Latency = draft.Metric(&profile.Metric{Median: &v, Method: "the compiler's estimate"})
			continue
		case name == "batch_size":
			if b, ok := textscan.Whole(text); ok {
				d.P.Settings.Batch = &b
			}
			continue
		case name == "nn_macs":
			if v == math.Trunc(v) && v < 1<<53 {
				d.P.Totals.MACs = new(int64(v))
			}
			q = profile.Quantity{Key: "network_macs", Name: "MACs by the summary", Group: "Work", Whole: true}
		case strings.HasSuffix(name, "_bandwidth"):
			q.Key, q.Unit, q.Group = name+"_bytes_per_s", "B/s", "Rates"
			v = bandwidth(v, n.clock)
		case name == "arena_cache_size":
			q.Key, q.Unit, q.Group = "arena_cache_bytes", "B", "Memory"
			v = arena(v, text)
		case strings.HasSuffix(name, "_memory_used"):
			q.Key, q.Unit, q.Group, q.Better = name+"_bytes", "B", "Memory", -1
			v *= 1024
		case strings.HasSuffix(name, "_bytes"):
			q.Name, q.Unit, q.Group = words(strings.TrimSuffix(name, "_bytes")), "B", "Memory"
		case name == "total_original_weights" || name == "total_npu_encoded_weights" || name == "total_npu_weights":
			q.Key, q.Unit, q.Group = name+"_bytes", "B", "Memory"
		default:
			q.Key = "summary_" + runlog.Key(name)
			if strings.HasPrefix(name, "cycles_") {
				q.Unit, q.Group = "cycles", "Target"
			}
		}
		d.Total(q, v)
	}
}

func words(key string) string {
	s := strings.ReplaceAll(key, "_", " ")
	return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
}

// bandwidth converts a column in GB/s to bytes per second. Compilers print units of 2^30 or
// of 10^9 bytes. The number of bytes per cycle is an integer or a simple fraction, which tells
// the unit.
func bandwidth(v, clock float64) float64 {
	simple := func(bytes float64) bool {
		x := bytes / clock * 64
		return math.Abs(x-math.Round(x)) <= 1e-6*math.Max(1, x)
	}
	if clock > 0 && !simple(v*1e9) && simple(v*(1<<30)) {
		return v * (1 << 30)
	}
	return v * 1e9
}

// arena converts the size of the arena cache to bytes: newer compilers print KiB with a
// fraction, older ones whole bytes.
func arena(v float64, text string) float64 {
	if !strings.Contains(text, ".") && v >= 32768 {
		return v
	}
	return v * 1024
}

var printedRow = lazyregexp.New(`^([A-Z][\w /\-]*\S)\s{2,}(\S.*)$|^(CPU|NPU) operators = (\d+)`)

var printedNumber = lazyregexp.New(`^([\d.]+) ?([^\s,]+)?(?:, ([\d.]+) inferences/s)?`)

// scales are the units of the printed summary, with the end of the keys of their quantities.
var scales = map[string]struct {
	by        float64
	unit, end string
}{
	"MHz": {1e6, "Hz", ""}, "GB/s": {1e9, "B/s", "_bytes_per_s"}, "KiB": {1024, "B", "_bytes"}, "MB/batch": {1e6, "B", "_bytes"},
	"MB/inference": {1e6, "B", "_bytes"}, "MACs/batch": {1, "", ""}, "Tops/s": {1e12, "/s", "_per_s"}, "cycles/batch": {1, "cycles", ""},
	"ms": {1e-3, "s", ""}, "bytes": {1, "B", "_bytes"},
}

// lastPrinted is the last row of a printed summary.
const lastPrinted = "Batch Inference time"

// readPrinted reads printed summaries. Documents repeat parts of one: repeated rows are skipped.
func (ns *networks) readPrinted(f *record.File) error {
	var n *network
	seen := map[string]bool{}
	return f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		if len(ns.list) > maxSummaries && strings.HasPrefix(l, "Network summary for ") {
			n = nil
			return
		}
		if name, ok := strings.CutPrefix(l, "Network summary for "); ok {
			n = ns.add(strings.TrimSpace(name), 0)
			clear(seen)
			return
		}
		m := printedRow.FindStringSubmatch(l)
		if n == nil || m == nil {
			return
		}
		key, text := m[1], m[2]
		if m[3] != "" {
			key, text = m[3]+" operators", m[4]
		}
		if !seen[key] {
			seen[key] = true
			n.printed(strings.Join(strings.Fields(key), " "), text)
		}
		if key == lastPrinted {
			n = nil // prose and other tables follow
		}
	})
}

// printed reads a row of a printed summary.
func (n *network) printed(key, text string) {
	d := n.d
	m := printedNumber.FindStringSubmatch(text)
	if m == nil {
		if key == "Accelerator configuration" {
			d.P.Target.Description = draft.Text(text)
		}
		d.Note(key, text)
		return
	}
	v, ok := textscan.Number(m[1])
	u, known := scales[m[2]]
	if !known {
		u.by = 1
	}
	switch {
	case !ok:
	case key == "Accelerator clock" && known:
		d.P.Target.ClockHz = new(v * u.by)
	case key == "Batch Inference time" && known:
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Median: new(v * u.by), Method: "the compiler's estimate, rounded as printed"})
		if r, ok := textscan.Number(m[3]); ok {
			d.Total(inferences, r)
		}
	case key == "Neural network macs" && v == math.Trunc(v) && v < 1<<53:
		d.P.Totals.MACs = new(int64(v))
	case summaryFields.Total(d, key, v):
	case !known && !strings.HasSuffix(key, " operators"):
		d.Note(key, text) // without a unit it may be of another table
	default:
		d.Total(profile.Quantity{Key: runlog.Key(key) + u.end, Name: key, Unit: u.unit}, v*u.by)
	}
}
