package loadgen

// Emptier flushes the caches of the processor that it runs on.
type Emptier struct {
	lines []uint64
	turn  uint64
}

// Sizes of the buffer, in bytes.
const (
	minWalk   = 32 << 20
	maxWalk   = 512 << 20
	lineWords = 8 // words of a 64-byte cache line; longer lines are written twice
)

// NewEmptier makes an emptier for a last-level cache of the given size in bytes, 0 if unknown.
// Its buffer is twice as large, at least 32 MiB and at most 512 MiB, because cache replacement is
// not strictly least recently used.
func NewEmptier(cache int64) *Emptier {
	n := min(max(2*cache, minWalk), maxWalk)
	e := &Emptier{lines: make([]uint64, n/8)}
	e.Empty() // allocates the pages
	return e
}

// Bytes returns the size of the buffer.
func (e *Emptier) Bytes() int64 { return int64(len(e.lines)) * 8 }

// Empty writes to every cache line of a buffer larger than the last-level cache. Private caches
// of other cores are not flushed. It does not allocate.
func (e *Emptier) Empty() {
	e.turn++
	for i := 0; i < len(e.lines); i += lineWords {
		e.lines[i] += e.turn
	}
}
