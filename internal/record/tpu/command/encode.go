package command

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

// Set writes the field with a role into a raw command; ok is false where the layout has none.
func (o *Op) Set(raw []byte, r Role, v uint64) (ok bool) {
	p := o.roles[r]
	deposit(raw, int(p.first), int(p.width), v)
	return p.width > 0
}

// Layout returns the layout of a kind of command, nil where the chip's tables have none.
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
