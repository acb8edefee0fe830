package compat

import (
	"sort"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// The registers of instruction.csv, by roles of a tensor command and of a copy.
var instructionRegisters = [...]struct {
	name      string
	tiu, copy command.Role
}{
	{"res0_n", command.Res0N, command.DstNSize},
	{"res0_c", command.Res0C, command.DstCSize},
	{"res0_h", command.Res0H, command.DstHSize},
	{"res0_w", command.Res0W, command.DstWSize},
	{"opd0_n", command.Opd0N, command.SrcNSize},
	{"opd0_c", command.Opd0C, command.SrcCSize},
	{"opd0_h", command.Opd0H, command.SrcHSize},
	{"opd0_w", command.Opd0W, command.SrcWSize},
	{"opd1_n", command.Opd1N, none},
	{"opd1_c", command.Opd1C, none},
	{"opd1_h", command.Opd1H, none},
	{"opd1_w", command.Opd1W, none},
	{"res0_n_str", command.Res0NStr, command.DstNStr},
	{"res0_c_str", command.Res0CStr, command.DstCStr},
	{"opd0_n_str", command.Opd0NStr, command.SrcNStr},
	{"opd0_c_str", command.Opd0CStr, command.SrcCStr},
	{"opd1_n_str", command.Opd1NStr, none},
	{"opd1_c_str", command.Opd1CStr, none},
	{"opd2_n_str", command.Opd2NStr, none},
	{"opd2_c_str", command.Opd2CStr, none},
	{"res0_addr", command.Res0Addr, command.DstLow},
	{"opd0_addr", command.Opd0Addr, command.SrcLow},
	{"opd1_addr", command.Opd1Addr, none},
	{"opd2_addr", command.Opd2Addr, none},
	{"res0_h_str", command.Res0HStr, command.DstHStr},
	{"res0_w_str", command.Res0WStr, command.DstWStr},
	{"opd0_h_str", command.Opd0HStr, command.SrcHStr},
	{"opd0_w_str", command.Opd0WStr, command.SrcWStr},
	{"opd1_h_str", command.Opd1HStr, none},
	{"opd1_w_str", command.Opd1WStr, none},
	{"opd2_h_str", command.Opd2HStr, none},
	{"opd2_w_str", command.Opd2WStr, none},
	{"res1_addr", command.Res1Addr, none},
	{"opd3_addr", command.Opd3Addr, none},
	{"res_op_x_str", command.StrideX, none},
	{"res_op_y_str", command.StrideY, none},
	{"opd0_prec", command.Opd0Prec, command.SrcFormat},
	{"res0_prec", command.Res0Prec, none},
}

const none = command.NoRole

// cells is a line of the classic converter's tables: texts in quotes, a comma behind
// each cell.
type cells struct{ b strings.Builder }

func (c *cells) text(s string) { c.b.WriteString(`"` + strings.ReplaceAll(s, `"`, `""`) + `",`) }
func (c *cells) num(s string)  { c.b.WriteString(s + ",") }
func (c *cells) end()          { c.b.WriteByte('\n') }

// instructions is instruction.csv: layer by layer, tensor commands before copies.
func (c *classic) instructions() []byte {
	var out cells
	for _, h := range []string{
		"EngineId", "Inst Function", "DMA data size(B)", "Direction", "Opd0 Dtype", "Res Dtype", "Layer ID", "Alg cycle",
		strings.ToLower(strings.TrimPrefix(c.in.Chip.Name, "BM")) + " Cycle", "StartCycle", "EndCycle", "Inst ID", "Dep ID", "pmu_info", "Alg Ops", "uArch Ops", "uArch Rate",
	} {
		out.text(h)
	}
	for _, r := range instructionRegisters {
		out.text("des_" + r.name)
	}
	out.end()
	for _, l := range c.layers {
		for _, list := range [][]*node{l.bd, l.gdma} {
			for _, n := range list {
				if n.rec != nil && n.c != nil {
					c.instruction(&out, l, n)
				}
			}
		}
	}
	return []byte(out.b.String())
}

func (c *classic) instruction(out *cells, l *layer, n *node) {
	engine, unit, other := "0", "TIU-", "GDMA-"
	bytes, direction := uint64(0), "-"
	from, to := tiuTypes(n.c)
	if n.dma {
		engine, unit, other = "2", "GDMA-", "TIU-"
		bytes, direction = c.moved(n.rec), c.direction(n)
		from = shortType(n.c.DType())
		to = from
	}
	out.num(engine)
	out.text(n.c.Name())
	out.num(utoa(bytes))
	out.text(direction)
	out.text(from)
	out.text(to)
	out.num(itoa(l.id))
	out.num(itoa(n.estimate))
	out.num(itoa(n.end - n.start))
	out.num(itoa(n.start))
	out.num(itoa(n.end))
	out.text(unit + itoa(n.id))
	out.text(other + itoa(n.dep))
	out.text(c.monitor(n))
	if w, ok := n.c.Work(c.in.Chip); ok {
		out.num(utoa(w.Alg))
		out.num(utoa(w.Arch))
		out.text(percent(ratio(w.Alg, w.Arch), 3))
	} else {
		out.text("-")
		out.text("-")
		out.text("-")
	}
	for _, r := range instructionRegisters {
		role := r.tiu
		if n.dma {
			role = r.copy
		}
		v, ok := n.c.Lookup(role)
		switch role {
		case command.DstLow:
			v = n.c.Get(command.DstHigh)<<32 | v
		case command.SrcLow:
			v = n.c.Get(command.SrcHigh)<<32 | v
		}
		if !ok {
			out.text("-")
			continue
		}
		out.num(utoa(v))
	}
	out.end()
}

// moved is how many bytes the converter says a copy has.
func (c *classic) moved(r words) uint64 {
	return uint64(r[4]) + uint64(r[7]) + uint64(r[10])
}

var classicSpaces = map[command.Space]string{command.DDR: "ddr", command.Local: "lmem", command.L2: "l2m", command.Static: "smem", command.NoSpace: "-"}

func (c *classic) direction(n *node) string {
	if n.c.Op.System() {
		return "-"
	}
	from, to := n.c.Spaces(c.in.Chip)
	if n.c.Get(command.FillConst) == 1 {
		return "const->" + classicSpaces[to]
	}
	return classicSpaces[from] + "->" + classicSpaces[to]
}

func shortType(t command.DType) string {
	names := [...]string{"i8", "f16", "f32", "i16", "i32", "bf16", "i4", "f8", "f20", "tf32"}
	if int(t) < len(names) {
		return names[t]
	}
	return ""
}

// tiuTypes names the types of a tensor command's operand and result: whole numbers with
// their sign where the command states it.
func tiuTypes(c *command.Command) (from, to string) {
	if c.Op.Engine != command.TIU || !c.Op.Has(command.Res0Prec) {
		return "", ""
	}
	to = shortType(command.DType(c.Get(command.Res0Prec)))
	from = to
	if v, ok := c.Lookup(command.Opd0Prec); ok {
		from = shortType(command.DType(v))
		sign, ok := c.Lookup(command.Opd0Sign)
		if !ok {
			return from, to
		}
		resSign := sign
		if v, ok := c.Lookup(command.Opd2Sign); ok {
			resSign = v
		}
		from, to = signed(from, sign), signed(to, resSign)
	}
	return from, to
}

func signed(t string, sign uint64) string {
	switch {
	case !strings.HasPrefix(t, "i"):
		return t
	case sign == 1:
		return "s" + t
	}
	return "u" + t
}

// The words of BM1684X's copy records in the converter's names.
var copyWords = strings.Fields(`raw_inst_start_time raw_inst_end_time inst_id d0_aw_bytes d0_wr_bytes d0_ar_bytes d1_aw_bytes d1_wr_bytes d1_ar_bytes
	gif_aw_bytes gif_wr_bytes gif_ar_bytes gif_12sram_aw_bytes gif_l2sram_w_bytes gif_l2sram_ar_bytes reserved1
	axi_d0_wr_valid_bytes axi_d0_rd_valid_bytes axi_d1_wr_valid_bytes axi_d1_rd_valid_bytes
	gif_fmem_wr_valid_bytes gif_fmem_rd_valid_bytes gif_l2sram_wr_valid_bytes gif_l2sram_rd_valid_bytes
	axi_d0_wr_stall_bytes axi_d0_rd_stall_bytes axi_d1_wr_stall_bytes axi_d1_rd_stall_bytes
	gif_fmem_wr_stall_bytes gif_fmem_rd_stall_bytes gif_l2sram_wr_stall_bytes gif_12sram_rd_stall_bytes
	axi_d0_aw_end axi_d0_aw_st axi_d0_ar_end axi_d0_ar_st axi_d0_wr_end axi_d0_wr_st axi_d0_rd_end axi_d0_rd_st
	axi_d1_aw_end axi_d1_aw_st axi_d1_ar_end axi_d1_ar_st axi_d1_wr_end axi_d1_wr_st axi_d1_rd_end axi_d1_rd_st`)

// The same of BM1684.
var copyWords1684 = strings.Fields(`raw_inst_start_time raw_inst_end_time inst_id d0_aw_bytes d0_wr_bytes d0_ar_bytes d1_aw_bytes d1_wr_bytes d1_ar_bytes
	gif_aw_bytes gif_wr_bytes gif_ar_bytes d0_wr_valid_cyc d0_rd_valid_cyc d1_wr_valid_cyc d1_rd_valid_cyc gif_wr_valid_cyc gif_rd_valid_cyc
	d0_wr_stall_cyc d0_rd_stall_cyc d1_wr_stall_cyc d1_rd_stall_cyc gif_wr_stall_cyc gif_rd_stall_cyc
	d0_aw_end d0_aw_st d0_ar_end d0_ar_st d0_wr_end d0_wr_st d0_rd_end d0_rd_st d1_aw_end d1_aw_st d1_ar_end d1_ar_st d1_wr_end d1_wr_st
	d1_rd_end d1_rd_st gif_aw_reserved1 gif_aw_reserved2 gif_ar_end gif_ar_st gif_wr_end gif_wr_st gif_rd_end gif_rd_st`)

// monitor is a record as the converter prints it, fields in alphabetical order.
func (c *classic) monitor(n *node) string {
	r := n.rec
	m := map[string]string{"inst_start_time": itoa(n.start), "inst_end_time": itoa(n.end)}
	put := func(k string, v uint32) { m[k] = strconv.FormatUint(uint64(v), 10) }
	if n.dma {
		names, bits := copyWords, 20
		if c.in.Chip == command.BM1684 {
			names, bits = copyWords1684, 16
		}
		for i, k := range names {
			if i < len(r) {
				put(k, r[i])
			}
		}
		put("inst_id", r[2]&(1<<bits-1))
		put("reserved", r[2]>>bits)
	} else {
		put("raw_inst_start_time", r[0])
		put("raw_inst_end_time", r[1])
		put("inst_id", r[2]&0xFFFF)
		m["computation_load"] = utoa((uint64(r[3])<<32 | uint64(r[2])) >> 16)
		put("num_read", r[4])
		put("num_read_stall", r[5])
		put("num_write", r[6])
		put("reserved", r[7])
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	// Names sort before those that they begin.
	for i := 1; i < len(keys); i++ {
		if keys[i-1] == "reserved" && keys[i] == "reserved1" {
			keys[i-1], keys[i] = keys[i], keys[i-1]
		}
	}
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k + ":" + m[k]
	}
	return strings.Join(parts, ",")
}
