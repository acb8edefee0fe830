// Package layout moves elements between dense tensors and strided views of
// them. Slices, transpositions, padding, tiling, broadcasting, joining and
// splitting are all one copy of a rectangular block with a stride for each axis
// on both sides; this package does that copy for every element width, with the
// longest contiguous runs it can find, and in parallel when the block is big.
package layout
