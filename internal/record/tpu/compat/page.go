package compat

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// page returns profile_data.js of the newer converter's page: Python lists as script.
func (p *perfAI) page() []byte {
	layers := len(p.in.Places) > 0
	cats := []string{"TPU_BD", "TPU_GDMA"}
	if slices.ContainsFunc(p.cores, func(c coreRun) bool { return len(c.sdma) > 0 }) {
		cats = append(cats, "TPU_SDMA")
	}
	first := len(cats)
	filter := "[0, 5]"
	head := []string{"category", "begin_time", "end_time", "Duration", "stall_time", "func_type", "height", "cmd", "func_name"}
	tail := []string{"global_idx", "uArchRate/BW", "Data Type", "Info", "Msg_Id", "Sd/Wt_Count"}
	if layers {
		cats = append(cats, "TPU_LAYER", "TPU_GROUP_LAYER")
		filter = "[0, 5, 9, 10, 11, 12]"
		head = append(head, "layer_id", "layer_name", "subnet_id", "subnet_type")
		tail = append(tail, "is_local")
	}
	var configs, banks []string
	for _, e := range p.constants() {
		configs = append(configs, pyText(e.Key)+": "+pyText(e.Value))
	}
	c := p.in.Chip
	for i := range c.Banks {
		banks = append(banks, pyList(i*c.BankBytes, c.BankBytes, "BANK["+strconv.Itoa(i)+"]"))
	}
	lines := []string{
		`let page_caption = "PerfAI: PerfAI_web"`,
		`let platform = "Platform: ` + c.Report + `"`,
		"let configs = {" + strings.Join(configs, ", ") + "}",
		`let summary_caption= "Summary Table"`,
		"let summary_header =  " + pyList(anys(columns["summary"])...),
		"let summary_data = " + p.rows(),
		"let ddr_bandwidth = " + string(giga(c.DDRPeak)),
		"let l2_bandwidth = " + string(giga(c.L2Peak)),
		"let dependCmds = []",
		"let categories = " + pyList(anys(cats)...),
		"let filter_cols = " + filter,
		"let lmem_partition = [" + strings.Join(banks, ", ") + "]",
		"let time_header = " + pyList(anys(append(head, tail...))...),
	}
	for k := range p.cores {
		lines = append(lines, "window.lmem_op_record"+strconv.Itoa(k)+" = ["+p.accesses(k)+"]")
	}
	groups := p.groups()
	for k := range p.cores {
		lines = append(lines, "window.time_data"+strconv.Itoa(k)+" = ["+p.bars(k, layers, first, groups)+"]")
	}
	return []byte(strings.Join(append(lines, ""), "\n"))
}

// accesses returns the rectangles of the chart of local memory: results of tensor commands as
// reads, operands as writes, and the local side of copies.
func (p *perfAI) accesses(k int) string {
	type access struct {
		start int64
		text  string
	}
	var list []access
	c := &p.cores[k]
	lane := uint64(p.in.Chip.LaneBytes)
	add := func(x *instr, flag int, addr uint64, size float64, more string) {
		text := "<class 'type'>" + itoa(x.id) + ",physical start addr:0x" + strconv.FormatUint(addr, 16) + "<br>" + more +
			"Occupied Lane#:" + utoa((addr+lane-1)/lane)
		list = append(list, access{x.start, pyList(x.start, x.end, flag, addr%lane, size, literal(`"`+text+`"`)) + ","})
	}
	for _, x := range c.tiu {
		if x.c == nil || x.c.Op.System() {
			continue
		}
		res, _ := volume(x.c, command.Res0Prec, command.Res0N, command.Res0C, command.Res0H, command.Res0W)
		across := 1.0
		if v, ok := x.c.Lookup(command.Res0C); ok {
			across = float64(max(1, min(uint64(p.in.Chip.Lanes), v)))
		}
		add(x, 0, x.c.Get(command.Res0Addr), res/across, "")
		left, ok := volume(x.c, command.Opd0Prec, command.Opd0N, command.Opd0C, command.Opd0H, command.Opd0W)
		right, _ := volume(x.c, command.Opd1Prec, command.Opd1N, command.Opd1C, command.Opd1H, command.Opd1W)
		if ok {
			add(x, 1, x.c.Get(command.Opd0Addr), (left+right)/across, "")
		}
	}
	for _, x := range slices.Concat(c.gdma, c.sdma) {
		if x.copy.from == "L2M" || x.copy.to == "L2M" || x.system() {
			continue
		}
		size := float64(x.copy.size) / float64(p.in.Chip.Lanes)
		more := x.copy.direction + "," + someShape + "<br>"
		if x.copy.to == "LMEM" {
			add(x, 0, x.address(command.DstLow, command.DstHigh), size, more)
		}
		if x.copy.from == "LMEM" {
			add(x, 1, x.address(command.SrcLow, command.SrcHigh), size, more)
		}
	}
	sorting.Stable(list, func(a, b access) int { return cmp.Compare(a.start, b.start) })
	var b strings.Builder
	for _, a := range list {
		b.WriteString(a.text + "\n")
	}
	return b.String()
}

// volume returns the size in bytes of a tensor from the sizes in a command. Missing sizes are
// 1. ok is false without a type or any size.
func volume(c *command.Command, prec command.Role, dims ...command.Role) (size float64, ok bool) {
	t, typed := c.Lookup(prec)
	size = command.DType(t).Bytes()
	for _, d := range dims {
		if v, has := c.Lookup(d); has && typed {
			size *= float64(v)
			ok = true
		}
	}
	if !ok {
		return 0, false
	}
	return size, true
}

// someMore is the difference in bytes per second between the converter's peak of CV184X and
// the number that it prints.
const someMore = 1e6

func (p *perfAI) bars(k int, layers bool, first int, groups []group) string {
	c := p.cores[k]
	var b strings.Builder
	for x, mhz := range p.clocked(c) {
		lane, stall, height := 0, any(""), 0.0
		rate, dtype, info, msg, count := x.rate(), types(x), "Bank Conflict Ratio:"+x.share(p, x.work.Conflict), itoa(x.msg), itoa(x.count)
		if x.engine != engineTIU {
			lane, stall = 1, x.copy.stall
			if x.engine == engineSDMA {
				lane = 2
			}
			ddr, l2 := x.copy.rates()
			shown, peak := ddr, p.in.Chip.DDRPeak
			if x.copy.from == "L2M" || x.copy.to == "L2M" {
				shown, peak = l2, p.in.Chip.L2Peak
			} else if p.in.Chip == command.CV184X {
				peak += someMore
			}
			if peak > 0 {
				height = round(shown, 2) / (peak / 1e9)
			}
			rate, dtype, info = "DDR:"+repr(round(ddr, 2))+",L2M:"+repr(round(l2, 2)), x.dataType(), "Direction:"+x.direction()
			msg, count = " ", " "
		} else if x.c != nil {
			height = round(ratio(x.work.Alg, x.work.Arch)*100, 1) / 100
		}
		nanos := func(cycles int64) float64 { return round(float64(cycles)/(mhz/1000), 2) }
		list := []any{lane, nanos(x.start), nanos(x.end), nanos(x.cycles), stall, x.kind, round(height, 2), x.id, x.name}
		local := 0
		if l := x.layer; layers && (l == nil || x.engine == engineSDMA) {
			list = append(list, "-", "-", "-", "-")
		} else if layers {
			list = append(list, l.Line, l.Op, l.Subnet, "TPU")
			if l.Local {
				local = 1
			}
		}
		b.WriteString(pyList(append(list, itoa(x.global), rate, dtype, info, msg, count, local)...) + ",\n")
	}
	if layers {
		p.layerBars(&b, c, first, groups)
	}
	return b.String()
}

// run is an interval of a layer's commands in nanoseconds.
type run struct{ begin, end int64 }

// empty is a run before the first command.
var empty = run{math.MaxInt64, 0}

// extend includes another run.
func (r *run) extend(o run) { r.begin, r.end = min(r.begin, o.begin), max(r.end, o.end) }

// layerBars adds the bars of layers and groups. A global layer is one bar, a local layer a bar
// for each run of consecutive numbers, whatever the engine.
func (p *perfAI) layerBars(b *strings.Builder, c coreRun, lane int, groups []group) {
	type piece struct {
		id int
		run
	}
	pieces := map[int][]piece{}
	var order []*Place
	for x, mhz := range p.clocked(c) {
		if x.layer == nil || x.engine == engineSDMA {
			continue
		}
		if pieces[x.layer.Line] == nil {
			order = append(order, x.layer)
		}
		nanos := func(cycles int64) int64 { return int64(round(float64(cycles)/(mhz/1000), 2)) }
		pieces[x.layer.Line] = append(pieces[x.layer.Line], piece{x.id, run{nanos(x.start), nanos(x.end)}})
	}
	spans := map[int]run{}
	for _, l := range order {
		list := pieces[l.Line]
		sorting.Stable(list, func(a, b piece) int { return a.id - b.id })
		var runs []run
		whole := empty
		for i, q := range list {
			if i == 0 || l.Local && q.id != list[i-1].id+1 {
				runs = append(runs, empty)
			}
			runs[len(runs)-1].extend(q.run)
			whole.extend(q.run)
		}
		height := 1.0
		if l.Op == "Load" || l.Op == "Store" {
			height = 0.5
		}
		for _, r := range runs {
			b.WriteString(pyList(lane, r.begin, r.end, r.end-r.begin, "", l.Op, height, "", l.Op, l.Line, l.Op, l.Subnet, "TPU", "", "", "", "") + ",\n")
		}
		spans[l.Line] = whole
	}
	for i, g := range groups {
		whole := empty
		for l := g.first; l <= g.last; l++ {
			// The converter draws the groups before it adds the last layer.
			if s, ok := spans[l]; ok && l != order[len(order)-1].Line {
				whole.extend(s)
			}
		}
		if whole.begin < math.MaxInt64 {
			name := "Group" + strconv.Itoa(i+1) + "  L" + strconv.Itoa(g.line)
			b.WriteString(pyList(lane+1, whole.begin, whole.end, whole.end-whole.begin, "", name, 0.5, "", "", "", "", 0, "TPU", "", "", "", "") + ",\n")
		}
	}
}

// group is a layer group of final.mlir: its line counted from 0, and the lines of its first
// and last members counted from 1.
type group struct{ line, first, last int }

func (p *perfAI) groups() []group {
	var list []group
	begin := -1
	for i, s := range p.in.MLIR { // groups do not contain groups
		if begin >= 0 && strings.Contains(s, "Yield") {
			list = append(list, group{begin, begin + 2, i})
			begin = -1
		}
		if strings.Contains(s, "Group") && !strings.Contains(s, "Parallel") {
			begin = i
		}
	}
	return list
}

// coreSum contains the sums of one core, or of all cores.
type coreSum struct {
	tiu, gdma, sdma int64 // cycles without waiting
	workSum
	ddr, l2, sddr        flow
	haveGDMA, haveSDMA   bool
	tiuUs, dmaUs, sdmaUs float64
}

// flow is bytes over cycles.
type flow struct{ bytes, cycles uint64 }

// rate returns the bandwidth in GB/s.
func (f flow) rate(mhz int) float64 { return ratio(f.bytes, f.cycles) * float64(mhz) / 1000 }

// page returns the rate as the page shows it.
func (f flow) page(mhz int) any {
	if f.cycles == 0 {
		return 0
	}
	return fixed(f.rate(mhz), 2)
}

// cell returns the rate as the workbook shows it.
func (f flow) cell(mhz int) string {
	if f.cycles == 0 {
		return "0"
	}
	return repr(round(f.rate(mhz), 2))
}

func (f *flow) add(g flow) {
	f.bytes += g.bytes
	f.cycles += g.cycles
}

// summary adds up the commands of each core. The times of all cores are the largest ones.
func (p *perfAI) summary() (cores []coreSum, all coreSum) {
	for _, c := range p.cores {
		var q coreSum
		for _, x := range c.tiu {
			if q.add(x); x.name != "system.wait_msg" {
				q.tiu += x.cycles
			}
		}
		q.gdma, q.ddr, q.l2 = copySum(c.gdma)
		q.sdma, q.sddr, _ = copySum(c.sdma)
		q.haveGDMA, q.haveSDMA = len(c.gdma) > 0, len(c.sdma) > 0
		q.tiuUs = float64(q.tiu) / float64(p.in.TIUMHz)
		q.dmaUs = float64(q.gdma) / float64(p.in.DMAMHz)
		q.sdmaUs = float64(q.sdma) / float64(p.in.DMAMHz)
		cores = append(cores, q)
		all.tiuUs, all.dmaUs, all.sdmaUs = max(all.tiuUs, q.tiuUs), max(all.dmaUs, q.dmaUs), max(all.sdmaUs, q.sdmaUs)
		all.alg += q.alg
		all.arch += q.arch
		all.algCycles = max(all.algCycles, q.algCycles)
		all.ddr.add(q.ddr)
		all.l2.add(q.l2)
		all.sddr.add(q.sddr)
		all.haveSDMA = all.haveSDMA || q.haveSDMA
	}
	return cores, all
}

// copySum adds up the cycles of copies without waiting, and the bytes from or to DDR and L2.
func copySum(list []*instr) (cycles int64, ddr, l2 flow) {
	for _, x := range list {
		if x.name == "sys_wait" {
			continue
		}
		cycles += x.cycles
		f := flow{x.copy.size, uint64(x.cycles)}
		switch {
		case strings.Contains(x.direction(), "DDR"):
			ddr.add(f)
		case strings.Contains(x.direction(), "L2M"):
			l2.add(f)
		}
	}
	return cycles, ddr, l2
}

// total returns the time from the earliest start to the latest end in microseconds. On the page,
// each copy of a core has the end of its last copy.
func (p *perfAI) total(page bool) float64 {
	first, last := math.Inf(1), 0.0
	for _, c := range p.cores {
		copies := slices.Concat(c.gdma, c.sdma)
		for x, mhz := range p.clocked(c) {
			end := x.end
			if page {
				mhz /= 1000
				if x.engine != engineTIU {
					end = copies[len(copies)-1].end
				}
			}
			first, last = min(first, float64(x.start)/mhz), max(last, float64(end)/mhz)
		}
	}
	if math.IsInf(first, 1) {
		return 0
	}
	if page {
		return round((last-first)/1000, 3)
	}
	return round(last-first, 3)
}

// rows returns the rows of the page's summary table.
func (p *perfAI) rows() string {
	var rows []string
	total := p.total(true)
	cores, all := p.summary()
	mhz := p.in.DMAMHz
	sdma := func(have bool, f flow) any {
		switch {
		case !have:
			return 0
		case f.bytes > 0:
			return f.page(mhz)
		}
		return "0.00"
	}
	ratios := 0.0
	for k, q := range cores {
		burst := any(0)
		if q.haveGDMA {
			burst = "0.00"
		}
		ratios += q.tiuUs / total
		rows = append(rows, pyList(strconv.Itoa(k), percent((q.tiuUs+q.dmaUs+q.sdmaUs)/total, 2), total, percent(q.tiuUs/total, 2), q.tiu,
			share2(q.alg, q.arch), q.gdma, q.ddr.page(mhz), q.l2.page(mhz), burst, q.sdma, sdma(q.haveSDMA, q.sddr), 0))
	}
	us := func(v float64) string { return fixed(v, 2) + "us" }
	rows = append(rows, pyList("Overall", percent((all.tiuUs+all.dmaUs)/total, 2), total, percent(ratios/float64(max(1, len(cores))), 2),
		us(all.tiuUs), share2(all.alg, all.arch), us(all.dmaUs), all.ddr.page(mhz), all.l2.page(mhz), "0.00", us(all.sdmaUs),
		sdma(all.haveSDMA, all.sddr), "0.00"))
	return "[" + strings.Join(rows, ", ") + "]"
}
