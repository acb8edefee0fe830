package broadcast

// Spans walks short runs together: pieces of the result of up to as many elements as are asked for, however short
// the runs are. Operands that are dense over a piece are read as they lie, of others a table has the places.
type Spans struct {
	// Table has, for each operand, the places of the elements of a piece behind its Off, from Place on; nil
	// where they lie side by side.
	Table [3][]int
	// Rows tells of operands whose runs begin RowStep behind each other.
	Rows    [3]bool
	RowStep [3]int

	outer Walk // over the dimensions outside, with all of a span as its run
	unit  int  // elements of the dimensions inside
	step  [3]int
	most  int
}

// Spans plans pieces of at most most elements.
func (b *Walk) Spans(most int) *Spans {
	s := &Spans{outer: Walk{Len: b.Len, Inner: b.Inner}, unit: 1, step: b.Step, most: most}
	d := len(b.dims) // the dimensions from here on make the span, the first one in parts
	for ; d > 0 && s.outer.Inner < most; d-- {
		s.unit = s.outer.Inner
		s.outer.Inner *= b.dims[d-1]
		for k := range s.step {
			s.step[k] = b.step[k][d-1]
		}
	}
	if s.unit > 0 && s.unit < most {
		// Pieces that begin at one place in tables have what tables lead to in common.
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

// Repeats tells whether an operand lies side by side over a run, and is the same in the next one.
func (b *Walk) Repeats() bool {
	last := len(b.dims) - 1
	for k := range b.step {
		if last >= 0 && b.Step[k] == 1 && b.step[k][last] == 0 {
			return true
		}
	}
	return false
}

// dense tells whether operand k lies side by side over the dimensions from d on.
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

// rows tells how far runs of operand k lie from each other over the dimensions from d on, if all do alike.
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

// places lists where the first n elements of operand k are over the dimensions from d on.
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

// Pieces walks the pieces of a range of the result.
type Pieces struct {
	Dst, N int    // place and length of the current piece in the result
	Off    [3]int // where it starts in each operand: its first element, or what tables begin at
	Place  int    // of its first element in tables
	s      *Spans
	runs   Runs
	left   int // of the run
}

// Pieces starts a walk over elements lo to hi of the result. It is used as [Walk.Runs] is.
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
