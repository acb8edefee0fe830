package command

// Space is a memory of commands.
type Space uint8

// The memories. Static is the small memory of constants in the chip.
const (
	NoSpace Space = iota
	DDR
	Local
	L2
	Static
)

// String returns the name in reports.
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
	localTensor = 16 << 20 // lower addresses of tensor commands are places in local memory
)

// spaceOf returns the memory of a copy's address.
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

// Spaces returns the memories that a copy reads from and writes to, NoSpace for tensor and system
// commands.
func (c *Command) Spaces(chip *Chip) (from, to Space) {
	if c.Op.Engine == TIU || c.Op.System() {
		return NoSpace, NoSpace
	}
	if c.Op.Engine == CDMA {
		return DDR, DDR
	}
	if chip == BM1684 {
		way := [...][2]Space{{DDR, Local}, {Local, DDR}, {DDR, DDR}, {Local, Local}}[min(c.Get(CopyDirection), 3)]
		return way[0], way[1]
	}
	return chip.spaceOf(c.address(SrcLow, SrcHigh)), chip.spaceOf(c.address(DstLow, DstHigh))
}

// DType returns the element type of a copy, or of a tensor command's first operand (of its result
// if the command has no such field).
func (c *Command) DType() DType {
	if c.Op.Engine == TIU {
		return DType(c.lookup(Opd0Prec, c.Get(Res0Prec)))
	}
	v := c.Get(SrcFormat)
	if c.Op.Type < 0 && v < uint64(len(types1684)) {
		return types1684[v]
	}
	return DType(v)
}

// Message is a number by which cores wait for one another.
type Message struct {
	ID, Count int  // Count is the number of sends or waits
	Wait      bool // the waiting side
}

// Message returns the message that a system command sends or waits for.
func (c *Command) Message() (m Message, ok bool) {
	send, role := uint8(3), Constant
	if c.Op.Engine == TIU {
		send, role = 8, Imm
	}
	if c.Op.Engine == CDMA || c.Op.Type != SystemType(c.Op.Engine) || c.Sub != send && c.Sub != send+1 {
		return m, false
	}
	v, ok := c.Lookup(role)
	return Message{ID: int(v & 0x7F), Count: int(v >> 16 & 7), Wait: c.Sub == send+1}, ok
}
