// Package command decodes the command streams of Sophgo's tensor processors for the tensor engine
// (TIU) and the copy engines (GDMA, SDMA, CDMA). It computes the properties of single commands:
// work, direction, data type, message, and the memory that a command reads and writes.
//
// The layouts are tables in isa/*.isa, one for each chip, written by tools/tpuisa. Fields are read
// from the command on request, so that decoding only finds the ends of commands.
package command

import (
	"slices"
	"strconv"
	"strings"
)

// Engine is a unit of a chip that executes a stream of commands.
type Engine uint8

// The engines. SDMA is the second copy engine of BM1690 and has the commands of GDMA.
const (
	TIU Engine = iota
	GDMA
	SDMA
	CDMA
)

// String returns the engine's name in lower case.
func (e Engine) String() string { return [...]string{"tiu", "gdma", "sdma", "cdma"}[min(e, CDMA)] }

// Chip describes a processor: its layout of memory, widths, clocks and stated peaks. Unknown
// figures are zero.
type Chip struct {
	Name   string // product: BM1684, BM1684X, BM1688, CV186X, BM1690, CV184X
	Report string // name in the vendor's reports
	Arch   []int  // numbers of the chip in records, the usual one first
	Cores  int    // of a full chip
	// Lanes are slices of the local memory of LaneBytes. A lane consists of Banks of BankBytes.
	Lanes, LaneBytes int
	Banks, BankBytes int
	EU8              int // execution units of a lane for 8-bit values (BM1684: for 32-bit values)
	Cube8            int // 8-bit input channels that the convolution takes in one cycle
	CubeOut          int // the convolution pads its output's area to a multiple of it
	VectorBytes      int // width in the vendor's estimate for fused and transposing commands
	// MaxBurst, L2Burst and BusWidth describe the bus.
	MaxBurst, L2Burst, BusWidth int
	DDRRate                     int     // million transfers per second
	DDRPeak, L2Peak             float64 // bytes per second of a core
	// TIUClock and DMAClock are the nominal clocks in Hz. TIUClocks and DMAClocks are all pairs of
	// clocks of the product, the nominal one first.
	TIUClock, DMAClock   float64
	TIUClocks, DMAClocks []float64
	Int8Peak, FloatPeak  float64 // stated operations per second of the whole chip
	// GlobalBit means that one bit of an address selects DDR (BM1688). Tagged addresses have a tag in
	// bits 40 to 44 (BM1690, CV184X).
	GlobalBit, Tagged bool
	Own               bool // commands contain their id; otherwise the id is their place

	isa *table
}

const mhz = 1e6

// The chips.
var (
	BM1684 = &Chip{
		Name: "BM1684", Report: "BM1684", Arch: []int{1}, Cores: 1, Lanes: 64, LaneBytes: 512 << 10, Banks: 8, BankBytes: 64 << 10,
		EU8: 32, TIUClock: 550 * mhz, DMAClock: 575 * mhz, Int8Peak: 17.6e12, FloatPeak: 2.2e12, Own: true,
	}
	BM1684X = &Chip{
		Name: "BM1684X", Report: "BM1684X", Arch: []int{3}, Cores: 1, Lanes: 64, LaneBytes: 256 << 10, Banks: 16, BankBytes: 16 << 10,
		EU8: 64, Cube8: 64, TIUClock: 1000 * mhz, DMAClock: 1000 * mhz, Int8Peak: 32e12, FloatPeak: 2.2e12, Own: true,
	}
	BM1688 = &Chip{
		Name: "BM1688", Report: "A2", Arch: []int{4}, Cores: 2, Lanes: 32, LaneBytes: 128 << 10, Banks: 16, BankBytes: 8 << 10,
		EU8: 16, Cube8: 32, CubeOut: 4, VectorBytes: 16, MaxBurst: 16, BusWidth: 64, DDRRate: 4266, DDRPeak: 32e9,
		TIUClock: 900 * mhz, DMAClock: 750 * mhz, Int8Peak: 14.4e12, FloatPeak: 0.45e12, GlobalBit: true,
	}
	CV186X = &Chip{
		Name: "CV186X", Report: "A2", Arch: []int{4}, Cores: 1, Lanes: 32, LaneBytes: 128 << 10, Banks: 16, BankBytes: 8 << 10,
		EU8: 16, Cube8: 32, CubeOut: 4, VectorBytes: 16, MaxBurst: 16, BusWidth: 64, DDRRate: 4266, DDRPeak: 32e9,
		TIUClock: 900 * mhz, DMAClock: 750 * mhz, Int8Peak: 7.2e12, FloatPeak: 0.225e12, GlobalBit: true,
	}
	BM1690 = &Chip{
		Name: "BM1690", Report: "sg2260", Arch: []int{5}, Cores: 8, Lanes: 64, LaneBytes: 256 << 10, Banks: 16, BankBytes: 16 << 10,
		EU8: 64, Cube8: 64, CubeOut: 4, VectorBytes: 16, MaxBurst: 2, L2Burst: 1, BusWidth: 128, DDRRate: 8533, DDRPeak: 68.264e9,
		L2Peak: 128e9, TIUClock: 1000 * mhz, DMAClock: 1000 * mhz, Int8Peak: 256e12, FloatPeak: 16e12, Tagged: true,
	}
	CV184X = &Chip{
		Name: "CV184X", Report: "CV184X", Arch: []int{8, 7}, Cores: 1, Lanes: 8, LaneBytes: 64 << 10, Banks: 16, BankBytes: 4 << 10,
		EU8: 8, Cube8: 16, CubeOut: 4, VectorBytes: 64, MaxBurst: 32, BusWidth: 64, DDRRate: 2133, DDRPeak: 4e9,
		TIUClock: 750 * mhz, DMAClock: 650 * mhz, TIUClocks: []float64{750 * mhz, 500 * mhz, 375 * mhz},
		DMAClocks: []float64{650 * mhz, 500 * mhz, 500 * mhz}, Int8Peak: 0.75e12, Tagged: true,
	}
)

// Chips are all chips with known commands.
var Chips = []*Chip{BM1684, BM1684X, BM1688, CV186X, CV184X, BM1690}

func init() {
	for _, c := range Chips {
		file := c.Name
		if c == CV186X {
			file = BM1688.Name
		}
		c.isa = &table{file: "isa/" + strings.ToLower(file) + ".isa"}
		if c.TIUClocks == nil {
			c.TIUClocks, c.DMAClocks = []float64{c.TIUClock}, []float64{c.DMAClock}
		}
	}
}

// ByName returns the chip by its product's or report's name in any case, nil for unknown names.
func ByName(name string) *Chip {
	for _, c := range Chips {
		if strings.EqualFold(name, c.Name) || strings.EqualFold(name, c.Report) {
			return c
		}
	}
	return nil
}

// ByArch returns the chip by its number in records, nil for unknown numbers. CV186X has the number
// of BM1688.
func ByArch(arch int) *Chip {
	for _, c := range Chips {
		if slices.Contains(c.Arch, arch) {
			return c
		}
	}
	return nil
}

// EU returns the number of execution units of a lane for values of a type, 0 for types without
// units.
func (c *Chip) EU(t DType) int {
	switch bits := t.bits(); bits {
	case 0:
		return 0
	case 20:
		return c.EU8 / 4
	default:
		return c.EU8 * 8 / bits
	}
}

// Cube returns the number of input channels of a type that the convolution takes in one cycle, 1
// for types of more than 16 bits.
func (c *Chip) Cube(t DType) int {
	if bits := t.bits(); bits > 0 && bits <= 16 {
		return c.Cube8 * 8 / bits
	}
	return 1
}

// DType is the number of an element type in commands.
type DType uint8

// The element types of commands.
const (
	Int8 DType = iota
	FP16
	FP32
	Int16
	Int32
	BF16
	Int4
	FP8
	FP20
	TF32
)

var dtypes = [...]struct {
	name string
	bits int
}{
	{"INT8", 8}, {"FP16", 16}, {"FP32", 32}, {"INT16", 16}, {"INT32", 32}, {"BFP16", 16}, {"INT4", 4}, {"FP8", 8}, {"FP20", 20}, {"TF32", 32},
}

// String returns the type's name in reports, "type N" for unknown numbers.
func (t DType) String() string {
	if t.Known() {
		return dtypes[t].name
	}
	return "type " + strconv.Itoa(int(t))
}

// Known reports whether the number is that of a type.
func (t DType) Known() bool { return int(t) < len(dtypes) }

func (t DType) bits() int {
	if t.Known() {
		return dtypes[t].bits
	}
	return 0
}

// Bytes returns the size of an element: half a byte for 4-bit types, 0 for unknown types.
func (t DType) Bytes() float64 { return float64(t.bits()) / 8 }
