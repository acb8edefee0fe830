package simd

// Winograd holds the transforms of Winograd convolution F(4×4, 3×3) in float32.
//
// Sources: S. Winograd, Arithmetic Complexity of Computations, 1980, and A. Lavin and S. Gray,
// Fast Algorithms for Convolutional Neural Networks, 2016. A tile of 4×4 results of a 3×3 window
// over the 6×6 values d is Aᵀ·[(G·g·Gᵀ) ⊙ (Bᵀ·d·B)]·A. This takes 36 multiplications for each
// channel instead of 144. The rows of A are the powers of the points. G has the same powers,
// divided by the product of the distances from a point to the other points. Bᵀ has the
// polynomials that are zero at the other points.
//
// The points are 0, ±3/4, ±3/2 and infinity; their powers are exact. For random sums over 16 to
// 512 channels, the errors are 1.6 to 2.3 times those of a direct float32 sum. With 0, ±1, ±2 and
// infinity they are 2 to 5 times as large.
//
// The transforms process Lanes tiles at once. The values of these tiles at one position are
// adjacent.
type Winograd struct {
	Set   Set
	Lanes int
	order [2][16]int32 // permutations for Split and for Output
	// See the methods of these names.
	split   func(dst *float32, frame, stepDst int, src *float32, stepSrc, n, lines int, order *int32, next *float32, stepNext int)
	input   func(dst *float32, place int, src *float32, frame, line, n int, buf, constants *float32)
	output  func(dst *float32, step, lines, columns int, src *float32, place int, buf, constants *float32, order, mask *int32, bias, low, high float32)
	weights func(dst *float32, place, step int, src *float32, n int, buf, constants *float32)
}

// WinogradKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func WinogradKernels() *Winograd { return winogradKernels.pick() }

// Sizes of the Winograd tiles.
const (
	WinogradTile      = 4                                     // side of a tile of results
	WinogradInputTile = WinogradTile + 2                      // side of their input tile
	WinogradPositions = WinogradInputTile * WinogradInputTile // multiplications for each channel
	WinogradFrames    = WinogradTile * WinogradInputTile      // planes that Split writes
)

// WinogradWorkspace is a workspace for the transforms. Each goroutine needs its own.
type WinogradWorkspace [40 * 16]float32

// winogradConstants holds the factors of the transforms; see internal/kernel/gen.
var winogradConstants = func() (t [16]float32) {
	const a, b = 0.75, 1.5
	for i, v := range []float64{
		a, b, a * a, b * b, a * a * a, b * b * b, a * a * b * b, a*a + b*b,
		1 / (a * a * b * b),
		1 / (2 * a * a * (a*a - b*b)), a / (2 * a * a * (a*a - b*b)), a * a / (2 * a * a * (a*a - b*b)),
		1 / (2 * b * b * (b*b - a*a)), b / (2 * b * b * (b*b - a*a)), b * b / (2 * b * b * (b*b - a*a)),
	} {
		t[i] = float32(v)
	}
	return t
}()

// Split splits lines lines of src, stepSrc values apart, into frames. Value 4·t+j of a line goes
// to position t of frame j, for j from 0 to 5. Lines of a frame are stepDst values apart, frames
// frame values. tiles is rounded up to Lanes: as many positions are written, and four times as
// many values plus four are read. Meanwhile Split prefetches the lines that start at next,
// stepNext values apart.
func (f *Winograd) Split(dst []float32, frame, stepDst int, src []float32, stepSrc, tiles, lines int, next *float32, stepNext int) {
	if tiles <= 0 || lines <= 0 {
		return
	}
	n := (tiles + f.Lanes - 1) / f.Lanes
	_, _ = dst[(WinogradInputTile-1)*frame+(lines-1)*stepDst+n*f.Lanes-1], src[(lines-1)*stepSrc+4*n*f.Lanes+3]
	f.split(&dst[0], 4*frame, 4*stepDst, &src[0], 4*stepSrc, n, lines, &f.order[0][0], next, 4*stepNext)
}

// Input writes Bᵀ·d·B of tiles tiles, rounded up to Lanes: position i of tile t to
// dst[i*place+t]. Value (y, x) of the input of tile t is at position t of frame 6·(y mod 4)+x,
// plus line values if y is 4 or more.
func (f *Winograd) Input(dst []float32, place int, src []float32, frame, line, tiles int, buf *WinogradWorkspace) {
	if tiles <= 0 {
		return
	}
	n := (tiles + f.Lanes - 1) / f.Lanes
	all := n * f.Lanes
	_, _, _ = dst[(WinogradPositions-1)*place+all-1], src[(WinogradFrames-1)*frame+all-1], src[(2*WinogradInputTile-1)*frame+line+all-1]
	f.input(&dst[0], 4*place, &src[0], 4*frame, 4*line, n, &buf[0], &winogradConstants[0])
}

// Output writes Aᵀ·m·A, with a bias and limits, of adjacent tiles. Position i of tile t is
// src[i*place+t]. It writes lines result lines, at most 4, of columns columns, step values apart.
// It reads the positions of as many tiles as fill registers of Lanes.
func (f *Winograd) Output(dst []float32, step, lines, columns int, src []float32, place int, bias, low, high float32, buf *WinogradWorkspace) {
	if lines <= 0 || columns <= 0 {
		return
	}
	all := (columns + 4*f.Lanes - 1) / (4 * f.Lanes) * f.Lanes
	_, _ = dst[(lines-1)*step+columns-1], src[(WinogradPositions-1)*place+all-1]
	f.output(&dst[0], 4*step, lines, columns, &src[0], 4*place, &buf[0], &winogradConstants[0], &f.order[1][0], &columnMasks[0], bias, low, high)
}

// Weights writes G·g·Gᵀ of n filters for each of Lanes output channels. Value i of filter j is
// src[(9*j+i)*Lanes:], position i of the result is dst[i*place+j*step:].
func (f *Winograd) Weights(dst []float32, place, step int, src []float32, n int, buf *WinogradWorkspace) {
	if n <= 0 {
		return
	}
	_, _ = dst[(WinogradPositions-1)*place+(n-1)*step+f.Lanes-1], src[9*n*f.Lanes-1]
	f.weights(&dst[0], 4*place, 4*step, &src[0], n, &buf[0], &winogradConstants[0])
}
