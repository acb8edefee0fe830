package command

// Space is a memory that commands read and write.
type Space uint8

// The memories. Static is the small memory of constants in the chip, Registers what
// system commands write.
const (
	NoSpace Space = iota
	DDR
	Local
	L2
	Static
)

// String is the name that reports use.
func (s Space) String() string {
	return [...]string{"-", "DDR", "LMEM", "L2M", "SMEM"}[min(s, Static)]
}

// The tags of addresses (BM1690, CV184X) and places in BM1684X's map of addresses.
const (
	tagL2    = 30
	tagLocal = 31

	localBase   = 0x0800_0000
	localSize   = 16 << 20
	staticBase  = 0x0900_0000
	staticSize  = 64 << 10
	l2Base      = 0x1000_0000
	l2Size      = 2 << 20
	localTensor = 16 << 20 // below it, a tensor command means a place in local memory
)

// spaceOf tells the memory of a copy's address.
func (c *Chip) spaceOf(addr uint64) Space {
	switch {
	case c.Tagged:
		tag := addr >> 40 & 31
		switch {
		case tag == tagLocal || c == CV184X && tag == 0:
			return Local
		case tag == tagL2:
			return L2
		}
		return DDR
	case c.GlobalBit:
		if addr>>39&1 == 1 {
			return DDR
		}
		return Local
	}
	switch {
	case addr >= localBase && addr < localBase+localSize:
		return Local
	case addr >= staticBase && addr < staticBase+staticSize:
		return Static
	case addr >= l2Base && addr < l2Base+l2Size:
		return L2
	}
	return DDR
}

// Spaces tells from which memory a copy reads and to which it writes; NoSpace for
// tensor and system commands.
func (c *Command) Spaces(chip *Chip) (from, to Space) {
	if c.Op.Engine == TIU || c.Op.System() {
		return NoSpace, NoSpace
	}
	if c.Op.Engine == CDMA {
		return DDR, DDR
	}
	if chip == BM1684 {
		switch c.Get(CopyDirection) {
		case 0:
			return DDR, Local
		case 1:
			return Local, DDR
		case 2:
			return DDR, DDR
		}
		return Local, Local
	}
	from, to = chip.spaceOf(c.address(SrcLow, SrcHigh)), chip.spaceOf(c.address(DstLow, DstHigh))
	return from, to
}

// DType is the element type of a copy, or of a tensor command's first operand (of its
// result where the command has no such field).
func (c *Command) DType() DType {
	if c.Op.Engine == TIU {
		if v, ok := c.Lookup(Opd0Prec); ok {
			return DType(v)
		}
		return DType(c.Get(Res0Prec))
	}
	v := c.Get(SrcFormat)
	if c.Op.Type < 0 && v < uint64(len(types1684)) {
		return types1684[v]
	}
	return DType(v)
}

// Message is a number that cores use to wait for one another.
type Message struct {
	// ID names the message, Count is how often it is sent or waited for.
	ID, Count int
	// Wait is true for the waiting side.
	Wait bool
}

// Message returns the message that a system command sends or waits for.
func (c *Command) Message() (Message, bool) {
	if c.Op.Type < 0 || !c.Op.System() {
		return Message{}, false
	}
	send, wait, role := uint8(3), uint8(4), Constant
	if c.Op.Engine == TIU {
		send, wait, role = 8, 9, Imm
		if c.Op.Type != typeSys {
			return Message{}, false
		}
	}
	if c.Op.Engine == CDMA || c.Sub != send && c.Sub != wait {
		return Message{}, false
	}
	v, ok := c.Lookup(role)
	return Message{ID: int(v & 0x7F), Count: int(v >> 16 & 7), Wait: c.Sub == wait}, ok
}
