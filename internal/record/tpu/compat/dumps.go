package compat

import (
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
)

// dumps are the register dumps of every core.
func (p *perfAI) dumps() []File {
	var files []File
	for k := range p.cores {
		c := &p.cores[k]
		n := strconv.Itoa(k)
		if len(c.tiu) > 0 {
			files = append(files, File{"tiuRegInfo_" + n + ".txt", p.dump(c.tiu)})
		}
		if len(c.gdma) > 0 || len(c.sdma) > 0 {
			files = append(files, File{"tdmaRegInfo_" + n + ".txt", p.dump(c.gdma, c.sdma)})
		}
	}
	return files
}

func (p *perfAI) dump(lists ...[]instr) []byte {
	head := reginfo.Block{Kind: reginfo.Chip, Entries: p.constants()}
	text := head.Append(nil)
	for _, list := range lists {
		for i := range list {
			b := p.block(&list[i])
			text = b.Append(text)
		}
	}
	return text
}

// constants are the chip's constants as the converter lists them.
func (p *perfAI) constants() []reginfo.Entry {
	c := p.in.Chip
	var b reginfo.Block
	n := func(key string, v int) { b.Add(key, strconv.Itoa(v)) }
	giga := func(v float64) string { return strconv.FormatFloat(v/1e9, 'f', -1, 64) }
	b.Add("Chip Arch", c.Report)
	b.Add("Platform", "ASIC")
	n("Core Num", p.fullCores())
	n("NPU Num", c.Lanes)
	n("TPU Lmem Size(Bytes)", c.Lanes*c.LaneBytes)
	n("Tpu Lmem Addr Width(bits)", log2(c.LaneBytes))
	n("Tpu Bank Addr Width(bits)", log2(c.BankBytes))
	n("Execution Unit Number(int8)", c.EU8)
	n("Bus Max Burst", c.MaxBurst)
	n("L2 Max Burst", c.L2Burst)
	n("Bus Bandwidth", c.BusWidth)
	n("DDR Frequency(MHz)", c.DDRRate)
	b.Add("DDR Max BW(GB/s/Core)", giga(c.DDRPeak))
	b.Add("L2 Max BW(GB/s)", giga(c.L2Peak))
	n("Cube IC Align(8bits)", c.Cube8)
	n("Cube OHOW Align(8bits)", c.CubeOut)
	n("Cube OHOW Align(16bits)", cubeOut16(c))
	n("Vector OHOW Align(8bits)", c.EU8)
	n("TIU Frequency(MHz)", p.in.TIUMHz)
	n("DMA Frequency(MHz)", p.in.DMAMHz)
	return b.Entries
}

// fullCores is the number of cores that the converter states: that of the family.
func (p *perfAI) fullCores() int {
	if p.in.Chip == command.CV186X {
		return command.BM1688.Cores
	}
	return p.in.Chip.Cores
}

// cubeOut16 is stated with half the width for one chip only.
func cubeOut16(c *command.Chip) int {
	if c == command.CV184X {
		return c.CubeOut / 2
	}
	return c.CubeOut
}

func log2(n int) int {
	k := 0
	for ; n > 1; n >>= 1 {
		k++
	}
	return k
}

// dict is an ordered map: a key that comes again keeps its place and takes the new value.
type dict struct {
	b  reginfo.Block
	at map[string]int
}

// reset empties the map for another block.
func (d *dict) reset(kind string) *dict {
	if d.at == nil {
		d.at = make(map[string]int, 128)
	}
	clear(d.at)
	d.b = reginfo.Block{Kind: kind, Entries: d.b.Entries[:0]}
	return d
}

func (d *dict) set(key, value string) {
	if i, ok := d.at[key]; ok {
		d.b.Entries[i].Value = value
		return
	}
	d.at[key] = len(d.b.Entries)
	d.b.Add(key, value)
}

func (d *dict) setNew(key, value string) {
	if _, ok := d.at[key]; !ok {
		d.set(key, value)
	}
}

func (d *dict) get(key string) (string, bool) {
	i, ok := d.at[key]
	if !ok {
		return "", false
	}
	return d.b.Entries[i].Value, true
}

// The maps below hold until the next one is made.

// block is a command's block in the dumps.
func (p *perfAI) block(x *instr) *reginfo.Block {
	if x.engine == engineTIU {
		return &p.tiuDict(x).b
	}
	return &p.dmaDict(x).b
}

// The converter prints the same entries in another order for BM1690.

func (p *perfAI) tiuDict(x *instr) *dict {
	d := p.d.reset(reginfo.TIU)
	late := p.in.Chip == command.BM1690
	if x.c == nil {
		d.set("Function Type", x.kind)
	}
	d.set("Function Name", x.name)
	d.set("Function Type", x.kind)
	d.set("Start Cycle", itoa(x.start))
	d.set("End Cycle", itoa(x.end))
	d.set("Cmd Id", itoa(x.id))
	d.set("Asic Cycle", itoa(x.cycles))
	d.set("Engine Id", "0")
	d.set("Alg Ops", utoa(x.work.Alg))
	d.set("uArch Ops", utoa(x.work.Arch))
	if late && x.c != nil {
		d.set("uArch Rate", x.rate())
	}
	d.set("Alg Cycle", utoa(x.work.Cycles))
	d.set("uArch Rate", x.rate())
	d.set("Initial Cycle Ratio", x.share(p, x.work.Startup))
	d.set("Bank Conflict Ratio", x.share(p, x.work.Conflict))
	d.set("Sim Power(W)", "0")
	if late {
		d.set("Global Idx", itoa(x.global))
	}
	d.set("Core Id", itoa(x.core))
	d.b.Part, d.b.PartAt = x.kind, len(d.b.Entries)
	if x.c == nil {
		for _, e := range [...]reginfo.Entry{
			{Key: "type", Value: "0"},
			{Key: "engine", Value: "0"},
			{Key: "des_tsk_typ", Value: "31"},
			{Key: "des_tsk_eu_typ", Value: "0"},
			{Key: "extra_info", Value: "0"},
			{Key: "inst_id", Value: "0"},
			{Key: "des_opt_res0_prec", Value: "0"},
		} {
			d.set(e.Key, e.Value)
		}
	} else {
		for i, f := range x.c.Op.Fields {
			d.set("des_"+f.Name, utoa(x.c.Field(i)))
		}
	}
	d.set("Msg Id", itoa(x.msg))
	d.set(`Sd\Wt Count`, itoa(x.count))
	if !late {
		d.set("Global Idx", itoa(x.global))
	}
	return d
}

// rate is the share of useful operations; of unknown commands 0.
func (x *instr) rate() string {
	if x.c == nil {
		return "0.0%"
	}
	return percent(ratio(x.work.Alg, x.work.Arch), 1)
}

// share is a number of cycles as a share of the command's; a constant on BM1690.
func (x *instr) share(p *perfAI, cycles uint64) string {
	if p.in.Chip == command.BM1690 {
		return "0.0%"
	}
	return percent(ratio(cycles, uint64(x.cycles)), 1)
}

// A shape that the converter prints for every copy.
const someShape = "(1, 128, 128 ,9)(FP32)(147456, 1152, 9, 1)"

// The keys of copies that are always 0.
var zeros = [...]string{
	"gmem_bl_sum", "gmem_avg_burst_length", "lmem_bl_sum", "lmem_avg_burst_length", "L2M Bandwidth(GB/s)",
	"lmem_msk_wr_cnt", "gmem_msk_wr_cnt", "lmem_n32Ba_sa_cnt", "gmem_n32Ba_sa_cnt",
}

func (p *perfAI) dmaDict(x *instr) *dict {
	d := p.d.reset(reginfo.TDMA)
	late := p.in.Chip == command.BM1690
	if x.c != nil {
		for i, f := range x.c.Op.Fields {
			d.set(copyField(f.Name), utoa(x.c.Field(i)))
		}
		p.addresses(d, x)
	}
	t := &x.copy
	d.set("Engine Id", itoa(x.engine))
	d.set("Direction", t.direction)
	d.set("from_addr", t.from)
	d.set("to_addr", t.to)
	if x.c == nil {
		d.set("src_data_format", "0")
		d.set("cmd_type", "31")
		d.set("cmd_special_function", "0")
	}
	d.set("Function Type", x.kind)
	d.set("Function Name", x.name)
	d.set("Start Cycle", itoa(x.start))
	d.set("End Cycle", itoa(x.end))
	d.set("Cmd Id", itoa(x.id))
	d.set("Data Type", t.dtype)
	d.set("Asic Cycle", itoa(x.cycles))
	d.set("Stall Cycle", utoa(t.stall))
	d.set("gmem_xfer_bytes(B)", utoa(t.ddrBytes))
	d.set("gmem_bandwidth", repr(t.ddrBW))
	d.set("gmem_dma_data_size(B)", utoa(t.ddrBytes))
	if !late {
		d.set("gmem_xact_cnt", utoa(t.ddrCount))
	}
	d.set("lmem_xfer_bytes", utoa(t.lmemBytes))
	d.set("lmem_bandwidth", repr(t.lmemBW))
	d.set("lmem_dma_data_size(B)", utoa(t.lmemBytes))
	ddr, l2 := repr(t.bandwidth), "0"
	if t.l2 {
		ddr, l2 = l2, ddr
	}
	if late {
		d.set("DMA data size(B)", utoa(t.size))
		if x.c == nil {
			d.set("DDR Bandwidth(GB/s)", ddr)
		}
		d.set("lmem_xact_cnt", utoa(t.lmemCount))
		d.set("gmem_xact_cnt", utoa(t.ddrCount))
		if x.c != nil {
			d.set("DDR Bandwidth(GB/s)", ddr)
			d.set("L2M Bandwidth(GB/s)", l2)
		}
	} else {
		d.set("lmem_xact_cnt", utoa(t.lmemCount))
		d.set("DMA data size(B)", utoa(t.size))
		d.set("DDR Bandwidth(GB/s)", ddr)
	}
	for _, key := range zeros {
		d.setNew(key, "0")
	}
	p.copyTail(d, x)
	return d
}

// addresses adds what stands for places that the layout may lack.
func (p *perfAI) addresses(d *dict, x *instr) {
	d.setNew("mask_start_addr_h8", "0")
	d.setNew("mask_start_addr_l32", "0")
	if p.in.Chip == command.CV184X && x.c.Op.System() {
		for _, key := range [...]string{"dst_start_addr_l32", "src_start_addr_l32", "src_start_addr_h13", "dst_start_addr_h13"} {
			d.set(key, "0")
		}
		return
	}
	d.set("dst_start_addr", utoa(start(x.c, command.DstLow, command.DstHigh)))
	d.set("src_start_addr", utoa(start(x.c, command.SrcLow, command.SrcHigh)))
}

// copyTail adds the entries that say nothing.
func (p *perfAI) copyTail(d *dict, x *instr) {
	for _, e := range [...]reginfo.Entry{
		{Key: "funcName", Value: " "},
		{Key: "layer_ID", Value: ""},
		{Key: "index", Value: " "},
		{Key: "Msg Id", Value: " "},
		{Key: `Sd\Wt Count`, Value: " "},
		{Key: "mask_data_format", Value: " "},
		{Key: "index_shape", Value: someShape},
		{Key: "src_shape", Value: someShape},
		{Key: "dst_shape", Value: someShape},
	} {
		d.set(e.Key, e.Value)
	}
	if p.in.Chip != command.BM1690 {
		d.set("Core Id", itoa(x.core))
		d.set("Global Idx", itoa(x.global))
		return
	}
	if x.c == nil {
		d.set("dst_start_addr", "0")
		d.set("src_start_addr", "0")
	}
	d.set("Global Idx", itoa(x.global))
	d.set("Core Id", itoa(x.core))
}

// copyField is the name that the converter prints: some layouts mix up the halves of an
// address.
func copyField(name string) string {
	if s, ok := strings.CutSuffix(name, "_start_addr_h32"); ok {
		return s + "_start_addr_l32"
	}
	if s, ok := strings.CutSuffix(name, "_start_addr_l8"); ok {
		return s + "_start_addr_h8"
	}
	return name
}

// start is an address as the converter joins it.
func start(c *command.Command, low, high command.Role) uint64 {
	if c == nil {
		return 0
	}
	return c.Get(high)<<32 + c.Get(low)
}
