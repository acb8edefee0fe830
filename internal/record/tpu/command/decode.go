package command

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Command is one decoded command: its layout and its bits.
type Command struct {
	Op *Op
	// Raw are the bits: bit b is bit b mod 8 of byte b div 8. They belong to the stream
	// (BM1684's tensor commands: to a copy with the words put in order).
	Raw []byte
	// Offset is where the command lies in the stream, in bytes.
	Offset int
	// ID is the command's id: its own where the chip has such ids, else its place in the
	// stream counted from 1.
	ID uint32
	// Dep is the id of the other engine's command that this one waits for.
	Dep uint32
	// Sub is the sub-function.
	Sub uint8
}

// Stop says where and why a stream could not be decoded to its end.
type Stop struct {
	// Offset is in bytes, Index counts the commands before it.
	Offset, Index int
	Code          StopReason
	// Type, Short and Sub are the head of the command that has no layout.
	Type, Sub int
	Short     bool
}

// StopReason is why decoding stopped.
type StopReason uint8

// The reasons.
const (
	// NoLayout: the chip's tables have no layout for the command.
	NoLayout StopReason = iota + 1
	// Cut: the stream ends inside a command, or before the count that was announced.
	Cut
	// TooMany: there are more commands than are kept.
	TooMany
)

// Error tells place and reason.
func (s *Stop) Error() string {
	switch s.Code {
	case NoLayout:
		return fmt.Sprintf("command %d at byte %d: no layout for type %d, sub-function %d, short %t", s.Index+1, s.Offset, s.Type, s.Sub, s.Short)
	case TooMany:
		return fmt.Sprintf("byte %d: more than %d commands", s.Offset, s.Index)
	}
	return fmt.Sprintf("the stream ends at byte %d in command %d", s.Offset, s.Index+1)
}

// MaxCommands is how many commands of one stream are decoded.
const MaxCommands = 1 << 24

const headBytes = 8 // the shortest command; what tells commands apart lies in it

const groupAlign = 128 // bytes; a function group begins at a multiple of it

// Decode decodes a stream of an engine. count is how many commands were announced; with
// 0 the stream is decoded until its end. What precedes a place that cannot be decoded is
// returned with the place.
func Decode(chip *Chip, engine Engine, data []byte, count int) ([]Command, *Stop) {
	d := decoder{chip: chip, engine: engine, table: chip.isa.load(), data: data}
	if chip == BM1684 && engine == TIU {
		d.data = reverseWords(data)
	}
	guess := len(data) / 64
	if count > 0 {
		guess = min(count, guess*4)
	}
	list := make([]Command, 0, guess)
	for count <= 0 || len(list) < count {
		if count <= 0 && d.ended() {
			break
		}
		if len(list) == MaxCommands {
			return list, &Stop{Offset: d.at, Index: len(list), Code: TooMany}
		}
		c, stop := d.next(len(list))
		if stop != nil {
			return list, stop
		}
		list = append(list, c)
		if c.Ends() {
			d.afterEnd()
		}
	}
	if count <= 0 && chip == BM1690 {
		list = dropEnds(list)
	}
	return list, nil
}

// DecodeOne decodes the command that data begins with, as firmware records hold it.
func DecodeOne(chip *Chip, engine Engine, data []byte) (Command, *Stop) {
	d := decoder{chip: chip, engine: engine, table: chip.isa.load(), data: data}
	if chip == BM1684 && engine == TIU {
		d.data = reverseWords(data)
	}
	return d.next(0)
}

type decoder struct {
	chip   *Chip
	engine Engine
	table  *table
	data   []byte
	at     int
	closed bool // the last command ended a group
}

// head reads type, form and sub-function of the command at the present place.
func (d *decoder) head() (kind int, short bool, sub int) {
	if d.chip == BM1684 {
		return 0, false, 0
	}
	b := d.data[d.at:]
	switch {
	case d.engine == TIU:
		kind, sub = int(extract(b, 41, 4)), int(extract(b, 45, 5))
		short = extract(b, 0, 1) == 1
		if kind == typeTable && d.chip != BM1684X {
			sub &= 7
		}
	case d.engine == CDMA:
		kind, sub = int(extract(b, 4, 4)), int(extract(b, 8, 3))
	case d.chip.Tagged:
		kind, sub, short = int(extract(b, 32, 5)), int(extract(b, 37, 3)), extract(b, 3, 1) == 1
	default:
		kind, sub, short = int(extract(b, 32, 4)), int(extract(b, 36, 3)), extract(b, 3, 1) == 1
	}
	return kind, short, sub
}

func (d *decoder) next(index int) (Command, *Stop) {
	if len(d.data)-d.at < headBytes {
		return Command{}, &Stop{Offset: len(d.data), Index: index, Code: Cut}
	}
	kind, short, sub := d.head()
	op := d.table.find(d.engine, kind, short, sub)
	if op == nil {
		return Command{}, &Stop{Offset: d.at, Index: index, Code: NoLayout, Type: kind, Sub: sub, Short: short}
	}
	size := op.Bits / 8
	if len(d.data)-d.at < size {
		return Command{}, &Stop{Offset: len(d.data), Index: index, Code: Cut}
	}
	c := Command{Op: op, Raw: d.data[d.at : d.at+size : d.at+size], Offset: d.at, ID: uint32(index + 1), Sub: uint8(sub)}
	if d.chip == BM1684 || !op.Has(TaskSub) {
		c.Sub = uint8(c.Get(TaskSub))
	}
	if v, ok := c.Lookup(CmdID); ok && d.chip.Own {
		c.ID = uint32(v)
	}
	c.Dep = uint32(c.Get(CmdDep))
	if d.chip.Tagged {
		c.Dep &= 0xFFFFF // a flag lies above the id
	}
	d.at += size
	return c, nil
}

// Ends reports whether a command closes a group of commands: the rest of its block is
// padding.
func (c *Command) Ends() bool {
	if c.Op.Type < 0 {
		return false
	}
	switch c.Op.Engine {
	case TIU:
		return c.Op.Type == typeSys && c.Sub == 31
	case CDMA:
		return c.Op.Type == cdmaSys && c.Sub == 0
	}
	return c.Op.Type == dmaSys && c.Sub == 0
}

// afterEnd moves to the next group.
func (d *decoder) afterEnd() {
	next := (d.at + groupAlign - 1) / groupAlign * groupAlign
	if d.chip == BM1684X || next <= len(d.data) && zero(d.data[d.at:next]) {
		d.at = min(next, len(d.data))
	}
	d.closed = true
}

// ended reports whether nothing but padding is left, after a command that closes a group
// at most a command's length.
func (d *decoder) ended() bool {
	rest := d.data[d.at:]
	if len(rest) == 0 {
		return true
	}
	closed := d.closed
	d.closed = false
	return closed && len(rest) <= groupAlign && zero(rest)
}

func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// dropEnds removes the second and later of several commands that close the stream.
func dropEnds(list []Command) []Command {
	for n := len(list); n > 1 && list[n-1].Ends() && list[n-2].Ends(); n-- {
		list = list[:n-1]
	}
	return list
}

// reverseWords puts the words of each 128-byte command in order: BM1684 stores the last
// word of a tensor command first.
func reverseWords(data []byte) []byte {
	all := append([]byte(nil), data...)
	for out := all; len(out) >= 128; out = out[128:] {
		for i, j := 0, 124; i < j; i, j = i+4, j-4 {
			a, b := binary.LittleEndian.Uint32(out[i:]), binary.LittleEndian.Uint32(out[j:])
			binary.LittleEndian.PutUint32(out[i:], b)
			binary.LittleEndian.PutUint32(out[j:], a)
		}
	}
	return all
}

// extract reads width bits from bit first; bits behind the end are zero.
func extract(b []byte, first, width int) uint64 {
	at, shift := first>>3, first&7
	if at >= len(b) {
		return 0
	}
	var v uint64
	if len(b)-at >= 8 {
		v = binary.LittleEndian.Uint64(b[at:])
	} else {
		for i := len(b) - 1; i >= at; i-- {
			v = v<<8 | uint64(b[i])
		}
	}
	v >>= shift
	if shift+width > 64 && at+8 < len(b) {
		v |= uint64(b[at+8]) << (64 - shift)
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// deposit writes width bits at bit first.
func deposit(b []byte, first, width int, v uint64) {
	for i := range width {
		at := first + i
		if at>>3 >= len(b) {
			return
		}
		b[at>>3] = b[at>>3]&^(1<<(at&7)) | byte(v>>i&1)<<(at&7)
	}
}

// Field reads the i-th field of the command's layout.
func (c *Command) Field(i int) uint64 {
	f := &c.Op.Fields[i]
	return extract(c.Raw, f.First, f.Width)
}

// Lookup reads the field with a role; ok is false where the layout has none.
func (c *Command) Lookup(r Role) (v uint64, ok bool) {
	p := c.Op.roles[r]
	if p.width == 0 {
		return 0, false
	}
	return extract(c.Raw, int(p.first), int(p.width)), true
}

// Get reads the field with a role, 0 where the layout has none.
func (c *Command) Get(r Role) uint64 {
	p := c.Op.roles[r]
	if p.width == 0 {
		return 0
	}
	return extract(c.Raw, int(p.first), int(p.width))
}

// Has reports whether the layout has a field with a role.
func (o *Op) Has(r Role) bool { return o.roles[r].width > 0 }

// address joins the halves of an address.
func (c *Command) address(low, high Role) uint64 {
	return c.Get(high)<<32 | c.Get(low)
}

func ceilDiv(a, b uint64) uint64 {
	if b == 0 {
		return 0
	}
	return a/b + min(a%b, 1)
}

// up is the smallest multiple of a that is not below x.
func up(x, a uint64) uint64 {
	if a == 0 {
		return x
	}
	return mul(ceilDiv(x, a), a)
}

// mul multiplies and stays at the largest number where that overflows: no count that a
// chip can work off comes near it.
func mul(f ...uint64) uint64 {
	p := uint64(1)
	for _, v := range f {
		hi, lo := bits.Mul64(p, v)
		if hi != 0 {
			return 1<<64 - 1
		}
		p = lo
	}
	return p
}
