// Package vela reads what the Vela compiler for Arm Ethos-U estimates: the summary of a
// network and the table of its layers as CSV, and the summary as it is printed.
//
// Source of the formats: ethosu/vela (stats_writer.py, npu_performance.py) of the
// ethos-u-vela project and its PERFORMANCE.md.
package vela

import (
	"context"
	"errors"
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
		Name:  "vela",
		Title: "Vela (Arm Ethos-U) performance estimate",
		Files: "<network>_summary_<system>.csv, <network>_per-layer.csv (--verbose-performance), the printed network summary; both files of a network become one run",
		Gives: []string{"latency_s", "accelerator_cycles", "macs", "memory", "options"},
		Match: match,
		Read:  read,
	}
}

type kind int

const (
	none kind = iota
	summaryFile
	layerFile
	printed
)

func kindOf(f *record.File) kind {
	if !textscan.Any(f.Head, "accelerator_configuration", "Op Cycles", "Network summary for ") {
		return none
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		l = strings.TrimSpace(textscan.Strip(l))
		switch {
		case strings.Contains(l, "accelerator_configuration,") && strings.Contains(l, "inference"):
			return summaryFile
		case isLayerHead(l):
			return layerFile
		case strings.HasPrefix(l, "Network summary for "):
			return printed
		}
	}
	return none
}

// isLayerHead recognises the header of the table of layers; names of its first columns
// depend on the version.
func isLayerHead(l string) bool {
	return strings.Contains(l, ",Op Cycles,") && strings.Contains(l, "Network%") && strings.Contains(l, "MAC Count")
}

func match(f *record.File) record.Sure {
	if kindOf(f) != none {
		return record.Certain
	}
	return record.No
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

// network is what the files of one network hold.
type network struct {
	d     *draft.Draft
	clock float64
	n     int // summaries
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	var order []*network
	by := map[string]*network{}
	get := func(name string) *network {
		if by[name] == nil {
			by[name] = &network{d: draft.New("vela", name, "Ethos-U estimate"), clock: in.Clocks[""]}
			order = append(order, by[name])
		}
		return by[name]
	}
	var errs []error
	fail := func(f *record.File, err error) {
		if err != nil {
			errs = append(errs, record.Fault(f, err))
		}
	}
	// Summaries come first: the table of layers needs their clock.
	for _, f := range in.Files {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(append(errs, err)...)
		}
		switch kindOf(f) {
		case summaryFile:
			fail(f, readSummary(f, in, get, &order))
		case printed:
			fail(f, readPrinted(f, in, &order))
		}
	}
	for _, f := range in.Files {
		if kindOf(f) == layerFile {
			n := get(stem(f))
			fail(f, readLayers(f, in, n))
		}
	}
	var runs []*runlog.Run
	for _, n := range order {
		if !n.d.Empty() {
			n.d.P.Target.Accelerator = "Ethos-U"
			runs = append(runs, n.d.Run())
		}
	}
	if len(runs) == 0 && len(errs) == 0 && len(in.Files) > 0 {
		errs = append(errs, record.Fault(in.Files[0], draft.ErrNothing))
	}
	return runs, errors.Join(errs...)
}

var (
	npuCycles   = profile.Quantity{Key: "npu_cycles", Unit: "cycles", Head: "NPU", Name: "NPU cycles", Group: "Target", Adds: true, Better: -1, Doc: "Cycles that the compute units need, by the compiler's estimate."}
	sramCycles  = profile.Quantity{Key: "sram_access_cycles", Unit: "cycles", Head: "SRAM", Name: "SRAM access cycles", Group: "Target", Adds: true, Better: -1}
	dramCycles  = profile.Quantity{Key: "dram_access_cycles", Unit: "cycles", Head: "DRAM", Name: "DRAM access cycles", Group: "Target", Adds: true, Better: -1}
	onCycles    = profile.Quantity{Key: "on_chip_flash_access_cycles", Unit: "cycles", Head: "on flash", Name: "On-chip flash access cycles", Group: "Target", Adds: true, Better: -1}
	offCycles   = profile.Quantity{Key: "off_chip_flash_access_cycles", Unit: "cycles", Head: "off flash", Name: "Off-chip flash access cycles", Group: "Target", Adds: true, Better: -1}
	sramUsage   = profile.Quantity{Key: "sram_usage_bytes", Unit: "B", Head: "SRAM", Name: "SRAM usage", Group: "Memory", Better: -1, Doc: "SRAM in use while the operator runs, by the compiler's plan."}
	sramPeak    = profile.Quantity{Key: "sram_usage_of_peak", Unit: "1", Head: "of peak", Name: "SRAM usage of the peak", Group: "Memory"}
	cycleShare  = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share of cycles as recorded", Group: "Record"}
	macShare    = profile.Quantity{Key: "recorded_mac_share", Unit: "1", Head: "MAC share", Name: "Share of MACs as recorded", Group: "Record"}
	utilisation = profile.Quantity{Key: "mac_utilisation", Unit: "1", Head: "util.", Name: "Utilisation of the MAC units", Group: "Rates", Better: 1}
)

// readLayers reads the table of layers. Its header is repeated for each part of the network
// that runs on the NPU.
func readLayers(f *record.File, in *record.Input, n *network) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var cols textscan.Columns
	part := int64(0)
	parts := func() string { return "NPU part " + string(rune('0'+min(part, 9))) }
	for s.Scan() {
		if isLayerHead(s.Text()) {
			cols = textscan.NewColumns(textscan.Fields(s.Text(), ','))
			part++
			continue
		}
		row := textscan.Fields(s.Text(), ',')
		if cols.Names() == nil || len(row) < 5 {
			if strings.TrimSpace(s.Text()) != "" {
				n.d.Dropped.Add("rows with too few fields", 1)
			}
			continue
		}
		// The name is last and not quoted.
		if extra := len(row) - len(cols.Names()); extra > 0 {
			last := len(cols.Names()) - 1
			row = append(row[:last:last], strings.Join(row[last:], ","))
		}
		n.row(row, cols, parts())
	}
	switch {
	case n.d.Len() > 0 && n.clock == 0:
		n.d.Found("vela.clock", profile.Warning, "The table has cycles and not the clock: read it together with the network's summary, or give the clock with --clock, for times.")
	case n.d.Len() > 0:
		n.d.P.Target.ClockHz = &n.clock
	}
	if part > 1 {
		n.d.Found("vela.parts", profile.Info, "%d parts of the network run on the NPU; operators between them run on the processor and are not in the table.", part)
	}
	if s.Err() != nil {
		return draft.At(f, s.Number(), s.Err())
	}
	return nil
}

// row makes a layer.
func (n *network) row(row []string, cols textscan.Columns, part string) {
	d := n.d
	get := func(at int) (float64, bool) { return textscan.Number(textscan.Cell(row, at)) }
	op := textscan.Cell(row, 0)
	name := textscan.Cell(row, cols.At("Name"))
	l := profile.Layer{Op: op, Name: name, Scope: part, Placement: &profile.Placement{On: "npu"}}
	h := runlog.Hint{}
	if name != "" {
		h.Outputs = []string{name}
	}
	i := d.Add(l, h)
	if i < 0 {
		return
	}
	if v := textscan.Cell(row, 1); v != "" {
		d.Option(i, "nng_operator", v)
	}
	y := d.Layer(i)
	first := cols.At("Network%")
	for _, c := range []struct {
		at    int
		q     profile.Quantity
		scale float64
	}{
		{cols.At("SRAM Usage"), sramUsage, 1},
		{cols.At("Peak%"), sramPeak, 0.01},
		{cols.At("Op Cycles"), profile.Quantity{Key: "accelerator_cycles"}, 1},
		{first, cycleShare, 0.01},
		{cols.At("NPU"), npuCycles, 1},
		{cols.At("SRAM AC"), sramCycles, 1},
		{cols.At("DRAM AC"), dramCycles, 1},
		{cols.At("OnFlash AC"), onCycles, 1},
		{cols.At("OffFlash AC"), offCycles, 1},
		{cols.After(first, "Network%"), macShare, 0.01},
		{cols.At("Util%"), utilisation, 0.01},
	} {
		if v, ok := get(c.at); ok && c.at >= 0 {
			d.Set(i, c.q, v*c.scale)
		}
	}
	if v, ok := get(cols.At("MAC Count")); ok && v >= 0 && v < 1<<53 {
		y.MACs = new(int64(v))
	}
	if v, ok := get(cols.At("Op Cycles")); ok && v >= 0 && n.clock > 0 {
		y.Latency = draft.Metric(&profile.Metric{Median: new(v / n.clock), Method: "the compiler's cycles divided by the clock"})
	}
	d.Option(i, "bound", bound(row, cols))
	for k, name := range cols.Names() {
		if !knownColumns[name] && k > 1 {
			if v, ok := get(k); ok {
				d.Set(i, profile.Quantity{Name: name}, v)
			} else {
				d.Option(i, name, textscan.Cell(row, k))
			}
		}
	}
}

var knownColumns = map[string]bool{
	"SRAM Usage": true, "Peak%": true, "Op Cycles": true, "Network%": true, "NPU": true, "SRAM AC": true, "DRAM AC": true, "OnFlash AC": true,
	"OffFlash AC": true, "MAC Count": true, "Util%": true, "Name": true, "": true,
}

// bound is the column that says why an operator takes its cycles: the largest one.
func bound(row []string, cols textscan.Columns) string {
	best, most := "", 0.0
	for _, c := range []struct{ column, word string }{
		{"NPU", "npu"}, {"SRAM AC", "sram"}, {"DRAM AC", "dram"}, {"OnFlash AC", "on-chip flash"}, {"OffFlash AC", "off-chip flash"},
	} {
		if v, ok := textscan.Number(textscan.Cell(row, cols.At(c.column))); ok && v > most {
			best, most = c.word, v
		}
	}
	return best
}
