package vela

import (
	"math"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// maxSummaries bounds the rows of a summary.
const maxSummaries = 1000

// readSummary reads a summary. Columns are found by their names: older versions lack some.
func readSummary(f *record.File, in *record.Input, get func(string) *network, order *[]*network) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var cols textscan.Columns
	for s.Scan() {
		row := textscan.Fields(strings.TrimSpace(s.Text()), ',')
		if strings.Contains(s.Text(), "accelerator_configuration") {
			cols = textscan.NewColumns(row)
			continue
		}
		if cols.Names() == nil || len(row) < 3 || len(*order) > maxSummaries {
			continue
		}
		n := get(stem(f))
		if n.n > 0 { // a further row is a further run
			n = &network{d: draft.New("vela", stem(f), "Ethos-U estimate"), clock: n.clock}
			*order = append(*order, n)
		}
		n.n++
		n.summary(row, cols)
	}
	if s.Err() != nil {
		return draft.At(f, s.Number(), s.Err())
	}
	return nil
}

// summary takes a row.
func (n *network) summary(row []string, cols textscan.Columns) {
	d := n.d
	cell := func(name string) string { return textscan.Cell(row, cols.At(name)) }
	if c, ok := textscan.Number(cell("core_clock")); ok && c > 0 {
		n.clock = c
		d.P.Target.ClockHz = &c
	}
	if s := cell("network"); s != "" {
		d.P.Model.Name = draft.Text(s)
	}
	d.P.Target.Description = draft.Text(cell("accelerator_configuration"))
	for k, name := range cols.Names() {
		text := textscan.Cell(row, k)
		v, number := textscan.Number(text)
		switch {
		case name == "" || name == "network" || name == "core_clock" || text == "":
		case !number:
			if !strings.EqualFold(text, "nan") {
				d.Note(name, text)
			}
		case v < 0:
			d.Dropped.Add("figures below zero", 1)
		case name == "inference_time":
			d.P.Totals.Latency = draft.Metric(&profile.Metric{Median: &v, Method: "the compiler's estimate"})
		case name == "nn_macs":
			if v == math.Trunc(v) && v < 1<<53 {
				d.P.Totals.MACs = new(int64(v))
			}
			d.Total(profile.Quantity{Key: "network_macs", Name: "MACs by the summary", Group: "Work", Whole: true}, v)
		case name == "nn_tops":
			d.Total(profile.Quantity{Key: "network_ops_per_s", Unit: "/s", Name: "Operations per second by the summary", Group: "Rates", Better: 1}, v*1e12)
		case name == "batch_size":
			if b, ok := textscan.Whole(text); ok {
				d.P.Settings.Batch = &b
			}
		case name == "inferences_per_second":
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, v)
		case strings.HasSuffix(name, "_bandwidth"):
			d.Total(profile.Quantity{Key: name + "_bytes_per_s", Unit: "B/s", Name: words(name), Group: "Rates"}, bandwidth(v, n.clock))
		case name == "arena_cache_size":
			d.Total(profile.Quantity{Key: "arena_cache_bytes", Unit: "B", Name: "Arena cache size", Group: "Memory"}, arena(v, text))
		case strings.HasSuffix(name, "_memory_used"):
			d.Total(profile.Quantity{Key: name + "_bytes", Unit: "B", Name: words(name), Group: "Memory", Better: -1}, v*1024)
		case strings.HasSuffix(name, "_bytes"):
			d.Total(profile.Quantity{Key: name, Unit: "B", Name: words(strings.TrimSuffix(name, "_bytes")), Group: "Memory"}, v)
		case name == "total_original_weights" || name == "total_npu_encoded_weights" || name == "total_npu_weights":
			d.Total(profile.Quantity{Key: name + "_bytes", Unit: "B", Name: words(name), Group: "Memory"}, v)
		case name == "cycles_total":
			d.Total(profile.Quantity{Key: "accelerator_cycles"}, v)
		case strings.HasPrefix(name, "cycles_"):
			n.cycles(name, v)
		default:
			d.Total(profile.Quantity{Key: "summary_" + runlog.Key(name), Name: words(name)}, v)
		}
	}
}

// cycles is a figure of the summary that layers have too.
func (n *network) cycles(name string, v float64) {
	for _, c := range []struct {
		name string
		q    profile.Quantity
	}{{"cycles_npu", npuCycles}, {"cycles_sram_access", sramCycles}, {"cycles_dram_access", dramCycles}, {"cycles_on_chip_flash_access", onCycles}, {"cycles_off_chip_flash_access", offCycles}} {
		if c.name == name {
			n.d.Total(c.q, v)
			return
		}
	}
	n.d.Total(profile.Quantity{Key: "summary_" + runlog.Key(name), Unit: "cycles", Name: words(name), Group: "Target"}, v)
}

func words(key string) string {
	s := strings.ReplaceAll(key, "_", " ")
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// bandwidth makes bytes a second of what the column calls GB/s: compilers print units of 2^30 or
// of 10^9 bytes. The bytes of a cycle, which are an integer or a simple part of one, tell
// which.
func bandwidth(v, clock float64) float64 {
	if clock <= 0 {
		return v * 1e9
	}
	simple := func(bytes float64) bool {
		x := bytes / clock * 64
		return math.Abs(x-math.Round(x)) <= 1e-6*math.Max(1, x)
	}
	if !simple(v*1e9) && simple(v*(1<<30)) {
		return v * (1 << 30)
	}
	return v * 1e9
}

// arena makes bytes of the size of the arena's cache: newer compilers print KiB with a
// fraction, older ones whole bytes.
func arena(v float64, text string) float64 {
	if !strings.Contains(text, ".") && v >= 32768 {
		return v
	}
	return v * 1024
}

var printedRow = regexp.MustCompile(`^([A-Z][\w /\-]*\S)\s{2,}(\S.*)$|^(CPU|NPU) operators = (\d+)`)

var printedNumber = regexp.MustCompile(`^([\d.]+) ?([^\s,]+)?(?:, ([\d.]+) inferences/s)?`)

// scales are the units of the printed summary.
var scales = map[string]struct {
	by   float64
	unit string
}{
	"MHz": {1e6, "Hz"}, "GB/s": {1e9, "B/s"}, "KiB": {1024, "B"}, "MB/batch": {1e6, "B"}, "MB/inference": {1e6, "B"}, "MACs/batch": {1, ""},
	"Tops/s": {1e12, "/s"}, "cycles/batch": {1, "cycles"}, "ms": {1e-3, "s"}, "bytes": {1, "B"},
}

// readPrinted reads summaries as they are printed. Documents repeat parts of one: what stands
// a second time says nothing new.
func readPrinted(f *record.File, in *record.Input, order *[]*network) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var n *network
	seen := map[string]bool{}
	for s.Scan() {
		l := strings.TrimSpace(textscan.Strip(s.Text()))
		if name, ok := strings.CutPrefix(l, "Network summary for "); ok {
			if len(*order) > maxSummaries {
				break
			}
			n = &network{d: draft.New("vela", strings.TrimSpace(name), "Ethos-U estimate")}
			*order = append(*order, n)
			clear(seen)
			continue
		}
		m := printedRow.FindStringSubmatch(l)
		if n == nil || m == nil {
			continue
		}
		key, text := m[1], m[2]
		if m[3] != "" {
			key, text = m[3]+" operators", m[4]
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		n.printed(strings.Join(strings.Fields(key), " "), text)
	}
	if s.Err() != nil {
		return draft.At(f, s.Number(), s.Err())
	}
	return nil
}

// printed takes a row of a printed summary.
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
	switch {
	case !ok:
	case key == "Accelerator clock" && known:
		d.P.Target.ClockHz = new(v * u.by)
	case key == "Batch Inference time" && known:
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Median: new(v * u.by), Method: "the compiler's estimate, rounded as printed"})
		if r, ok := textscan.Number(m[3]); ok {
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, r)
		}
	case key == "Total cycles":
		d.Total(profile.Quantity{Key: "accelerator_cycles"}, v)
	case key == "NPU cycles":
		d.Total(npuCycles, v)
	case key == "SRAM Access cycles":
		d.Total(sramCycles, v)
	case key == "DRAM Access cycles":
		d.Total(dramCycles, v)
	case key == "On-chip Flash Access cycles":
		d.Total(onCycles, v)
	case key == "Off-chip Flash Access cycles":
		d.Total(offCycles, v)
	case key == "Neural network macs" && v == math.Trunc(v) && v < 1<<53:
		d.P.Totals.MACs = new(int64(v))
	case key == "Network Tops/s":
		d.Total(profile.Quantity{Key: "network_ops_per_s", Unit: "/s", Name: "Operations per second by the summary", Group: "Rates", Better: 1}, v*1e12)
	default:
		q := profile.Quantity{Key: runlog.Key(key), Name: key, Unit: u.unit}
		by := 1.0
		if known {
			by = u.by
		}
		switch u.unit {
		case "B":
			q.Key += "_bytes"
		case "B/s":
			q.Key += "_bytes_per_s"
		case "/s":
			q.Key += "_per_s"
		}
		d.Total(q, v*by)
	}
}
