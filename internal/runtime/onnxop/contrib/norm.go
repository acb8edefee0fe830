package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/norm"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// SkipLayerNormalization adds a residual and normalises the last axis. Inputs: x, skip, gamma,
// then beta (absent in the simplified form, which only divides by the root mean square) and bias.
// Outputs: y, mean, inverse deviation, sum.

// skipInputs returns the positions of beta and bias, -1 for none.
func skipInputs(c *op.Call) (beta, bias int) {
	if c.Node.Op == "SkipSimplifiedLayerNormalization" {
		return -1, 3
	}
	return 3, 4
}

func inferSkipNorm(c *op.Call) error {
	x, skip := c.In[0].Shape, c.In[1].Shape
	if len(x) < 2 || len(x) > 3 {
		return fmt.Errorf("input %s", tensor.FormatShape(x))
	}
	b, err := tensor.Broadcast(x, skip)
	if err != nil || !slices.Equal(b, x) || tensor.Elements(skip) > 0 && tensor.Elements(x)%tensor.Elements(skip) != 0 || skip[len(skip)-1] != x[len(x)-1] {
		return fmt.Errorf("skip %s for input %s", tensor.FormatShape(skip), tensor.FormatShape(x))
	}
	beta, bias := skipInputs(c)
	for _, i := range []int{2, beta, bias} {
		if v := c.Input(i); v != nil && v.Len() != x[len(x)-1] {
			return fmt.Errorf("input %d of shape %s for rows of %d", i, tensor.FormatShape(v.Shape), x[len(x)-1])
		}
	}
	stat := slices.Clone(x)
	stat[len(stat)-1] = 1
	c.SetOut(0, c.In[0].Type, slices.Clone(x))
	c.SetOut(1, tensor.Float32, stat)
	c.SetOut(2, tensor.Float32, slices.Clone(stat))
	c.SetOut(3, c.In[0].Type, slices.Clone(x))
	return nil
}

func prepareSkipNorm[T tensor.Real](c *op.Call) (op.Run, error) {
	x := c.In[0].Shape
	cols := x[len(x)-1]
	rows, skipLen := tensor.Elements(x[:len(x)-1]), c.In[1].Len()
	simple := c.Node.Op == "SkipSimplifiedLayerNormalization"
	eps := float64(c.Node.Attrs.Float("epsilon", 1e-12))
	betaAt, biasAt := skipInputs(c)
	var workspace []T
	if !c.Wants(3) {
		workspace = op.ScratchOf[T](c, rows*cols)
	}
	return op.Parallel(rows, max(1, 1<<12/max(cols, 1)), func(c *op.Call, lo, hi int) {
		in, skip, gamma := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		beta, bias, y, sums := elem.Elements[T](c, betaAt), elem.Elements[T](c, biasAt), tensor.Of[T](c.Out[0]), workspace
		if c.Wants(3) {
			sums = tensor.Of[T](c.Out[3])
		}
		for i := lo; i < hi; i++ {
			src, sum, dst := in[i*cols:][:cols], sums[i*cols:][:cols], y[i*cols:][:cols]
			for j, v := range skip[i*cols%skipLen:][:cols] {
				sum[j] = src[j] + v
			}
			for j, v := range bias {
				sum[j] += v
			}
			normalizeRow(c, i, dst, sum, gamma, beta, eps, simple)
		}
	}), nil
}

// normalizeRow writes one normalised row and, if requested, its statistics to outputs 1 and 2.
func normalizeRow[T tensor.Real](c *op.Call, row int, dst, src, gamma, beta []T, eps float64, simple bool) {
	var mean, inv float64
	if simple {
		inv = norm.InverseRMS(src, eps)
		norm.Store(c, 1, row, inv)
	} else {
		mean, inv = norm.Moments(src, eps)
		norm.Store(c, 1, row, mean)
		norm.Store(c, 2, row, inv)
	}
	norm.Standardise(dst, src, mean, inv)
	norm.Affine(dst, gamma, beta)
}

// BiasAdd adds a bias per channel and a residual: x [N,S,C], bias [C], skip [N,S,C].

func inferBiasAdd(c *op.Call) error {
	x := c.In[0].Shape
	if len(x) < 1 || c.In[1].Len() != x[len(x)-1] || !slices.Equal(c.In[2].Shape, x) {
		return fmt.Errorf("input %s, bias %s, skip %s", tensor.FormatShape(x), tensor.FormatShape(c.In[1].Shape), tensor.FormatShape(c.In[2].Shape))
	}
	return elem.Same(c)
}

func prepareBiasAdd[T tensor.Real](c *op.Call) (op.Run, error) {
	cols := max(c.In[1].Len(), 1)
	return op.Parallel(c.Out[0].Len(), 1<<13, func(c *op.Call, lo, hi int) {
		x, b, s, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2]), tensor.Of[T](c.Out[0])
		for i := lo; i < hi; i++ {
			y[i] = x[i] + b[i%cols] + s[i]
		}
	}), nil
}

// EmbedLayerNormalization sums word, position and segment embeddings and normalises. Inputs:
// input_ids, segment_ids, word, position, segment, gamma, beta, mask, position_ids. Outputs: y,
// mask_index, sum. QEmbedLayerNormalization has 8-bit quantised embeddings, then, from the place
// of position_ids on, the scales of the five and their zero points, and no sum.

func inferEmbed(c *op.Call) error {
	for _, i := range []int{0, 2, 3, 5, 6} {
		if !c.Has(i) {
			return fmt.Errorf("input %d is missing", i)
		}
	}
	ids, word, pos := c.In[0].Shape, c.In[2].Shape, c.In[3].Shape
	if len(ids) != 2 || len(word) != 2 || len(pos) != 2 || pos[1] != word[1] || c.In[5].Len() != word[1] || c.In[6].Len() != word[1] {
		return fmt.Errorf("ids %s, word embedding %s, position embedding %s", tensor.FormatShape(ids), tensor.FormatShape(word), tensor.FormatShape(pos))
	}
	if c.Has(1) != c.Has(4) || c.Has(1) && (!slices.Equal(c.In[1].Shape, ids) || c.In[4].Rank() != 2 || c.In[4].Shape[1] != word[1]) {
		return fmt.Errorf("segment ids and embedding do not fit ids %s", tensor.FormatShape(ids))
	}
	if m := c.Input(7); m != nil && !slices.Equal(m.Shape, ids) {
		return fmt.Errorf("mask %s for ids %s", tensor.FormatShape(m.Shape), tensor.FormatShape(ids))
	}
	kind := c.In[2].Type
	if quantEmbed(c) {
		for i := 8; i < 18; i++ {
			if x := c.Input(i); x == nil && (i%5 != 0 || c.Has(4)) || x != nil && x.Len() != 1 {
				return fmt.Errorf("input %d is not a scale or zero point", i)
			}
		}
		kind = tensor.Float32
	} else if p := c.Input(8); p != nil && (p.Rank() != 2 || p.Shape[1] != ids[1] || p.Shape[0] != 1 && p.Shape[0] != ids[0]) {
		return fmt.Errorf("position ids %s for ids %s", tensor.FormatShape(p.Shape), tensor.FormatShape(ids))
	}
	shape := []int{ids[0], ids[1], word[1]}
	c.SetOut(0, kind, shape)
	c.SetOut(1, tensor.Int32, []int{ids[0]})
	c.SetOut(2, kind, slices.Clone(shape))
	return nil
}

// quantEmbed reports whether embeddings are quantised.
func quantEmbed(c *op.Call) bool { return c.Node.Op == "QEmbedLayerNormalization" }

func prepareEmbed[T tensor.Real](c *op.Call) (op.Run, error) {
	return embed(c, func(c *op.Call, i, k int, row []T) {
		for j, v := range tensor.Of[T](c.In[i])[k*len(row):][:len(row)] {
			row[j] += v
		}
	}), nil
}

func prepareQuantEmbed(c *op.Call) (op.Run, error) {
	for i := 2; i < 7; i++ {
		if c.Has(i) && !quant.IsByte(c.In[i]) {
			return nil, op.Unsupported("embedding of %v", c.In[i].Type)
		}
	}
	codes := make([]float32, c.In[2].Shape[1])
	return embed(c, func(c *op.Call, i, k int, row []float32) {
		tensor.Read(codes, c.In[i], k*len(row))
		scale, zero := tensor.Single[float32](c.In[i+6]), float32(quant.Zero(c.In[i+11]))
		for j, v := range codes {
			row[j] += (v - zero) * scale
		}
	}), nil
}

// embed sums rows and normalises the sums; add adds row k of an input.
func embed[T tensor.Real](c *op.Call, add func(c *op.Call, i, k int, row []T)) op.Run {
	batch, rows, cols := c.In[0].Shape[0], c.In[0].Shape[1], c.In[2].Shape[1]
	eps := float64(c.Node.Attrs.Float("epsilon", 1e-12))
	gamma, beta := op.ScratchOf[T](c, cols), op.ScratchOf[T](c, cols)
	var sums []T
	if !c.Wants(2) {
		sums = op.ScratchOf[T](c, batch*rows*cols)
	}
	// Allocated once: a run must not allocate.
	var y []T
	plain := &op.Call{} // its outputs 1 and 2 are not statistics
	normalise := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			normalizeRow(plain, i, y[i*cols:][:cols], sums[i*cols:][:cols], gamma, beta, eps, false)
		}
	}
	return func(c *op.Call) error {
		if c.Wants(2) {
			sums = tensor.Of[T](c.Out[2])
		}
		clear(sums)
		tables := []struct {
			ids, table int
			at         func(i int) int
		}{
			{0, 2, func(i int) int { return int(tensor.At(c.In[0], i)) }},
			{-1, 3, func(i int) int {
				if p := c.Input(8); p != nil && !quantEmbed(c) {
					return int(tensor.At(p, i%p.Len()))
				}
				return i % rows
			}},
			{1, 4, func(i int) int { return int(tensor.At(c.In[1], i)) }},
		}
		for _, t := range tables {
			if t.ids >= 0 && !c.Has(t.ids) {
				continue
			}
			n := c.In[t.table].Shape[0]
			for i := range batch * rows {
				k := t.at(i)
				if k < 0 || k >= n {
					return fmt.Errorf("id %d of %d", k, n)
				}
				add(c, t.table, k, sums[i*cols:][:cols])
			}
		}
		clear(gamma)
		clear(beta)
		add(c, 5, 0, gamma)
		add(c, 6, 0, beta)
		y = tensor.Of[T](c.Out[0])
		c.Pool.For(batch*rows, max(1, 1<<12/max(cols, 1)), normalise)
		if c.Wants(1) {
			index := tensor.Of[int32](c.Out[1])
			clear(index)
			if m := c.Input(7); m != nil {
				for i := range batch * rows {
					if tensor.At(m, i) == 1 {
						index[i/rows]++
					}
				}
			}
		}
		return nil
	}
}
