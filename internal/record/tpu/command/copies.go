package command

// The types of copies whose operands are placed apart.
const (
	dmaTensor     = 0
	dmaMatrix     = 1
	dmaMask       = 2
	dmaGeneral    = 3
	dmaNonzero    = 5
	dmaGather     = 7
	dmaScatter    = 8
	dmaReverse    = 9
	dmaCompress   = 10
	dmaDecompress = 11
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

// copy places both sides of a copy. A constant that is copied is read from nowhere.
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
		n, ok := c.Lookup(SrcCStr) // the number of elements, where strides are
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
		dst, dstStr = src, srcStr // the packed side has no fixed size: at most that of the other
	}
	if c.Get(NCHWCopy) == 1 || dst[0]*dst[1]*dst[2]*dst[3] == 0 {
		dst = src
	}
	if c.Op.Type == dmaNonzero {
		dst = src
		dstStr = [4]uint64{mul(src[1], src[2], src[3]), mul(src[2], src[3]), src[3], 1}
	}
	if !fill {
		p.add(p.side("src", from, src, srcStr, t))
	}
	p.add(p.side("dst", to, dst, dstStr, t))
}

// side is one side of a copy where its address leads.
func (p *placer) side(name string, addr uint64, shape, stride [4]uint64, t DType) Access {
	a := Access{Operand: name, Write: name == "dst", Shape: shape, Stride: stride, Type: t, Space: p.chip.spaceOf(addr), Addr: addr}
	if a.Space != Local {
		a.Size = span(shape, stride, t)
		return a
	}
	before := len(p.list)
	p.local(a, p.chip.localOffset(addr))
	if len(p.list) == before {
		return Access{}
	}
	a = p.list[before]
	p.list = p.list[:before]
	return a
}

// localOffset is the place in local memory that a copy's address means.
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

// remote places the sides of a copy between chips.
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
