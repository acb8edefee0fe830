package loadgen

// Emptier empties the caches of the processor that it runs on.
type Emptier struct {
	lines []uint64
	turn  uint64
}

// Sizes of what is walked through, in bytes.
const (
	leastWalk = 32 << 20
	mostWalk  = 512 << 20
	lineWords = 8 // of a line of 64 bytes; where lines are longer, each is met twice
)

// NewEmptier makes an emptier for a last-level cache of a size in bytes, 0 where that is
// not known. It walks through twice as much, 32 MiB at least and 512 MiB at most, since caches
// do not forget in the order in which they learn.
func NewEmptier(cache int64) *Emptier {
	n := min(max(2*cache, leastWalk), mostWalk)
	e := &Emptier{lines: make([]uint64, n/8)}
	e.Empty() // the pages are there from now on
	return e
}

// Bytes is what a walk goes through.
func (e *Emptier) Bytes() int64 { return int64(len(e.lines)) * 8 }

// Empty writes to every line of a buffer that is larger than the last-level cache. What a
// thread elsewhere holds in caches of its own stays there. It allocates nothing.
func (e *Emptier) Empty() {
	e.turn++
	for i := 0; i < len(e.lines); i += lineWords {
		e.lines[i] += e.turn
	}
}
