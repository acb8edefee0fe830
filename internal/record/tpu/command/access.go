package command

// Layout is how a tensor lies in memory.
type Layout uint8

// The layouts. Lines and Blocks are those of local memory: rows rounded up to the width
// of a lane, and weights with several input channels side by side.
const (
	// Explicit strides stand in the command.
	Explicit Layout = iota
	// Aligned channels begin at a multiple of the lane's units.
	Aligned
	// Compact tensors have no gaps.
	Compact
	// Lines have each row rounded up to the lane's units.
	Lines
	// Blocks hold weights: input channels side by side in groups of the cube's width.
	Blocks
	// Matrix is a matrix spread over the lanes by its columns.
	Matrix
	// Unstrided is a place that is read from its beginning on.
	Unstrided
)

// Access is memory that a command reads or writes: a tensor's place.
type Access struct {
	Space Space
	// Write is true for results.
	Write bool
	// Operand is the tensor's name in the command: opd0, res0, src, dst, mask, index.
	Operand string
	// Addr is the first byte: in local memory the place inside a lane, elsewhere an
	// absolute address. Size is in bytes, of local memory in one lane.
	Addr, Size uint64
	// Lane is the first lane, Lanes how many are covered.
	Lane, Lanes int
	// Shape and Stride are of n, c, h and w, strides in elements. In local memory the
	// stride of c leads to the next channel in the same lane.
	Shape, Stride [4]uint64
	Layout        Layout
	Type          DType
}

// Overlaps reports whether two places of one memory have a byte in common.
func (a *Access) Overlaps(b *Access) bool {
	if a.Space != b.Space || a.Addr >= b.Addr+b.Size || b.Addr >= a.Addr+a.Size {
		return false
	}
	if a.Space == Local {
		return a.Lane < b.Lane+b.Lanes && b.Lane < a.Lane+a.Lanes
	}
	return true
}

// Accesses appends the memory that a command reads and writes, in the order of operands
// with results last. Commands without operands in memory have none.
func (c *Command) Accesses(chip *Chip, list []Access) []Access {
	if c.Op.Type < 0 || c.Op.System() {
		return list
	}
	p := placer{c: c, chip: chip, list: list}
	switch c.Op.Engine {
	case TIU:
		p.tensor()
	case CDMA:
		p.remote()
	default:
		p.copy()
	}
	return p.list
}

type placer struct {
	c    *Command
	chip *Chip
	list []Access
}

// units is to how many elements a lane aligns.
func (p *placer) units(t DType) uint64 {
	if n := p.chip.EU(t); n > 0 {
		return uint64(n)
	}
	return 1
}

// absurd is a number of elements that no memory holds.
const absurd = 1 << 48

// span is how many bytes lie between the first and the last element, 0 where a tensor is
// empty or larger than any memory.
func span(shape, stride [4]uint64, t DType) uint64 {
	n := uint64(1)
	for i, v := range shape {
		if v == 0 {
			return 0
		}
		if n += min(mul(v-1, stride[i]), absurd); n >= absurd {
			return 0
		}
	}
	return uint64(float64(n)*t.Bytes() + 0.5)
}

// local adds a tensor of local memory.
func (p *placer) local(a Access, addr uint64) {
	lane := uint64(p.chip.LaneBytes)
	lanes := uint64(p.chip.Lanes)
	if min(a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]) == 0 {
		return
	}
	first := addr / lane % lanes
	a.Space, a.Addr, a.Lane = Local, addr%lane, int(first)
	across := a.Shape[1]
	if a.Layout == Blocks {
		across = a.Shape[0]
	}
	a.Lanes = int(min(across, lanes-first))
	if first+across > lanes {
		a.Lane, a.Lanes = 0, int(lanes) // it goes on in the first lanes
	}
	fold := ceilDiv(across+first, lanes)
	folded := a.Shape
	h, w := a.Shape[2], a.Shape[3]
	switch a.Layout {
	case Aligned:
		c := up(mul(h, w), p.units(a.Type))
		a.Stride = [4]uint64{mul(fold, c), c, w, 1}
	case Compact:
		a.Stride = [4]uint64{mul(fold, h, w), mul(h, w), w, 1}
	case Lines:
		row := up(w, p.units(a.Type))
		a.Stride = [4]uint64{mul(fold, h, row), mul(h, row), row, 1}
	case Blocks:
		block := uint64(p.chip.Cube(a.Type))
		folded = [4]uint64{1, fold, ceilDiv(a.Shape[1], block), mul(h, w, block)}
		row := mul(h, w, block)
		a.Stride = [4]uint64{row, mul(ceilDiv(a.Shape[1], block), row), mul(w, block), 1}
		a.Size = span(folded, [4]uint64{0, a.Stride[1], row, 1}, a.Type)
	}
	if a.Layout != Blocks {
		folded[1] = fold
		a.Size = span(folded, a.Stride, a.Type)
	}
	p.add(a)
}

// add keeps an access that has a size.
func (p *placer) add(a Access) {
	if a.Size > 0 && a.Addr+a.Size >= a.Addr {
		p.list = append(p.list, a)
	}
}

// operand adds an operand or the result of a tensor command. A constant stands in the
// command itself.
func (p *placer) operand(name string, addr, prec Role, shape [4]uint64, layout Layout) {
	a, ok := p.c.Lookup(addr)
	if !ok {
		return
	}
	t := DType(p.c.Get(Res0Prec))
	if v, ok := p.c.Lookup(prec); ok {
		t = DType(v)
	} else if v, ok := p.c.Lookup(Opd0Prec); ok && name[0] == 'o' {
		t = DType(v)
	}
	p.place(Access{Operand: name, Write: name[0] == 'r', Shape: shape, Layout: layout, Type: t}, a)
}

// place puts an operand where its address leads.
func (p *placer) place(a Access, addr uint64) {
	if p.chip == BM1684X && p.chip.spaceOf(addr) == Local {
		addr -= localBase
	}
	if addr >= localTensor || addr >= uint64(p.chip.Lanes*p.chip.LaneBytes) {
		a.Space, a.Layout, a.Addr = Static, Unstrided, addr
		if p.chip == BM1684X {
			a.Space = p.chip.spaceOf(addr)
		}
		s := a.Shape
		a.Stride = [4]uint64{mul(s[1], s[2], s[3]), mul(s[2], s[3]), s[3], 1}
		a.Size = span(s, a.Stride, a.Type)
		p.add(a)
		return
	}
	p.local(a, addr)
}

var operands = [3]struct {
	name                         string
	addr, prec, isConst, short   Role
	n, c, h, w                   Role
	nStride, cStride, hStr, wStr Role
}{
	{"opd0", Opd0Addr, Opd0Prec, Opd0Const, ShortOpd0, Opd0N, Opd0C, Opd0H, Opd0W, Opd0NStr, Opd0CStr, Opd0HStr, Opd0WStr},
	{"opd1", Opd1Addr, Opd1Prec, Opd1Const, ShortOpd1, Opd1N, Opd1C, Opd1H, Opd1W, Opd1NStr, Opd1CStr, Opd1HStr, Opd1WStr},
	{"opd2", Opd2Addr, Opd2Prec, Opd2Const, ShortOpd2, NoRole, NoRole, NoRole, NoRole, Opd2NStr, Opd2CStr, Opd2HStr, Opd2WStr},
}

// strided adds an operand whose layout a code in the command tells.
func (p *placer) strided(i int, shape [4]uint64) {
	o := operands[i]
	if p.c.Get(o.isConst) == 1 {
		return
	}
	addr, ok := p.c.Lookup(o.addr)
	if !ok {
		return
	}
	t := DType(p.c.Get(Res0Prec))
	if v, ok := p.c.Lookup(o.prec); ok {
		t = DType(v)
	} else if v, ok := p.c.Lookup(Opd0Prec); ok {
		t = DType(v)
	}
	p.coded(Access{Operand: o.name, Shape: shape, Type: t}, addr, o.short, [4]Role{o.nStride, o.cStride, o.hStr, o.wStr})
}

// coded sets layout and strides by the code that short forms of strides have.
func (p *placer) coded(a Access, addr uint64, short Role, strides [4]Role) {
	switch p.c.Get(short) {
	case 0:
		a.Layout = Aligned
	case 1:
		a.Layout = Compact
	default:
		for i, r := range strides {
			a.Stride[i] = p.c.Get(r)
		}
	}
	p.place(a, addr)
}

func (p *placer) result(shape [4]uint64) {
	p.coded(Access{Operand: "res0", Write: true, Shape: shape, Type: DType(p.c.Get(Res0Prec))}, p.c.Get(Res0Addr), ShortRes0,
		[4]Role{Res0NStr, Res0CStr, Res0HStr, Res0WStr})
}

func (p *placer) dims(n, c, h, w Role) [4]uint64 {
	var s [4]uint64
	for i, r := range [4]Role{n, c, h, w} {
		v, ok := p.c.Lookup(r)
		if !ok {
			v = 1
		}
		s[i] = v
	}
	return s
}

func (p *placer) tensor() {
	c := p.c
	res := p.dims(Res0N, Res0C, Res0H, Res0W)
	in := p.dims(Res0N, Opd0C, Opd0H, Opd0W)
	bias := [4]uint64{1, res[1], 1, 1}
	switch c.Op.Type {
	case typeConv:
		p.strided(0, in)
		if c.Get(Opd1Const) == 0 {
			p.operand("opd1", Opd1Addr, Opd1Prec, [4]uint64{res[1], in[1], c.Get(Opd1H), c.Get(Opd1W)}, p.weights())
		}
		p.bias(bias, FP32)
		p.result(res)
	case typePool:
		p.strided(0, [4]uint64{res[0], res[1], in[2], in[3]})
		if (c.Sub == poolDepthwise || c.Sub == poolDepthwiseRelu) && c.Get(Opd1Const) == 0 {
			p.operand("opd1", Opd1Addr, Opd0Prec, [4]uint64{1, res[1], c.Get(Opd1H), c.Get(Opd1W)}, Compact)
			t := Int32
			if d := DType(c.Get(Opd0Prec)); d.bits() >= 16 {
				t = d
			}
			p.bias(bias, t)
		}
		p.result(res)
	case typeMM:
		p.matrices(res)
	case typeTrans:
		p.transpose(res)
	case typeSG:
		p.operand("opd0", Opd0Addr, Opd0Prec, p.dims(Res0N, Res0C, Opd0H, Opd0W), Aligned)
		p.operand("opd1", Opd1Addr, Opd1Prec, [4]uint64{1, p.dims(Opd1N, Opd1C, Opd1H, Opd1W)[1], 1, c.Get(Opd1W)}, Aligned)
		p.operand("res0", Res0Addr, Res0Prec, res, Aligned)
	case typeCmp, typeLin, typeRQDQ, typeSFU, typeLAR:
		p.strided(0, res)
		if c.Op.Type != typeSFU && c.Op.Type != typeRQDQ {
			p.strided(1, res)
		}
		p.result(res)
		if c.Op.Type == typeCmp && c.Op.Has(Res1Addr) {
			p.operand("res1", Res1Addr, Res0Prec, res, Aligned)
		}
	case typeVC:
		p.strided(0, p.dims(NoRole, Opd0C, NoRole, Opd0W))
		p.strided(1, p.dims(NoRole, Opd1C, NoRole, Opd1W))
		p.result(res)
	default:
		n := 3
		if v, ok := c.Lookup(OpdNum); ok {
			n = int(v)
		}
		for i := range min(n, 3) {
			p.strided(i, res)
		}
		p.result(res)
	}
}

// weights is the layout of a convolution's weights: blocks of as many input channels as
// the cube takes, none for 32 bits.
func (p *placer) weights() Layout {
	t := DType(p.c.Get(Opd0Prec))
	if v, ok := p.c.Lookup(Opd1Prec); ok {
		t = DType(v)
	}
	if t.bits() > 16 {
		return Compact
	}
	return Blocks
}

// bias adds the third operand, a number for each channel.
func (p *placer) bias(shape [4]uint64, t DType) {
	if p.c.Get(Opd2Const) == 1 {
		return
	}
	if addr, ok := p.c.Lookup(Opd2Addr); ok {
		p.place(Access{Operand: "opd2", Shape: shape, Layout: Compact, Type: t}, addr)
	}
}

// matrices places the operands of a product: rows over n, columns over the lanes.
func (p *placer) matrices(res [4]uint64) {
	c := p.c
	if c.Sub < mmNN {
		p.operand("opd0", Opd0Addr, Opd0Prec, p.dims(Opd0N, Opd0C, NoRole, Opd0W), Aligned)
		p.operand("opd1", Opd1Addr, Opd1Prec, [4]uint64{mul(c.Get(Opd0C), c.Get(Opd0W)), res[1], 1, res[3]}, Aligned)
	} else {
		m, k, n := res[1], c.Get(Opd1W), c.Get(Opd1C)
		left, right := [4]uint64{1, m, 1, k}, [4]uint64{1, n, 1, k}
		if c.Sub == mmNN {
			left, right = [4]uint64{1, m, 1, n}, [4]uint64{1, n, 1, k}
		}
		p.operand("opd0", Opd0Addr, Opd0Prec, left, Aligned)
		p.operand("opd1", Opd1Addr, Opd1Prec, right, Aligned)
	}
	if addr, ok := c.Lookup(Opd2Addr); ok && c.Get(Opd2Const) == 0 && addr != 0 {
		p.place(Access{Operand: "opd2", Shape: [4]uint64{1, res[1], 1, res[3]}, Layout: Aligned, Type: FP32}, addr)
	}
	p.operand("res0", Res0Addr, Res0Prec, res, Aligned)
}

// transpose places operand and result of a transpose or broadcast; the static forms read
// the small memory of constants.
func (p *placer) transpose(res [4]uint64) {
	c := p.c
	in := [4]uint64{res[0], c.Get(Opd0C), res[2], c.Get(Opd0W)}
	switch c.Sub {
	case transStaticBC, transDistribute:
		src := Access{Space: Static, Operand: "opd0", Addr: c.Get(Opd0Addr), Shape: in, Layout: Unstrided, Type: DType(c.Get(Res0Prec))}
		s := src.Shape
		src.Stride = [4]uint64{mul(s[1], s[2], s[3]), mul(s[2], s[3]), s[3], 1}
		src.Size = span(s, src.Stride, src.Type)
		p.add(src)
		p.operand("res0", Res0Addr, Res0Prec, res, Compact)
	default:
		p.operand("opd0", Opd0Addr, Res0Prec, in, Aligned)
		p.operand("res0", Res0Addr, Res0Prec, res, Aligned)
	}
}
