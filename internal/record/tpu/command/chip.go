// Package command decodes the command streams of Sophgo's tensor processors: what the
// compiler stored for the tensor engine (TIU) and the copy engines (GDMA, SDMA, CDMA),
// command by command, and what follows from a command alone: its work, direction, data
// type, message and the memory that it reads and writes.
//
// The layouts are tables in isa/*.isa, one for each chip, made by tools/tpuisa; a field
// is read by its place in the command when it is asked for, so that a stream of a
// million commands costs no more than its walk.
package command

import (
	"strconv"
	"strings"
)

// Engine is the unit of a chip that executes a stream of commands.
type Engine uint8

// The engines. SDMA is the second copy engine of BM1690 and has the commands of GDMA.
const (
	TIU Engine = iota
	GDMA
	SDMA
	CDMA
)

// String is the engine's name in lower case.
func (e Engine) String() string {
	return [...]string{"tiu", "gdma", "sdma", "cdma"}[min(e, CDMA)]
}

// Chip is what is known about a processor without a record: its layout of memory, widths,
// clocks and stated peaks. Figures that no one states are zero.
type Chip struct {
	// Name is the product's name: BM1684, BM1684X, BM1688, CV186X, BM1690, CV184X.
	Name string
	// Report is the name that the vendor's own reports use.
	Report string
	// Arch are the numbers by which records name the chip, the usual one first.
	Arch []int
	// Cores is how many cores a full chip has.
	Cores int
	// Lanes is how many slices the local memory has, LaneBytes the size of one.
	Lanes, LaneBytes int
	// Banks of BankBytes make up a lane.
	Banks, BankBytes int
	// EU8 is how many execution units a lane has for 8-bit values (BM1684: for 32-bit ones).
	EU8 int
	// Cube8 is how many input channels of 8 bits the convolution takes in one cycle.
	Cube8 int
	// CubeOut is the multiple to which the convolution pads its output's area.
	CubeOut int
	// VectorBytes is the width that the vendor's estimate takes for fused and transposing
	// commands.
	VectorBytes int
	// MaxBurst, L2Burst and BusWidth describe the bus.
	MaxBurst, L2Burst, BusWidth int
	// DDRRate is the memory's rate in million transfers per second.
	DDRRate int
	// DDRPeak and L2Peak are bytes per second that a core can move at most.
	DDRPeak, L2Peak float64
	// TIUClock and DMAClock are the nominal clocks in Hz; TIUClocks and DMAClocks are all
	// pairs that the chip is sold with, the nominal one first.
	TIUClock, DMAClock   float64
	TIUClocks, DMAClocks []float64
	// Int8Peak and FloatPeak are operations per second of the whole chip, as stated.
	Int8Peak, FloatPeak float64
	// GlobalBit, when set, tells addresses of DDR by one bit (BM1688); Tagged addresses
	// carry a tag in bits 40 to 44 (BM1690, CV184X).
	GlobalBit, Tagged bool
	// Own says that commands carry an id of their own; otherwise it is their place.
	Own bool

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

// Chips are all chips whose commands can be decoded.
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

// ByName returns the chip with a product's or report's name in any case, nil when there
// is none.
func ByName(name string) *Chip {
	for _, c := range Chips {
		if strings.EqualFold(name, c.Name) || strings.EqualFold(name, c.Report) {
			return c
		}
	}
	return nil
}

// ByArch returns the chip that records call by a number, nil if absent. CV186X
// has the number of BM1688.
func ByArch(arch int) *Chip {
	for _, c := range Chips {
		for _, a := range c.Arch {
			if a == arch {
				return c
			}
		}
	}
	return nil
}

// EU returns how many execution units a lane has for values of a type. It is 0 for
// types that the chip's tables do not know.
func (c *Chip) EU(t DType) int {
	switch t.bits() {
	case 4:
		return c.EU8 * 2
	case 8:
		return c.EU8
	case 16:
		return c.EU8 / 2
	case 32, 20:
		return c.EU8 / 4
	}
	return 0
}

// Cube returns how many input channels of a type the convolution takes in one cycle, 1
// for 32-bit types.
func (c *Chip) Cube(t DType) int {
	switch t.bits() {
	case 4:
		return c.Cube8 * 2
	case 8:
		return c.Cube8
	case 16:
		return c.Cube8 / 2
	}
	return 1
}

// DType is the code of an element type in commands.
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
	{"INT8", 8},
	{"FP16", 16},
	{"FP32", 32},
	{"INT16", 16},
	{"INT32", 32},
	{"BFP16", 16},
	{"INT4", 4},
	{"FP8", 8},
	{"FP20", 20},
	{"TF32", 32},
}

// String is the type's name as reports print it; "type N" where the code is unknown.
func (t DType) String() string {
	if int(t) < len(dtypes) {
		return dtypes[t].name
	}
	return "type " + strconv.Itoa(int(t))
}

// Known reports whether the code has a meaning.
func (t DType) Known() bool { return int(t) < len(dtypes) }

func (t DType) bits() int {
	if int(t) < len(dtypes) {
		return dtypes[t].bits
	}
	return 0
}

// Bytes is the size of an element: half a byte for 4-bit types, 0 for unknown codes.
func (t DType) Bytes() float64 { return float64(t.bits()) / 8 }
