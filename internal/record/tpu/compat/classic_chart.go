package compat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

var classicLanes = [...]string{"TPU_BD", "TPU_GDMA", "NODE_OP", "TPU_LAYER", "HOST_CPU", "SUBNET"}

// chartRow is one bar: times, height and identifiers in their printed form.
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
)

// function names a command by its number in logs and firmware records.
func (c *classic) function(n int, dma bool) string {
	if c.in.Chip == command.BM1684 {
		if n == 0 && !dma {
			return "CONV_NEURON"
		}
		return strings.ToUpper(cmp.Or(command.Name1684(n, dma), "unknown"))
	}
	names := bdNames[:]
	if dma {
		names = copyNames[:]
	}
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

// newRow returns a bar of a command or an event that takes a time.
func newRow(lane int, name string, begin, end float64) chartRow {
	return chartRow{lane: lane, begin: repr(begin), end: repr(end), length: repr(end - begin), name: name, height: "-1", layer: -1, layerType: "-"}
}

// of sets the layer of a bar, if it has one.
func (r *chartRow) of(l *layer) {
	if l != nil {
		r.layer, r.layerType = l.id, l.label()
	}
}

// chart returns all bars in the converter's order.
func (c *classic) chart() []chartRow {
	rows := []chartRow{{lane: 5, begin: "0", end: "0", length: "0", name: "Iter[0]", height: "-1", layer: -1, layerType: "-", info: "num_layers=" + itoa(len(c.layers))}}
	for _, e := range c.firmware {
		if e.kind == block.DynNodeSet || e.kind == block.DynNodeWait {
			rows = append(rows, c.firmwareRow(e))
		}
	}
	rows = append(rows, c.copyRows()...)
	for _, n := range c.bd {
		if n.rec == nil {
			continue
		}
		r := newRow(0, "bd_id="+itoa(n.id), n.us[0], n.us[1])
		r.of(n.layer)
		r.info = c.function(n.fn, false) + "<br>cycle=" + utoa(load(n.rec))
		if n.c != nil {
			if w, ok := n.c.Work(c.in.Chip); ok {
				r.height = repr(ratio(w.Alg, w.Arch))
				r.info += "<br>uarch_rate=" + r.height
			}
		}
		rows = append(rows, r)
	}
	for _, l := range c.layers {
		if l.ran {
			rows = append(rows, l.row())
		}
	}
	return rows
}

// load returns the cycles of useful work of a tensor command's record.
func load(r words) uint64 { return (uint64(r[3])<<32 | uint64(r[2])) >> 16 }

func (c *classic) firmwareRow(e event) chartRow {
	r := newRow(2, "wait", e.begin, e.end)
	bits := func(first, width int) uint64 { return e.id >> first & (1<<width - 1) }
	bd, gdma, engine, fn, parallel := bits(0, 20), bits(20, 20), bits(40, 3), bits(43, 4), bits(52, 1)
	if c.in.Chip == command.BM1684 {
		bd, gdma, engine, fn, parallel = bits(0, 16), bits(16, 16), bits(48, 4), bits(36, 4), bits(32, 1)
		if engine == 1 {
			fn = bits(40, 3)
		}
	}
	r.info = "gdma_id=" + utoa(gdma) + ", bd_id=" + utoa(bd)
	if e.kind == block.DynNodeSet {
		units := [...]string{"BD", "GDMA", "GDE", "SORT", "NMS", "CDMA"}
		r.name = "set_" + units[min(engine, 5)]
		r.info += [...]string{", serial", ", parallel"}[parallel]
		if bits(60, 4) > 0 {
			r.info += ", " + c.function(int(fn), engine == 1)
		}
	}
	return r
}

// copyRows returns the bars of copies in the order of their records. The height of a bar is its
// speed relative to the largest speed so far.
func (c *classic) copyRows() []chartRow {
	list := slices.Clone(c.unmatched)
	for _, n := range c.gdma {
		if n.rec != nil {
			list = append(list, n)
		}
	}
	sorting.Stable(list, func(a, b *node) int { return cmp.Compare(a.start, b.start) })
	var rows []chartRow
	fastest := 0.0
	for _, n := range list {
		r := newRow(1, "gdma_id="+itoa(n.id), n.us[0], n.us[1])
		bytes := moved(n.rec)
		speed := 0.0 // bytes per microsecond
		if d := n.us[1] - n.us[0]; d > 0 {
			speed = float64(bytes) / d
		}
		fastest = max(fastest, speed)
		r.height = "0.0"
		if fastest > 0 {
			r.height = repr(speed / fastest)
		}
		r.info = "speed=" + fixed(speed/1000, 3) + "GB/s, bytes=" + utoa(bytes)
		for i, port := range [...]string{"d0", "d1", "gif"} {
			aw, wr, ar := n.rec[3+3*i], n.rec[4+3*i], n.rec[5+3*i]
			r.info += fmt.Sprintf("<br>%s_wr=%d, %s_ar=%d, %s_aw=%d", port, wr, port, ar, port, aw)
		}
		if n.layer != nil {
			r.of(n.layer)
			r.info = c.function(n.fn, true) + "<br>" + r.info
		}
		rows = append(rows, r)
	}
	return rows
}

// row returns the bar of a layer.
func (l *layer) row() chartRow {
	r := newRow(3, l.label(), l.begin, l.end)
	r.of(l)
	r.height = "1"
	if l.kind == "Load" || l.kind == "Store" {
		r.height = "0.5"
	}
	r.info = "<br>local_layer"
	if l.global {
		r.info = "<br>global_layer"
	}
	r.info += "<br>==ins=="
	for _, t := range l.ins {
		r.info += "<br>" + t.String()
	}
	r.info += "<br>==outs=="
	for _, t := range l.outs {
		r.info += "<br>" + t.String()
	}
	r.info += fmt.Sprintf("<br>========<br>feature_size=%d<br>weight_size=%d<br>total_size=%d", l.sizes[0], l.sizes[1], l.sizes[2])
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

// accesses returns the memory records of all commands in one memory, those of copies first.
func (c *classic) accesses(local bool) []memoryRow {
	var rows []memoryRow
	var buf []command.Access
	for _, n := range slices.Concat(c.gdma, c.bd) {
		if n.rec == nil || n.c == nil {
			continue
		}
		engine := "tiu"
		if n.dma {
			engine = "gdma"
		}
		buf = n.c.Accesses(c.in.Chip, buf[:0])
		for i := range buf {
			if a := &buf[i]; (a.Space == command.Local) == local {
				text, size := c.placeText(n, a)
				rows = append(rows, memoryRow{local, a.Write, a.Addr, size, n.us[0], n.us[1], engine + ":id=" + itoa(n.id) + ", " + text})
			}
		}
	}
	return rows
}

// dims formats sizes as 1x2x3.
func dims(v ...uint64) string {
	parts := make([]string, len(v))
	for i, d := range v {
		parts[i] = utoa(d)
	}
	return strings.Join(parts, "x")
}

// placeText formats the place of a tensor. The converter counts one block of input channels too
// many for weights that fill the last block.
func (c *classic) placeText(n *node, a *command.Access) (text string, size uint64) {
	shape, stride, layout := dims(a.Shape[:]...), dims(a.Stride[:]...), "stride"
	size = a.Size
	switch a.Layout {
	case command.Unstrided:
		stride, layout = "Nxoxnxe", "alignEU"
	case command.Aligned:
		layout = "alignEU"
	case command.Compact:
		layout = "compact"
	case command.Blocks:
		block := uint64(c.in.Chip.Cube(a.Type))
		row := a.Shape[2] * a.Shape[3] * block
		blocks := a.Shape[1]/block + 1
		stride = dims(row, blocks*row, a.Shape[3]*block, 1)
		layout = "_" + utoa(block) + "IC"
		folds := (a.Shape[0] + uint64(a.Lane) + uint64(c.in.Chip.Lanes) - 1) / uint64(c.in.Chip.Lanes)
		size = uint64(float64(folds*blocks*row) * a.Type.Bytes())
	case command.Matrix:
		rows, columns := n.c.Get(command.SrcHSize), n.c.Get(command.SrcWSize)
		if a.Operand == "src" {
			rows, columns = n.c.Get(command.DstHSize), n.c.Get(command.DstWSize)
		}
		shape, layout = dims(rows, columns), "DMAmatrix"
	default:
		if a.Space != command.Local {
			layout = "DMAstride"
		}
	}
	return "shape=" + shape + ",lstride=" + stride + ",layout=" + layout, size
}

// partition names the part of the memory that a record is in.
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
