package count

// Operations per unit and step in addition to the gate products and biases.
const (
	lstmUnit = 3*sigmoidOps + 2 + 4 // three sigmoids, two tanh, f*c + i*g, o*tanh(c)
	cifgUnit = 2*sigmoidOps + 1 + 2 + 4
	gruUnit  = 2*sigmoidOps + 1 + 1 + 4 // two sigmoids, tanh, r*h, (1-z)*n + z*h
)

// steps is batch times sequence length of a three-dimensional input.
func (c *call) steps(i int) int64 {
	x := c.in(i)
	if !c.rank(x, 3) {
		return 0
	}
	return c.mul(int64(x[0]), int64(x[1]))
}

// onnxRecurrent counts LSTM, GRU and RNN: W and R hold all gates and directions.
func (c *call) onnxRecurrent(perUnit int64) amount {
	steps := c.steps(0)
	w, r := c.in(1), c.in(2)
	if !c.rank(w, 3) || !c.rank(r, 3) {
		return amount{}
	}
	macs := c.mul(steps, c.nin(1)+c.nin(2))
	units := c.mul(int64(r[0]), int64(r[2]))
	lstm := c.n.Op == "LSTM"
	extra := int64(0)
	if c.n.Op == "DynamicQuantizeLSTM" { // the outputs come last
		lstm, units = true, c.mul(int64(r[0]), int64(r[1]))
		// Inputs and states are quantised per direction and step, and sums of both products
		// dequantised.
		extra = c.mul(6, steps, c.mul(int64(r[0]), int64(w[1]))+units) + c.mul(16, steps, units)
	}
	extra += c.mul(steps, perUnit, units) + c.mul(steps, c.opt(3))
	if lstm && c.has(7) {
		// Peepholes: three element-wise products and sums.
		extra += c.mul(2, steps, c.nin(7))
	}
	return product(macs, macs, extra)
}

// liteLSTM counts one direction of TFLite's LSTM: weights from input w on, with
// aux the first of four auxiliary input weights (or -1).
func (c *call) liteLSTM(steps int64, w, aux int) amount {
	weights := int64(0)
	for i := w; i < w+8; i++ {
		weights += c.opt(i)
	}
	if aux >= 0 {
		for i := aux; i < aux+4; i++ {
			weights += c.opt(i)
		}
	}
	weights += c.opt(w + 15) // projection
	units := c.dim(c.in(w+1), 0)
	per := int64(lstmUnit)
	if !c.has(w) {
		per = cifgUnit
	}
	extra := c.mul(per, units)
	for i := w + 8; i < w+11; i++ { // peepholes
		extra += 2 * c.opt(i)
	}
	for i := w + 11; i < w+15; i++ { // biases
		extra += c.opt(i)
	}
	extra += c.opt(w + 16) // projection bias
	macs := c.mul(steps, weights)
	return product(macs, macs, c.mul(steps, extra))
}

// layerNorm adds TFLite's layer normalisation of the gates.
func (c *call) layerNorm(a amount, steps int64) amount {
	for i := 20; i < 24; i++ {
		a.ops += c.mul(steps, layerNormOps, c.opt(i))
	}
	return a
}

func (c *call) liteLSTMCell() amount {
	x := c.in(0)
	if c.n.Attrs.Str("kernel_type", "FULL") == "BASIC" {
		// Input, previous output, weights of all gates, biases, previous state.
		steps := c.dim(x, 0)
		macs := c.mul(steps, c.nin(2))
		units := c.nin(3) / 4
		return product(macs, macs, c.mul(steps, units, 4+lstmUnit))
	}
	steps := c.dim(x, 0)
	return c.layerNorm(c.liteLSTM(steps, 1, -1), steps)
}

func (c *call) liteSequenceLSTM() amount {
	steps := c.steps(0)
	return c.layerNorm(c.liteLSTM(steps, 1, -1), steps)
}

func (c *call) liteBidirectionalLSTM() amount {
	steps := c.steps(0)
	fw, bw := -1, -1
	if c.has(39) {
		fw, bw = 40, 44
	}
	a, b := c.liteLSTM(steps, 1, fw), c.liteLSTM(steps, 18, bw)
	return amount{ops: a.ops + b.ops, macs: a.macs + b.macs, exec: a.exec + b.exec}
}

// liteRNN counts one direction: input weights, recurrent weights and bias from
// input w on, and aux the auxiliary weights (or -1).
func (c *call) liteRNN(steps int64, w, aux int) amount {
	weights := c.nin(w) + c.nin(w+1)
	if aux >= 0 {
		weights += c.opt(aux)
	}
	units := c.dim(c.in(w), 0)
	macs := c.mul(steps, weights)
	return product(macs, macs, c.mul(steps, c.opt(w+2))+c.fused(c.mul(steps, units)))
}

func (c *call) liteRNNCell() amount     { return c.liteRNN(c.dim(c.in(0), 0), 1, -1) }
func (c *call) liteSequenceRNN() amount { return c.liteRNN(c.steps(0), 1, -1) }

func (c *call) liteBidirectionalRNN() amount {
	steps := c.steps(0)
	fw, bw := -1, -1
	if c.has(9) {
		fw, bw = 10, 11
	}
	a, b := c.liteRNN(steps, 1, fw), c.liteRNN(steps, 5, bw)
	return amount{ops: a.ops + b.ops, macs: a.macs + b.macs, exec: a.exec + b.exec}
}

// svdf is a feature product and a product over the memory for every filter.
func (c *call) svdf() amount {
	x, time := c.in(0), c.in(2)
	filters, memory := c.dim(time, 0), c.dim(time, 1)
	batch := c.dim(x, 0)
	macs := c.mul(batch, filters, c.dim(c.in(1), -1)+memory)
	n := c.nout(0)
	// The filters of a unit are summed: rank-1 additions.
	sum := c.mul(batch, filters) - n
	return product(macs, macs, max(0, sum)+c.biased(3, n)+c.fused(n))
}
