package simd

import "unsafe"

// GroupKind says what a tile of a convolution of groups of 8-bit numbers computes.
type GroupKind uint8

// Tiles of 16 or 32 outputs of a group, four input channels at a time; and of all outputs of small groups, as many as have 16 channels:
// of eight, of two or four.
const (
	GroupOne GroupKind = iota
	GroupTwo
	GroupFours
	GroupEights

	groupKinds = iota
)

// Small tells whether a tile computes several groups.
func (k GroupKind) Small() bool { return k >= GroupFours }

// Outputs is the number of sums of a position.
func (k GroupKind) Outputs() int {
	if k == GroupTwo {
		return 32
	}
	return 16
}

// GroupTile is a piece of such a convolution: some positions, all taps. Steps and offsets are in bytes. The channels that a position
// sees in its first tap lie at A + position*RowA, its sums at C + position*RowC; there are 16 of them, of GroupTwo 32. K fours of channels are read
// in each of the taps; those of the next one begin Offs further than these end. Small groups have 16 channels a tap, and the next one begins Offs further
// than this one. Sums begin with Start, one for each.
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

// GroupRows is the most positions of a tile.
const GroupRows = 12

// HasGroups tells whether the set has [Ints.Group].
func (f *Ints) HasGroups() bool { return f.groups != nil }

// Group computes rows positions, at most [GroupRows].
func (f *Ints) Group(t *GroupTile, kind GroupKind, rows int) { f.groups[kind][rows-1](t) }

// GroupSize is the number of weights of a tile for each tap, of groups of cg channels.
func GroupSize(kind GroupKind, cg int) int {
	switch kind {
	case GroupOne:
		return (cg + 3) / 4 * 64
	case GroupTwo:
		return (cg + 3) / 4 * 128
	case GroupFours:
		return 64
	}
	return 128
}

// GroupAt is the place in a tile's weights of a tap of that of channel i for output o, both of one group of cg channels: the
// first one for a wide group, else group g of the tile.
func GroupAt(kind GroupKind, cg, g, o, i int) int {
	switch kind {
	case GroupOne:
		return 64*(i/4) + 4*o + i%4
	case GroupTwo:
		return 128*(i/4) + 4*o + i%4
	}
	// Lane, word of it and byte of that.
	i += g * cg
	lane, second := o%4, o/4
	if cg < 4 {
		lane = g*cg%4 + o
	}
	return 64*second + 16*lane + i
}
