package simd

// Tile is a piece of a product of matrices, c = act(a·b + bias): up to Rows rows of a by
// one panel of Cols columns of b, or of as many as Width says. Steps are in bytes.
//
// Element k of segment s of row r of a lies at A + r*RowA + s*SegA + k*StepA, so that
// rows may lie packed, side by side or under each other, and the taps of a window need
// no copy. b is a panel: for each k of each segment Cols values, the missing ones there.
type Tile struct {
	A                 *float32
	RowA, StepA, SegA int
	K, Segs           int
	B                 *float32
	C                 *float32
	RowC              int
	Width             int      // columns to write, 1 to Cols
	BiasN             *float32 // a value for each column to write; nil for none
	BiasM             *float32 // a value for each row; nil for none
	Min, Max          float32  // of the results; infinite for no limit
	Continue          int      // 1: sums start with what c holds
}
