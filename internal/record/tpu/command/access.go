package command

// Layout is the arrangement of a tensor in memory.
type Layout uint8

// The layouts. Blocks occur in local memory only.
const (
	Explicit  Layout = iota // strides in the command
	Aligned                 // channels begin at a multiple of the lane's units
	Compact                 // no gaps
	Blocks                  // weights: input channels side by side in groups of the cube's width
	Matrix                  // a matrix spread over the lanes by its columns
	Unstrided               // read from its beginning on
)

// Access is the memory of a tensor that a command reads or writes.
type Access struct {
	Space   Space
	Write   bool   // a result
	Operand string // name of the tensor in the command: opd0, res0, src, dst, mask, index
	// Addr is the first byte: in local memory the place inside a lane, else an absolute address.
	// Size is in bytes, in local memory in one lane.
	Addr, Size  uint64
	Lane, Lanes int // the first lane and the number of lanes
	// Shape and Stride are of n, c, h and w, strides in elements. In local memory the stride of c
	// leads to the next channel in the same lane.
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

// Accesses appends the memory that a command reads and writes: operands in order, then results.
// Commands without operands in memory have none.
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

// units returns the number of elements to which a lane aligns.
func (p *placer) units(t DType) uint64 { return uint64(max(1, p.chip.EU(t))) }

// absurd is a number of elements beyond any memory.
const absurd = 1 << 48

// compact returns the strides of a tensor without gaps.
func compact(s [4]uint64) [4]uint64 {
	return [4]uint64{mul(s[1], s[2], s[3]), mul(s[2], s[3]), s[3], 1}
}

// span returns the bytes from the first to the last element, 0 for tensors that are empty or larger
// than any memory.
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

// local places a tensor in local memory. The size of empty tensors is 0.
func (p *placer) local(a Access, addr uint64) Access {
	lane, lanes := uint64(p.chip.LaneBytes), uint64(p.chip.Lanes)
	n, c, h, w := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	if min(n, c, h, w) == 0 {
		return a
	}
	first, across := addr/lane%lanes, c
	if a.Layout == Blocks {
		across = n
	}
	a.Space, a.Addr, a.Lane, a.Lanes = Local, addr%lane, int(first), int(min(across, lanes-first))
	if first+across > lanes {
		a.Lane, a.Lanes = 0, int(lanes) // it continues in the first lanes
	}
	fold := ceilDiv(across+first, lanes)
	folded := a.Shape
	folded[1] = fold
	switch channel := mul(h, w); a.Layout {
	case Aligned:
		channel = up(channel, p.units(a.Type))
		a.Stride = [4]uint64{mul(fold, channel), channel, w, 1}
	case Compact:
		a.Stride = [4]uint64{mul(fold, channel), channel, w, 1}
	case Blocks:
		block := uint64(p.chip.Cube(a.Type))
		row, blocks := mul(h, w, block), ceilDiv(c, block)
		a.Stride = [4]uint64{row, mul(blocks, row), mul(w, block), 1}
		a.Size = span([4]uint64{1, fold, blocks, row}, [4]uint64{0, a.Stride[1], row, 1}, a.Type)
		return a
	}
	a.Size = span(folded, a.Stride, a.Type)
	return a
}

// add appends an access that has a size.
func (p *placer) add(a Access) {
	if a.Size > 0 && a.Addr+a.Size >= a.Addr {
		p.list = append(p.list, a)
	}
}

// operandType returns the type of an operand: its own, else that of the first one, else that of the
// result.
func (p *placer) operandType(prec Role) DType {
	return DType(p.c.lookup(prec, p.c.lookup(Opd0Prec, p.c.Get(Res0Prec))))
}

// operand adds an operand or the result of a tensor command. A constant is part of the command.
func (p *placer) operand(name string, addr, prec Role, shape [4]uint64, layout Layout) {
	a, ok := p.c.Lookup(addr)
	if !ok {
		return
	}
	t := p.operandType(prec)
	if name[0] == 'r' {
		t = DType(p.c.lookup(prec, p.c.Get(Res0Prec)))
	}
	p.place(Access{Operand: name, Write: name[0] == 'r', Shape: shape, Layout: layout, Type: t}, a)
}

// place adds an operand in the memory of its address.
func (p *placer) place(a Access, addr uint64) {
	if p.chip == BM1684X && p.chip.spaceOf(addr) == Local {
		addr -= localBase
	}
	if addr < localTensor && addr < uint64(p.chip.Lanes*p.chip.LaneBytes) {
		p.add(p.local(a, addr))
		return
	}
	a.Space = Static
	if p.chip == BM1684X {
		a.Space = p.chip.spaceOf(addr)
	}
	p.unstrided(a, addr)
}

// unstrided adds an operand that is read from its beginning on.
func (p *placer) unstrided(a Access, addr uint64) {
	a.Layout, a.Addr, a.Stride = Unstrided, addr, compact(a.Shape)
	a.Size = span(a.Shape, a.Stride, a.Type)
	p.add(a)
}

var operands = [3]struct {
	name                       string
	addr, prec, isConst, short Role
	strides                    [4]Role
}{
	{"opd0", Opd0Addr, Opd0Prec, Opd0Const, ShortOpd0, [4]Role{Opd0NStr, Opd0CStr, Opd0HStr, Opd0WStr}},
	{"opd1", Opd1Addr, Opd1Prec, Opd1Const, ShortOpd1, [4]Role{Opd1NStr, Opd1CStr, Opd1HStr, Opd1WStr}},
	{"opd2", Opd2Addr, Opd2Prec, Opd2Const, ShortOpd2, [4]Role{Opd2NStr, Opd2CStr, Opd2HStr, Opd2WStr}},
}

// strided adds an operand whose layout is a number in the command.
func (p *placer) strided(i int, shape [4]uint64) {
	o := &operands[i]
	if addr, ok := p.c.Lookup(o.addr); ok && p.c.Get(o.isConst) != 1 {
		p.coded(Access{Operand: o.name, Shape: shape, Type: p.operandType(o.prec)}, addr, o.short, o.strides)
	}
}

// coded sets layout and strides by the short form of strides.
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

// dims reads a shape. Missing sizes are 1.
func (p *placer) dims(n, c, h, w Role) [4]uint64 {
	return [4]uint64{p.c.lookup(n, 1), p.c.lookup(c, 1), p.c.lookup(h, 1), p.c.lookup(w, 1)}
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
		p.operand("opd1", Opd1Addr, Opd1Prec, [4]uint64{1, c.lookup(Opd1C, 1), 1, c.Get(Opd1W)}, Aligned)
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
		for i := range min(c.lookup(OpdNum, 3), 3) {
			p.strided(int(i), res)
		}
		p.result(res)
	}
}

// weights returns the layout of a convolution's weights: blocks of the cube's input channels,
// without blocks for 32-bit types.
func (p *placer) weights() Layout {
	if DType(p.c.lookup(Opd1Prec, p.c.Get(Opd0Prec))).bits() > 16 {
		return Compact
	}
	return Blocks
}

// bias adds the third operand, a number for each channel.
func (p *placer) bias(shape [4]uint64, t DType) {
	if addr, ok := p.c.Lookup(Opd2Addr); ok && p.c.Get(Opd2Const) != 1 {
		p.place(Access{Operand: "opd2", Shape: shape, Layout: Compact, Type: t}, addr)
	}
}

// matrices adds the operands of a matrix multiplication: rows over n, columns over the lanes.
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

// transpose adds operand and result of a transposition or broadcast. The static forms read the
// small memory of constants.
func (p *placer) transpose(res [4]uint64) {
	c := p.c
	in := [4]uint64{res[0], c.Get(Opd0C), res[2], c.Get(Opd0W)}
	switch c.Sub {
	case transStaticBC, transDistribute:
		p.unstrided(Access{Space: Static, Operand: "opd0", Shape: in, Type: DType(c.Get(Res0Prec))}, c.Get(Opd0Addr))
		p.operand("res0", Res0Addr, Res0Prec, res, Compact)
	default:
		p.operand("opd0", Opd0Addr, Res0Prec, in, Aligned)
		p.operand("res0", Res0Addr, Res0Prec, res, Aligned)
	}
}

// The types of copies with special operands.
const (
	dmaMatrix, dmaMask, dmaGeneral, dmaNonzero        = 1, 2, 3, 5
	dmaGather, dmaScatter, dmaCompress, dmaDecompress = 7, 8, 10, 11
)

// sideOf reads one side of a copy: address, shape and strides.
func (p *placer) sideOf(name string) (addr uint64, shape, stride [4]uint64) {
	c := p.c
	if name == "dst" {
		return c.address(DstLow, DstHigh), p.dims(DstNSize, DstCSize, DstHSize, DstWSize),
			[4]uint64{c.Get(DstNStr), c.Get(DstCStr), c.Get(DstHStr), c.Get(DstWStr)}
	}
	return c.address(SrcLow, SrcHigh), p.dims(SrcNSize, SrcCSize, SrcHSize, SrcWSize),
		[4]uint64{c.Get(SrcNStr), c.Get(SrcCStr), c.Get(SrcHStr), c.Get(SrcWStr)}
}

// copy adds both sides of a copy. The source of a constant is the command itself.
func (p *placer) copy() {
	c := p.c
	t := DType(c.Get(SrcFormat))
	from, src, srcStr := p.sideOf("src")
	to, dst, dstStr := p.sideOf("dst")
	fill := c.Get(FillConst) == 1
	switch c.Op.Type {
	case dmaMatrix:
		if !fill {
			p.matrix("src", from, src, srcStr, t)
		}
		p.matrix("dst", to, dst, dstStr, t)
		return
	case dmaGeneral:
		n, ok := c.Lookup(SrcCStr) // the number of elements
		if !ok {
			return
		}
		src, dst = [4]uint64{1, 1, 1, n}, [4]uint64{1, 1, 1, n}
		srcStr, dstStr = [4]uint64{n, n, n, 1}, [4]uint64{n, n, n, 1}
		if c.Sub == 1 { // to as many lanes as the destination has channels
			dst[1] = max(1, c.Get(DstCSize))
		}
	case dmaGather, dmaScatter:
		p.add(p.side("index", c.address(IndexLow, IndexHigh), [4]uint64{1, c.Get(IndexCSize), c.Get(IndexHSize), 1},
			[4]uint64{0, c.Get(IndexCStr), max(1, c.Get(IndexHStr)), 1}, Int32))
	case dmaMask:
		p.add(p.side("mask", c.address(MaskLow, MaskHigh), src, srcStr, DType(c.Get(MaskFormat))))
	case dmaCompress, dmaDecompress:
		dst, dstStr = src, srcStr // the packed side is at most as large as the other
	}
	if c.Get(NCHWCopy) == 1 || dst[0]*dst[1]*dst[2]*dst[3] == 0 {
		dst = src
	}
	if c.Op.Type == dmaNonzero {
		dst = src
		dstStr = compact(src)
	}
	if !fill {
		p.add(p.side("src", from, src, srcStr, t))
	}
	p.add(p.side("dst", to, dst, dstStr, t))
}

// side returns one side of a copy in the memory of its address.
func (p *placer) side(name string, addr uint64, shape, stride [4]uint64, t DType) Access {
	a := Access{Operand: name, Write: name == "dst", Shape: shape, Stride: stride, Type: t, Space: p.chip.spaceOf(addr), Addr: addr}
	if a.Space != Local {
		a.Size = span(shape, stride, t)
		return a
	}
	return p.local(a, p.chip.localOffset(addr))
}

// localOffset returns the place in local memory of a copy's address.
func (c *Chip) localOffset(addr uint64) uint64 {
	if c.Tagged || c.GlobalBit {
		return addr & (1<<39 - 1)
	}
	return addr - localBase
}

// matrix is one side of a matrix copy: in local memory its columns are spread over the
// lanes, c lanes of w columns each; elsewhere h rows of w columns.
func (p *placer) matrix(name string, addr uint64, shape, stride [4]uint64, t DType) {
	if p.chip.spaceOf(addr) != Local {
		shape[0], shape[1] = 1, 1
		stride[3] = 1
		p.add(p.side(name, addr, shape, stride, t))
		return
	}
	shape[2], stride[2], stride[3] = 1, 0, 1
	a := p.side(name, addr, shape, stride, t)
	a.Layout = Matrix
	p.add(a)
}

func (p *placer) remote() {
	c := p.c
	t := DType(c.Get(SrcFormat))
	for _, name := range [...]string{"src", "dst"} {
		low := SrcLow
		if name == "dst" {
			low = DstLow
		}
		if !c.Op.Has(low) || !c.Op.Has(SrcNSize) {
			continue
		}
		addr, shape, stride := p.sideOf(name)
		stride[3] = 1
		if name == "dst" && !c.Op.Has(DstNSize) {
			_, shape, _ = p.sideOf("src")
		}
		a := Access{Space: DDR, Operand: name, Write: name == "dst", Addr: addr, Shape: shape, Stride: stride, Type: t}
		a.Size = span(shape, stride, t)
		p.add(a)
	}
}
