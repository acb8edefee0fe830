package tpurecords

import (
	"math/rand/v2"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Types of commands.
const (
	arithmetic = 3
	tiuSystem  = 15
	tensorCopy = 0
	copySystem = 6
	tiuEnd     = 31
	copyEnd    = 0
)

// Addresses that copies use: a place in DDR and one in local memory, as each chip
// tells them apart.
func addresses(c *command.Chip) (ddr, local uint64) {
	switch {
	case c.Tagged:
		return 1 << 40, 31 << 40
	case c.GlobalBit:
		return 1 << 39, 0
	}
	return 0x1_0000_0000, 0x0800_0000
}

// encode is the bits of a command with its layout.
func encode(chip *command.Chip, c *Command) (*command.Op, []byte) {
	if !c.DMA {
		op := chip.Layout(command.TIU, arithmetic, true, 2)
		raw := op.Encode(nil)
		op.Set(raw, command.CmdShort, 1)
		op.Set(raw, command.TaskType, arithmetic)
		op.Set(raw, command.TaskSub, 2)
		op.Set(raw, command.CmdID, uint64(c.Own)&idMask(chip))
		op.Set(raw, command.CmdDep, uint64(c.Dep)&idMask(chip))
		for _, r := range []command.Role{command.Res0N, command.Res0C, command.Res0H, command.Res0W} {
			op.Set(raw, r, 8)
		}
		op.Set(raw, command.Opd0Prec, uint64(command.FP16))
		op.Set(raw, command.Res0Prec, uint64(command.FP16))
		op.Set(raw, command.OpdNum, 1)
		op.Set(raw, command.Res0Addr, 4096)
		return op, raw
	}
	op := chip.Layout(command.GDMA, tensorCopy, false, 0)
	raw := op.Encode(nil)
	ddr, local := addresses(chip)
	src, dst, way := ddr, local, uint64(0)
	if c.Store {
		src, dst, way = local, ddr, 1
	}
	op.Set(raw, command.CmdID, uint64(c.Own)&idMask(chip))
	op.Set(raw, command.CmdDep, uint64(c.Dep)&idMask(chip))
	op.Set(raw, command.CopyDirection, way)
	for _, x := range []struct {
		role command.Role
		v    uint64
	}{
		{command.SrcLow, src & 0xFFFFFFFF},
		{command.SrcHigh, src >> 32},
		{command.DstLow, dst & 0xFFFFFFFF},
		{command.DstHigh, dst >> 32},
		{command.SrcNSize, 1},
		{command.SrcCSize, 1},
		{command.SrcHSize, 1},
		{command.SrcWSize, uint64(c.Bytes)},
		{command.DstNSize, 1},
		{command.DstCSize, 1},
		{command.DstHSize, 1},
		{command.DstWSize, uint64(c.Bytes)},
		{command.SrcWStr, 1},
		{command.DstWStr, 1},
	} {
		op.Set(raw, x.role, x.v)
	}
	return op, raw
}

func idMask(c *command.Chip) uint64 {
	if c == command.BM1684 {
		return 1<<16 - 1
	}
	return 1<<20 - 1
}

// streams are the command streams of a subnet.
func (d *Directory) streams(s *Subnet) (tiu, dma []byte) {
	chip := d.Options.Chip
	var b [2]command.Builder
	b[0].Reset(chip, command.TIU)
	b[1].Reset(chip, command.GDMA)
	var last [2]uint32
	for i := range s.Commands {
		c := &s.Commands[i]
		op, raw := encode(chip, c)
		k := 0
		if c.DMA {
			k = 1
		}
		last[k] = c.Own
		b[k].AppendRaw(op, raw)
	}
	if hasEnds(chip) {
		end := func(k int, e command.Engine, kind, sub int, short bool) {
			op := chip.Layout(e, kind, short, sub)
			raw := op.Encode(nil)
			if short {
				op.Set(raw, command.CmdShort, 1)
			}
			op.Set(raw, command.TaskType, uint64(kind))
			op.Set(raw, command.TaskSub, uint64(sub))
			op.Set(raw, command.CmdID, uint64(last[k]+1)&idMask(chip))
			b[k].AppendRaw(op, raw)
		}
		end(0, command.TIU, tiuSystem, tiuEnd, true)
		end(1, command.GDMA, copySystem, copyEnd, true)
	}
	return padded(b[0].Bytes()), padded(b[1].Bytes())
}

// padded fills a stream up to whole blocks of 128 bytes.
func padded(b []byte) []byte { return append(b, make([]byte, (128-len(b)%128)%128)...) }

// set writes a field of the last record of a table.
func set(t *block.Table, name string, v int64) {
	for i := range t.Layout.Fields {
		if f := &t.Layout.Fields[i]; f.Name == name {
			t.Columns[i][t.N-1] = uint32(v)
		}
	}
}

// grow adds an empty record.
func grow(t *block.Table) {
	t.N++
	for i := range t.Columns {
		t.Columns[i] = append(t.Columns[i], 0)
	}
}

// times writes number and counters of a record. Counters have 32 bits.
func times(t *block.Table, id uint32, start, end int64) {
	grow(t)
	bits := t.Layout.IDBits
	mask := uint32(1)<<bits - 1
	if bits == 32 {
		mask = 1<<32 - 1
	}
	set(t, block.ID, int64(id&mask))
	set(t, block.Start, start&0xFFFFFFFF)
	set(t, block.End, end&0xFFFFFFFF)
}

// tiuRecords are the records of the tensor engine.
func (d *Directory) tiuRecords(s *Subnet) *block.Table {
	o := &d.Options
	t := block.LayoutOf(o.Chip.Name, block.TIU).NewTable()
	base, _ := d.bases()
	d.launch(t, base)
	r := rand.New(rand.NewPCG(o.Seed, 7))
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.DMA || c.Lost {
			continue
		}
		times(t, c.Own-1, base+c.Start, base+c.End)
		if t.Layout.Has(block.LoadLow) {
			set(t, block.LoadLow, (c.End-c.Start)/2)
		}
		set(t, block.Conflicts, r.Int64N(3))
	}
	d.swap(t)
	return t
}

// launch adds the messages with which every engine of BM1690 begins.
func (d *Directory) launch(t *block.Table, base int64) {
	if d.Options.Chip != command.BM1690 || base < 10_000 {
		return
	}
	times(t, 0, base-5000, base-4990)
	times(t, 1, base-4980, base-4970)
}

// copyRecords are the records of the copy engine.
func (d *Directory) copyRecords(s *Subnet) *block.Table {
	o := &d.Options
	t := block.LayoutOf(o.Chip.Name, block.GDMA).NewTable()
	_, base := d.bases()
	d.launch(t, base)
	move := func(n int64, store bool) {
		burst := (n + 255) / 256
		switch {
		case t.Layout.Has("axi_ar") && store:
			set(t, "axi_wr", n)
			set(t, "axi_aw", burst)
			set(t, "local_ar", n)
		case t.Layout.Has("axi_ar"):
			set(t, "local_wr", n)
			set(t, "axi_ar", burst)
		case store:
			set(t, "d0_wr", n/2)
			set(t, "d1_wr", n-n/2)
			set(t, "d0_aw", n/2)
			set(t, "d1_aw", n-n/2)
			set(t, "local_ar", n)
		default:
			set(t, "local_wr", n)
			set(t, "local_aw", n)
			set(t, "d0_ar", n)
		}
	}
	if o.Copies && base > 10_000 {
		times(t, 0, base-9000, base-8000)
		move(4096, true)
	}
	most := int64(0)
	for i := range s.Commands {
		c := &s.Commands[i]
		if !c.DMA || c.Lost {
			continue
		}
		times(t, c.Own-1, base+c.Start, base+c.End)
		move(c.Bytes, c.Store)
		most = max(most, c.End)
	}
	if o.Copies {
		for i := range int64(2) {
			times(t, uint32(i), base+most+1000+i*500, base+most+1400+i*500)
			move(2048, true)
		}
	}
	d.swap(t)
	return t
}

// swap exchanges neighbours.
func (d *Directory) swap(t *block.Table) {
	n := d.Options.Swap
	if n == 0 {
		return
	}
	ids := t.Column(block.ID)
	for i := n; i+1 < t.N; i += n {
		if ids[i+1] != ids[i]+1 {
			continue // not across the beginning of a section
		}
		for _, c := range t.Columns {
			c[i], c[i+1] = c[i+1], c[i]
		}
		if th := t.Column(block.Thread); th != nil {
			th[i] = 1
		}
	}
}

// firmware makes the records with which the firmware issues the commands of a dynamic
// subnet.
func (d *Directory) firmware(s *Subnet, dynamic bool) (records []block.Dyn, extras []block.Extra) {
	const zero, tick = 1_000_000, 20
	head := block.Dyn{Type: block.DynHead, Begin: zero, End: tick}
	if d.Options.BadTick {
		head.End = 2_104_206_625_330_880
	}
	records = append(records, head)
	if !dynamic {
		return append(records, block.Dyn{Profile: 1, Type: block.DynNodeWait, Begin: zero + 10, End: zero + 20}), nil
	}
	layer, open := -1, -1 // open is the layer's own record, which ends with its last command
	at := uint64(zero + 100)
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.Layer != layer {
			layer = c.Layer
			if open >= 0 {
				records[open].End = at
			}
			open = len(records)
			records = append(records, block.Dyn{Profile: uint32(len(records)), Type: block.DynFunc, ID: uint64(layer%100) | uint64(s.FirstLayer+layer)<<48, Begin: at, End: at + 1})
		}
		at += 10
		bd, gdma, engine := uint64(c.Own), uint64(c.Dep), uint64(0)
		if c.DMA {
			bd, gdma, engine = gdma, bd, 1
		}
		id := bd | gdma<<20 | engine<<40 | 1<<60
		if d.Options.Chip == command.BM1684 {
			id = bd | gdma<<16 | engine<<48 | 1<<60
		}
		profile := uint32(len(records))
		records = append(records, block.Dyn{Profile: profile, Type: block.DynNodeSet, ID: id, Begin: at, End: at + 2})
		_, raw := encode(d.Options.Chip, c)
		extras = append(extras, block.Extra{Owner: profile, Kind: block.ExtraBinary, Data: raw})
		at += 1000
	}
	records[open].End = at
	return records, extras
}
