package command

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Command is one decoded command: its layout and its bits.
type Command struct {
	Op *Op
	// Raw are the bits: bit b is bit b mod 8 of byte b div 8. They belong to the stream (BM1684's
	// tensor commands: to a copy with the words in order).
	Raw    []byte
	Offset int    // in the stream, in bytes
	ID     uint32 // its own id on chips with such ids, else its place in the stream from 1
	Dep    uint32 // id of the other engine's command that it waits for
	Sub    uint8  // sub-function
}

// Stop tells where and why the decoding of a stream ended early.
type Stop struct {
	Offset, Index int // in bytes, and the number of commands before
	Code          StopReason
	// Type, Short and Sub are the head of the command without a layout.
	Type, Sub int
	Short     bool
}

// StopReason is the reason why decoding ended.
type StopReason uint8

// The reasons.
const (
	NoLayout StopReason = iota + 1 // the chip's tables have no layout for the command
	Cut                            // the stream ends inside a command, or before the announced count
	TooMany                        // the stream has too many commands
)

// Error describes place and reason.
func (s *Stop) Error() string {
	switch s.Code {
	case NoLayout:
		return fmt.Sprintf("command %d at byte %d: no layout for type %d, sub-function %d, short %t", s.Index+1, s.Offset, s.Type, s.Sub, s.Short)
	case TooMany:
		return fmt.Sprintf("byte %d: more than %d commands", s.Offset, s.Index)
	}
	return fmt.Sprintf("the stream ends at byte %d in command %d", s.Offset, s.Index+1)
}

// Bounds and sizes of streams.
const (
	MaxCommands = 1 << 24 // limits the commands of one stream
	headBytes   = 8       // length of the shortest command, which contains type and form
	groupAlign  = 128     // bytes; a function group begins at a multiple of it
)

// Decode decodes a stream of an engine. count is the announced number of commands. 0 decodes until
// the end of the stream. The commands before an undecodable place are returned with the place.
func Decode(chip *Chip, engine Engine, data []byte, count int) ([]Command, *Stop) {
	d := newDecoder(chip, engine, data)
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

// DecodeOne decodes the command at the beginning of data, as in firmware records.
func DecodeOne(chip *Chip, engine Engine, data []byte) (Command, *Stop) {
	return newDecoder(chip, engine, data).next(0)
}

type decoder struct {
	chip   *Chip
	engine Engine
	table  *table
	data   []byte
	at     int
	closed bool // the last command ended a group
}

func newDecoder(chip *Chip, engine Engine, data []byte) *decoder {
	if chip == BM1684 && engine == TIU {
		data = reverseWords(data)
	}
	return &decoder{chip: chip, engine: engine, table: chip.isa.load(), data: data}
}

// head reads type, form and sub-function of the next command.
func (d *decoder) head() (kind int, short bool, sub int) {
	if d.chip == BM1684 {
		return 0, false, 0
	}
	bits := func(first, width int) int { return int(extract(d.data[d.at:], first, width)) }
	switch {
	case d.engine == TIU:
		kind, sub, short = bits(41, 4), bits(45, 5), bits(0, 1) == 1
		if kind == typeTable && d.chip != BM1684X {
			sub &= 7
		}
	case d.engine == CDMA:
		kind, sub = bits(4, 4), bits(8, 3)
	case d.chip.Tagged:
		kind, sub, short = bits(32, 5), bits(37, 3), bits(3, 1) == 1
	default:
		kind, sub, short = bits(32, 4), bits(36, 3), bits(3, 1) == 1
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
	if d.chip.Own {
		c.ID = uint32(c.lookup(CmdID, uint64(c.ID)))
	}
	c.Dep = uint32(c.Get(CmdDep))
	if d.chip.Tagged {
		c.Dep &= 0xFFFFF // the next bit is a flag
	}
	d.at += size
	return c, nil
}

// Ends reports whether a command closes a group of commands. The rest of its block is padding.
func (c *Command) Ends() bool {
	last := uint8(0)
	if c.Op.Engine == TIU {
		last = 31
	}
	return c.Op.Type == SystemType(c.Op.Engine) && c.Sub == last
}

func (d *decoder) afterEnd() {
	next := (d.at + groupAlign - 1) / groupAlign * groupAlign
	if d.chip == BM1684X || next <= len(d.data) && zero(d.data[d.at:next]) {
		d.at = min(next, len(d.data))
	}
	d.closed = true
}

// ended reports whether only padding is left, at most one block of it after a command that closes a
// group.
func (d *decoder) ended() bool {
	rest := d.data[d.at:]
	closed := d.closed
	d.closed = false
	return len(rest) == 0 || closed && len(rest) <= groupAlign && zero(rest)
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// dropEnds removes the second and later of several commands that close the stream.
func dropEnds(list []Command) []Command {
	for n := len(list); n > 1 && list[n-1].Ends() && list[n-2].Ends(); n-- {
		list = list[:n-1]
	}
	return list
}

// reverseWords reverses the words of each 128-byte command: BM1684 stores the last word of a tensor
// command first.
func reverseWords(data []byte) []byte {
	out := bytes.Clone(data)
	for at := 0; at+128 <= len(data); at += 128 {
		for i := 0; i < 128; i += 4 {
			copy(out[at+i:at+i+4], data[at+124-i:])
		}
	}
	return out
}

// extract reads width bits from bit first on. Bits beyond the end are zero.
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

// deposit writes width bits from bit first on.
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

// Lookup reads the field with a role. ok is false if the layout has none.
func (c *Command) Lookup(r Role) (v uint64, ok bool) {
	p := c.Op.roles[r]
	if p.width == 0 {
		return 0, false
	}
	return extract(c.Raw, int(p.first), int(p.width)), true
}

// Get reads the field with a role, 0 if the layout has none.
func (c *Command) Get(r Role) uint64 { return c.lookup(r, 0) }

// lookup reads the field with a role, another value if the layout has none.
func (c *Command) lookup(r Role, other uint64) uint64 {
	if v, ok := c.Lookup(r); ok {
		return v
	}
	return other
}

// Has reports whether the layout has a field with a role.
func (o *Op) Has(r Role) bool { return o.roles[r].width > 0 }

func (c *Command) address(low, high Role) uint64 { return c.Get(high)<<32 | c.Get(low) }

func ceilDiv(a, b uint64) uint64 {
	if b == 0 {
		return 0
	}
	return a/b + min(a%b, 1)
}

// up returns the smallest multiple of a that is not below x.
func up(x, a uint64) uint64 {
	if a == 0 {
		return x
	}
	return mul(ceilDiv(x, a), a)
}

// mul multiplies. The result of an overflow is the largest number, which no chip can work off.
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

// Encode writes fields into an empty command of a layout; values are in the order of its
// fields, missing ones are zero. The bytes are those that Raw of the decoded command has.
func (o *Op) Encode(values []uint64) []byte {
	raw := make([]byte, o.Bits/8)
	for i, v := range values {
		if i < len(o.Fields) {
			deposit(raw, o.Fields[i].First, o.Fields[i].Width, v)
		}
	}
	return raw
}

// Set writes the field with a role into a raw command. ok is false if the layout has none.
func (o *Op) Set(raw []byte, r Role, v uint64) (ok bool) {
	p := o.roles[r]
	deposit(raw, int(p.first), int(p.width), v)
	return p.width > 0
}

// Layout returns the layout of a kind of command, nil if the chip's tables have none.
func (c *Chip) Layout(e Engine, kind int, short bool, sub int) *Op {
	return c.isa.load().find(e, kind, short, sub)
}

// Builder puts commands together to a stream as the chip stores it: words of BM1684's
// tensor commands reversed, groups begun at their boundary.
type Builder struct {
	chip   *Chip
	engine Engine
	out    []byte
	align  bool
}

// Reset begins an empty stream.
func (b *Builder) Reset(chip *Chip, e Engine) { *b = Builder{chip: chip, engine: e} }

// Append adds a command of a layout with the values of its fields.
func (b *Builder) Append(o *Op, values []uint64) { b.AppendRaw(o, o.Encode(values)) }

// AppendRaw adds a command by its bits.
func (b *Builder) AppendRaw(o *Op, raw []byte) {
	if b.align {
		b.out = append(b.out, make([]byte, (groupAlign-len(b.out)%groupAlign)%groupAlign)...)
	}
	if b.chip == BM1684 && b.engine == TIU {
		raw = reverseWords(raw)
	}
	b.out = append(b.out, raw...)
	c := Command{Op: o, Raw: raw}
	c.Sub = uint8(c.Get(TaskSub))
	b.align = c.Ends()
}

// Bytes is the stream so far.
func (b *Builder) Bytes() []byte { return b.out }
