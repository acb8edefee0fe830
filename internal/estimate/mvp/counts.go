package mvp

// Kernel is an algorithm of the kernel library.
type Kernel string

// Kernels. Those named pixel make one program per output pixel.
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

// Counts is what the programs of one layer execute.
type Counts struct {
	Kernel Kernel
	// Programs started.
	Programs int64
	// Instructions executed, no-ops included.
	Instructions int64
	// Stalls are cycles lost because an operand was written by the instruction
	// directly before.
	Stalls int64
	// DoubleIterations and SingleIterations are passes through the inner loop of
	// convolutions with two and one product each.
	DoubleIterations, SingleIterations int64
	// Stores of results; one may hold a pair.
	Stores int64
	// NoOps only move an array on.
	NoOps int64
	// ClampIterations are passes of programs that apply the range of a fused
	// activation afterwards.
	ClampIterations int64

	// Refused says why a first kernel did not take the layer that this one takes; ""
	// when there was none.
	Refused string

	// What device corrections need beside.
	doubleStores, singleStores int64 // of convolutions
	strideNoOps                int64 // no-ops that walk the output array
	byOutput                   bool  // fully connected, one program per output
	pairs                      int64 // of element-wise operators
	pixels                     int64 // outputs without channels, of pools
	segments                   int64 // parts of the output with a filter of their own, of depthwise
}

// Simulated is the number of accelerator cycles by the maker's simulator: each
// instruction and each stall takes one.
func (c *Counts) Simulated() int64 { return c.Instructions + c.Stalls }

// clamp adds the programs that bring n results into the activation's range, for
// kernels that do not clip while they compute. Few results are done by the
// processor.
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
