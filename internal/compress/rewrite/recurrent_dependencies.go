package rewrite

// tieRecurrent ties the parts of an ONNX recurrent operator that belong to a hidden unit: its
// rows of all gates, its column of the recurrent weights, its biases and peepholes, and its index
// in states and outputs. Both directions lose a unit together.
func (b *dependencyFinder) tieRecurrent(x int) {
	r := b.in(2)
	in, gates := 2, 1 // axes of the weights
	if b.n.Op == "DynamicQuantizeLSTM" {
		in, gates = 1, 2
	}
	units := b.dim(r, in)
	b.tieSame(x, 2, b.in(1), in)
	tied := []struct{ id, axis int }{
		{b.in(1), gates},
		{r, gates},
		{b.in(3), 1},
		{b.in(5), 2},
		{b.in(6), 2},
		{b.in(7), 1},
		{b.out(0), 3},
		{b.out(1), 2},
		{b.out(2), 2},
	}
	for i := 8; i < 12; i++ { // scales and zero points: per direction, or also per output
		if b.rank(b.in(i)) == 2 {
			tied = append(tied, struct{ id, axis int }{b.in(i), 1})
		}
	}
	for _, t := range tied {
		if n := b.dim(t.id, t.axis); t.id >= 0 && units > 0 && n%units == 0 {
			b.tie(r, in, t.id, t.axis, 0, n, 1, units)
		}
	}
}

// tieRecurrentLite does the same for a TFLite LSTM, whose gates are separate operands. With a
// projection the outputs have their own units; with two directions each direction has its own.
// Layer normalisation over all units keeps them.
func (b *dependencyFinder) tieRecurrentLite(x, y int) {
	if b.n.Op == "UNIDIRECTIONAL_SEQUENCE_LSTM" {
		for i := 20; i < 24; i++ {
			if b.in(i) >= 0 {
				return
			}
		}
		b.tieDirection(x, y, 1, 18, 0)
		return
	}
	for i := 39; i < 48; i++ { // auxiliary input
		if b.in(i) >= 0 {
			return
		}
	}
	forward := b.tieDirection(x, y, 1, 35, 0)
	if b.n.Attrs.Bool("merge_outputs", false) {
		b.tieDirection(x, y, 18, 37, forward)
	} else {
		b.tieDirection(x, b.out(1), 18, 37, 0)
	}
}

// tieDirection ties the operands of one direction, which begin at input first, with states from
// input state, and outputs from index place of y. It returns the number of outputs.
func (b *dependencyFinder) tieDirection(x, y, first, state, place int) int {
	last := func(id int) int { return b.rank(id) - 1 }
	at := func(i int) int { return b.in(first - 1 + i) } // numbered as for one direction
	of := at(2)                                          // the forget gate is always present
	units := of
	for i := 1; i <= 4; i++ {
		if w := at(i); w >= 0 {
			b.tieSame(x, last(x), w, 1)
			b.tieSame(units, 0, w, 0)
		}
	}
	outs, axis := units, 0
	if p := at(16); p >= 0 {
		b.tieSame(units, 0, p, 1)
		b.tieVectors(p, 0, at(17))
		outs = p
	}
	for i := 5; i <= 8; i++ {
		if r := at(i); r >= 0 {
			b.tieSame(units, 0, r, 0)
			b.tieSame(outs, axis, r, 1)
		}
	}
	for i := 9; i <= 15; i++ {
		b.tieVectors(units, 0, at(i))
	}
	n := b.dim(outs, axis)
	b.tie(outs, axis, y, last(y), place, n, 1, n)
	b.tieSame(outs, axis, b.in(state), last(b.in(state)))
	b.tieSame(units, 0, b.in(state+1), last(b.in(state+1)))
	return n
}
