package compat

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// page is profile_data.js of the newer converter's page: Python lists as script.
func (p *perfAI) page() []byte {
	sum := p.summary()
	layers := len(p.in.Places) > 0
	cats := []string{"TPU_BD", "TPU_GDMA"}
	for k := range p.cores {
		if len(p.cores[k].sdma) > 0 {
			cats = append(cats, "TPU_SDMA")
			break
		}
	}
	first := len(cats)
	filter := "[0, 5]"
	head := []string{"category", "begin_time", "end_time", "Duration", "stall_time", "func_type", "height", "cmd", "func_name"}
	if layers {
		cats = append(cats, "TPU_LAYER", "TPU_GROUP_LAYER")
		filter = "[0, 5, 9, 10, 11, 12]"
		head = append(head, "layer_id", "layer_name", "subnet_id", "subnet_type")
	}
	head = append(head, "global_idx", "uArchRate/BW", "Data Type", "Info", "Msg_Id", "Sd/Wt_Count")
	if layers {
		head = append(head, "is_local")
	}
	var b strings.Builder
	line := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
		b.WriteByte('\n')
	}
	giga := func(v float64) string { return strconv.FormatFloat(v/1e9, 'f', -1, 64) }
	line(`let page_caption = "PerfAI: PerfAI_web"`)
	line(`let platform = "Platform: `, p.in.Chip.Report, `"`)
	line("let configs = ", p.configs())
	line(`let summary_caption= "Summary Table"`)
	line("let summary_header =  ", texts(summaryHead))
	line("let summary_data = ", sum.rows())
	line("let ddr_bandwidth = ", giga(p.in.Chip.DDRPeak))
	line("let l2_bandwidth = ", giga(p.in.Chip.L2Peak))
	line("let dependCmds = []")
	line("let categories = ", texts(cats))
	line("let filter_cols = ", filter)
	line("let lmem_partition = ", banks(p.in.Chip))
	line("let time_header = ", texts(head))
	for k := range p.cores {
		line("window.lmem_op_record", strconv.Itoa(k), " = [", p.memory(k), "]")
	}
	groups := p.groups()
	for k := range p.cores {
		line("window.time_data", strconv.Itoa(k), " = [", p.bars(k, layers, first, groups), "]")
	}
	return []byte(b.String())
}

// texts is a Python list of texts.
func texts(list []string) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pyText(s))
	}
	return "[" + b.String() + "]"
}

var pyEscapes = strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// pyText is a text as Python prints it in a list.
func pyText(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + strings.ReplaceAll(pyEscapes.Replace(s), `\'`, "'") + `"`
	}
	return "'" + pyEscapes.Replace(s) + "'"
}

func (p *perfAI) configs() string {
	var b strings.Builder
	for i, e := range p.constants() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pyText(e.Key) + ": " + pyText(e.Value))
	}
	return "{" + b.String() + "}"
}

func banks(c *command.Chip) string {
	var b strings.Builder
	for i := range c.Banks {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("[" + strconv.Itoa(i*c.BankBytes) + ", " + strconv.Itoa(c.BankBytes) + ", 'BANK[" + strconv.Itoa(i) + "]']")
	}
	return "[" + b.String() + "]"
}

// place is one rectangle of the memory chart.
type place struct {
	start int64
	text  string
}

// memory is what the converter draws of local memory: results of tensor commands as
// reads, operands as writes, and the local side of copies.
func (p *perfAI) memory(k int) string {
	var list []place
	c := &p.cores[k]
	lane := uint64(p.in.Chip.LaneBytes)
	add := func(x *instr, flag string, addr uint64, size float64, more string) {
		list = append(list, place{x.start, "[" + itoa(x.start) + ", " + itoa(x.end) + ", " + flag + ", " + utoa(addr%lane) + ", " + repr(size) +
			`, "<class 'type'>` + itoa(x.id) + ",physical start addr:0x" + strconv.FormatUint(addr, 16) + "<br>" + more +
			"Occupied Lane#:" + utoa((addr+lane-1)/lane) + `"],`})
	}
	for i := range c.tiu {
		x := &c.tiu[i]
		if x.c == nil || x.c.Op.System() {
			continue
		}
		res, _ := volume(x.c, command.Res0Prec, command.Res0N, command.Res0C, command.Res0H, command.Res0W)
		across := uint64(1)
		if v, ok := x.c.Lookup(command.Res0C); ok {
			across = max(1, min(uint64(p.in.Chip.Lanes), v))
		}
		add(x, "0", x.c.Get(command.Res0Addr), res/float64(across), "")
		left, ok := volume(x.c, command.Opd0Prec, command.Opd0N, command.Opd0C, command.Opd0H, command.Opd0W)
		right, _ := volume(x.c, command.Opd1Prec, command.Opd1N, command.Opd1C, command.Opd1H, command.Opd1W)
		if ok {
			add(x, "1", x.c.Get(command.Opd0Addr), (left+right)/float64(across), "")
		}
	}
	for _, copies := range [][]instr{c.gdma, c.sdma} {
		for i := range copies {
			x := &copies[i]
			if x.copy.from == "L2M" || x.copy.to == "L2M" || x.c != nil && x.c.Op.System() {
				continue
			}
			size := float64(x.copy.size) / float64(p.in.Chip.Lanes)
			more := x.copy.direction + "," + someShape + "<br>"
			if x.copy.to == "LMEM" {
				add(x, "0", start(x.c, command.DstLow, command.DstHigh), size, more)
			}
			if x.copy.from == "LMEM" {
				add(x, "1", start(x.c, command.SrcLow, command.SrcHigh), size, more)
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].start < list[j].start })
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = list[i].text
	}
	return strings.Join(append(lines, ""), "\n")
}

// volume is the size in bytes of a tensor whose sizes the command has: missing ones are
// 1, and without a type or any size there is none.
func volume(c *command.Command, prec command.Role, dims ...command.Role) (float64, bool) {
	t, ok := c.Lookup(prec)
	if !ok {
		return 0, false
	}
	size, have := command.DType(t).Bytes(), false
	for _, d := range dims {
		if v, ok := c.Lookup(d); ok {
			size *= float64(v)
			have = true
		}
	}
	if !have {
		return 0, false
	}
	return size, true
}

// bars are the bars of a core's time chart.
func (p *perfAI) bars(k int, layers bool, first int, groups []group) string {
	c := &p.cores[k]
	var lines []string
	for i := range c.tiu {
		x := &c.tiu[i]
		height := 0.0
		if x.c != nil {
			height = round(ratio(x.work.Alg, x.work.Arch)*100, 1) / 100
		}
		lines = append(lines, p.bar(x, 0, p.in.TIUMHz, "''", height, layers, x.rate(), types(x),
			"Bank Conflict Ratio:"+x.share(p, x.work.Conflict), itoa(x.msg), itoa(x.count)))
	}
	for lane, list := range [][]instr{c.gdma, c.sdma} {
		for i := range list {
			x := &list[i]
			ddr, l2 := x.copy.bandwidth, 0.0
			if x.copy.l2 {
				ddr, l2 = l2, ddr
			}
			shown, peak := ddr, p.in.Chip.DDRPeak
			if x.copy.from == "L2M" || x.copy.to == "L2M" {
				shown, peak = l2, p.in.Chip.L2Peak
			} else if p.in.Chip == command.CV184X {
				peak += someMore
			}
			lines = append(lines, p.bar(x, lane+1, p.in.DMAMHz, utoa(x.copy.stall), share(round(shown, 2), peak/1e9), layers,
				"DDR:"+repr(round(ddr, 2))+",L2M:"+repr(round(l2, 2)), x.dataType(), "Direction:"+x.direction(), " ", " "))
		}
	}
	if layers {
		lines = append(lines, p.layerBars(k, first, groups)...)
	}
	return strings.Join(append(lines, ""), "\n")
}

func (p *perfAI) bar(x *instr, lane, mhz int, stall string, height float64, layers bool, rate, dtype, info, msg, count string) string {
	nanos := func(cycles int64) string { return repr(round(float64(cycles)/(float64(mhz)/1000), 2)) }
	var b strings.Builder
	b.WriteString("[" + strconv.Itoa(lane) + ", " + nanos(x.start) + ", " + nanos(x.end) + ", " + nanos(x.cycles) + ", " + stall + ", " +
		pyText(x.kind) + ", " + repr(round(height, 2)) + ", " + itoa(x.id) + ", " + pyText(x.name) + ", ")
	local := "0"
	if layers {
		l := x.layer
		if l == nil || x.engine == engineSDMA {
			b.WriteString("'-', '-', '-', '-', ")
		} else {
			b.WriteString(itoa(l.Line) + ", " + pyText(l.Op) + ", " + itoa(l.Subnet) + ", 'TPU', ")
			if l.Local {
				local = "1"
			}
		}
	}
	b.WriteString(pyText(itoa(x.global)) + ", " + pyText(rate) + ", " + pyText(dtype) + ", " + pyText(info) + ", " + pyText(msg) + ", " +
		pyText(count) + ", " + local + "],")
	return b.String()
}

// someMore is by how much, in bytes per second, the converter's peak of CV184X lies above
// the number that it prints.
const someMore = 1e6

func share(v, peak float64) float64 {
	if peak == 0 {
		return 0
	}
	return v / peak
}

// run is a stretch of a layer's commands.
type run struct{ begin, end int64 }

// layerBars are the bars of layers and groups: a global layer is one bar, a local one a
// bar for each run of numbers that follow one another, whatever engine they are of.
func (p *perfAI) layerBars(k, lane int, groups []group) []string {
	type piece struct {
		id         int
		begin, end int64
	}
	c := &p.cores[k]
	pieces := map[int][]piece{}
	var order []*Place
	for e, list := range [][]instr{c.tiu, c.gdma} {
		mhz := float64(p.in.TIUMHz) / 1000
		if e > 0 {
			mhz = float64(p.in.DMAMHz) / 1000
		}
		for i := range list {
			x := &list[i]
			if x.layer == nil {
				continue
			}
			if pieces[x.layer.Line] == nil {
				order = append(order, x.layer)
			}
			begin, end := round(float64(x.start)/mhz, 2), round(float64(x.end)/mhz, 2)
			pieces[x.layer.Line] = append(pieces[x.layer.Line], piece{x.id, int64(begin), int64(end)})
		}
	}
	spans := map[int]run{}
	var lines []string
	for _, l := range order {
		list := pieces[l.Line]
		sort.SliceStable(list, func(i, j int) bool { return list[i].id < list[j].id })
		var runs []run
		for i, q := range list {
			if i == 0 || l.Local && q.id != list[i-1].id+1 {
				runs = append(runs, run{math.MaxInt64, 0})
			}
			r := &runs[len(runs)-1]
			r.begin, r.end = min(r.begin, q.begin), max(r.end, q.end)
		}
		height := "1.0"
		if l.Op == "Load" || l.Op == "Store" {
			height = "0.5"
		}
		name := pyText(l.Op)
		for _, r := range runs {
			lines = append(lines, "["+strconv.Itoa(lane)+", "+itoa(r.begin)+", "+itoa(r.end)+", "+itoa(r.end-r.begin)+", '', "+name+", "+height+
				", '', "+name+", "+itoa(l.Line)+", "+name+", "+itoa(l.Subnet)+", 'TPU', '', '', '', ''],")
		}
		whole := run{math.MaxInt64, 0}
		for _, r := range runs {
			whole.begin, whole.end = min(whole.begin, r.begin), max(whole.end, r.end)
		}
		spans[l.Line] = whole
	}
	for i, g := range groups {
		whole := run{math.MaxInt64, 0}
		for l := g.first; l <= g.last; l++ {
			// The last layer is not there yet when the converter draws the groups.
			if s, ok := spans[l]; ok && l != order[len(order)-1].Line {
				whole.begin, whole.end = min(whole.begin, s.begin), max(whole.end, s.end)
			}
		}
		if whole.begin < math.MaxInt64 {
			lines = append(lines, "["+strconv.Itoa(lane+1)+", "+itoa(whole.begin)+", "+itoa(whole.end)+", "+itoa(whole.end-whole.begin)+", '', 'Group"+
				strconv.Itoa(i+1)+"  L"+strconv.Itoa(g.line)+"', 0.5, '', '', '', '', 0, 'TPU', '', '', '', ''],")
		}
	}
	return lines
}

// group is a layer group of final.mlir: its line counted from 0, and its members' lines
// counted from 1.
type group struct{ line, first, last int }

func (p *perfAI) groups() []group {
	var list []group
	for i := 0; i < len(p.in.MLIR); i++ {
		if s := p.in.MLIR[i]; !strings.Contains(s, "Group") || strings.Contains(s, "Parallel") {
			continue
		}
		for j := i + 1; j < len(p.in.MLIR); j++ {
			s := p.in.MLIR[j]
			if strings.Contains(s, "Yield") {
				list = append(list, group{i, i + 2, j})
				break
			}
			if strings.Contains(s, "Group") && !strings.Contains(s, "Parallel") {
				break // groups do not lie inside groups
			}
		}
	}
	return list
}
