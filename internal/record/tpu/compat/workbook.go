package compat

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// workbook returns PerfAI_output.xlsx: the sheets of the newer converter with figures, headings
// and marks, without its explanations of columns.
func (p *perfAI) workbook() ([]byte, error) {
	var names []string
	var tables []*table
	add := func(name string, t *table) { names, tables = append(names, name), append(tables, t) }
	if len(p.in.Places) > 0 {
		layers := p.modelLayers()
		add("Summary", p.summarySheet(layers))
		add("Layer by Layer Info", p.layerSheet(layers))
	}
	add("Engine Summary", p.engineSheet())
	for k, c := range p.cores {
		n := strconv.Itoa(k)
		if len(c.tiu) > 0 {
			add("TIU_"+n, p.tiuSheet(k))
		}
		if len(c.gdma) > 0 {
			add("GDMA_"+n, p.copySheet(c.gdma))
		}
		if len(c.sdma) > 0 {
			add("SDMA_"+n, p.copySheet(c.sdma))
		}
	}
	var out bytes.Buffer
	b := workbook.NewWriter(&out, names...)
	for _, t := range tables {
		t.write(b.Sheet())
	}
	err := b.Close(workbook.About{})
	return out.Bytes(), err
}

// table contains the cells of a sheet by rows. nil cells are empty.
type table struct {
	rows   [][]any
	merges []string
}

// set writes values into a row (from 1), beginning at a column (from 1).
func (t *table) set(row, column int, values ...any) {
	for len(t.rows) < row {
		t.rows = append(t.rows, nil)
	}
	r := t.rows[row-1]
	for len(r) < column-1+len(values) {
		r = append(r, nil)
	}
	copy(r[column-1:], values)
	t.rows[row-1] = r
}

// write fills a sheet. It drops rows beyond the format's limit.
func (t *table) write(s *workbook.Sheet) {
	var cells []workbook.Cell
	for i, r := range t.rows[:min(len(t.rows), workbook.MaxRows)] {
		if len(r) == 0 {
			continue
		}
		cells = cells[:0]
		for _, v := range r {
			cells = append(cells, workbook.Cell{Value: v})
		}
		s.Row(i+1, 0, cells)
	}
	for _, m := range t.merges {
		s.Merge(m)
	}
}

// cell converts a text to a number if it is one. Empty texts make empty cells.
func cell(s string) any {
	if s == "" {
		return nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, ".") {
		return f
	}
	return s
}

// hexCell formats a number in base 16. Other texts make empty cells.
func hexCell(s string) any {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return nil
	}
	return "0x" + strconv.FormatUint(n, 16)
}

// label returns the caption of a row, nil for BM1690, whose workbook has no captions.
func (p *perfAI) label(s string) any {
	if p.in.Chip == command.BM1690 {
		return nil
	}
	return s
}

type workSum struct {
	n                    int
	alg, arch, algCycles uint64
	cycles               int64
}

func (s *workSum) add(x *instr) {
	s.n++
	s.alg += x.work.Alg
	s.arch += x.work.Arch
	s.algCycles += x.work.Cycles
	s.cycles += x.cycles
}

type kindSum struct {
	name string
	workSum
}

func (p *perfAI) tiuSheet(k int) *table {
	list := p.cores[k].tiu
	all := kindSum{name: "Overall"}
	var kinds []*kindSum
	at := map[string]*kindSum{}
	wait := int64(0)
	for _, x := range list {
		s := at[x.kind]
		if s == nil {
			s = &kindSum{name: x.kind}
			at[x.kind] = s
			kinds = append(kinds, s)
		}
		s.add(x)
		all.add(x)
		if x.name == "system.wait_msg" {
			wait += x.cycles
		}
	}
	all.cycles -= wait
	t := &table{}
	c := p.in.Chip
	t.set(1, 1, p.label("Performance"), "totalTiuCycle", "totalAlgCycle", "algTotalOps", "totalUArchOps", "uArchURate", "totalTiuPower(W)", "waitMsgTotalTime")
	t.set(1, 15, p.label("Detail Spec"), "Platform", "CHIP ARCH", "Core Num", "NPU Num", "Cube IC Align(8bits)", "Cube OHOW Align", "Vector OHOW Align(8bits)",
		"TIU Frequency(MHz)", "DMA Frequency(MHz)", "DDR Frequency(MHz)", "TPU Lmem Size(Bytes)")
	t.set(2, 1, p.label("Summary"), all.cycles, all.algCycles, all.alg, all.arch, share2(all.alg, all.arch), 0, wait)
	t.set(2, 16, "ASIC", c.Report, itoa(p.fullCores()), itoa(c.Lanes), itoa(c.Cube8), itoa(c.CubeOut), itoa(c.EU8), itoa(p.in.TIUMHz), itoa(p.in.DMAMHz),
		itoa(c.DDRRate), itoa(c.Lanes*c.LaneBytes))
	t.set(6, 1, p.label("Statistics"), "Function Name", "Instr Num", "Alg Ops", "Alg Ops Ratio", "Alg Cycle", "Alg Cycle Ratio", "uArch Ops", "uArch URate",
		"uArch Ops Ratio", "Asic Cycle", "Asic Cycle Ratio", "Sim Power", "Sim Power Ratio")
	row := 7
	power := "0.00%"
	for _, s := range append(kinds, &all) {
		if s == &all {
			power = "100.00%"
		}
		t.set(row, 2, s.name, s.n, s.alg, share2(s.alg, all.alg), s.algCycles, share2(s.algCycles, all.algCycles), s.arch,
			share2(s.alg, s.arch), share2(s.arch, all.arch), s.cycles, share2(uint64(s.cycles), uint64(all.cycles)), 0, power)
		row++
	}
	t.set(row, 16, "Urate<75%")
	t.set(row+1, 13, "AvgCycle<200", nil, nil, "Urate<50%", "Ratio>0", "Ratio>1%", "IsFP32")
	registers := p.registers(k)
	head := heading(registers, columns["figures of copies"][:2])
	t.set(row+2, 1, anys(head)...)
	var cells []string
	for i, x := range list {
		cells = p.tableRow(cells[:0], x, registers)
		line := make([]any, len(head))
		for j, name := range head {
			line[j] = cell(cells[j])
			if strings.HasPrefix(name, "des_") && strings.HasSuffix(name, "_addr") {
				line[j] = hexCell(cells[j])
			}
		}
		t.set(row+3+i, 1, line...)
	}
	return t
}

func (p *perfAI) copySheet(list []*instr) *table {
	cycles, ddr, l2 := copySum(list)
	stall, wait := uint64(0), int64(0)
	for _, x := range list {
		stall += x.copy.stall
		if x.name == "sys_wait" {
			wait += x.cycles
		}
	}
	t := &table{}
	mhz := p.in.DMAMHz
	t.set(1, 1, p.label("Performance"), nil, "totalDmaCycle", "workingCycle", "totalStallCycle", "stallCycleRatio", "totalDdrDataSize(B)", "totalL2DataSize(B)",
		"ddrAvgBandwidth(GB/s)", "l2AvgBandwidth(GB/s)", "avgDdrBurstLength", "waitMsgTotalTime")
	t.set(2, 1, p.label("Summary"), nil, cycles, cycles, stall, share2(stall, uint64(cycles)), ddr.bytes, l2.bytes, cell(ddr.cell(mhz)),
		cell(l2.cell(mhz)), 0, wait)
	t.set(4, 14, "DDR_BW<75%", "L2M_BW<75%")
	t.set(5, 13, "Engine Conflict", "DDR_BW<50%", "L2M_BW<50%", nil, fmt.Sprintf("<%d.0(DDR)|<%d(L2)", p.in.Chip.MaxBurst, p.in.Chip.L2Burst), "isFP32")
	fields := columns["fields of copies"]
	t.set(6, 1, append(append(anys(columns["copy sheet"]), anys(fields)...), "Msg Id", `Sd\Wt Count`)...)
	for i, x := range list {
		layer, name := x.owner()
		ddr, l2 := x.copy.rates()
		if p.in.Chip == command.BM1690 {
			l2 = digits6(l2)
		}
		line := []any{
			x.engine, x.core, x.global, x.id, cell(layer), name, x.kind, x.name, x.copy.size, x.start, x.end, x.cycles, x.copy.stall, ddr, l2,
			x.direction(), 0, x.dataType(), 0, 0,
		}
		d := p.dmaDict(x)
		for _, key := range fields {
			v := d.get(key)
			switch {
			case key == "mask_data_format":
				line = append(line, cell(strings.TrimSpace(v)))
			case strings.HasSuffix(key, "_addr") || strings.HasPrefix(key, "mask_start") || strings.HasPrefix(key, "localmem_mask"):
				line = append(line, hexCell(v))
			default:
				line = append(line, cell(v))
			}
		}
		t.set(7+i, 1, append(line, " ", " ")...)
	}
	return t
}

// engineSheet returns the sheet with the sums of each core and of all cores.
func (p *perfAI) engineSheet() *table {
	cores, all := p.summary()
	total := p.total(false)
	mhz := p.in.DMAMHz
	t := &table{merges: []string{"A1:B1"}}
	t.set(1, 1, "Platform: "+p.in.Chip.Report)
	for column, name := range map[int]string{8: "TIU", 14: "GDMA", 19: "SDMA", 24: "CDMA"} {
		t.set(4, column, name)
	}
	t.set(5, 1, anys(columns["engine sheet"])...)
	row := 6
	for k, q := range cores {
		// The converter uses 1000 MHz for a core's copies here.
		dma := float64(q.gdma) / 1000
		t.set(row, 1, strconv.Itoa(k), percent(q.tiuUs/total, 2), percent((q.tiuUs+dma)/total, 2), percent(overlap(q.tiuUs, dma, total), 2), fixed(total, 3),
			itoa(q.tiu), utoa(q.algCycles), utoa(q.alg), utoa(q.arch), share2(q.alg, q.arch), itoa(q.gdma), utoa(q.ddr.bytes), utoa(q.l2.bytes),
			q.ddr.cell(mhz), q.l2.cell(mhz), "0.0", itoa(q.sdma), utoa(q.sddr.bytes), q.sddr.cell(mhz), "0", "0", "0", "0", "0", "0", "0")
		row++
	}
	mib := func(bytes uint64) string { return fixed(float64(bytes)/(1<<20), 2) + "MiB" }
	us := func(v float64) string { return fixed(v, 3) + "(us)" }
	t.set(row, 1, "Overall", percent(all.tiuUs/total, 2), percent((all.tiuUs+all.dmaUs)/total, 2), percent(overlap(all.tiuUs, all.dmaUs, total), 2), fixed(total, 3),
		us(all.tiuUs), us(float64(all.algCycles)/float64(p.in.TIUMHz)), utoa(all.alg), utoa(all.arch), share2(all.alg, all.arch), us(all.dmaUs),
		mib(all.ddr.bytes), mib(all.l2.bytes), all.ddr.cell(mhz), all.l2.cell(mhz), "0.0", us(all.sdmaUs), mib(all.sddr.bytes),
		all.sddr.cell(mhz), "0", us(0), mib(0), mib(0), "0", "0", "0")
	c := p.in.Chip
	peak, l2, burst := "BW<"+repr(c.DDRPeak/1e9)+"*", "BW<"+repr(c.L2Peak/1e9)+"*", fmt.Sprintf("Length<%d.0", c.MaxBurst)
	t.set(row+1, 2, "Ratio<30%", fmt.Sprintf("Parallelism<%d%%", 100*p.fullCores()+5), nil, nil, nil, nil, nil, nil, "Urate<75%", nil, nil, nil,
		peak+"75%", l2+"75%", burst, nil, nil, peak+"75%", burst, nil, nil, nil, peak+"75%", l2+"75%", burst)
	t.set(row+2, 2, "Ratio<15%", nil, nil, nil, nil, nil, nil, nil, "Urate<50%", nil, nil, nil, peak+"50%", l2+"50%", nil, nil, nil,
		peak+"50%", nil, nil, nil, nil, peak+"50%", l2+"50%")
	return t
}

// overlap returns the time in which both engines worked as a share of the shorter time of both.
func overlap(tiu, dma, total float64) float64 {
	if least := min(tiu, dma); least > 0 {
		return (tiu + dma - total) / least
	}
	return 0
}
