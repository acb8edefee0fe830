package rewrite

// recurrent ties what a recurrent operator of ONNX has for each hidden unit: its rows of all gates, its column of the state's weights, its
// biases and peepholes, and its place in states and outputs. Both directions lose a unit together.
func (b *bonds) recurrent(x int) {
	r := b.in(2)
	in, gates := 2, 1 // axes of the weights
	if b.n.Op == "DynamicQuantizeLSTM" {
		in, gates = 1, 2
	}
	units := b.dim(r, in)
	b.same(x, 2, b.in(1), in)
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
	for i := 8; i < 12; i++ { // scales and zero points: for each direction, or for each output, too
		if b.rank(b.in(i)) == 2 {
			tied = append(tied, struct{ id, axis int }{b.in(i), 1})
		}
	}
	for _, t := range tied {
		if n := b.dim(t.id, t.axis); t.id >= 0 && units > 0 && n%units == 0 {
			b.join(r, in, t.id, t.axis, 0, n, 1, units)
		}
	}
}

// recurrentLite ties the same of an LSTM of TFLite, whose gates are operands of their own. With a projection the outputs have units of
// their own, with two directions each has. What is normalised over all units keeps them.
func (b *bonds) recurrentLite(x, y int) {
	if b.n.Op == "UNIDIRECTIONAL_SEQUENCE_LSTM" {
		for i := 20; i < 24; i++ {
			if b.in(i) >= 0 {
				return
			}
		}
		b.direction(x, y, 1, 18, 0)
		return
	}
	for i := 39; i < 48; i++ { // a second input
		if b.in(i) >= 0 {
			return
		}
	}
	forward := b.direction(x, y, 1, 35, 0)
	if b.n.Attrs.Bool("merge_outputs", false) {
		b.direction(x, y, 18, 37, forward)
	} else {
		b.direction(x, b.out(1), 18, 37, 0)
	}
}

// direction ties the operands of one direction, which begin at one input, its states at another, and whose outputs begin at a
// place of y. It returns how many those are.
func (b *bonds) direction(x, y, first, state, place int) int {
	last := func(id int) int { return b.rank(id) - 1 }
	at := func(i int) int { return b.in(first - 1 + i) } // counted as with one direction
	of := at(2)                                          // the forget gate is always there
	units := of
	for i := 1; i <= 4; i++ {
		if w := at(i); w >= 0 {
			b.same(x, last(x), w, 1)
			b.same(units, 0, w, 0)
		}
	}
	outs, axis := units, 0
	if p := at(16); p >= 0 {
		b.same(units, 0, p, 1)
		b.vector(at(17), p, 0)
		outs = p
	}
	for i := 5; i <= 8; i++ {
		if r := at(i); r >= 0 {
			b.same(units, 0, r, 0)
			b.same(outs, axis, r, 1)
		}
	}
	for i := 9; i <= 15; i++ {
		b.vector(at(i), units, 0)
	}
	n := b.dim(outs, axis)
	b.join(outs, axis, y, last(y), place, n, 1, n)
	b.same(outs, axis, b.in(state), last(b.in(state)))
	b.same(units, 0, b.in(state+1), last(b.in(state+1)))
	return n
}
