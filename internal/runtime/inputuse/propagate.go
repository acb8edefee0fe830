package inputuse

import "slices"

// propagate passes the requirements on a node's outputs to its inputs, for operators whose output
// elements are elements of an input, or follow from them by arithmetic with a constant.
func (c *call) propagate() {
	n := c.n
	if len(n.Outputs) == 0 || n.Outputs[0] < 0 {
		return
	}
	u := c.found[n.Outputs[0]]
	switch n.Op {
	case "Concat", "CONCATENATION", "Pack", "PACK":
		c.splitUse(u)
		return
	case "Split", "SPLIT", "SPLIT_V", "UNPACK":
		c.joinUses()
		return
	}
	if u == nil {
		return
	}
	switch n.Op {
	case "Cast", "CAST", "CastLike", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "RESHAPE", "SQUEEZE", "EXPAND_DIMS",
		"StopGradient", "Dropout", "DequantizeLinear", "STABLEHLO_CONVERT":
		c.propagateSame(0, u)
	case "Transpose", "Expand", "Tile", "TRANSPOSE", "BROADCAST_TO", "TILE", "ReduceMax", "ReduceMin", "REDUCE_MAX", "REDUCE_MIN", "REVERSE_V2":
		c.propagateUnordered(0, u)
	case "Gather", "GATHER", "Slice", "STRIDED_SLICE", "SLICE":
		c.propagateSelected(u)
	case "Where":
		c.propagateUnordered(1, u)
		c.propagateUnordered(2, u)
	case "SELECT", "SELECT_V2":
		c.propagateUnordered(1, u)
		c.propagateUnordered(2, u)
	case "Max", "Min", "MAXIMUM", "MINIMUM", "Clip", "Abs", "ABS", "RELU":
		for k := range n.Inputs {
			if k == 0 || n.Op != "Clip" {
				c.propagateUnordered(k, u)
			}
		}
	case "Mod", "FLOOR_MOD":
		if d, ok := c.number(1); ok && u.Below > 0 && d > 0 && int(d) <= u.Below {
			return // the output is within the bound for any input
		}
		c.propagateUnordered(0, u)
	case "Add", "ADD", "Sub", "SUB", "Mul", "MUL", "Div", "DIV", "FLOOR_DIV":
		c.arithmetic(u)
	case "ReduceSum", "SUM":
		// The number of valid positions: all of them.
		if u.Kind == Length {
			c.fill(0, Mask, 1)
		}
	}
}

// propagateSame passes a use to an input with the same elements in the same order.
func (c *call) propagateSame(k int, u *Use) {
	if u.Values != nil && c.length(k) != len(u.Values) {
		return
	}
	c.ask(k, u)
}

// propagateUnordered passes a use on if it does not depend on the order of elements.
func (c *call) propagateUnordered(k int, u *Use) {
	switch {
	case u.Values == nil:
		c.ask(k, u)
	case len(u.Values) == 1:
		c.propagateSame(k, u)
	}
}

// splitUse splits the use of a concatenated list into uses of its parts.
func (c *call) splitUse(u *Use) {
	if u == nil {
		return
	}
	if u.Values == nil {
		for k := range c.n.Inputs {
			c.ask(k, u)
		}
		return
	}
	at := 0
	for k := range c.n.Inputs {
		n := c.length(k)
		if s := c.shape(k); n < 0 || len(s) > 1 || at+n > len(u.Values) {
			return
		}
		c.values(k, u.Kind, u.Values[at:at+n])
		at += n
	}
}

// joinUses combines the uses of the parts into which a list is split.
func (c *call) joinUses() {
	k := 0
	if c.n.Op == "SPLIT" {
		k = 1
	}
	s := c.shape(k)
	var all []int
	var kind Kind
	for _, id := range c.n.Outputs {
		if id < 0 {
			return
		}
		u := c.found[id]
		n := product(knownShape(c.g.Values[id]))
		if knownShape(c.g.Values[id]) == nil || n < 0 || n > maxConstant {
			return
		}
		if u != nil && u.Values == nil {
			if u.Below > 0 || u.Kind == Mask {
				c.ask(k, u)
			}
			return
		}
		if u == nil {
			all = append(all, slices.Repeat([]int{anything}, n)...)
			continue
		}
		kind = u.Kind
		all = append(all, u.Values...)
	}
	if kind != "" && len(s) == 1 {
		c.values(k, kind, all)
	}
}

// propagateSelected passes on the use of selected elements of a list, or of parts of a tensor.
func (c *call) propagateSelected(u *Use) {
	if u.Values == nil {
		if c.n.Op != "Gather" && c.n.Op != "GATHER" || u.Below > 0 || u.Kind == Mask {
			c.ask(0, u)
		}
		return
	}
	s := c.shape(0)
	if len(s) != 1 || s[0] > maxConstant {
		return
	}
	all := slices.Repeat([]int{anything}, s[0])
	places, ok := c.selectedIndices(s[0])
	if !ok || len(places) != len(u.Values) {
		return
	}
	for i, p := range places {
		all[p] = u.Values[i]
	}
	c.values(0, u.Kind, all)
}

// selectedIndices returns the indices of the elements that a node selects from a list of n.
func (c *call) selectedIndices(n int) ([]int, bool) {
	var out []int
	switch c.n.Op {
	case "Gather", "GATHER":
		at, ok := c.constant(1)
		if !ok {
			return nil, false
		}
		for _, i := range at {
			if i < 0 {
				i += n
			}
			if i < 0 || i >= n {
				return nil, false
			}
			out = append(out, i)
		}
		return out, true
	case "Slice", "STRIDED_SLICE", "SLICE":
		begin, ok := c.constant(1)
		end, also := c.constant(2)
		if !ok || !also || len(begin) != 1 || len(end) != 1 {
			return nil, false
		}
		b, e, step := begin[0], end[0], 1
		at := 3
		if c.n.Op == "Slice" {
			at = 4
		}
		if st, ok := c.constant(at); ok && len(st) == 1 {
			step = st[0]
		}
		if c.n.Op == "STRIDED_SLICE" {
			if c.n.Attrs.Int("begin_mask", 0)&1 != 0 {
				b = 0
			}
			if c.n.Attrs.Int("end_mask", 0)&1 != 0 {
				e = n
			}
			if c.n.Attrs.Int("shrink_axis_mask", 0)&1 != 0 {
				e, step = b+1, 1
				if b == -1 {
					e = n
				}
			}
		}
		if b < 0 {
			b = max(0, b+n)
		}
		switch {
		case c.n.Op == "SLICE" && e < 0:
			e = n
		case c.n.Op == "SLICE":
			e += b
		case e < 0:
			e += n
		}
		if step < 1 {
			return nil, false
		}
		for i := b; i < min(e, n); i += step {
			out = append(out, i)
		}
		return out, true
	}
	return nil, false
}

// arithmetic passes on the use of a sum or product with a constant.
func (c *call) arithmetic(u *Use) {
	for k := range min(2, len(c.n.Inputs)) {
		by, ok := c.number(1 - k)
		if !ok || by != float64(int(by)) {
			continue
		}
		back := c.inverse(k, int(by))
		switch {
		case back == nil:
		case u.Fill != nil:
			if v, ok := back(*u.Fill); ok {
				c.fill(k, u.Kind, v)
			}
		case u.Values != nil:
			all := make([]int, len(u.Values))
			for i, v := range u.Values {
				if all[i] = anything; v != anything {
					if all[i], ok = back(v); !ok {
						return
					}
				}
			}
			if c.length(k) == len(all) {
				c.values(k, u.Kind, all)
			}
		case u.Below > 0:
			c.propagateBound(k, int(by), u)
		}
		return
	}
}

// propagateBound passes on a bound of indices through monotonic arithmetic.
func (c *call) propagateBound(k, by int, u *Use) {
	switch c.n.Op {
	case "Add", "ADD":
		if by >= 0 {
			c.below(k, u.Kind, u.Below-by)
		}
	case "Sub", "SUB":
		if k == 0 && by <= 0 {
			c.below(k, u.Kind, u.Below+by)
		}
	case "Mul", "MUL":
		if by > 0 {
			c.below(k, u.Kind, (u.Below-1)/by+1)
		}
	case "Div", "DIV", "FLOOR_DIV":
		if k == 0 && by > 0 && u.Below < maxConstant*maxConstant {
			c.below(k, u.Kind, u.Below*by)
		}
	}
}

// inverse inverts the node's operation with a constant for input k, nil if that is not possible.
func (c *call) inverse(k, by int) func(int) (int, bool) {
	switch c.n.Op {
	case "Add", "ADD":
		return func(v int) (int, bool) { return v - by, true }
	case "Sub", "SUB":
		if k == 0 {
			return func(v int) (int, bool) { return v + by, true }
		}
		return func(v int) (int, bool) { return by - v, true }
	case "Mul", "MUL":
		if by == 0 {
			return nil
		}
		return func(v int) (int, bool) { return v / by, v%by == 0 }
	case "Div", "DIV", "FLOOR_DIV":
		if k == 0 && by > 0 {
			return func(v int) (int, bool) { return v * by, v < maxConstant*maxConstant }
		}
	}
	return nil
}
