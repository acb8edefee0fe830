package block

import "encoding/binary"

// Step is a SUMMARY: one run of a subnet.
type Step struct {
	// Iteration is the number of the step in its launch.
	Iteration uint32
	Subnet    uint32
	Kind      SubnetKind
	// Begin and End are the host's clock, microseconds since 1970.
	Begin, End uint64
	// Extra is 0 for static and 1 for dynamic TPU subnets, the layer type of CPU
	// subnets, the condition of switches.
	Extra uint64
}

// SubnetKind is the processor of a subnet, or its control flow.
type SubnetKind uint32

// Kinds of subnets.
const (
	OnTPU SubnetKind = iota
	OnCPU
	Merge
	Switch
)

const stepBytes = 36

// ParseStep decodes a SUMMARY. ok is false if it is cut.
func ParseStep(data []byte) (s Step, ok bool) {
	_, err := binary.Decode(data, le, &s)
	return s, err == nil
}

// Append encodes the step.
func (s *Step) Append(dst []byte) []byte { return appendValues(dst, s) }

// Streams contains the places of the command streams of a core.
type Streams struct {
	// Base and offset of each engine's stream. Only the wide form of BM1690 has those of SDMA.
	GDMABase, GDMAOffset, TIUBase, TIUOffset, SDMABase, SDMAOffset uint64

	Count  uint32      // stated number of groups
	Groups [][2]uint32 // numbers of commands of each group, GDMA and TIU
}

// ParseStreams decodes a COMMAND block. wide is the form of BM1690. Missing groups are left out.
// ok is false if the head is cut.
func ParseStreams(data []byte, wide bool) (s Streams, ok bool) {
	n := 4
	if wide {
		n = 6
	}
	if len(data) < 8*n+4 {
		return s, false
	}
	head, rest := list[uint64](data, n)
	for i, to := range []*uint64{&s.GDMABase, &s.GDMAOffset, &s.TIUBase, &s.TIUOffset, &s.SDMABase, &s.SDMAOffset}[:n] {
		*to = head[i]
	}
	s.Count = le.Uint32(rest)
	s.Groups, _ = list[[2]uint32](rest[4:], int(s.Count))
	return s, true
}

// Append encodes the block.
func (s *Streams) Append(dst []byte, wide bool) []byte {
	dst = appendValues(dst, s.GDMABase, s.GDMAOffset, s.TIUBase, s.TIUOffset)
	if wide {
		dst = appendValues(dst, s.SDMABase, s.SDMAOffset)
	}
	return appendValues(dst, s.Count, s.Groups)
}

// Dyn is a record of the firmware.
type Dyn struct {
	Profile, Type  uint32
	ID, Begin, End uint64
}

// Types of firmware records: the lowest byte of [Dyn].Type.
//
//nolint:revive // each row lists several types
const (
	DynFunc, DynNodeSet, DynNodeWait, DynCDMA, DynGDE, DynSort = 0, 1, 2, 3, 4, 5
	DynNMS, DynVSDMA, DynSend, DynWait, DynCustom              = 6, 7, 8, 9, 100
	DynHead                                                    = 0xFFFFFFFF // type of the first record
)

// ParseDyn decodes DYN_DATA of all chips except BM1690's new form. rest is the number of bytes
// after the last whole record.
func ParseDyn(data []byte) (records []Dyn, rest int) {
	records, data = list[Dyn](data, len(data))
	return records, len(data)
}

// AppendDyn encodes firmware records.
func AppendDyn(dst []byte, records []Dyn) []byte { return appendValues(dst, records) }

// Issue is a record of BM1690's new form: a command that the firmware issued to an engine.
type Issue struct{ Word, ID uint32 }

// Type is the kind of record, one of those of the other form.
func (i Issue) Type() uint32 { return i.Word & 0xFF }

// Unit returns the engine, SDMA for VSDMA. ok is false for units without commands.
func (i Issue) Unit() (e Engine, ok bool) { return unitOf(i.Word>>8&7, newUnits[:]) }

// Task is the command's type.
func (i Issue) Task() uint32 { return i.Word >> 11 & 31 }

// Sub is the command's sub-function.
func (i Issue) Sub() uint32 { return i.Word >> 16 & 31 }

// Extra is the element type, for copies also the direction, for chip-to-chip copies the port.
func (i Issue) Extra() uint32 { return i.Word >> 21 }

// ParseIssues decodes the new form.
func ParseIssues(data []byte) (records []Issue, rest int) {
	records, data = list[Issue](data, len(data))
	return records, len(data)
}

// Node is the content of a NODE_SET or NODE_WAIT.
type Node struct {
	// BD, GDMA, SDMA and VSDMA are the numbers of the last commands, counted from 1.
	BD, GDMA, SDMA, VSDMA uint32
	Engine                Engine
	OK                    bool // false for units without commands
	// Function and Op are the command's type and sub-function if Version is above 0.
	Function, Op, Direction uint32
	Parallel                bool
	Version                 uint32
}

// Node decodes the id of a NODE_SET or NODE_WAIT of a chip.
func (d *Dyn) Node(chip string) Node {
	bits := func(first, width int) uint32 { return uint32(d.ID >> first & (1<<width - 1)) }
	n := Node{BD: bits(0, 20), GDMA: bits(20, 20), Function: bits(43, 4), Op: bits(47, 5), Parallel: bits(52, 1) == 1, Version: bits(60, 4)}
	unit, units := bits(40, 3), []Engine{TIU, GDMA, none, none, none, CDMA}
	switch chip {
	case "BM1684":
		n = Node{BD: bits(0, 16), GDMA: bits(16, 16), Parallel: bits(32, 1) == 1, Function: bits(36, 4), Op: bits(40, 5), Version: bits(60, 4)}
		if unit, units = bits(48, 4), []Engine{TIU, GDMA, CDMA}; unit == 1 {
			n.Direction, n.Function = bits(36, 2), bits(40, 3)
		}
	case "BM1690":
		t := d.Type
		n = Node{BD: bits(0, 16), GDMA: bits(16, 16), SDMA: bits(32, 16), VSDMA: bits(48, 16), Op: t >> 11 & 15, Function: t >> 15 & 31, Parallel: t>>20&1 == 1, Version: t >> 28}
		unit, units = t>>8&7, newUnits[:]
	}
	n.Engine, n.OK = unitOf(unit, units)
	return n
}

// none is a unit without commands.
const none = Engine(255)

// newUnits are the units of BM1690: TIU, GDMA, HAU, SDMA, CDMA and VSDMA.
var newUnits = [...]Engine{TIU, GDMA, none, SDMA, CDMA, SDMA}

func unitOf(unit uint32, units []Engine) (e Engine, ok bool) {
	if int(unit) >= len(units) || units[unit] == none {
		return TIU, false
	}
	return units[unit], true
}

// Func is the content of a FUNC record.
type Func struct {
	Layer uint32 // a type of the firmware's layers, or of its copies if Kind is 2
	Kind  uint32 // 0 for layers on global memory, 1 on local memory, 2 for copies
	Group uint32 // serves as the layer's id
}

// Func decodes the id of a FUNC record.
func (d *Dyn) Func() Func {
	return Func{uint32(d.ID & 0xFFFF), uint32(d.ID >> 32 & 0xFFFF), uint32(d.ID >> 48)}
}

// Extra contains data for a record.
type Extra struct {
	Owner uint32 // profile_id of the record, for drivers' texts the kind of event
	// Kind is [ExtraText], [ExtraBinary] or [ExtraCustom], for drivers' texts the position of the
	// event.
	Kind uint32
	Data []byte
}

// Kinds of data that belong to firmware records.
const (
	ExtraText   = 0
	ExtraBinary = 1
	ExtraCustom = 100
)

// ParseExtras decodes DYN_EXTRA and BMLIB_EXTRA. Decoding ends at a part that is longer than the
// rest. rest is the number of bytes that make no whole part.
func ParseExtras(data []byte) (extras []Extra, rest int) {
	for len(data) >= 12 {
		n := int(le.Uint32(data[8:]))
		if n > len(data)-12 {
			break
		}
		extras = append(extras, Extra{Owner: le.Uint32(data), Kind: le.Uint32(data[4:]), Data: data[12 : 12+n : 12+n]})
		data = data[12+n:]
	}
	return extras, len(data)
}

// AppendExtras encodes such data.
func AppendExtras(dst []byte, extras []Extra) []byte {
	for _, e := range extras {
		dst = append(appendValues(dst, e.Owner, e.Kind, uint32(len(e.Data))), e.Data...)
	}
	return dst
}

// Driver is a BMLIB block: the calls of a program to the driver. Times are microseconds of the
// host's clock.
type Driver struct {
	Begin, End uint64
	Sends      []Send
	Syncs      []Span
	Marks      []Mark
	Copies     []Copy
	Memory     []MemoryOp
	Lists      int // number of present lists: older files end earlier
}

// Send is a call of a function of the chip.
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

// ParseDriver decodes a BMLIB block. ok is false if it ends within a list. The elements before
// are kept.
func ParseDriver(data []byte) (d Driver, ok bool) {
	if len(data) < 16 {
		return d, false
	}
	d.Begin, d.End, data = le.Uint64(data), le.Uint64(data[8:]), data[16:]
	for _, read := range []func([]byte, int) (int, []byte){reader(&d.Sends), reader(&d.Syncs), reader(&d.Marks), reader(&d.Copies), reader(&d.Memory)} {
		if len(data) < 4 {
			break
		}
		d.Lists++
		n := int(le.Uint32(data))
		have, rest := read(data[4:], n)
		if have < n {
			return d, false
		}
		data = rest
	}
	return d, len(data) == 0
}

// reader returns a function that decodes at most n elements of a list.
func reader[T any](to *[]T) func(data []byte, n int) (have int, rest []byte) {
	return func(data []byte, n int) (int, []byte) {
		*to, data = list[T](data, n)
		return len(*to), data
	}
}

// Append encodes the block with its first Lists lists.
func (d *Driver) Append(dst []byte) []byte {
	dst = appendValues(dst, d.Begin, d.End)
	counts := [...]int{len(d.Sends), len(d.Syncs), len(d.Marks), len(d.Copies), len(d.Memory)}
	for i, l := range []any{d.Sends, d.Syncs, d.Marks, d.Copies, d.Memory}[:d.Lists] {
		dst = appendValues(dst, uint32(counts[i]), l)
	}
	return dst
}
