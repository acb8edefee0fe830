package block

// Driver is a BMLIB block: what a program asked of the driver. Times are microseconds
// of the host's clock.
type Driver struct {
	Begin, End uint64
	Sends      []Send
	Syncs      []Span
	Marks      []Mark
	Copies     []Copy
	Memory     []MemoryOp
	// Lists is how many of the five lists are there: older files end earlier.
	Lists int
}

// Send is a function of the chip that was called.
type Send struct {
	API  uint32
	Time uint64
}

// Span is a wait for the chip.
type Span struct{ Begin, End uint64 }

// Mark is a point or span that the program named; End 0 is a point.
type Mark struct{ ID, Begin, End uint64 }

// Copy is a copy between host and chip.
type Copy struct {
	Src, Dst uint64
	// Direction is 0 to the chip, 1 from it, 2 within it.
	Direction, Size uint32
	Begin, End      uint64
}

// MemoryOp is an operation on the chip's memory.
type MemoryOp struct {
	Address uint64
	Size    uint32
	// Kind is 0 allocate, 1 free, 2 invalidate, 3 flush.
	Kind       uint32
	Begin, End uint64
}

// ParseDriver decodes a BMLIB block. ok is false where it ends within a list: what came
// before is kept.
func ParseDriver(data []byte) (d Driver, ok bool) {
	f := fields{b: data}
	d.Begin, d.End = f.u64(), f.u64()
	if f.short {
		return d, false
	}
	lists := []struct {
		size int
		read func()
	}{
		{12, func() { d.Sends = append(d.Sends, Send{f.u32(), f.u64()}) }},
		{16, func() { d.Syncs = append(d.Syncs, Span{f.u64(), f.u64()}) }},
		{24, func() { d.Marks = append(d.Marks, Mark{f.u64(), f.u64(), f.u64()}) }},
		{40, func() {
			d.Copies = append(d.Copies, Copy{f.u64(), f.u64(), f.u32(), f.u32(), f.u64(), f.u64()})
		}},
		{32, func() {
			d.Memory = append(d.Memory, MemoryOp{f.u64(), f.u32(), f.u32(), f.u64(), f.u64()})
		}},
	}
	for _, l := range lists {
		if len(f.b) == 0 {
			return d, true
		}
		n := int(f.u32())
		if f.short {
			return d, false
		}
		d.Lists++
		have := len(f.b) / l.size
		for range min(n, have) {
			l.read()
		}
		if n > have {
			return d, false
		}
	}
	return d, len(f.b) == 0
}

// Append encodes the block with its first Lists lists.
func (d *Driver) Append(dst []byte) []byte {
	dst = u64(dst, d.Begin, d.End)
	for i := range d.Lists {
		switch i {
		case 0:
			dst = u32(dst, uint32(len(d.Sends)))
			for _, s := range d.Sends {
				dst = u64(u32(dst, s.API), s.Time)
			}
		case 1:
			dst = u32(dst, uint32(len(d.Syncs)))
			for _, s := range d.Syncs {
				dst = u64(dst, s.Begin, s.End)
			}
		case 2:
			dst = u32(dst, uint32(len(d.Marks)))
			for _, m := range d.Marks {
				dst = u64(dst, m.ID, m.Begin, m.End)
			}
		case 3:
			dst = u32(dst, uint32(len(d.Copies)))
			for _, c := range d.Copies {
				dst = u64(u32(u64(dst, c.Src, c.Dst), c.Direction, c.Size), c.Begin, c.End)
			}
		case 4:
			dst = u32(dst, uint32(len(d.Memory)))
			for _, m := range d.Memory {
				dst = u64(u32(u64(dst, m.Address), m.Size, m.Kind), m.Begin, m.End)
			}
		}
	}
	return dst
}
