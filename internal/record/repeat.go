package record

import "slices"

// Relation says how a block of a file relates to the block before it.
type Relation int

// Relations of blocks. Times of blocks are added up or averaged only within [SameRun].
const (
	// SameRun: a further inference of the run.
	SameRun Relation = iota
	// OtherRun: another run, batch, rank or configuration.
	OtherRun
	// Undecided: the file does not say which of both.
	Undecided
)

// Block is a part of a file that times a model once or several times: a table of operators, a
// list of inferences, the steps of a rank.
type Block struct {
	// Title is the text that names the block, such as the heading before it; "" for none.
	Title string
	// Rows identify what the block times, in its order: names, kernels, shapes.
	Rows []string
	// Next says that the tool marks the block as the next inference of its run, such as by the
	// number of a request.
	Next bool
}

// After returns the relation of b to block a before it. It is the rule for all readers: rows that
// differ or a title make another run, the mark of a tool makes another inference. Without a mark
// equal blocks can be both.
func (b *Block) After(a *Block) Relation {
	switch {
	case b.Title != "" && b.Title != a.Title, !slices.Equal(a.Rows, b.Rows):
		return OtherRun
	case b.Next:
		return SameRun
	}
	return Undecided
}

// Period is the number of rows after which they repeat, or the number of all if they do not. Rows
// that are all equal have no period.
func Period(rows []string) int {
	n := len(rows)
	// Up to here all rows are equal.
	first := slices.IndexFunc(rows, func(t string) bool { return t != rows[0] })
	for p := max(2, first+1); first > 0 && p <= n/2; p++ {
		if n%p == 0 && slices.Equal(rows[p:], rows[:n-p]) {
			return p
		}
	}
	return n
}
