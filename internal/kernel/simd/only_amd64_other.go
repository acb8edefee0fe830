//go:build !amd64

package simd

// Kernels that exist only for amd64.
var (
	byteStripKernels  = family[ByteStrips]{}
	castKernels       = family[Casts]{}
	curveKernels      = family[Curves]{}
	expandKernels     = family[Expand]{}
	expandIntKernels  = family[ExpandInts]{}
	extremeKernels    = family[Extremes]{}
	lowBitKernels     = family[FewBits]{}
	foldKernels       = family[Folds]{}
	fourBitKernels    = family[FourBits]{}
	laneTileKernels   = family[LaneTiles]{}
	winogradKernels   = family[Winograd]{}
	pairKernels       = family[Pairs]{}
	partKernels       = family[Parts]{}
	peakKernels       = family[Peak]{}
	pickKernels       = family[Picks]{}
	placeKernels      = family[Places]{}
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
	spreadKernels     = family[Spreads]{}
	stripKernels      = family[Strips]{}
	tableKernels16    = family[Tables16]{}
)

func partsAvailable() bool { return false }
