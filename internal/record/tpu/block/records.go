package block

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

// SubnetKind says what runs a subnet.
type SubnetKind uint32

// Kinds of subnets.
const (
	OnTPU SubnetKind = iota
	OnCPU
	Merge
	Switch
)

const stepBytes = 36

// ParseStep decodes a SUMMARY; ok is false where it is cut.
func ParseStep(data []byte) (s Step, ok bool) {
	f := fields{b: data}
	s = Step{f.u32(), f.u32(), SubnetKind(f.u32()), f.u64(), f.u64(), f.u64()}
	return s, !f.short
}

// Append encodes the step.
func (s *Step) Append(dst []byte) []byte {
	return u64(u32(dst, s.Iteration, s.Subnet, uint32(s.Kind)), s.Begin, s.End, s.Extra)
}

// Streams says where the command streams of a core are.
type Streams struct {
	// Base and offset of each engine's stream; that of SDMA is there in the wide form
	// of BM1690 alone.
	GDMABase, GDMAOffset, TIUBase, TIUOffset, SDMABase, SDMAOffset uint64
	// Count is the number of groups that the record states.
	Count uint32
	// Groups holds the numbers of commands of each group, GDMA and TIU.
	Groups [][2]uint32
}

// ParseStreams decodes a COMMAND block; wide is the form of BM1690. Groups that are
// not there are left out; ok is false where the head is cut.
func ParseStreams(data []byte, wide bool) (s Streams, ok bool) {
	f := fields{b: data}
	s.GDMABase, s.GDMAOffset, s.TIUBase, s.TIUOffset = f.u64(), f.u64(), f.u64(), f.u64()
	if wide {
		s.SDMABase, s.SDMAOffset = f.u64(), f.u64()
	}
	s.Count = f.u32()
	if f.short {
		return s, false
	}
	for range min(int(s.Count), len(f.b)/8) {
		s.Groups = append(s.Groups, [2]uint32{f.u32(), f.u32()})
	}
	return s, true
}

// Append encodes the block.
func (s *Streams) Append(dst []byte, wide bool) []byte {
	dst = u64(dst, s.GDMABase, s.GDMAOffset, s.TIUBase, s.TIUOffset)
	if wide {
		dst = u64(dst, s.SDMABase, s.SDMAOffset)
	}
	dst = u32(dst, s.Count)
	for _, g := range s.Groups {
		dst = u32(dst, g[0], g[1])
	}
	return dst
}

// Dyn is a record of the firmware.
type Dyn struct {
	Profile, Type  uint32
	ID, Begin, End uint64
}

// Types of firmware records: the lowest byte of [Dyn].Type.
const (
	DynFunc     = 0
	DynNodeSet  = 1
	DynNodeWait = 2
	DynCDMA     = 3
	DynGDE      = 4
	DynSort     = 5
	DynNMS      = 6
	DynVSDMA    = 7
	DynSend     = 8
	DynWait     = 9
	DynCustom   = 100
	// DynHead is the whole type of the first record.
	DynHead = 0xFFFFFFFF
)

const dynBytes = 32

// ParseDyn decodes DYN_DATA of all chips but BM1690's new form. rest is the number of
// bytes after the last whole record.
func ParseDyn(data []byte) (list []Dyn, rest int) {
	list = make([]Dyn, 0, len(data)/dynBytes)
	f := fields{b: data}
	for len(f.b) >= dynBytes {
		list = append(list, Dyn{f.u32(), f.u32(), f.u64(), f.u64(), f.u64()})
	}
	return list, len(f.b)
}

// AppendDyn encodes firmware records.
func AppendDyn(dst []byte, list []Dyn) []byte {
	for _, d := range list {
		dst = u64(u32(dst, d.Profile, d.Type), d.ID, d.Begin, d.End)
	}
	return dst
}

// Issue is a record of BM1690's new form: a command that the firmware gave to an
// engine.
type Issue struct{ Word, ID uint32 }

// Type is the kind of record, one of those of the other form.
func (i Issue) Type() uint32 { return i.Word & 0xFF }

// Engine is 0 tensor, 1 GDMA, 2 HAU, 3 SDMA, 4 CDMA, 5 VSDMA.
func (i Issue) Engine() uint32 { return i.Word >> 8 & 7 }

// Task is the command's type.
func (i Issue) Task() uint32 { return i.Word >> 11 & 31 }

// Sub is the command's sub-function.
func (i Issue) Sub() uint32 { return i.Word >> 16 & 31 }

// Extra is the element type, of copies also the direction; of chip-to-chip copies the
// port.
func (i Issue) Extra() uint32 { return i.Word >> 21 }

const issueBytes = 8

// ParseIssues decodes the new form.
func ParseIssues(data []byte) (list []Issue, rest int) {
	list = make([]Issue, 0, len(data)/issueBytes)
	f := fields{b: data}
	for len(f.b) >= issueBytes {
		list = append(list, Issue{f.u32(), f.u32()})
	}
	return list, len(f.b)
}

// Node is what a NODE_SET or NODE_WAIT says of the engines.
type Node struct {
	// BD, GDMA, SDMA and VSDMA are the numbers of the last commands, counted from 1.
	BD, GDMA, SDMA, VSDMA uint32
	// Engine is [TIU], [GDMA], [SDMA] or [CDMA]; ok is false for units without commands.
	Engine Engine
	OK     bool
	// Function and Op are the command's type and sub-function where Version is above 0.
	Function, Op, Direction uint32
	Parallel                bool
	Version                 uint32
}

// Node decodes the id of a NODE_SET or NODE_WAIT of a chip.
func (d *Dyn) Node(chip string) Node {
	bits := func(first, width int) uint32 { return uint32(d.ID >> first & (1<<width - 1)) }
	var n Node
	var engine uint32
	switch chip {
	case "BM1684":
		n = Node{BD: bits(0, 16), GDMA: bits(16, 16), Parallel: bits(32, 1) == 1, Function: bits(36, 4), Op: bits(40, 5), Version: bits(60, 4)}
		engine = bits(48, 4)
		n.Engine, n.OK = [4]Engine{TIU, GDMA, CDMA, CDMA}[engine&3], engine < 3
		if engine == 1 {
			n.Direction, n.Function = bits(36, 2), bits(40, 3)
		}
		return n
	case "BM1690":
		t := d.Type
		n = Node{BD: bits(0, 16), GDMA: bits(16, 16), SDMA: bits(32, 16), VSDMA: bits(48, 16), Op: t >> 11 & 15, Function: t >> 15 & 31, Parallel: t>>20&1 == 1, Version: t >> 28}
		engine = t >> 8 & 7
		n.Engine, n.OK = [8]Engine{TIU, GDMA, TIU, SDMA, CDMA, SDMA, TIU, TIU}[engine], engine < 6 && engine != 2
		return n
	}
	n = Node{BD: bits(0, 20), GDMA: bits(20, 20), Function: bits(43, 4), Op: bits(47, 5), Parallel: bits(52, 1) == 1, Version: bits(60, 4)}
	engine = bits(40, 3)
	n.Engine, n.OK = [8]Engine{TIU, GDMA, TIU, TIU, TIU, CDMA, TIU, TIU}[engine], engine < 2 || engine == 5
	return n
}

// Func is what a FUNC record says.
type Func struct {
	// Layer is a type of the firmware's layers, or of its copies where Kind is 2.
	Layer uint32
	// Kind is 0 for layers on global memory, 1 on local memory, 2 for copies.
	Kind uint32
	// Group is taken for the layer's id.
	Group uint32
}

// Func decodes the id of a FUNC record.
func (d *Dyn) Func() Func {
	return Func{uint32(d.ID & 0xFFFF), uint32(d.ID >> 32 & 0xFFFF), uint32(d.ID >> 48)}
}

// Extra is data that belongs to a record.
type Extra struct {
	// Owner is the record: its profile_id; of drivers' texts the kind of event.
	Owner uint32
	// Kind is what the data are ([ExtraText], [ExtraBinary], [ExtraCustom]); of drivers'
	// texts the position of the event.
	Kind uint32
	Data []byte
}

// Kinds of data that belong to firmware records.
const (
	ExtraText   = 0
	ExtraBinary = 1
	ExtraCustom = 100
)

// ParseExtras decodes DYN_EXTRA and BMLIB_EXTRA. A part that is longer than what is
// left is cut; rest is the number of bytes that make no whole part.
func ParseExtras(data []byte) (list []Extra, rest int) {
	for len(data) >= 12 {
		f := fields{b: data}
		e := Extra{Owner: f.u32(), Kind: f.u32()}
		n := int(f.u32())
		if n > len(f.b) {
			return list, len(data)
		}
		e.Data = f.b[:n:n]
		list = append(list, e)
		data = f.b[n:]
	}
	return list, len(data)
}

// AppendExtras encodes such data.
func AppendExtras(dst []byte, list []Extra) []byte {
	for _, e := range list {
		dst = append(u32(dst, e.Owner, e.Kind, uint32(len(e.Data))), e.Data...)
	}
	return dst
}
