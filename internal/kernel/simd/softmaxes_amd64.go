package simd

var softmaxLoops = family[Softmaxes]{VNNI: {
	Set: VNNI, largest: largestByteVNNI, sumBelow: sumBelowVNNI, table: softmaxTableVNNI, tableBelow: tableBelowVNNI,
}}

//go:noescape
func largestByteVNNI(src *byte, n int, flip uint32) uint64

//go:noescape
func sumBelowVNNI(src *byte, n int, top, flip uint32, planes *[3][256]uint8) uint64

//go:noescape
func softmaxTableVNNI(dst *byte, src *int32, n int, by, half, down, lo, hi int32)

//go:noescape
func tableBelowVNNI(dst, src *byte, n int, top, flip uint32, table *byte)
