package mvp

import "slices"

// Kernel is an algorithm of the kernel library.
type Kernel string

// Kernels. Those named pixel start one program per output pixel.
const (
	KernelConv             Kernel = "conv"
	KernelDense            Kernel = "dense"
	KernelDepthwise        Kernel = "depthwise"
	KernelDepthwisePixel   Kernel = "depthwise_pixel"
	KernelAveragePool      Kernel = "average_pool"
	KernelAveragePoolPixel Kernel = "average_pool_pixel"
	KernelMaxPool          Kernel = "max_pool"
	KernelAdd              Kernel = "add"
	KernelMul              Kernel = "mul"
	KernelTransposeConv    Kernel = "transpose_conv"
)

// Counts are the amounts of work that the programs of one layer execute.
type Counts struct {
	Kernel Kernel
	// Programs started.
	Programs int64
	// Instructions executed, no-ops included.
	Instructions int64
	// Stalls are cycles lost because the preceding instruction wrote an operand.
	Stalls int64
	// DoubleIterations and SingleIterations are iterations of the inner loop of convolutions with
	// two multiply-accumulates and with one.
	DoubleIterations, SingleIterations int64
	// Stores of results; one may hold a pair.
	Stores int64
	// NoOps only advance an array.
	NoOps int64
	// ClampIterations are iterations of the programs that clamp to the range of a fused
	// activation afterwards.
	ClampIterations int64

	// Refused says why the preferred kernel does not support the layer; "" if it does.
	Refused string

	// Inputs of the device corrections.
	doubleStores, singleStores int64 // of convolutions
	strideNoOps                int64 // no-ops that walk the output array
	byOutput                   bool  // fully connected, one program per output
	pairs                      int64 // of element-wise operators
	pixels                     int64 // outputs without channels, of pools
	segments                   int64 // parts of the output with a filter of their own, of depthwise

	reads bool // the first instruction reads a register
	idle  bool // the last instruction only advances an array
}

// leaves lists the kernels whose last instruction writes the register that a program for scaled
// inputs reads first. Others write another one.
var leaves = map[Kernel]bool{KernelConv: true, KernelDense: true, KernelDepthwise: true, KernelMaxPool: true}

// carried finds the layers that lose a cycle to the layer before: a stall reaches over the border
// of programs, from the last instruction of one layer to the first of the next. Only scaled
// convolutions and transposed ones begin with an instruction that reads a register. The list has
// the counts of all layers in order, nil for those on the processor. The layer before the first
// is the last one, of the inference before.
func carried(list []*Counts) []bool {
	out := make([]bool, len(list))
	var before *Counts
	for _, c := range slices.Backward(list) {
		if c != nil {
			before = c
			break
		}
	}
	for i, c := range list {
		if c == nil {
			continue
		}
		out[i] = c.reads && leaves[before.Kernel] && !before.idle && before.ClampIterations == 0
		before = c
	}
	return out
}

// Simulated returns the number of accelerator cycles in the vendor's simulator: each instruction
// and each stall takes one.
func (c *Counts) Simulated() int64 { return c.Instructions + c.Stalls }

// clamp adds the programs that clamp n results to the activation's range, for kernels that do not
// clamp while computing. The processor handles a small number of results.
func (c *Counts) clamp(n int64) {
	const onCPU, perProgram = 160, 2048
	if n <= onCPU {
		return
	}
	for n > 0 {
		k := min(n, perProgram)
		it := (k + 3) / 4
		c.Programs++
		c.Instructions += 1 + 2*it
		c.ClampIterations += it
		n -= k
	}
}
