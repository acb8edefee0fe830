package broadcast

// Spans combines short runs: it iterates over pieces of the result of up to a given number of
// elements, however short the runs are. Operands that are dense over a piece are read in place;
// for others a table holds the element offsets.
type Spans struct {
	// Table holds, for each operand, the offsets of the elements of a piece relative to Off, from
	// index Place; nil if they are contiguous.
	Table [3][]int
	// Rows marks operands whose runs are RowStep apart.
	Rows    [3]bool
	RowStep [3]int

	outer Walk // over the outer dimensions, with a whole span as its run
	unit  int  // elements of the inner dimensions
	step  [3]int
	most  int
}

// Spans plans pieces of at most most elements.
func (b *Walk) Spans(most int) *Spans {
	s := &Spans{outer: Walk{Len: b.Len, Inner: b.Inner}, unit: 1, step: b.Step, most: most}
	d := len(b.dims) // the span consists of the dimensions from d, the first one in parts
	for ; d > 0 && s.outer.Inner < most; d-- {
		s.unit = s.outer.Inner
		s.outer.Inner *= b.dims[d-1]
		for k := range s.step {
			s.step[k] = b.step[k][d-1]
		}
	}
	if s.unit > 0 && s.unit < most {
		// Pieces that begin at the same table index share their gathered elements.
		s.most = most / s.unit * s.unit
	}
	s.outer.dims = b.dims[:d]
	for k := range s.outer.step {
		if d < len(b.dims) {
			s.outer.step[k] = b.step[k][:d]
		} else {
			s.outer.step[k] = b.step[k]
		}
		if !b.dense(k, d) {
			s.Table[k] = b.places(k, d, min(s.outer.Inner, most+s.unit))
			s.RowStep[k], s.Rows[k] = b.rows(k, d)
		}
	}
	return s
}

// Repeats reports whether an operand is contiguous over a run and the same in the next one.
func (b *Walk) Repeats() bool {
	last := len(b.dims) - 1
	for k := range b.step {
		if last >= 0 && b.Step[k] == 1 && b.step[k][last] == 0 {
			return true
		}
	}
	return false
}

// dense reports whether operand k is contiguous over the dimensions from d.
func (b *Walk) dense(k, d int) bool {
	n := b.Inner
	if b.Step[k] != 1 {
		return false
	}
	for i := len(b.dims) - 1; i >= d; i-- {
		if b.step[k][i] != n {
			return false
		}
		n *= b.dims[i]
	}
	return true
}

// rows returns the distance between runs of operand k over the dimensions from d, if it is
// constant.
func (b *Walk) rows(k, d int) (step int, alike bool) {
	last := len(b.dims) - 1
	if last < d {
		return 0, false
	}
	for i := last; i > d; i-- {
		if b.step[k][i-1] != b.step[k][i]*b.dims[i] {
			return 0, false
		}
	}
	return b.step[k][last], true
}

// places lists the offsets of the first n elements of operand k over the dimensions from d.
func (b *Walk) places(k, d, n int) []int {
	t := make([]int, n)
	for i := range t {
		at, rest := i%b.Inner*b.Step[k], i/b.Inner
		for j := len(b.dims) - 1; j >= d; j-- {
			at += rest % b.dims[j] * b.step[k][j]
			rest /= b.dims[j]
		}
		t[i] = at
	}
	return t
}

// Pieces iterates over the pieces of a range of the result.
type Pieces struct {
	Dst, N int    // offset and length of the current piece in the result
	Off    [3]int // its start in each operand: its first element, or the base of the table
	Place  int    // table index of its first element
	s      *Spans
	runs   Runs
	left   int // of the run
}

// Pieces starts an iteration over elements lo to hi of the result, used like [Walk.Runs].
func (s *Spans) Pieces(lo, hi int) Pieces { return Pieces{s: s, runs: s.outer.Runs(lo, hi)} }

// Next advances to the next piece and reports whether there is one.
func (p *Pieces) Next() bool {
	s := p.s
	if p.left -= p.N; p.left == 0 {
		if !p.runs.Next() {
			return false
		}
		p.left = p.runs.N
	}
	p.Dst, p.N = p.runs.Dst+p.runs.N-p.left, min(p.left, s.most)
	col := p.runs.col + p.runs.N - p.left
	i := col / s.unit
	p.Place = col - i*s.unit
	for k := range p.Off {
		if p.Off[k] = p.runs.at[k] + col; s.Table[k] != nil {
			p.Off[k] = p.runs.at[k] + i*s.step[k]
		}
	}
	return true
}
