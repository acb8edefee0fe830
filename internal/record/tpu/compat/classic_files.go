package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// summaryCSV, detailCSV and memCSV return the files of the converter's format csv.
func (c *classic) summaryCSV() []byte {
	out := quotedRow(nil, "index", "subnet_id", "subnet_type", "duration(us)")
	return quotedRow(out, "Iter[0]", c.in.Subnet, c.subnetType, 1) // the duration is constant
}

func (c *classic) detailCSV() []byte {
	out := quotedRow(nil, anys(columns["detail.csv"])...)
	for _, r := range c.chart() {
		out = quotedRow(out, strconv.Itoa(r.lane)+"-"+classicLanes[r.lane], literal(r.begin), literal(r.end), literal(r.length), r.name, r.layer,
			r.layerType, c.in.Subnet, c.subnetType, "Iter[0]", strings.ReplaceAll(strings.TrimPrefix(r.info, "<br>"), "<br>", ","))
	}
	return out
}

func (c *classic) memCSV() []byte {
	out := quotedRow(nil, anys(columns["mem.csv"])...)
	for i, kind := range []string{"global", "local"} {
		for _, r := range c.accesses(i == 1) {
			access := "R"
			if r.write {
				access = "W"
			}
			out = quotedRow(out, kind, r.addr, r.addr+r.size, r.size, access, r.begin, r.end, r.end-r.begin, c.partition(&r), r.info)
		}
	}
	return out
}

// jsText escapes a text for the quotes of a script. The converter writes texts unchanged. This
// function escapes the characters that would end the text early.
func jsText(s string) string { return jsEscapes.Replace(s) }

var jsEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// page returns profile_data.js of the classic page.
func (c *classic) page() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	caption := "Profile: " + c.net + " on " + c.in.Chip.Name
	if len(c.in.Cores) == 0 || len(c.in.Cores[0].TIU)+len(c.in.Cores[0].GDMA) == 0 {
		caption += "(simulated)"
	}
	quoted := func(list ...string) string { return `["` + strings.Join(list, `","`) + `",]` }
	line(`let page_caption="%s"`, jsText(caption))
	line(`let summary_caption= "Subnet Summary"`)
	line(`let summary_header = ["index", "subnet_id", "subnet_type", "duration"]`)
	line("let summary_data = [\n  [\"Iter[0]\",%d,\"%s\",\"1us\",],\n]", c.in.Subnet, c.subnetType)
	line("let categories = %s", quoted(classicLanes[:]...))
	line("let time_header = %s", quoted("category", "begin_usec", "end_usec", "func_type", "height", "layer_id", "layer_type", "subnet_id", "subnet_type", "iteration", "info"))
	line("let filter_cols=[5,6,7,8,9,]")
	line("let lmem_partition= [")
	for i := range c.in.Chip.Banks {
		line(`  [%d,%d,"BANK[%d]",],`, i*c.in.Chip.BankBytes, c.in.Chip.BankBytes, i)
	}
	line("]\nlet gmem_partition= [")
	for _, p := range c.parts {
		line(`  [%d,%d,"%s",],`, p.addr, p.size, jsText(p.text))
	}
	line("]\nlet time_data= [")
	for _, r := range c.chart() {
		line(`  [%d,%s,%s,"%s",%s,%d,"%s",%d,"%s","Iter[0]","%s",],`, r.lane, r.begin, r.end, jsText(r.name), r.height, r.layer,
			jsText(r.layerType), c.in.Subnet, c.subnetType, jsText(r.info))
	}
	line("]")
	for i, name := range []string{"gmem", "lmem"} {
		line("let %s_op_record= [", name)
		for _, r := range c.accesses(i == 1) {
			write := 0
			if r.write {
				write = 1
			}
			line(`  [%s,%s,%d,%d,%d,"%s",],`, repr(r.begin), repr(r.end), write, r.addr, r.size, r.info)
		}
		line("]")
	}
	return []byte(b.String())
}

// quotedRow appends a line of the classic converter's tables: texts in quotes and a comma after
// each cell.
func quotedRow(out []byte, values ...any) []byte {
	for _, v := range values {
		if s, ok := v.(string); ok {
			v = literal(`"` + strings.ReplaceAll(s, `"`, `""`) + `"`)
		}
		out = append(append(out, show(v)...), ',')
	}
	return append(out, '\n')
}

// register is a column of instruction.csv with the roles of the register in a tensor command
// and in a copy.
type register struct {
	name      string
	tiu, copy command.Role
}

var instructionRegisters = func() (list []register) {
	for _, s := range columns["instruction registers"] {
		name, copied, _ := strings.Cut(s, "=")
		list = append(list, register{name, command.RoleOf(name), command.RoleOf(copied)})
	}
	return list
}()

// instructions returns instruction.csv: layer by layer, tensor commands before copies.
func (c *classic) instructions() []byte {
	head := []any{
		"EngineId", "Inst Function", "DMA data size(B)", "Direction", "Opd0 Dtype", "Res Dtype", "Layer ID", "Alg cycle",
		strings.ToLower(strings.TrimPrefix(c.in.Chip.Name, "BM")) + " Cycle", "StartCycle", "EndCycle", "Inst ID", "Dep ID", "pmu_info", "Alg Ops", "uArch Ops", "uArch Rate",
	}
	for _, r := range instructionRegisters {
		head = append(head, "des_"+r.name)
	}
	out := quotedRow(nil, head...)
	for _, l := range c.layers {
		for _, n := range slices.Concat(l.bd, l.gdma) {
			if n.rec != nil && n.c != nil {
				out = quotedRow(out, c.instruction(l, n)...)
			}
		}
	}
	return out
}

func (c *classic) instruction(l *layer, n *node) []any {
	engine, unit, other := 0, "TIU-", "GDMA-"
	bytes, direction := uint64(0), "-"
	from, to := tiuTypes(n.c)
	if n.dma {
		engine, unit, other = 2, "GDMA-", "TIU-"
		bytes, direction = moved(n.rec), c.direction(n)
		from = shortType(n.c.DType())
		to = from
	}
	row := []any{
		engine, n.c.Name(), bytes, direction, from, to, l.id, n.estimate, n.end - n.start, n.start, n.end,
		unit + itoa(n.id), other + itoa(n.dep), c.monitor(n), "-", "-", "-",
	}
	if w, ok := n.c.Work(c.in.Chip); ok {
		row = append(row[:len(row)-3], w.Alg, w.Arch, percent(ratio(w.Alg, w.Arch), 3))
	}
	for _, r := range instructionRegisters {
		role := r.tiu
		if n.dma {
			role = r.copy
		}
		v, ok := n.c.Lookup(role)
		switch {
		case !ok:
			row = append(row, "-")
			continue
		case role == command.DstLow:
			v |= n.c.Get(command.DstHigh) << 32
		case role == command.SrcLow:
			v |= n.c.Get(command.SrcHigh) << 32
		}
		row = append(row, v)
	}
	return row
}

// moved returns the bytes that the converter states for a copy.
func moved(r words) uint64 { return uint64(r[4]) + uint64(r[7]) + uint64(r[10]) }

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

// tiuTypes names the types of a tensor command's operand and result, integers with their sign
// if the command states it.
func tiuTypes(c *command.Command) (from, to string) {
	if c.Op.Engine != command.TIU || !c.Op.Has(command.Res0Prec) {
		return "", ""
	}
	to = shortType(command.DType(c.Get(command.Res0Prec)))
	v, typed := c.Lookup(command.Opd0Prec)
	if !typed {
		return to, to
	}
	from = shortType(command.DType(v))
	sign, ok := c.Lookup(command.Opd0Sign)
	if !ok {
		return from, to
	}
	resSign := sign
	if v, ok := c.Lookup(command.Opd2Sign); ok {
		resSign = v
	}
	return signed(from, sign), signed(to, resSign)
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

// monitor formats a record as the converter does, with the fields in alphabetical order.
func (c *classic) monitor(n *node) string {
	r := n.rec
	parts := []string{"inst_start_time:" + itoa(n.start), "inst_end_time:" + itoa(n.end)}
	put := func(k string, v uint32) { parts = append(parts, k+":"+strconv.FormatUint(uint64(v), 10)) }
	if n.dma {
		names, bits := columns["copy words"], 20
		if c.in.Chip == command.BM1684 {
			names, bits = columns["copy words of BM1684"], 16
		}
		for i, k := range names[:min(len(names), len(r))] {
			if k == "inst_id" {
				put(k, r[i]&(1<<bits-1))
				put("reserved", r[i]>>bits)
				continue
			}
			put(k, r[i])
		}
	} else {
		for i, k := range [...]string{"raw_inst_start_time", "raw_inst_end_time", "inst_id", "", "num_read", "num_read_stall", "num_write", "reserved"} {
			switch k {
			case "":
				parts = append(parts, "computation_load:"+utoa(load(r)))
			case "inst_id":
				put(k, r[i]&0xFFFF)
			default:
				put(k, r[i])
			}
		}
	}
	// Names sort before those that they begin, except reserved and reserved1: the colon sorts
	// after digits.
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
