//go:build !amd64

package simd

// Kernels that exist only for amd64.
var (
	byteStrips   = family[ByteStrips]{}
	castLoops    = family[Casts]{}
	curves       = family[Curves]{}
	expand       = family[Expand]{}
	expandInts   = family[ExpandInts]{}
	extremeLoops = family[Extremes]{}
	fewBits      = family[FewBits]{}
	foldLoops    = family[Folds]{}
	fourBitLoops = family[FourBits]{}
	laneTiles    = family[LaneTiles]{}
	minimal      = family[Minimal]{}
	pairs        = family[Pairs]{}
	partLoops    = family[Parts]{}
	peaks        = family[Peak]{}
	pickLoops    = family[Picks]{}
	placeLoops   = family[Places]{}
	pools        = family[Pools]{}
	quotients    = family[Divisions]{}
	relations    = family[Relations]{}
	repeats      = family[repeatLoops]{}
	resizeLoops  = family[Resizes]{}
	rowLoops     = family[Rows]{}
	sifted       = family[Sifted]{}
	softmaxLoops = family[Softmaxes]{}
	sparse       = family[Sparse]{}
	sparseInts   = family[SparseInts]{}
	spreadLoops  = family[Spreads]{}
	strips       = family[Strips]{}
	tables16     = family[Tables16]{}
)

func partsWork() bool { return false }
