package simd

import "unsafe"

// GroupKind is the kind of a tile of a grouped int8 convolution.
type GroupKind uint8

// GroupOne and GroupTwo compute 16 and 32 outputs of one group, four input channels at a time.
// GroupSmall4 and GroupSmall8 compute all outputs of several small groups, as many groups as fill
// 16 channels: groups of up to four channels and groups of eight channels.
const (
	GroupOne GroupKind = iota
	GroupTwo
	GroupSmall4
	GroupSmall8

	groupKinds = iota
)

// Small reports whether a tile computes several groups.
func (k GroupKind) Small() bool { return k >= GroupSmall4 }

// Outputs returns the number of sums of a position.
func (k GroupKind) Outputs() int {
	if k == GroupTwo {
		return 32
	}
	return 16
}

// GroupTile is a tile of a grouped int8 convolution: a few positions with all taps. Steps and
// offsets are in bytes.
//
// The channels of a position for its first tap start at A + position*RowA. Its sums are at C +
// position*RowC: 16 sums, or 32 for GroupTwo. For each tap, K groups of four channels are read,
// and the next tap starts Offs after the end of these channels. A small group reads 16 channels
// for each tap, and the next tap starts Offs after the start of these channels. Start holds the
// initial value of each sum.
type GroupTile struct {
	A       unsafe.Pointer
	RowA    int
	K, Taps int
	Offs    *int32
	B       *int8
	C       *int32
	RowC    int
	Start   *int32
}

// HasGroups reports whether [Ints.Group] is available.
func (f *Ints) HasGroups() bool { return f.groups != nil }

// GroupRows is the maximum number of positions of a tile, 0 if there is no such tile.
func (f *Ints) GroupRows(kind GroupKind) int { return len(f.groups[kind]) }

// Group computes rows positions, at most [Ints.GroupRows].
func (f *Ints) Group(t *GroupTile, kind GroupKind, rows int) { f.groups[kind][rows-1](t) }

// GroupSize returns the number of weights of a tile for each tap, for groups of cg channels.
func GroupSize(kind GroupKind, cg int) int {
	switch kind {
	case GroupOne:
		return (cg + 3) / 4 * 64
	case GroupTwo:
		return (cg + 3) / 4 * 128
	case GroupSmall4:
		return 64
	}
	return 128
}

// GroupIndex returns the index, within the weights of one tap of a tile, of the weight of input
// channel i for output o. Both belong to one group of cg channels: the first group for GroupOne
// and GroupTwo, else group g of the tile.
func GroupIndex(kind GroupKind, cg, g, o, i int) int {
	switch kind {
	case GroupOne:
		return 64*(i/4) + 4*o + i%4
	case GroupTwo:
		return 128*(i/4) + 4*o + i%4
	}
	// The index consists of the lane, the 32-bit word in it, and the byte in the word.
	i += g * cg
	lane, second := o%4, o/4
	if cg < 4 {
		lane = g*cg%4 + o
	}
	return 64*second + 16*lane + i
}
