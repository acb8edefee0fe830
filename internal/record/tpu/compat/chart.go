package compat

import (
	"sort"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// The lanes of the classic chart.
var classicLanes = [...]string{"TPU_BD", "TPU_GDMA", "NODE_OP", "TPU_LAYER", "HOST_CPU", "SUBNET"}

// chartRow is one bar: times, height and identifiers as they are printed.
type chartRow struct {
	lane               int
	begin, end, length string
	name, height       string
	layer              int
	layerType, info    string
}

var (
	bdNames   = [...]string{"CONV", "PD", "MM", "AR", "RQDQ", "TRANS_BC", "SG", "LAR", "", "SFU", "LIN", "", "", "CMP", "VC", "SYS"}
	copyNames = [...]string{"TENSOR", "MATRIX", "MASKED_SEL", "GENERAL", "CW_TRANS", "NONZERO", "SYS", "GATHER", "SCATTER"}

	bdNames1684 = [...]string{
		"CONV_NEURON", "DEPTHWISE_OR_POOLING", "FC", "TENSOR_ARITHMETIC", "FC2", "CONV_CORRELATION", "TABLE_LOOKUP", "MD_SUM",
		"MD_SCALAR", "MD_SFU", "MD_LINEAR", "LOCALMEM_ARANGE", "DECOMPRESS", "MD_CMP", "VECTOR_CORRELATION",
	}
	copyNames1684 = [...]string{"NORMAL", "TRANS", "LRN_SHIFT", "FORMAT", "CONSTANT", "CW_TRANS", "WINOGRAD", "FILTER", "FILTER_RES_COUNTER"}
)

func (c *classic) bdName(n int) string {
	if c.in.Chip == command.BM1684 {
		return pick(bdNames1684[:], n)
	}
	return pick(bdNames[:], n)
}

func (c *classic) copyName(n int) string {
	if c.in.Chip == command.BM1684 {
		return pick(copyNames1684[:], n)
	}
	return pick(copyNames[:], n)
}

func pick(names []string, n int) string {
	if n >= 0 && n < len(names) && names[n] != "" {
		return names[n]
	}
	return "UNKNOWN"
}

func (l *layer) label() string {
	if l.global {
		return l.kind + "(G)"
	}
	return l.kind + "(L)"
}

func spanText(begin, end float64) (b, e, length string) {
	return repr(begin), repr(end), repr(end - begin)
}

// chart are all bars in the converter's order.
func (c *classic) chart() []chartRow {
	rows := []chartRow{{lane: 5, begin: "0", end: "0", length: "0", name: "Iter[0]", height: "-1", layer: -1, layerType: "-", info: "num_layers=" + itoa(len(c.layers))}}
	for _, e := range c.firmware {
		if e.kind == 1 || e.kind == 2 {
			rows = append(rows, c.firmwareRow(e))
		}
	}
	rows = append(rows, c.copyRows()...)
	for _, n := range c.bd {
		if n.rec == nil {
			continue
		}
		r := chartRow{lane: 0, name: "bd_id=" + itoa(n.id), layer: -1, layerType: "-", height: "-1"}
		r.begin, r.end, r.length = spanText(n.us[0], n.us[1])
		if n.layer != nil {
			r.layer, r.layerType = n.layer.id, n.layer.label()
		}
		r.info = c.bdName(n.fn) + "<br>cycle=" + utoa((uint64(n.rec[3])<<32|uint64(n.rec[2]))>>16)
		if n.c != nil {
			if w, ok := n.c.Work(c.in.Chip); ok {
				r.height = repr(ratio(w.Alg, w.Arch))
				r.info += "<br>uarch_rate=" + r.height
			}
		}
		rows = append(rows, r)
	}
	for _, l := range c.layers {
		if l.ran() {
			rows = append(rows, l.row())
		}
	}
	return rows
}

func (c *classic) firmwareRow(e event) chartRow {
	r := chartRow{lane: 2, height: "-1", layer: -1, layerType: "-"}
	r.begin, r.end, r.length = spanText(e.begin, e.end)
	bits := func(first, width int) uint64 { return e.id >> first & (1<<width - 1) }
	bd, gdma, engine, fn := bits(0, 20), bits(20, 20), bits(40, 3), bits(43, 4)
	parallel := bits(52, 1)
	if c.in.Chip == command.BM1684 {
		bd, gdma, engine, fn, parallel = bits(0, 16), bits(16, 16), bits(48, 4), bits(36, 4), bits(32, 1)
		if engine == 1 {
			fn = bits(40, 3)
		}
	}
	r.name = "wait"
	r.info = "gdma_id=" + utoa(gdma) + ", bd_id=" + utoa(bd)
	if e.kind == 1 {
		units := [...]string{"BD", "GDMA", "GDE", "SORT", "NMS", "CDMA"}
		name := c.bdName(int(fn))
		if engine == 1 {
			name = c.copyName(int(fn))
		}
		r.name = "set_" + units[min(engine, 5)]
		r.info += [...]string{", serial", ", parallel"}[parallel]
		if bits(60, 4) > 0 {
			r.info += ", " + name
		}
	}
	return r
}

// copyRows are the bars of copies in the order of their records. A bar is as high as its
// speed is to the largest one so far.
func (c *classic) copyRows() []chartRow {
	list := append([]*node(nil), c.unmatched...)
	for _, n := range c.gdma {
		if n.rec != nil {
			list = append(list, n)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].start < list[j].start })
	var rows []chartRow
	fastest := 0.0
	for _, n := range list {
		r := chartRow{lane: 1, name: "gdma_id=" + itoa(n.id), layer: -1, layerType: "-"}
		r.begin, r.end, r.length = spanText(n.us[0], n.us[1])
		bytes := c.moved(n.rec)
		speed := 0.0
		if d := n.us[1] - n.us[0]; d > 0 {
			speed = float64(bytes) / d // bytes in a microsecond
		}
		fastest = max(fastest, speed)
		r.height = "0.0"
		if fastest > 0 {
			r.height = repr(speed / fastest)
		}
		w := func(i int) string { return strconv.FormatUint(uint64(n.rec[i]), 10) }
		r.info = "speed=" + fixed(speed/1000, 3) + "GB/s, bytes=" + utoa(bytes) +
			"<br>d0_wr=" + w(4) + ", d0_ar=" + w(5) + ", d0_aw=" + w(3) +
			"<br>d1_wr=" + w(7) + ", d1_ar=" + w(8) + ", d1_aw=" + w(6) +
			"<br>gif_wr=" + w(10) + ", gif_ar=" + w(11) + ", gif_aw=" + w(9)
		if n.layer != nil {
			r.layer, r.layerType = n.layer.id, n.layer.label()
			r.info = c.copyName(n.fn) + "<br>" + r.info
		}
		rows = append(rows, r)
	}
	return rows
}

func (l *layer) row() chartRow {
	r := chartRow{lane: 3, name: l.label(), height: "1", layer: l.id, layerType: l.label()}
	if l.kind == "Load" || l.kind == "Store" {
		r.height = "0.5"
	}
	r.begin, r.end, r.length = spanText(l.begin, l.end)
	var b strings.Builder
	b.WriteString("<br>local_layer")
	if l.global {
		b.Reset()
		b.WriteString("<br>global_layer")
	}
	b.WriteString("<br>==ins==")
	for _, t := range l.ins {
		b.WriteString("<br>" + t.String())
	}
	b.WriteString("<br>==outs==")
	for _, t := range l.outs {
		b.WriteString("<br>" + t.String())
	}
	b.WriteString("<br>========<br>feature_size=" + itoa(l.sizes[0]) + "<br>weight_size=" + itoa(l.sizes[1]) + "<br>total_size=" + itoa(l.sizes[2]))
	r.info = b.String()
	return r
}

// memoryRow is one access of a command on the time axis.
type memoryRow struct {
	local      bool
	write      bool
	addr, size uint64
	begin, end float64
	info       string
}

// accesses are the memory records of all commands: of each memory the copies' first.
func (c *classic) accesses(local bool) []memoryRow {
	var rows []memoryRow
	var buf []command.Access
	for _, side := range [...]struct {
		nodes []*node
		name  string
	}{{c.gdma, "gdma"}, {c.bd, "tiu"}} {
		for _, n := range side.nodes {
			if n.rec == nil || n.c == nil {
				continue
			}
			buf = n.c.Accesses(c.in.Chip, buf[:0])
			for i := range buf {
				a := &buf[i]
				if (a.Space == command.Local) != local {
					continue
				}
				text, size := c.placeText(n, a)
				rows = append(rows, memoryRow{
					local: local, write: a.Write, addr: a.Addr, size: size, begin: n.us[0], end: n.us[1],
					info: side.name + ":id=" + itoa(n.id) + ", " + text,
				})
			}
		}
	}
	return rows
}

func dims(v []uint64) string {
	parts := make([]string, len(v))
	for i, d := range v {
		parts[i] = utoa(d)
	}
	return strings.Join(parts, "x")
}

// placeText prints a tensor's place. The converter counts a block more of a weight's
// input channels where they fill the last one.
func (c *classic) placeText(n *node, a *command.Access) (text string, size uint64) {
	shape, stride, layout := dims(a.Shape[:]), dims(a.Stride[:]), "stride"
	size = a.Size
	switch {
	case a.Layout == command.Unstrided:
		stride, layout = "Nxoxnxe", "alignEU"
	case a.Layout == command.Aligned:
		layout = "alignEU"
	case a.Layout == command.Compact:
		layout = "compact"
	case a.Layout == command.Lines:
		layout = "alignLine"
	case a.Layout == command.Blocks:
		block := uint64(c.in.Chip.Cube(a.Type))
		row := a.Shape[2] * a.Shape[3] * block
		blocks := a.Shape[1]/block + 1
		stride = dims([]uint64{row, blocks * row, a.Shape[3] * block, 1})
		layout = "_" + utoa(block) + "IC"
		folds := (a.Shape[0] + uint64(a.Lane) + uint64(c.in.Chip.Lanes) - 1) / uint64(c.in.Chip.Lanes)
		size = uint64(float64(folds*blocks*row) * a.Type.Bytes())
	case a.Layout == command.Matrix:
		rows, columns := n.c.Get(command.SrcHSize), n.c.Get(command.SrcWSize)
		if a.Operand == "src" {
			rows, columns = n.c.Get(command.DstHSize), n.c.Get(command.DstWSize)
		}
		shape, layout = dims([]uint64{rows, columns}), "DMAmatrix"
	case a.Space != command.Local:
		layout = "DMAstride"
	}
	return "shape=" + shape + ",lstride=" + stride + ",layout=" + layout, size
}

func (c *classic) partition(r *memoryRow) string {
	if r.local {
		return "BANK[" + utoa(r.addr/uint64(c.in.Chip.BankBytes)) + "]"
	}
	for _, p := range c.parts {
		if r.addr >= p.addr && r.addr < p.addr+p.size {
			return p.text
		}
	}
	return ""
}
