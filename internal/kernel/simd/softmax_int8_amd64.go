package simd

var softmaxKernels = family[Softmaxes]{VNNI: {
	Set: VNNI, largest: largestByteVNNI, sumBelow: sumBelowVNNI, table: softmaxTableVNNI, tableBelow: tableBelowVNNI,
}}
