//go:build !amd64

package simd

// Kernels that exist only for amd64.
var (
	byteStripKernels  = family[ByteStrips]{}
	castKernels       = family[Casts]{}
	columnKernels     = family[Columns]{}
	curveKernels      = family[Curves]{}
	expandKernels     = family[Expand]{}
	expandIntKernels  = family[ExpandInts]{}
	extremeKernels    = family[Extremes]{}
	lowBitKernels     = family[LowBit]{}
	foldKernels       = family[Folds]{}
	int4GemvKernels   = family[Int4Gemv]{}
	laneTileKernels   = family[LaneTiles]{}
	winogradKernels   = family[Winograd]{}
	pairKernels       = family[Pairs]{}
	partKernels       = family[Parts]{}
	peakKernels       = family[Peak]{}
	selectKernels     = family[Select]{}
	argMaxKernels     = family[ArgMax]{}
	poolKernels       = family[Pools]{}
	divisionKernels   = family[Divisions]{}
	relationKernels   = family[Relations]{}
	repeatKernels     = family[repeatKernelSet]{}
	resizeKernels     = family[Resizes]{}
	rowKernels        = family[Rows]{}
	sparse4of8Kernels = family[Sparse4of8]{}
	softmaxKernels    = family[Softmaxes]{}
	sparseKernels     = family[Sparse]{}
	sparseIntKernels  = family[SparseInts]{}
	shortRowKernels   = family[ShortRows]{}
	blockKernels      = family[blockCopies]{}
	stripKernels      = family[Strips]{}
	tableKernels16    = family[Tables16]{}
)

func partsAvailable() bool { return false }
