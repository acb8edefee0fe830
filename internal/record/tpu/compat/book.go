package compat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// book is PerfAI_output.xlsx: the sheets of the document that the newer converter makes.
// Its explanations of columns are left out; figures, headings and marks are there.
func (p *perfAI) book() ([]byte, error) {
	f := excelize.NewFile()
	defer func() { _ = f.Close() }() // nothing of it is on disk that matters
	w := &sheets{f: f}
	if len(p.in.Places) > 0 {
		layers := p.modelLayers()
		w.add("Summary", p.overviewSheet(layers))
		w.add("Layer by Layer Info", p.layerSheet(layers))
	}
	w.add("Engine Summary", p.engineSheet())
	for k := range p.cores {
		n := strconv.Itoa(k)
		if len(p.cores[k].tiu) > 0 {
			w.add("TIU_"+n, p.tiuSheet(k))
		}
		if len(p.cores[k].gdma) > 0 {
			w.add("GDMA_"+n, p.copySheet(k, p.cores[k].gdma))
		}
		if len(p.cores[k].sdma) > 0 {
			w.add("SDMA_"+n, p.copySheet(k, p.cores[k].sdma))
		}
	}
	if w.err == nil {
		w.err = f.DeleteSheet("Sheet1")
	}
	if w.err != nil {
		return nil, w.err
	}
	out, err := f.WriteToBuffer()
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// sheets writes tables to a workbook and keeps the first error.
type sheets struct {
	f   *excelize.File
	err error
}

// table is the cells of a sheet by rows; nil cells are empty.
type table struct {
	rows   [][]any
	merges [][2]string
}

// set puts values into a row (from 1) from a column (from 1) on.
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

func (w *sheets) add(name string, t *table) {
	if w.err != nil {
		return
	}
	if _, w.err = w.f.NewSheet(name); w.err != nil {
		return
	}
	s, err := w.f.NewStreamWriter(name)
	if err != nil {
		w.err = err
		return
	}
	for i, r := range t.rows {
		if i == excelize.TotalRows {
			break // no sheet has more
		}
		if len(r) == 0 {
			continue
		}
		if w.err = s.SetRow("A"+strconv.Itoa(i+1), r); w.err != nil {
			return
		}
	}
	for _, m := range t.merges {
		if w.err = s.MergeCell(m[0], m[1]); w.err != nil {
			return
		}
	}
	w.err = s.Flush()
}

// number2 is a number where a text is one, else the text; empty texts are no cell.
func number2(s string) any {
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

func hex(s string) any {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return nil
	}
	return "0x" + strconv.FormatUint(n, 16)
}

// kindSum are the sums of one function type of tensor commands.
type kindSum struct {
	name      string
	n         int
	alg, arch uint64
	algCycles uint64
	cycles    int64
}

// tiuSheet has the tensor commands of a core.
func (p *perfAI) tiuSheet(k int) *table {
	list := p.cores[k].tiu
	all := kindSum{name: "Overall"}
	var kinds []*kindSum
	at := map[string]*kindSum{}
	wait := int64(0)
	for i := range list {
		x := &list[i]
		s := at[x.kind]
		if s == nil {
			s = &kindSum{name: x.kind}
			at[x.kind] = s
			kinds = append(kinds, s)
		}
		for _, q := range [...]*kindSum{s, &all} {
			q.n++
			q.alg += x.work.Alg
			q.arch += x.work.Arch
			q.algCycles += x.work.Cycles
			q.cycles += x.cycles
		}
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
	t.set(2, 1, p.label("Summary"), all.cycles, all.algCycles, all.alg, all.arch, percent(ratio(all.alg, all.arch), 2), 0, wait)
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
	head := make([]any, 0, len(worldHead)+len(registers)+2)
	for _, h := range worldHead {
		head = append(head, h)
	}
	for _, r := range registers {
		head = append(head, "des_"+r)
	}
	t.set(row+2, 1, append(head, "Msg Id", `Sd\Wt Count`)...)
	t.merges = [][2]string{}
	var cells []string
	for i := range list {
		cells = p.worldRow(cells[:0], &list[i], registers)
		line := make([]any, 0, len(head)+2)
		for j, v := range cells[:len(worldHead)+len(registers)+2] {
			if r := j - len(worldHead); r >= 0 && r < len(registers) && strings.HasSuffix(registers[r], "_addr") {
				line = append(line, hex(v))
				continue
			}
			line = append(line, number2(v))
		}
		t.set(row+3+i, 1, line...)
	}
	return t
}

func share2(a, b uint64) string {
	if b == 0 {
		return "0.00%"
	}
	return percent(ratio(a, b), 2)
}

// copyHead are the columns of copies.
var copyHead = []string{
	"Engine Id", "Core Id", "Global Idx", "Cmd Id", "Layer Id", "Layer Name", "Function Type", "Function Name", "DMA data size(B)", "Start Cycle",
	"End Cycle", "Asic Cycle", "Stall Cycle", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)", "Direction", "AvgBurstLength", "Data Type",
	"Non32ByteRatio", "MaskWriteRatio",
}

// copySheet has the copies of an engine.
func (p *perfAI) copySheet(k int, list []instr) *table {
	var ddr, l2 flow
	cycles, _ := copySum(list, &ddr, &l2)
	stall, wait := uint64(0), int64(0)
	for i := range list {
		stall += list[i].copy.stall
		if list[i].name == "sys_wait" {
			wait += list[i].cycles
		}
	}
	t := &table{}
	t.set(1, 1, p.label("Performance"), nil, "totalDmaCycle", "workingCycle", "totalStallCycle", "stallCycleRatio", "totalDdrDataSize(B)", "totalL2DataSize(B)",
		"ddrAvgBandwidth(GB/s)", "l2AvgBandwidth(GB/s)", "avgDdrBurstLength", "waitMsgTotalTime")
	t.set(2, 1, p.label("Summary"), nil, cycles, cycles, stall, share2(stall, uint64(cycles)), ddr.bytes, l2.bytes, number2(ddr.text(p.in.DMAMHz)),
		number2(l2.text(p.in.DMAMHz)), 0, wait)
	t.set(4, 14, "DDR_BW<75%", "L2M_BW<75%")
	t.set(5, 13, "Engine Conflict", "DDR_BW<50%", "L2M_BW<50%", nil, fmt.Sprintf("<%d.0(DDR)|<%d(L2)", p.in.Chip.MaxBurst, p.in.Chip.L2Burst), "isFP32")
	tail := worldTail[10:]
	head := make([]any, 0, len(copyHead)+len(tail)+2)
	for _, h := range append(append(append([]string(nil), copyHead...), tail...), "Msg Id", `Sd\Wt Count`) {
		head = append(head, h)
	}
	t.set(6, 1, head...)
	for i := range list {
		x := &list[i]
		layer, name := "-", "-"
		if x.layer != nil {
			layer, name = itoa(x.layer.Ordinal), x.layer.Op
		}
		bw, l2 := x.copy.bandwidth, 0.0
		if x.copy.l2 {
			bw, l2 = l2, bw
		}
		line := []any{
			x.engine, x.core, x.global, x.id, number2(layer), name, x.kind, x.name, x.copy.size, x.start, x.end, x.cycles, x.copy.stall, bw, l2,
			x.direction(), 0, x.dataType(), 0, 0,
		}
		if p.in.Chip == command.BM1690 { // with six digits
			line[14], _ = strconv.ParseFloat(strconv.FormatFloat(l2, 'g', 6, 64), 64)
		}
		d := p.dmaDict(x)
		for _, key := range tail {
			v, _ := d.get(key)
			if key == "mask_data_format" {
				v = strings.TrimSpace(v)
			}
			if strings.HasSuffix(key, "_addr") || strings.HasPrefix(key, "mask_start") || strings.HasPrefix(key, "localmem_mask") {
				line = append(line, hex(v))
				continue
			}
			line = append(line, number2(v))
		}
		t.set(7+i, 1, append(line, " ", " ")...)
	}
	return t
}

// text is the rate of a flow as the document has it, 0 for none.
func (f flow) text(mhz int) string {
	if f.cycles == 0 {
		return "0"
	}
	return repr(round(ratio(f.bytes, f.cycles)*float64(mhz)/1000, 2))
}

// label is the caption of a row; the document of BM1690 has none.
func (p *perfAI) label(s string) any {
	if p.in.Chip == command.BM1690 {
		return nil
	}
	return s
}

// engineSheet has the sums of each core and of all.
func (p *perfAI) engineSheet() *table {
	s := p.summary()
	s.total = p.lastEnd() // not the page's total time
	t := &table{merges: [][2]string{{"A1", "B1"}}}
	t.set(1, 1, "Platform: "+p.in.Chip.Report)
	t.set(4, 8, "TIU")
	t.set(4, 14, "GDMA")
	t.set(4, 19, "SDMA")
	t.set(4, 24, "CDMA")
	t.set(5, 1, "CoreId", "TiuWorkingRatio", "Parallelism", "Concurrency", "totalTime(us)", "totalTiuCycle", "totalAlgCycle", "totalAlgOps", "totalUArchOps",
		"uArchURate", "totalGdmaCycle", "totalDdrDataSize", "totalL2DataSize", "ddrAvgBandwidth", "l2AvgBandwidth", "avgDdrBurstLength",
		"totalSdmaCycle", "totalDdrDataSize", "ddrAvgBandwidth", "avgDdrBurstLength",
		"totalcdmaCycle", "totalDdrDataSize", "totalL2DataSize", "ddrAvgBandwidth", "l2AvgBandwidth", "avgDdrBurstLength")
	var all coreSum
	var algAll uint64
	row := 6
	together := func(tiu, dma float64) string {
		if least := min(tiu, dma); least > 0 {
			return percent((tiu+dma-s.total)/least, 2)
		}
		return "0.00%"
	}
	for k, q := range s.cores {
		alg := uint64(0)
		for i := range p.cores[k].tiu {
			alg += p.cores[k].tiu[i].work.Cycles
		}
		algAll = max(algAll, alg)
		// A core's copies are taken for ones at 1000 MHz here.
		dma := float64(q.gdma) / 1000
		q.ratio = q.tiuUs / s.total
		t.set(row, 1, strconv.Itoa(k), percent(q.ratio, 2), percent((q.tiuUs+dma)/s.total, 2), together(q.tiuUs, dma), fixed(s.total, 3),
			itoa(q.tiu), utoa(alg), utoa(q.alg), utoa(q.arch), share2(q.alg, q.arch), itoa(q.gdma), utoa(q.ddr.bytes), utoa(q.l2.bytes),
			q.ddr.text(p.in.DMAMHz), q.l2.text(p.in.DMAMHz), "0.0", itoa(q.sdma), utoa(q.sddr.bytes), q.sddr.text(p.in.DMAMHz), "0",
			"0", "0", "0", "0", "0", "0")
		row++
		all.sum(&q)
	}
	mib := func(bytes uint64) string { return fixed(float64(bytes)/(1<<20), 2) + "MiB" }
	us := func(v float64) string { return fixed(v, 3) + "(us)" }
	t.set(row, 1, "Overall", percent(all.tiuUs/s.total, 2), percent((all.tiuUs+all.dmaUs)/s.total, 2), together(all.tiuUs, all.dmaUs), fixed(s.total, 3),
		us(all.tiuUs), us(float64(algAll)/float64(p.in.TIUMHz)), utoa(all.alg), utoa(all.arch), share2(all.alg, all.arch), us(all.dmaUs),
		mib(all.ddr.bytes), mib(all.l2.bytes), all.ddr.text(p.in.DMAMHz), all.l2.text(p.in.DMAMHz), "0.0", us(all.sdmaUs), mib(all.sddr.bytes),
		all.sddr.text(p.in.DMAMHz), "0", us(0), mib(0), mib(0), "0", "0", "0")
	c := p.in.Chip
	peak, l2, burst := repr(c.DDRPeak/1e9), repr(c.L2Peak/1e9), fmt.Sprintf("Length<%d.0", c.MaxBurst)
	t.set(row+1, 2, "Ratio<30%", fmt.Sprintf("Parallelism<%d%%", 100*p.fullCores()+5), nil, nil, nil, nil, nil, nil, "Urate<75%", nil, nil, nil,
		"BW<"+peak+"*75%", "BW<"+l2+"*75%", burst, nil, nil, "BW<"+peak+"*75%", burst, nil, nil, nil, "BW<"+peak+"*75%", "BW<"+l2+"*75%", burst)
	t.set(row+2, 2, "Ratio<15%", nil, nil, nil, nil, nil, nil, nil, "Urate<50%", nil, nil, nil, "BW<"+peak+"*50%", "BW<"+l2+"*50%", nil, nil, nil,
		"BW<"+peak+"*50%", nil, nil, nil, nil, "BW<"+peak+"*50%", "BW<"+l2+"*50%")
	return t
}

// lastEnd is the time from the first start to the latest end in microseconds.
func (p *perfAI) lastEnd() float64 {
	first, last := 0.0, 0.0
	have := false
	for k := range p.cores {
		c := &p.cores[k]
		for e, list := range [][]instr{c.tiu, c.gdma, c.sdma} {
			mhz := float64(p.in.TIUMHz)
			if e > 0 {
				mhz = float64(p.in.DMAMHz)
			}
			for i := range list {
				start, end := float64(list[i].start)/mhz, float64(list[i].end)/mhz
				if !have || start < first {
					first = start
				}
				last = max(last, end)
				have = true
			}
		}
	}
	return round(last-first, 3)
}

// sum adds a core's sums to those of all: times are the largest ones.
func (s *coreSum) sum(q *coreSum) {
	s.tiuUs, s.dmaUs, s.sdmaUs = max(s.tiuUs, q.tiuUs), max(s.dmaUs, q.dmaUs), max(s.sdmaUs, q.sdmaUs)
	s.alg += q.alg
	s.arch += q.arch
	s.ratio += q.ratio
	for _, f := range [...]struct{ to, from *flow }{{&s.ddr, &q.ddr}, {&s.l2, &q.l2}, {&s.sddr, &q.sddr}} {
		f.to.bytes += f.from.bytes
		f.to.cycles += f.from.cycles
	}
	s.haveSDMA = s.haveSDMA || q.haveSDMA
}
