package compat

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
)

// texts returns the register dumps of every core, the table of commands and the page.
func (p *perfAI) texts() []File {
	var files []File
	for k, c := range p.cores {
		n := strconv.Itoa(k)
		if len(c.tiu) > 0 {
			files = append(files, File{"tiuRegInfo_" + n + ".txt", p.dump(c.tiu)})
		}
		if len(c.gdma) > 0 || len(c.sdma) > 0 {
			files = append(files, File{"tdmaRegInfo_" + n + ".txt", p.dump(c.gdma, c.sdma)})
		}
	}
	return append(files, File{"PerfAI_output.csv", p.table()}, File{"profile_data.js", p.page()})
}

func (p *perfAI) dump(lists ...[]*instr) []byte {
	head := reginfo.Block{Kind: reginfo.Chip, Entries: p.constants()}
	text := head.Append(nil)
	for _, list := range lists {
		for _, x := range list {
			d := p.tiuDict
			if x.engine != engineTIU {
				d = p.dmaDict
			}
			text = d(x).b.Append(text)
		}
	}
	return text
}

func (p *perfAI) constants() []reginfo.Entry {
	c := p.in.Chip
	cubeOut16 := c.CubeOut
	if c == command.CV184X {
		cubeOut16 /= 2
	}
	var b reginfo.Block
	pairs := []any{
		"Chip Arch", c.Report, "Platform", "ASIC", "Core Num", p.fullCores(), "NPU Num", c.Lanes, "TPU Lmem Size(Bytes)", c.Lanes * c.LaneBytes,
		"Tpu Lmem Addr Width(bits)", log2(c.LaneBytes), "Tpu Bank Addr Width(bits)", log2(c.BankBytes), "Execution Unit Number(int8)", c.EU8,
		"Bus Max Burst", c.MaxBurst, "L2 Max Burst", c.L2Burst, "Bus Bandwidth", c.BusWidth, "DDR Frequency(MHz)", c.DDRRate,
		"DDR Max BW(GB/s/Core)", giga(c.DDRPeak), "L2 Max BW(GB/s)", giga(c.L2Peak), "Cube IC Align(8bits)", c.Cube8,
		"Cube OHOW Align(8bits)", c.CubeOut, "Cube OHOW Align(16bits)", cubeOut16, "Vector OHOW Align(8bits)", c.EU8,
		"TIU Frequency(MHz)", p.in.TIUMHz, "DMA Frequency(MHz)", p.in.DMAMHz,
	}
	for i := 0; i < len(pairs); i += 2 {
		b.Add(pairs[i].(string), show(pairs[i+1]))
	}
	return b.Entries
}

// fullCores returns the number of cores that the converter states: that of the family.
func (p *perfAI) fullCores() int {
	if p.in.Chip == command.CV186X {
		return command.BM1688.Cores
	}
	return p.in.Chip.Cores
}

func log2(n int) int { return max(0, bits.Len(uint(n))-1) }

// dict is an ordered map. A key that is set again keeps its position and gets the new value.
type dict struct {
	b  reginfo.Block
	at map[string]int
}

func (d *dict) reset(kind string) *dict {
	if d.at == nil {
		d.at = make(map[string]int, 128)
	}
	clear(d.at)
	d.b = reginfo.Block{Kind: kind, Entries: d.b.Entries[:0]}
	return d
}

// set sets keys to values: the arguments are pairs.
func (d *dict) set(pairs ...string) {
	for ; len(pairs) > 1; pairs = pairs[2:] {
		if i, ok := d.at[pairs[0]]; ok {
			d.b.Entries[i].Value = pairs[1]
			continue
		}
		d.at[pairs[0]] = len(d.b.Entries)
		d.b.Add(pairs[0], pairs[1])
	}
}

// get returns the value of a key, "" if it is absent.
func (d *dict) get(key string) string {
	if i, ok := d.at[key]; ok {
		return d.b.Entries[i].Value
	}
	return ""
}

// setNew sets keys to "0" unless they are present.
func (d *dict) setNew(keys ...string) {
	for _, key := range keys {
		if _, ok := d.at[key]; !ok {
			d.set(key, "0")
		}
	}
}

// The results of tiuDict and dmaDict are valid until the next call. For BM1690 the converter
// prints the same entries in another order.

// tiuDict returns the entries of a tensor command.
func (p *perfAI) tiuDict(x *instr) *dict {
	d := p.d.reset(reginfo.TIU)
	late := p.in.Chip == command.BM1690
	if x.c == nil {
		d.set("Function Type", x.kind)
	}
	d.set("Function Name", x.name, "Function Type", x.kind, "Start Cycle", itoa(x.start), "End Cycle", itoa(x.end),
		"Cmd Id", itoa(x.id), "Asic Cycle", itoa(x.cycles), "Engine Id", "0", "Alg Ops", utoa(x.work.Alg), "uArch Ops", utoa(x.work.Arch))
	if late && x.c != nil {
		d.set("uArch Rate", x.rate())
	}
	d.set("Alg Cycle", utoa(x.work.Cycles), "uArch Rate", x.rate(), "Initial Cycle Ratio", x.share(p, x.work.Startup),
		"Bank Conflict Ratio", x.share(p, x.work.Conflict), "Sim Power(W)", "0")
	if late {
		d.set("Global Idx", itoa(x.global))
	}
	d.set("Core Id", itoa(x.core))
	d.b.Part, d.b.PartAt = x.kind, len(d.b.Entries)
	if x.c == nil {
		d.set("type", "0", "engine", "0", "des_tsk_typ", "31", "des_tsk_eu_typ", "0", "extra_info", "0", "inst_id", "0", "des_opt_res0_prec", "0")
	} else {
		for i, f := range x.c.Op.Fields {
			d.set("des_"+f.Name, utoa(x.c.Field(i)))
		}
	}
	d.set("Msg Id", itoa(x.msg), `Sd\Wt Count`, itoa(x.count))
	if !late {
		d.set("Global Idx", itoa(x.global))
	}
	return d
}

// rate formats the share of useful operations, 0 for unknown commands.
func (x *instr) rate() string {
	if x.c == nil {
		return "0.0%"
	}
	return percent(ratio(x.work.Alg, x.work.Arch), 1)
}

// share formats a number of cycles as a share of the command's cycles. It is constant for BM1690.
func (x *instr) share(p *perfAI, cycles uint64) string {
	if p.in.Chip == command.BM1690 {
		return "0.0%"
	}
	return percent(ratio(cycles, uint64(x.cycles)), 1)
}

// someShape is the shape that the converter prints for every copy.
const someShape = "(1, 128, 128 ,9)(FP32)(147456, 1152, 9, 1)"

// dmaDict returns the entries of a copy.
func (p *perfAI) dmaDict(x *instr) *dict {
	d := p.d.reset(reginfo.TDMA)
	late := p.in.Chip == command.BM1690
	if x.c != nil {
		for i, f := range x.c.Op.Fields {
			d.set(copyField(f.Name), utoa(x.c.Field(i)))
		}
		d.setNew("mask_start_addr_h8", "mask_start_addr_l32")
		if p.in.Chip == command.CV184X && x.c.Op.System() {
			d.set("dst_start_addr_l32", "0", "src_start_addr_l32", "0", "src_start_addr_h13", "0", "dst_start_addr_h13", "0")
		} else {
			d.set("dst_start_addr", utoa(x.address(command.DstLow, command.DstHigh)), "src_start_addr", utoa(x.address(command.SrcLow, command.SrcHigh)))
		}
	}
	t := &x.copy
	d.set("Engine Id", itoa(x.engine), "Direction", t.direction, "from_addr", t.from, "to_addr", t.to)
	if x.c == nil {
		d.set("src_data_format", "0", "cmd_type", "31", "cmd_special_function", "0")
	}
	d.set("Function Type", x.kind, "Function Name", x.name, "Start Cycle", itoa(x.start), "End Cycle", itoa(x.end), "Cmd Id", itoa(x.id),
		"Data Type", t.dtype, "Asic Cycle", itoa(x.cycles), "Stall Cycle", utoa(t.stall), "gmem_xfer_bytes(B)", utoa(t.ddrBytes),
		"gmem_bandwidth", repr(t.ddrBW), "gmem_dma_data_size(B)", utoa(t.ddrBytes))
	if !late {
		d.set("gmem_xact_cnt", utoa(t.ddrCount))
	}
	d.set("lmem_xfer_bytes", utoa(t.lmemBytes), "lmem_bandwidth", repr(t.lmemBW), "lmem_dma_data_size(B)", utoa(t.lmemBytes))
	ddr, l2 := repr(t.bandwidth), "0"
	if t.l2 {
		ddr, l2 = l2, ddr
	}
	switch {
	case !late:
		d.set("lmem_xact_cnt", utoa(t.lmemCount), "DMA data size(B)", utoa(t.size), "DDR Bandwidth(GB/s)", ddr)
	case x.c == nil:
		d.set("DMA data size(B)", utoa(t.size), "DDR Bandwidth(GB/s)", ddr, "lmem_xact_cnt", utoa(t.lmemCount), "gmem_xact_cnt", utoa(t.ddrCount))
	default:
		d.set("DMA data size(B)", utoa(t.size), "lmem_xact_cnt", utoa(t.lmemCount), "gmem_xact_cnt", utoa(t.ddrCount),
			"DDR Bandwidth(GB/s)", ddr, "L2M Bandwidth(GB/s)", l2)
	}
	d.setNew("gmem_bl_sum", "gmem_avg_burst_length", "lmem_bl_sum", "lmem_avg_burst_length", "L2M Bandwidth(GB/s)",
		"lmem_msk_wr_cnt", "gmem_msk_wr_cnt", "lmem_n32Ba_sa_cnt", "gmem_n32Ba_sa_cnt")
	d.set("funcName", " ", "layer_ID", "", "index", " ", "Msg Id", " ", `Sd\Wt Count`, " ", "mask_data_format", " ",
		"index_shape", someShape, "src_shape", someShape, "dst_shape", someShape)
	if !late {
		d.set("Core Id", itoa(x.core))
	} else if x.c == nil {
		d.set("dst_start_addr", "0", "src_start_addr", "0")
	}
	d.set("Global Idx", itoa(x.global), "Core Id", itoa(x.core))
	return d
}

// copyField returns the name that the converter prints. Some layouts exchange the names of the
// halves of an address.
func copyField(name string) string {
	if s, ok := strings.CutSuffix(name, "_start_addr_h32"); ok {
		return s + "_start_addr_l32"
	}
	if s, ok := strings.CutSuffix(name, "_start_addr_l8"); ok {
		return s + "_start_addr_h8"
	}
	return name
}

// address joins the halves of an address as the converter does, 0 for unknown commands.
func (x *instr) address(low, high command.Role) uint64 {
	if x.c == nil {
		return 0
	}
	return x.c.Get(high)<<32 + x.c.Get(low)
}

// heading returns the columns of a table: those of all commands, the registers of tensor
// commands, and more.
func heading(registers []string, more ...[]string) []string {
	line := slices.Clone(columns["output"])
	for _, r := range registers {
		line = append(line, "des_"+r)
	}
	return append(line, slices.Concat(more...)...)
}

// table returns PerfAI_output.csv, the commands of all engines in one table.
func (p *perfAI) table() []byte {
	registers := p.registers(len(p.cores) - 1) // the converter uses those of the last core for all
	line := heading(registers, columns["figures of copies"], columns["fields of copies"])
	out := appendLine(nil, line)
	for _, x := range p.all() {
		line = p.tableRow(line[:0], x, registers)
		out = appendLine(out, line)
	}
	return out
}

// registers returns the register columns of a core: those that one of its tensor commands has,
// all for CV184X.
func (p *perfAI) registers(k int) []string {
	if p.in.Chip == command.CV184X || k < 0 {
		return columns["registers"]
	}
	used := map[string]bool{}
	ops := map[*command.Op]bool{}
	for _, x := range p.cores[k].tiu {
		if x.c != nil && !ops[x.c.Op] {
			ops[x.c.Op] = true
			for _, f := range x.c.Op.Fields {
				used[f.Name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(columns["registers"]), func(r string) bool { return !used[r] })
}

func appendLine(out []byte, cells []string) []byte {
	for i, c := range cells {
		if i > 0 {
			out = append(out, ',')
		}
		if strings.ContainsAny(c, ",\"\n") {
			c = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
		}
		out = append(out, c...)
	}
	return append(out, '\n')
}

func appendRow(out []byte, values ...any) []byte {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = show(v)
	}
	return appendLine(out, cells)
}

// owner returns the number and operation of the command's layer.
func (x *instr) owner() (id, name string) {
	if x.layer == nil {
		return "-", "-"
	}
	return itoa(x.layer.Ordinal), x.layer.Op
}

func (p *perfAI) tableRow(line []string, x *instr, registers []string) []string {
	empty := func(n int) {
		for range n {
			line = append(line, "")
		}
	}
	id, name := x.owner()
	line = append(line, itoa(x.engine), itoa(x.core), itoa(x.global), itoa(x.id), id, name, x.kind, x.name)
	if x.engine == engineTIU {
		d := p.tiuDict(x)
		line = append(line, utoa(x.work.Cycles), itoa(x.cycles), itoa(x.start), itoa(x.end), itoa(x.average), utoa(x.work.Alg), utoa(x.work.Arch),
			x.rate(), x.share(p, x.work.Conflict), x.share(p, x.work.Startup), types(x), "0")
		for _, r := range registers {
			line = append(line, d.get("des_"+r))
		}
		line = append(line, itoa(x.msg), itoa(x.count))
		empty(len(columns["figures of copies"]) + len(columns["fields of copies"]) - 2)
		return line
	}
	d := p.dmaDict(x)
	line = append(line, "", itoa(x.cycles), itoa(x.start), itoa(x.end), "", "", "", "", "", "", x.dataType(), "")
	empty(len(registers))
	ddr, l2 := x.copy.rates()
	burst := "0"
	if x.copy.ddrCount > 0 {
		burst = "0.0"
	}
	line = append(line, " ", " ", utoa(x.copy.size), utoa(x.copy.stall), repr(ddr), repr(l2), x.direction(), burst, burst, burst)
	for _, key := range columns["fields of copies"] {
		line = append(line, d.get(key))
	}
	return line
}

func (x *instr) system() bool { return x.c != nil && x.c.Op.System() }

// direction returns the direction of a copy in tables, "-" for system commands.
func (x *instr) direction() string {
	if x.system() {
		return "-"
	}
	return x.copy.direction
}

// dataType returns the element type of a copy in tables, "None" for system commands.
func (x *instr) dataType() string {
	if x.system() {
		return "None"
	}
	return x.copy.dtype
}

// types names the types of a tensor command's first operand and result.
func types(x *instr) string {
	if x.c == nil {
		return "INT8 -> INT8"
	}
	from, to := "None", "None"
	if v, ok := x.c.Lookup(command.Res0Prec); ok {
		to = command.DType(v).String()
		from = to
	}
	if v, ok := x.c.Lookup(command.Opd0Prec); ok {
		from = command.DType(v).String()
	}
	return from + " -> " + to
}
