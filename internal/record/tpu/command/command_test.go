package command_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Every layout of every chip: its fields follow one another without overlap, a command
// made of it is found again as itself, and each field keeps what was written into it.
func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, chip := range command.Chips {
		for _, e := range []command.Engine{command.TIU, command.GDMA, command.CDMA} {
			for _, o := range chip.Ops(e) {
				layout(t, chip, e, o)
			}
		}
		if len(chip.Ops(command.TIU)) == 0 || len(chip.Ops(command.GDMA)) == 0 {
			t.Errorf("%s has no commands", chip.Name)
		}
	}
}

func layout(t *testing.T, chip *command.Chip, e command.Engine, o *command.Op) {
	t.Helper()
	at, values := 0, make([]uint64, len(o.Fields))
	for i, f := range o.Fields {
		if f.First < at || f.Width < 1 || f.Width > 64 {
			t.Errorf("%s %s: field %s at %d with %d bits, %d are taken", chip.Name, o.Name, f.Name, f.First, f.Width, at)
		}
		at = f.First + f.Width
		values[i] = (0x9E3779B97F4A7C15 * uint64(i+1)) >> (64 - f.Width)
		if at > o.Bits {
			values[i] = 0 // BM1684X's siblings state more fields than bits for two commands
		}
	}
	raw := o.Encode(values)
	c := command.Command{Op: o, Raw: raw}
	for i := range values {
		if got := c.Field(i); got != values[i] {
			t.Errorf("%s %s: field %s is %#x, want %#x", chip.Name, o.Name, o.Fields[i].Name, got, values[i])
		}
	}
	if o.Type < 0 {
		return
	}
	if o.Form == command.Short {
		o.Set(raw, command.CmdShort, 1)
	} else {
		o.Set(raw, command.CmdShort, 0)
	}
	o.Set(raw, command.TaskType, uint64(o.Type))
	for sub := range 32 {
		if o.Function(sub) == "" {
			continue
		}
		o.Set(raw, command.TaskSub, uint64(sub))
		want := o.Function(sub)
		if !o.Has(command.TaskSub) {
			want = o.Function(0)
		}
		got, stop := command.DecodeOne(chip, e, raw)
		if stop != nil {
			t.Errorf("%s %s: %v", chip.Name, o.Name, stop)
		} else if got.Name() != want || got.Op.Bits != o.Bits {
			t.Errorf("%s %s: found as %s %s, want %s", chip.Name, o.Name, got.Op.Name, got.Name(), want)
		}
	}
}

// The words of BM1684's tensor commands are stored last first: bit 0 lies in the last word.
func TestReversedWords(t *testing.T) {
	t.Parallel()
	data := make([]byte, 256)
	data[124] = 1      // word 0 of the first command: bit 0, CMD_EN
	data[252] = 5 << 3 // word 0 of the second: CMD_ID_TPU from bit 3
	list, stop := command.Decode(command.BM1684, command.TIU, data, 2)
	if stop != nil || len(list) != 2 {
		t.Fatalf("%d commands: %v", len(list), stop)
	}
	if list[0].Field(0) != 1 || list[1].Field(0) != 0 || list[1].ID != 5 {
		t.Errorf("enabled %d and %d, id %d; want 1, 0, 5", list[0].Field(0), list[1].Field(0), list[1].ID)
	}
	if data[124] != 1 || data[0] != 0 {
		t.Error("the stream was changed")
	}
}

func end(t *testing.T, chip *command.Chip, e command.Engine, kind, sub int) (*command.Op, []byte) {
	t.Helper()
	o := chip.Layout(e, kind, e != command.TIU, sub)
	if o == nil {
		t.Fatalf("%s has no command %d/%d", chip.Name, kind, sub)
	}
	raw := o.Encode(nil)
	o.Set(raw, command.CmdShort, 1)
	o.Set(raw, command.TaskType, uint64(kind))
	o.Set(raw, command.TaskSub, uint64(sub))
	return o, raw
}

// Behind a command that closes a group the next begins at a multiple of 128 bytes.
func TestGroups(t *testing.T) {
	t.Parallel()
	for _, chip := range []*command.Chip{command.BM1684X, command.BM1688, command.CV184X, command.BM1690} {
		var b command.Builder
		b.Reset(chip, command.GDMA)
		o, raw := end(t, chip, command.GDMA, 6, 0)
		n, nop := end(t, chip, command.GDMA, 6, 1)
		b.AppendRaw(n, nop)
		b.AppendRaw(o, raw)
		b.AppendRaw(n, nop)
		b.AppendRaw(o, raw)
		data := append(b.Bytes(), make([]byte, 96)...)
		list, stop := command.Decode(chip, command.GDMA, data, 0)
		if stop != nil || len(list) != 4 || list[2].Offset != 128 {
			t.Errorf("%s: %d commands: %v", chip.Name, len(list), stop)
		}
	}
}

// BM1690 closes a stream with several commands: only the first counts.
func TestSurplusEnds(t *testing.T) {
	t.Parallel()
	o, raw := end(t, command.BM1690, command.TIU, 15, 31)
	var data []byte
	for range 3 {
		data = append(data, raw...)
		data = append(data, make([]byte, 128-o.Bits/8)...)
	}
	list, stop := command.Decode(command.BM1690, command.TIU, data, 0)
	if stop != nil || len(list) != 1 {
		t.Errorf("%d commands, want 1: %v", len(list), stop)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	o, nop := end(t, command.BM1690, command.GDMA, 6, 1)
	unknown := append([]byte(nil), nop...)
	o.Set(unknown, command.TaskType, 11) // BM1690 has no layout of decompress
	o.Set(unknown, command.CmdShort, 0)
	for _, c := range []struct {
		name   string
		data   []byte
		count  int
		reason command.StopReason
		at, n  int
	}{
		{"unknown", append(append([]byte(nil), nop...), unknown...), 0, command.NoLayout, 16, 1},
		{"cut", append(append([]byte(nil), nop...), nop[:7]...), 0, command.Cut, 23, 1},
		{"cut in head", append(append([]byte(nil), nop...), nop[:1]...), 0, command.Cut, 17, 1},
		{"fewer than announced", nop, 2, command.Cut, 16, 1},
		{"none", nil, 1, command.Cut, 0, 0},
	} {
		list, stop := command.Decode(command.BM1690, command.GDMA, c.data, c.count)
		if stop == nil || stop.Code != c.reason || stop.Offset != c.at || stop.Index != c.n || len(list) != c.n {
			t.Errorf("%s: %d commands, %+v; want %d, reason %d at byte %d", c.name, len(list), stop, c.n, c.reason, c.at)
		} else if stop.Error() == "" {
			t.Errorf("%s: no text", c.name)
		}
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	o := command.BM1688.Layout(command.TIU, 15, false, 9)
	raw := o.Encode(nil)
	o.Set(raw, command.TaskType, 15)
	o.Set(raw, command.TaskSub, 9)
	o.Set(raw, command.Imm, 5|3<<16)
	c, stop := command.DecodeOne(command.BM1688, command.TIU, raw)
	if stop != nil {
		t.Fatal(stop)
	}
	if m, ok := c.Message(); !ok || m != (command.Message{ID: 5, Count: 3, Wait: true}) {
		t.Errorf("message %+v, %t", m, ok)
	}
}

func TestChips(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]*command.Chip{
		"bm1684": command.BM1684, "A2": command.BM1688, "cv186x": command.CV186X, "SG2260": command.BM1690, "BM1682": nil,
	} {
		if got := command.ByName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for arch, want := range map[int]*command.Chip{1: command.BM1684, 3: command.BM1684X, 4: command.BM1688, 5: command.BM1690, 7: command.CV184X, 8: command.CV184X, 2: nil} {
		if got := command.ByArch(arch); got != want {
			t.Errorf("%d: %v", arch, got)
		}
	}
	if n := command.BM1688.EU(command.FP16); n != 8 {
		t.Errorf("%d units for 16 bits, want 8", n)
	}
	if n := command.BM1684X.Cube(command.Int4); n != 128 {
		t.Errorf("cube takes %d channels of 4 bits, want 128", n)
	}
}

// A command may be anything: nothing of it may fail, and what was decoded lies in the
// stream in order.
func FuzzDecode(f *testing.F) {
	for _, chip := range command.Chips {
		for _, e := range []command.Engine{command.TIU, command.GDMA, command.CDMA} {
			for _, o := range chip.Ops(e) {
				raw := o.Encode(nil)
				o.Set(raw, command.TaskType, uint64(max(o.Type, 0)))
				f.Add(raw, uint8(e), 0)
				break
			}
		}
	}
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, uint8(2), 3)
	f.Fuzz(func(t *testing.T, data []byte, e uint8, count int) {
		for _, chip := range command.Chips {
			engine := command.Engine(e % 4)
			list, stop := command.Decode(chip, engine, data, count)
			at := 0
			for i := range list {
				c := &list[i]
				if c.Offset < at {
					t.Fatalf("command %d at %d, the one before ends at %d", i, c.Offset, at)
				}
				at = c.Offset + c.Op.Bits/8
				if at > len(data) {
					t.Fatalf("command %d ends at %d of %d", i, at, len(data))
				}
				c.Work(chip)
				c.Spaces(chip)
				c.Message()
				for _, a := range c.Accesses(chip, nil) {
					if a.Size == 0 || a.Addr+a.Size < a.Addr || a.Space == command.Local && (a.Lanes < 1 || a.Lane+a.Lanes > chip.Lanes) {
						t.Fatalf("%s %s: %+v", chip.Name, c.Name(), a)
					}
				}
				_ = c.DType().String() + c.Name()
			}
			if stop != nil && stop.Index != len(list) {
				t.Fatalf("stopped behind %d commands, have %d", stop.Index, len(list))
			}
		}
	})
}
