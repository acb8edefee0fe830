package compat

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

// classic is the output of the converter for BM1684 and BM1684X before formatting.
type classic struct {
	in     *Input
	net    string
	layers []*layer
	// tensors by id. The first line of an id counts.
	tensors map[int]*tensor
	parts   []allocation
	flops   float64
	// mhz and dmaMHz are the clocks of the engines.
	mhz, dmaMHz float64
	bd, gdma    []*node
	firmware    []event
	unmatched   []*node // records of copies without a command in the log
	subnetType  string
}

type tensor struct {
	id             int
	shape          []int
	dtype          int
	isConst        bool
	nslice, hslice int
}

type layer struct {
	id         int
	kind       string
	global     bool
	ran        bool // a command has a record
	ins, outs  []*tensor
	bd, gdma   []*node
	sizes      [3]int // feature, weight, total
	begin, end float64
}

// node is a command of the log, or a record without one.
type node struct {
	dma        bool
	own, dep   int
	fn         int
	layer      *layer
	c          *command.Command
	rec        words // nil if its record was lost
	id         int   // the record's number
	start, end int64 // cycles
	us         [2]float64
	estimate   int
}

type allocation struct {
	addr, size uint64
	text       string
}

// event is one record of the firmware on the time axis.
type event struct {
	kind       int
	id         uint64
	begin, end float64
}

// newClassic joins log, records, streams and estimate.
func newClassic(in *Input) *classic {
	c := &classic{in: in, tensors: map[int]*tensor{}, mhz: float64(in.TIUMHz), dmaMHz: float64(in.DMAMHz), subnetType: "TPU(static)"}
	if in.Classic.Dynamic {
		c.subnetType = "TPU(dynamic)"
	}
	c.readLog(string(in.Classic.Log))
	c.readFirmware(in.Classic.Firmware)
	if len(in.Cores) > 0 {
		attach(c.bd, in.Cores[0].TIUCommands)
		attach(c.gdma, in.Cores[0].GDMACommands)
		c.match()
	}
	c.setEstimate(in.Classic.Estimate)
	for _, l := range c.layers {
		c.interval(l)
	}
	return c
}

func (c *classic) texts() []File {
	list := c.statistics()
	groups := c.groupStats(list)
	all := c.overall(list, groups)
	return []File{
		{"layer.csv", c.layersCSV(list)},
		{"summary.csv", c.groupsCSV(groups, all)},
		{"mac_util.csv", c.macCSV(groups, all)},
		{"instruction.csv", c.instructions()},
		{"detail.csv", c.detailCSV()},
		{"mem.csv", c.memCSV()},
		{"summary_of_csv_format.csv", c.summaryCSV()},
		{"profile_data.js", c.page()},
	}
}

func attach(nodes []*node, list []command.Command) {
	for i := range min(len(nodes), len(list)) {
		nodes[i].c = &list[i]
	}
}

// match pairs records and command lines with two pointers. A line whose number differs from
// the record's number has lost its record.
func (c *classic) match() {
	core := &c.in.Cores[0]
	idMask := uint32(1<<20 - 1)
	if c.in.Chip == command.BM1684 {
		idMask = 1<<16 - 1
	}
	var gdma []words
	for _, r := range records(core.GDMA, 48) {
		if r[4] != math.MaxUint32 && r[7] != math.MaxUint32 && r[10] != math.MaxUint32 {
			gdma = append(gdma, r)
		}
	}
	base := int64(0)
	for _, e := range c.firmware {
		if e.kind == block.DynNodeSet {
			base = int64(round(e.end*c.dmaMHz, 0))
			break
		}
	}
	at := 0
	for i, r := range gdma {
		if i > 0 && r[2]&idMask == 0 {
			at = i // the firmware issued the copies before the static part
			break
		}
	}
	unmatched := func(list []words) {
		for _, r := range list {
			n := &node{dma: true}
			c.setRecord(n, r, gdma[0], idMask, base)
			c.unmatched = append(c.unmatched, n)
		}
	}
	unmatched(gdma[:at])
	for _, n := range c.gdma {
		if at < len(gdma) && uint32(n.own-1)&idMask == gdma[at][2]&idMask {
			c.setRecord(n, gdma[at], gdma[0], idMask, base)
			at++
		}
	}
	unmatched(gdma[at:])
	tiu := records(core.TIU, 8)
	at = 0
	for _, n := range c.bd {
		if at < len(tiu) && uint32(n.own-1)&0xFFFF == tiu[at][2]&0xFFFF {
			c.setRecord(n, tiu[at], tiu[0], 0xFFFF, 0)
			at++
		}
	}
	c.shift()
}

// setRecord sets the record of a command. Times count from the first record plus a base.
func (c *classic) setRecord(n *node, r, first words, idMask uint32, base int64) {
	n.rec, n.id = r, int(r[2]&idMask)
	c.setTimes(n, int64(r[0])-int64(first[0])+base, int64(r[1])-int64(first[0])+base)
}

func (c *classic) setTimes(n *node, start, end int64) {
	period := c.period(n.dma)
	n.start, n.end = start, end
	n.us = [2]float64{float64(start) * period, float64(end) * period}
}

// shift moves the records of the tensor engine: the first command that waits for a copy begins
// at the end of that copy.
func (c *classic) shift() {
	offset := int64(0)
	waiting := map[[2]int]*node{}
	for i := len(c.bd) - 1; i >= 0; i-- {
		if b := c.bd[i]; b.rec != nil {
			waiting[[2]int{b.own, b.dep}] = b
		}
	}
	for _, g := range c.gdma {
		if b := waiting[[2]int{g.dep + 1, g.own}]; b != nil && g.rec != nil {
			offset = int64(float64(g.end)/c.dmaMHz*c.mhz) - b.start
		}
		if offset != 0 {
			break
		}
	}
	for _, b := range c.bd {
		if b.rec != nil {
			c.setTimes(b, b.start+offset, b.end+offset)
		}
	}
}

// period returns the length of an engine's cycle in microseconds.
func (c *classic) period(dma bool) float64 {
	if dma {
		return 1 / c.dmaMHz
	}
	return 1 / c.mhz
}

// interval sets the first begin and the last end of a layer's commands.
func (c *classic) interval(l *layer) {
	for _, list := range [][]*node{l.bd, l.gdma} {
		for _, n := range list {
			if n.rec == nil {
				continue
			}
			if !l.ran || n.us[0] < l.begin {
				l.begin = n.us[0]
			}
			if !l.ran || n.us[1] > l.end {
				l.end = n.us[1]
			}
			l.ran = true
		}
	}
}

// readFirmware converts the firmware's records to an axis that begins with the first one.
func (c *classic) readFirmware(data []byte) {
	list, _ := block.ParseDyn(data)
	if len(list) < 2 {
		return
	}
	tick := list[0].End
	if tick == 0 || tick > 1000 {
		tick = 20 // nanoseconds on the chips; the head does not state a usable value
	}
	list = list[1:]
	us := func(v uint64) float64 { return float64((v-list[0].Begin)*tick) / 1000 }
	for _, d := range list {
		e := event{kind: int(d.Type & 0xFF), id: d.ID, begin: us(d.Begin), end: us(d.End)}
		if d.End == 0 || d.End == math.MaxUint64 {
			e.end = e.begin + 0.01
		}
		c.firmware = append(c.firmware, e)
	}
}

// logTypes are the element types by their number in the log.
var logTypes = [...]struct {
	name  string
	bytes int
}{{"FP32", 4}, {"FP16", 2}, {"INT8", 1}, {"UINT8", 1}, {"INT16", 2}, {"UINT16", 2}, {"INT32", 4}, {"UINT32", 4}, {"BFP16", 2}}

func typeName(dtype int) string {
	if dtype >= 0 && dtype < len(logTypes) {
		return logTypes[dtype].name
	}
	return "UNKNOWN"
}

func (t *tensor) bytes() int {
	if t.dtype >= 0 && t.dtype < len(logTypes) {
		return product(t.shape) * logTypes[t.dtype].bytes
	}
	return 0
}

// String formats the tensor as the converter does.
func (t *tensor) String() string {
	dims := make([]string, len(t.shape))
	for i, d := range t.shape {
		dims[i] = strconv.Itoa(d)
	}
	s := "tensor_id=" + itoa(t.id) + " [" + strings.Join(dims, "x") + "] " + typeName(t.dtype) + " "
	if t.isConst {
		s += "CONST"
	}
	s += " "
	if t.nslice > 0 {
		s += "nslice=" + itoa(t.nslice) + " hslice=" + itoa(t.hslice)
	}
	return s
}

// values returns the key=value words of a line.
func values(line string) map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(strings.Trim(w, "()"), "="); ok {
			m[k] = v
		}
	}
	return m
}

func num(m map[string]string, key string) int {
	n, _ := strconv.Atoi(m[key])
	return n
}

// readLog reads the compiler's log in the order of its lines.
func (c *classic) readLog(text string) {
	var now *layer
	other := false // inside another subnet's part
	sizes := map[int][3]int{}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "[bmprofile]"))
		m := values(line)
		switch {
		case strings.HasPrefix(line, "start to run"):
			other, now = num(m, "subnet_id") != c.in.Subnet, nil
		case strings.HasPrefix(line, "end to run"):
			other = false
		case other:
		case strings.HasPrefix(line, "net_name="):
			c.net = strings.TrimPrefix(line, "net_name=")
		case strings.HasPrefix(line, "mtype="):
			if num(m, "mtype") == 1 {
				addr, _ := strconv.ParseUint(m["addr"], 10, 64)
				size, _ := strconv.ParseUint(m["size"], 10, 64)
				_, text, _ := strings.Cut(line, "desc=")
				c.parts = append(c.parts, allocation{addr, size, text})
			}
		case strings.HasPrefix(line, "layer_id="):
			sizes[num(m, "layer_id")] = [3]int{num(m, "feature_size"), num(m, "weight_size"), num(m, "total_size")}
		case strings.HasPrefix(line, "global_layer:"), strings.HasPrefix(line, "local_layer:"):
			now = &layer{id: num(m, "layer_id"), kind: m["layer_type"], global: line[0] == 'g', sizes: sizes[num(m, "layer_id")]}
			c.layers = append(c.layers, now)
		case strings.HasPrefix(line, "tensor_id="):
			if now != nil {
				c.tensor(now, m)
			}
		case strings.Contains(line, "cmd_id bd_id=") && !strings.HasPrefix(line, "insert"):
			c.commandLine(now, line, m)
		}
	}
}

// tensor adds the tensor of a line to a layer.
func (c *classic) tensor(l *layer, m map[string]string) {
	id := num(m, "tensor_id")
	t := c.tensors[id]
	if t == nil {
		t = &tensor{id: id, dtype: num(m, "dtype"), isConst: m["is_const"] == "1", nslice: num(m, "nslice"), hslice: num(m, "hslice")}
		for d := range strings.SplitSeq(strings.Trim(m["shape"], "[]"), "x") {
			if n, err := strconv.Atoi(d); err == nil && len(t.shape) < 64 {
				t.shape = append(t.shape, n)
			}
		}
		c.tensors[id] = t
	}
	if m["is_in"] == "1" {
		l.ins = append(l.ins, t)
	} else {
		l.outs = append(l.outs, t)
	}
}

// commandLine adds the command of a line to its engine and its layer.
func (c *classic) commandLine(l *layer, line string, m map[string]string) {
	n := &node{layer: l, own: num(m, "bd_id"), dep: num(m, "gdma_id"), fn: num(m, "bd_func")}
	if n.dma = strings.HasPrefix(line, "gdma") && m["bd_func"] == ""; n.dma {
		n.own, n.dep, n.fn = n.dep, n.own, num(m, "gdma_func")
		c.gdma = append(c.gdma, n)
	} else {
		c.bd = append(c.bd, n)
	}
	switch {
	case l == nil:
	case n.dma:
		l.gdma = append(l.gdma, n)
	default:
		l.bd = append(l.bd, n)
	}
}

// setEstimate sets the estimated cycles of commands. The converter assigns items without a
// direction to the tensor engine. Its pointer stops for good at an item without a command.
func (c *classic) setEstimate(e *compiler.Estimate) {
	if e == nil {
		return
	}
	c.flops = float64(e.FLOPs)
	for engine, nodes := range [...][]*node{c.bd, c.gdma} {
		items := slices.DeleteFunc(slices.Clone(e.Items), func(x compiler.Item) bool { return (x.Dir >= 0) != (engine == 1) })
		for _, n := range nodes {
			if len(items) == 0 {
				break
			}
			own, dep := int(items[0].BD), int(items[0].GDMA)
			if engine == 1 {
				own, dep = dep, own
			}
			if own == n.own && dep == n.dep {
				n.estimate = int(items[0].Cycles)
				items = items[1:]
			}
		}
	}
}
