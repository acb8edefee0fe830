// Package vela reads the estimates of the Vela compiler for Arm Ethos-U: the summary of a
// network and the table of its layers as CSV, and the summary as it is printed.
//
// Source of the formats: ethosu/vela (stats_writer.py, npu_performance.py) of the
// ethos-u-vela project and its PERFORMANCE.md.
package vela

import (
	"context"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:    "vela",
		Title:   "Vela (Arm Ethos-U) performance estimate",
		Files:   "<network>_summary_<system>.csv, <network>_per-layer.csv (--verbose-performance), the printed network summary; both files of a network become one run",
		Gives:   []string{"latency_s", "accelerator_cycles", "macs", "memory", "options"},
		Clocked: true,
		Match:   func(f *record.File) record.Sure { return record.Certain.If(kindOf(f) != none) },
		Read:    read,
	}
}

type kind int

const (
	none kind = iota
	summaryFile
	printed
	layerFile
)

func kindOf(f *record.File) kind {
	return record.FindLine(f, func(l string) kind {
		l = textscan.Strip(l)
		switch {
		case strings.Contains(l, "accelerator_configuration,") && strings.Contains(l, "inference"):
			return summaryFile
		case isLayerHead(l):
			return layerFile
		case strings.HasPrefix(strings.TrimSpace(l), "Network summary for "):
			return printed
		}
		return none
	}, "accelerator_configuration", "Op Cycles", "Network summary for ")
}

// isLayerHead recognises the header of the table of layers. The names of its first columns depend
// on the version.
func isLayerHead(l string) bool {
	return strings.Contains(l, ",Op Cycles,") && strings.Contains(l, "Network%") && strings.Contains(l, "MAC Count")
}

// stem is the network's name in that of a file.
func stem(f *record.File) string {
	s := draft.Stem(f)
	if i := strings.Index(s, "_summary"); i > 0 {
		return s[:i]
	}
	for _, end := range []string{"_per-layer", "_per_layer", "-per-layer"} {
		s = strings.TrimSuffix(s, end)
	}
	return s
}

// network is one estimate of a network.
type network struct {
	d     *draft.Draft
	clock float64
	n     int // summaries
}

// networks are the estimates in files with one name. The first one has the table of layers.
type networks struct{ list []*network }

func (ns *networks) add(name string, clock float64) *network {
	n := &network{d: draft.New("vela", name, "Ethos-U estimate"), clock: clock}
	n.d.P.Target.Accelerator = "Ethos-U"
	ns.list = append(ns.list, n)
	return n
}

// layersOf returns the estimate that takes the next table of layers: the first one without layers.
func (ns *networks) layersOf(f *record.File) *network {
	for _, n := range ns.list {
		if n.d.Len() == 0 {
			return n
		}
	}
	return ns.add(stem(f), ns.list[0].clock)
}

func (ns *networks) read(f *record.File) error {
	switch kindOf(f) {
	case summaryFile:
		return ns.readSummary(f)
	case printed:
		return ns.readPrinted(f)
	}
	return ns.readLayers(f)
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	// Summaries come first: the table of layers needs their clock.
	var files, layers []*record.File
	for _, f := range in.Files {
		if kindOf(f) == layerFile {
			layers = append(layers, f)
		} else {
			files = append(files, f)
		}
	}
	groups, errs := record.Groups(ctx, append(files, layers...), stem, func(f *record.File) *networks {
		ns := &networks{}
		ns.add(stem(f), in.Clocks[""])
		return ns
	}, (*networks).read)
	var drafts []*draft.Draft
	for _, ns := range groups {
		var own []*draft.Draft
		for _, n := range ns.list {
			if !n.d.Empty() {
				own = append(own, n.d)
			}
		}
		draft.Apart(own, false)
		drafts = append(drafts, own...)
	}
	return draft.RunsOf(in.Files, drafts, errs)
}

var (
	accCycles   = profile.Quantity{Key: "accelerator_cycles"}
	npuCycles   = cycles("npu_cycles", "NPU", "NPU cycles", "Cycles that the compute units need, by the compiler's estimate.")
	sramCycles  = cycles("sram_access_cycles", "SRAM", "SRAM access cycles", "")
	dramCycles  = cycles("dram_access_cycles", "DRAM", "DRAM access cycles", "")
	onCycles    = cycles("on_chip_flash_access_cycles", "on flash", "On-chip flash access cycles", "")
	offCycles   = cycles("off_chip_flash_access_cycles", "off flash", "Off-chip flash access cycles", "")
	sramUsage   = profile.Quantity{Key: "sram_usage_bytes", Unit: "B", Head: "SRAM", Name: "SRAM usage", Group: "Memory", Better: -1, Doc: "SRAM in use while the operator runs, by the compiler's plan."}
	sramPeak    = profile.Quantity{Key: "sram_usage_of_peak", Unit: "1", Head: "of peak", Name: "SRAM usage of the peak", Group: "Memory"}
	cycleShare  = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share of cycles as recorded", Group: "Record"}
	macShare    = profile.Quantity{Key: "recorded_mac_share", Unit: "1", Head: "MAC share", Name: "Share of MACs as recorded", Group: "Record"}
	utilisation = profile.Quantity{Key: "mac_utilisation", Unit: "1", Head: "util.", Name: "Utilisation of the MAC units", Group: "Rates", Better: 1}
)

func cycles(key, head, name, doc string) profile.Quantity {
	return profile.Quantity{Key: key, Unit: "cycles", Head: head, Name: name, Group: "Target", Adds: true, Better: -1, Doc: doc}
}

// readLayers reads the table of layers. Its header is repeated for each part of the network that
// runs on the NPU. The shares of cycles of one network add up to 100 %, so that a part beyond that
// is of another estimate.
func (ns *networks) readLayers(f *record.File) error {
	n := ns.layersOf(f)
	var cols textscan.Columns
	part := int64(0)
	sum := 0.0     // of the shares of cycles in percent
	first := false // the next row is the first of its part
	err := f.Lines(func(l string) {
		row := textscan.Fields(l, ',')
		last := len(cols.Names()) - 1
		switch {
		case isLayerHead(l):
			cols = textscan.NewColumns(row)
			first = true
		case last < 0 || len(row) < 5:
			if strings.TrimSpace(l) != "" {
				n.d.Dropped.Add("rows with too few fields", 1)
			}
		default:
			if len(row) > last+1 { // the name is last and not quoted
				row = append(row[:last:last], strings.Join(row[last:], ","))
			}
			share, _ := cols.Number(row, "Network%")
			if sum += max(0, share); first && sum > 100.5 && len(ns.list) <= maxSummaries {
				n.finish(part)
				n, part, sum = ns.layersOf(f), 0, share
			}
			if first {
				part++
			}
			first = false
			n.row(row, cols, "NPU part "+string(rune('0'+min(part, 9))))
		}
	})
	n.finish(part)
	return err
}

// finish says what the table of layers lacks.
func (n *network) finish(part int64) {
	switch {
	case n.d.Len() > 0 && n.clock == 0:
		n.d.Found("vela.clock", profile.Warning, "The table has cycles and not the clock: read it together with the network's summary, or give the clock with --clock, for times.")
	case n.d.Len() > 0:
		n.d.P.Target.ClockHz = &n.clock
	}
	if part > 1 {
		n.d.Found("vela.parts", profile.Info, "%d parts of the network run on the NPU; operators between them run on the processor and are not in the table.", part)
	}
}

// column is a column of the table of layers.
type column struct {
	name  string
	nth   int // occurrences of the name before it
	q     profile.Quantity
	scale float64
	bound string // the bottleneck of an operator if this is the largest number of cycles
}

var columns = []column{
	{"SRAM Usage", 0, sramUsage, 1, ""},
	{"Peak%", 0, sramPeak, 0.01, ""},
	{"Op Cycles", 0, accCycles, 1, ""},
	{"Network%", 0, cycleShare, 0.01, ""},
	{"NPU", 0, npuCycles, 1, "npu"},
	{"SRAM AC", 0, sramCycles, 1, "sram"},
	{"DRAM AC", 0, dramCycles, 1, "dram"},
	{"OnFlash AC", 0, onCycles, 1, "on-chip flash"},
	{"OffFlash AC", 0, offCycles, 1, "off-chip flash"},
	{"Network%", 1, macShare, 0.01, ""},
	{"Util%", 0, utilisation, 0.01, ""},
}

// row makes a layer.
func (n *network) row(row []string, cols textscan.Columns, part string) {
	d := n.d
	name := cols.Text(row, "Name")
	h := runlog.Hint{}
	if name != "" {
		h.Outputs = []string{name}
	}
	i := d.Add(profile.Layer{Op: textscan.Cell(row, 0), Name: name, Scope: part, Placement: &profile.Placement{On: "npu"}}, h)
	if i < 0 {
		return
	}
	d.Option(i, "nng_operator", textscan.Cell(row, 1))
	known := map[string]bool{"MAC Count": true, "Name": true, "": true}
	bound, most := "", 0.0
	for _, c := range columns {
		known[c.name] = true
		at := cols.At(c.name)
		if c.nth > 0 {
			at = cols.After(at, c.name)
		}
		v, ok := textscan.Number(textscan.Cell(row, at))
		if ok {
			d.Set(i, c.q, v*c.scale)
		}
		if ok && c.bound != "" && v > most {
			bound, most = c.bound, v
		}
	}
	y := d.Layer(i)
	macs, _ := cols.Number(row, "MAC Count")
	for k, name := range cols.Names() {
		// The use of the MAC units is not a number for operators without any.
		if k > 1 && name != "Name" && !(name == "Util%" && macs == 0) && textscan.NotFinite(textscan.Cell(row, k)) {
			d.Dropped.Add(draft.NotFinite, 1)
		}
	}
	if v, ok := cols.Number(row, "MAC Count"); ok && v >= 0 && v < 1<<53 {
		y.MACs = new(int64(v))
	}
	if v, ok := cols.Number(row, "Op Cycles"); ok && v >= 0 && n.clock > 0 {
		y.Latency = draft.Metric(&profile.Metric{Median: new(v / n.clock), Method: "the compiler's cycles divided by the clock"})
	}
	d.Option(i, "bound", bound)
	for k, name := range cols.Names() {
		text := textscan.Cell(row, k)
		if v, ok := textscan.Number(text); known[name] || k < 2 {
			continue
		} else if ok {
			d.Set(i, profile.Quantity{Name: name}, v)
		} else {
			d.Option(i, name, text)
		}
	}
}
