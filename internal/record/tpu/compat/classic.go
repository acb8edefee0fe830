package compat

import (
	"encoding/binary"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Classic is what only the converter of BM1684 and BM1684X uses.
type Classic struct {
	// Log is the text of global.profile, Estimate that of net_stat.sim.
	Log, Estimate []byte
	// Firmware and Attached are the payloads of the firmware's blocks.
	Firmware, Attached []byte
	// Dynamic says that the firmware made the commands up.
	Dynamic bool
}

// classic is what the converter makes of a directory of BM1684 or BM1684X.
type classic struct {
	in     *Input
	net    string
	layers []*layer
	// tensors by id: the first line of each holds.
	tensors map[int]*tensor
	parts   []allocation
	flops   float64
	// mhz and dmaMHz are the clocks of the engines.
	mhz, dmaMHz float64
	bd, gdma    []*node
	firmware    []event
	unmatched   []*node // records of copies that no command of the log explains
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
	rec        words // nil: its record was lost
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
		c.attach(c.bd, in.Cores[0].TIUCommands)
		c.attach(c.gdma, in.Cores[0].GDMACommands)
		c.match()
	}
	c.readEstimate(string(in.Classic.Estimate))
	for _, l := range c.layers {
		c.interval(l)
	}
	return c
}

// attach gives each command line the command of its place.
func (c *classic) attach(nodes []*node, list []command.Command) {
	for i, n := range nodes {
		if i < len(list) {
			n.c = &list[i]
		}
	}
}

func classicWords(chip *command.Chip) (words int, idBits int) {
	if chip == command.BM1684 {
		return 48, 16
	}
	return 48, 20
}

// match pairs records and command lines with two pointers: a line whose number is not
// the record's has lost its record.
func (c *classic) match() {
	core := &c.in.Cores[0]
	words, bits := classicWords(c.in.Chip)
	tiu := records(core.TIU, 8)
	gdma := records(core.GDMA, words)
	kept := gdma[:0]
	for _, r := range gdma {
		if r[4] != 0xFFFFFFFF && r[7] != 0xFFFFFFFF && r[10] != 0xFFFFFFFF {
			kept = append(kept, r)
		}
	}
	gdma = kept
	base := int64(0)
	for _, e := range c.firmware {
		if e.kind == 1 {
			base = int64(round(e.end*c.dmaMHz, 0))
			break
		}
	}
	first := 0
	for i := 1; i < len(gdma); i++ {
		if c.recordID(gdma[i], bits) == 0 {
			first = i // the static part begins: what was before was issued by the firmware
			break
		}
	}
	at := first
	for _, n := range c.gdma {
		if at < len(gdma) && (n.own-1)&(1<<bits-1) == c.recordID(gdma[at], bits) {
			n.rec = gdma[at]
			at++
		}
	}
	if len(gdma) > 0 {
		zero := int64(gdma[0][0])
		set := func(n *node) {
			n.id = c.recordID(n.rec, bits)
			n.start, n.end = int64(n.rec[0])-zero+base, int64(n.rec[1])-zero+base
			c.microseconds(n)
		}
		for i, r := range gdma {
			if i < first || i >= at {
				n := &node{dma: true, rec: r}
				set(n)
				c.unmatched = append(c.unmatched, n)
			}
		}
		for _, n := range c.gdma {
			if n.rec != nil {
				set(n)
			}
		}
	}
	at = 0
	for _, n := range c.bd {
		if at < len(tiu) && (n.own-1)&0xFFFF == int(tiu[at][2]&0xFFFF) {
			n.rec, n.id = tiu[at], int(tiu[at][2]&0xFFFF)
			n.start, n.end = int64(n.rec[0])-int64(tiu[0][0]), int64(n.rec[1])-int64(tiu[0][0])
			at++
		}
	}
	c.shift()
}

// shift moves the tensor engine's records: the first command that waits for a copy
// begins when that copy ends.
func (c *classic) shift() {
	move := int64(0)
	waiting := map[[2]int]*node{}
	for i := len(c.bd) - 1; i >= 0; i-- {
		if b := c.bd[i]; b.rec != nil {
			waiting[[2]int{b.own, b.dep}] = b
		}
	}
	for _, g := range c.gdma {
		if g.rec == nil {
			continue
		}
		if b := waiting[[2]int{g.dep + 1, g.own}]; b != nil {
			move = int64(float64(g.end)/c.dmaMHz*c.mhz) - b.start
		}
		if move != 0 {
			break
		}
	}
	for _, b := range c.bd {
		if b.rec != nil {
			b.start += move
			b.end += move
			c.microseconds(b)
		}
	}
}

func (c *classic) microseconds(n *node) {
	period := c.period(n.dma)
	n.us = [2]float64{float64(n.start) * period, float64(n.end) * period}
}

// period is the length of an engine's cycle in microseconds.
func (c *classic) period(dma bool) float64 {
	if dma {
		return 1 / c.dmaMHz
	}
	return 1 / c.mhz
}

func (c *classic) recordID(r words, bits int) int { return int(r[2] & (1<<bits - 1)) }

// interval is from the first begin to the last end of a layer's commands.
func (c *classic) interval(l *layer) {
	some := false
	for _, list := range [][]*node{l.bd, l.gdma} {
		for _, n := range list {
			if n.rec == nil {
				continue
			}
			if !some || n.us[0] < l.begin {
				l.begin = n.us[0]
			}
			if !some || n.us[1] > l.end {
				l.end = n.us[1]
			}
			some = true
		}
	}
}

// run reports whether any of the layer's commands left a record.
func (l *layer) ran() bool {
	for _, list := range [][]*node{l.bd, l.gdma} {
		for _, n := range list {
			if n.rec != nil {
				return true
			}
		}
	}
	return false
}

// readFirmware puts the firmware's records on an axis that begins with the first one.
func (c *classic) readFirmware(data []byte) {
	const size = 32
	if len(data) < 2*size {
		return
	}
	le := binary.LittleEndian
	tick := le.Uint64(data[24:])
	if tick == 0 || tick > 1000 {
		tick = 20 // what a chip has: the header says nothing about use
	}
	base := le.Uint64(data[size+16:])
	for data = data[size:]; len(data) >= size; data = data[size:] {
		us := func(v uint64) float64 { return float64((v-base)*tick) / 1000 }
		e := event{kind: int(le.Uint32(data[4:]) & 0xFF), id: le.Uint64(data[8:]), begin: us(le.Uint64(data[16:]))}
		if end := le.Uint64(data[24:]); end == 0 || end == 1<<64-1 {
			e.end = e.begin + 0.01
		} else {
			e.end = us(end)
		}
		c.firmware = append(c.firmware, e)
	}
}

// The names of the log's element types.
var logTypes = [...]struct {
	name  string
	bytes int
}{{"FP32", 4}, {"FP16", 2}, {"INT8", 1}, {"UINT8", 1}, {"INT16", 2}, {"UINT16", 2}, {"INT32", 4}, {"UINT32", 4}, {"BFP16", 2}}

func (t *tensor) typeName() string {
	if t.dtype >= 0 && t.dtype < len(logTypes) {
		return logTypes[t.dtype].name
	}
	return "UNKNOWN"
}

func (t *tensor) bytes() int {
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	if t.dtype >= 0 && t.dtype < len(logTypes) {
		return n * logTypes[t.dtype].bytes
	}
	return 0
}

// String is the tensor as the converter prints it.
func (t *tensor) String() string {
	dims := make([]string, len(t.shape))
	for i, d := range t.shape {
		dims[i] = itoa(d)
	}
	s := "tensor_id=" + itoa(t.id) + " [" + strings.Join(dims, "x") + "] " + t.typeName() + " "
	if t.isConst {
		s += "CONST"
	}
	s += " "
	if t.nslice > 0 {
		s += "nslice=" + itoa(t.nslice) + " hslice=" + itoa(t.hslice)
	}
	return s
}
