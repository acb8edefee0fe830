package simd

var softmaxLoops = family[Softmaxes]{VNNI: {
	Set: VNNI, largest: largestByteVNNI, sumBelow: sumBelowVNNI, table: softmaxTableVNNI, tableBelow: tableBelowVNNI,
}}
