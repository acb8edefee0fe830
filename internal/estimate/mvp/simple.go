package mvp

// FullyConnected counts FULLY_CONNECTED for a number of row vectors of depth elements.
func FullyConnected(rows, depth, outputs int, clip bool) (*Counts, error) {
	c := &Counts{Kernel: KernelDense}
	n := int64(rows) * int64(outputs)
	most := maxSize
	if depth%2 == 0 {
		most = 2 * maxSize
	}
	switch {
	case depth <= most && outputs <= maxSize && depth%2 == 0:
		c.Programs = int64(rows)
		c.Instructions = n * int64(depth+3)
		c.Stalls = n * int64(depth/2+1)
	case depth <= most && outputs <= maxSize:
		c.Programs = int64(rows)
		c.Instructions = n * int64(2*depth+2)
		c.Stalls = n * int64(depth+1)
	case depth > most && depth%2 == 0 && twoLoops(depth/2):
		c.byOutput = true
		c.Refused = longRow(depth, most).Error()
		c.Programs = n
		c.Instructions = n * int64(depth+2)
		c.Stalls = n * int64(depth/2+1)
	case depth > most:
		return nil, longRow(depth, most)
	default:
		return nil, fits(size("outputs", outputs))
	}
	c.Stores = n
	if clip {
		c.clamp(n)
	}
	return c, nil
}

// longRow returns the limit that keeps rows of weights from programs for all outputs. Pairs of
// values count as one element, so that even numbers may be twice as large.
func longRow(depth, most int) error {
	return limit("a row of weights has %d values, a dimension of an array takes at most %d", depth, most)
}

// twoLoops reports whether n iterations can be split into two nested loops. The kernel tries the
// primes up to 31 as factors.
func twoLoops(n int) bool {
	a := 1
	rest := n
	for _, p := range []int{31, 29, 23, 19, 17, 13, 11, 7, 5, 3, 2} {
		for rest > maxSize && rest%p == 0 && a*p <= maxSize {
			rest /= p
			a *= p
		}
	}
	return rest <= maxSize
}

// elementwise counts programs of at most 2048 elements in pairs. A single element at the end is
// left to the processor.
func elementwise(kernel Kernel, n, instructions, stalls int64) *Counts {
	const perProgram = 2048
	c := &Counts{Kernel: kernel, Programs: (n - n%2 + perProgram - 1) / perProgram, pairs: n / 2}
	c.Instructions = c.pairs * instructions
	c.Stalls = c.pairs * stalls
	return c
}

// Add counts ADD of n elements without broadcasting.
func Add(n int64) *Counts { return elementwise(KernelAdd, n, 4, 1) }

// Mul counts MUL of n elements without broadcasting.
func Mul(n int64) *Counts { return elementwise(KernelMul, n, 4, 2) }

// TransposeConv counts TRANSPOSE_CONV. No published table confirms it.
func TransposeConv(w Window) (*Counts, error) {
	if w.DilationX != 1 || w.DilationY != 1 {
		return nil, errDilated()
	}
	if err := fits(size("channels of the input", w.C), size("columns of the filter", w.FW), size("rows of the filter", w.FH), stride("rows of the output", w.OW*w.OC), stride("rows of the filter", w.FW*w.C)); err != nil {
		return nil, err
	}
	c := &Counts{Kernel: KernelTransposeConv, reads: true}
	out := int64(w.OH) * int64(w.OW) * int64(w.OC)
	c.Programs, c.Instructions = 1, (out+1)/2 // clearing the accumulators
	var rows, columns int64
	for y := range w.H {
		rows += int64(covered(y, w.StrideY, w.PadY, w.FH, w.OH))
	}
	for x := range w.W {
		columns += int64(covered(x, w.StrideX, w.PadX, w.FW, w.OW))
	}
	perPixel := int64(w.OC) * int64(w.C)
	c.Stalls = int64(w.H) * int64(w.W) * perPixel
	c.Instructions += c.Stalls + perPixel*rows*columns
	c.Programs += int64(w.H) * int64(w.W) * int64(w.OC)
	pairs := int64(w.OH) * int64(w.OW) * int64(pairsOf(w.OC))
	c.Programs++
	c.Stores = pairs
	c.Instructions += 2*pairs + int64(w.OH)*int64(w.OW)
	c.Stalls += pairs
	if w.Clip {
		c.Instructions += pairs
	}
	for _, v := range []*int64{&c.Programs, &c.Instructions, &c.Stalls, &c.Stores} {
		*v *= int64(w.Batch)
	}
	return c, nil
}

// covered returns the number of filter positions of input i inside the output of a transposed
// convolution.
func covered(i, stride, pad, filter, out int) int {
	first := i*stride - pad
	return max(min(filter, out-first)-max(0, -first), 0)
}
