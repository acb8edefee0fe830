package compat

import (
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// The columns of PerfAI_output.csv: those of all commands, registers of tensor commands
// (only those that a command has), and those of copies.
var (
	worldHead = []string{
		"Engine Id", "Core Id", "Global Idx", "Cmd Id", "Layer Id", "Layer Name", "Function Type", "Function Name", "Alg Cycle", "Asic Cycle",
		"Start Cycle", "End Cycle", "Avg Cycle Last 200", "Alg Ops", "uArch Ops", "uArch Rate", "Bank Conflict Ratio", "Initial Cycle Ratio",
		"Data Type", "Sim Power(W)",
	}
	worldRegisters = strings.Fields(`cmd_id_dep res0_n res0_c res0_h res0_w res0_n_str res0_c_str res0_h_str res0_w_str
		opd0_n opd0_c opd0_h opd0_w opd0_n_str opd0_c_str opd0_h_str opd0_w_str
		opd1_n opd1_c opd1_h opd1_w opd1_n_str opd1_c_str opd1_h_str opd1_w_str
		opd2_n_str res0_addr res1_addr opd0_addr opd1_addr opd2_addr opd3_addr
		tsk_typ tsk_eu_typ cmd_short opt_res0_prec opt_opd0_prec opt_opd1_prec opt_opd2_prec short_opd0_str
		opt_opd0_const opt_opd1_const opt_opd2_const opt_opd3_const opt_opd4_const opt_opd5_const
		opt_res_add opt_res0_sign opt_opd0_sign opt_opd1_sign opt_opd2_sign opd0_rt_pad opd1_x_ins0 opd0_up_pad opd0_lf_pad
		opt_left_tran pad_mode opd0_y_ins0 opd1_y_ins0 short_res0_str short_opd1_str sym_range opt_rq op_code opt_kernel_rotate
		res_op_x_str res_op_y_str opd0_x_ins0 tsk_opd_num opd0_dn_pad intr_en opt_relu pwr_step`)
	worldTail = []string{
		"Msg Id", `Sd\Wt Count`, "DMA data size(B)", "Stall Cycle", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)", "Direction",
		"AvgBurstLength", "Non32ByteRatio", "MaskWriteRatio", "cmd_id_dep", "cmd_special_function", "src_start_addr", "dst_start_addr",
		"src_nsize", "src_csize", "src_hsize", "src_wsize", "dst_nsize", "dst_csize", "dst_hsize", "dst_wsize",
		"src_nstride", "src_cstride", "src_hstride", "src_wstride", "dst_nstride", "dst_cstride", "dst_hstride", "dst_wstride",
		"nchw_copy", "stride_enable", "src_data_format", "cmd_type", "index_csize", "index_hsize", "index_cstride", "index_hstride",
		"mask_start_addr_h8", "mask_start_addr_l32", "mask_data_format", "localmem_mask_h32", "localmem_mask_l32",
		"fill_constant_en", "constant_value", "index", "cmd_short", "intr_en",
	}
)

// all are the commands of every engine and core by start, end, number and engine.
func (p *perfAI) all() []*instr {
	var list []*instr
	for k := range p.cores {
		c := &p.cores[k]
		for _, l := range [][]instr{c.tiu, c.gdma, c.sdma} {
			for i := range l {
				list = append(list, &l[i])
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		switch {
		case a.start != b.start:
			return a.start < b.start
		case a.end != b.end:
			return a.end < b.end
		case a.id != b.id:
			return a.id < b.id
		}
		return a.engine < b.engine
	})
	return list
}

// world is PerfAI_output.csv, the commands of all engines in one table.
func (p *perfAI) world() []byte {
	list := p.all()
	registers := p.registers(len(p.cores) - 1) // of the last core for all of them
	var out []byte
	line := append([]string(nil), worldHead...)
	for _, r := range registers {
		line = append(line, "des_"+r)
	}
	line = append(line, worldTail...)
	out = appendLine(out, line)
	for _, x := range list {
		line = p.worldRow(line[:0], x, registers)
		out = appendLine(out, line)
	}
	return out
}

// registers are the columns of a core's tensor commands: those that one of them has; all
// for CV184X.
func (p *perfAI) registers(k int) []string {
	if p.in.Chip == command.CV184X || k < 0 {
		return worldRegisters
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
	var list []string
	for _, r := range worldRegisters {
		if used[r] {
			list = append(list, r)
		}
	}
	return list
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

func (p *perfAI) worldRow(line []string, x *instr, registers []string) []string {
	id, name := "-", "-"
	if x.layer != nil {
		id, name = itoa(x.layer.Ordinal), x.layer.Op
	}
	line = append(line, itoa(x.engine), itoa(x.core), itoa(x.global), itoa(x.id), id, name, x.kind, x.name)
	if x.engine == engineTIU {
		d := p.tiuDict(x)
		line = append(line, utoa(x.work.Cycles), itoa(x.cycles), itoa(x.start), itoa(x.end), itoa(x.average), utoa(x.work.Alg), utoa(x.work.Arch),
			x.rate(), x.share(p, x.work.Conflict), x.share(p, x.work.Startup), types(x), "0")
		for _, r := range registers {
			v, _ := d.get("des_" + r)
			line = append(line, v)
		}
		line = append(line, itoa(x.msg), itoa(x.count))
		for range len(worldTail) - 2 {
			line = append(line, "")
		}
		return line
	}
	d := p.dmaDict(x)
	line = append(line, "", itoa(x.cycles), itoa(x.start), itoa(x.end), "", "", "", "", "", "", x.dataType(), "")
	for range registers {
		line = append(line, "")
	}
	t := &x.copy
	ddr, l2 := t.bandwidth, 0.0
	if t.l2 {
		ddr, l2 = l2, ddr
	}
	burst := "0"
	if t.ddrCount > 0 {
		burst = "0.0"
	}
	line = append(line, " ", " ", utoa(t.size), utoa(t.stall), repr(ddr), repr(l2), x.direction(), burst, burst, burst)
	for _, key := range worldTail[10:] {
		v, _ := d.get(key)
		line = append(line, v)
	}
	return line
}

// direction and dataType of a copy in tables: system commands have none.
func (x *instr) direction() string {
	if x.c != nil && x.c.Op.System() {
		return "-"
	}
	return x.copy.direction
}

func (x *instr) dataType() string {
	if x.c != nil && x.c.Op.System() {
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

const averaged = 200

// averages sets the mean cycles of a core's last 200 tensor commands, gaps included.
func averages(list []instr) {
	for i := range list {
		x := &list[i]
		span, n := x.end, int64(x.id)
		if x.id > averaged {
			span, n = x.end-list[max(0, i-averaged+1)].start, averaged
		}
		x.average = int64(round(float64(span)/float64(n), 0))
	}
}
