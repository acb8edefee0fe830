package matmul

import (
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/activation"
)

// A BATCH_MATMUL with the attributes of a plan, which files cannot have, computes softmax(x·y,
// with operands)·v: the score MatMul that the file has before it, the binary operators after
// that, and their softmax. It works in blocks of rows, whose scores stay in the second-level
// cache. Everything is computed in the order and with the kernels of the file's operators, so that
// results are bit-exact.
//
// Inputs are x, y and v, and the operand of each operator; the attributes are [op.AttrScores] and
// those after it.

// blockScores bounds the scores of a block: a quarter of a usual second-level cache.
const blockScores = 1 << 16

// attend is the state of such a fused attention.
type attend struct {
	scores, values *matmul
	shape          []int // of the result
	steps          []scoreStep
	beta           float32
	softmax        func(y, x, sums []float32, depth int, beta float32)
	blocks         int // of the rows of a product
	rows           int // of a block at most
	workspaces     []attendWorkspace
	x, y, v, o     []float32 // of the run
	work           func(worker, lo, hi int)
}

// scoreStep applies an operator to scores.
type scoreStep struct {
	loops    element.Loops[float32, float32]
	at       []int // where the operand of each product begins
	row, col int   // from row to row and column to column of the operand, 0 for one that repeats
	operand  []float32
}

// attendWorkspace is the scratch memory of a worker.
type attendWorkspace struct {
	scores, sums []float32
	y, v         gemm.RepackedB
	packed       int // the product whose matrices are packed, and one more
}

// shapeAttend checks the inputs.
func shapeAttend(c *op.Call) (*attend, error) {
	a := c.Node.Attrs
	names, adjoint, batches := a.Strs(op.AttrScores), a.Ints(op.AttrAdjoint), a.Ints(op.AttrBatches)
	if err := c.NeedInputs(3 + len(names)); err != nil {
		return nil, err
	}
	if len(adjoint) != 3 || len(batches) != op.LeadAxes*(len(names)+1) {
		return nil, c.Errorf("%d and %d numbers for %d operators", len(adjoint), len(batches), len(names))
	}
	t := &attend{beta: a.Float(op.AttrExponent, 1)}
	var err error
	if t.scores, err = newMatmul(c, c.In[0].Shape, c.In[1].Shape, adjoint[0] != 0, adjoint[1] != 0); err != nil {
		return nil, err
	}
	matrix := []int{t.scores.m, t.scores.n}
	lead := func(i int) []int { return append(append([]int{}, batches[i*op.LeadAxes:][:op.LeadAxes]...), matrix...) }
	if t.values, err = newMatmul(c, lead(len(names)), c.In[2].Shape, false, adjoint[2] != 0); err != nil {
		return nil, err
	}
	n := len(t.scores.x)
	if rank := a.Int(op.AttrRank, 0); len(t.values.x) != n || rank < 2 || rank > len(t.values.shape) {
		return nil, c.Errorf("%d products of %d, rank %d", len(t.values.x), n, rank)
	} else {
		t.shape = t.values.shape[len(t.values.shape)-rank:]
	}
	for i, name := range names {
		s := scoreStep{at: make([]int, n)}
		loops, ok := map[string]func() element.Loops[float32, float32]{
			"ADD": element.Add[float32], "SUB": element.Sub[float32], "MUL": element.Mul[float32], "DIV": element.Div[float32],
		}[name]
		if !ok {
			return nil, op.Unsupported("%s of scores", name)
		}
		s.loops = loops()
		shape, operand := lead(i), c.In[3+i].Shape
		strides, err := broadcast.Strides(operand, shape)
		if err != nil || tensor.Elements(shape) != n*t.scores.m*t.scores.n {
			return nil, c.Errorf("operand %s for scores %s", tensor.FormatShape(operand), tensor.FormatShape(shape))
		}
		s.row, s.col = strides[op.LeadAxes], strides[op.LeadAxes+1]
		for b := range n {
			for a, left := op.LeadAxes-1, b; a >= 0; a-- {
				s.at[b] += left % shape[a] * strides[a]
				left /= shape[a]
			}
		}
		t.steps = append(t.steps, s)
	}
	return t, nil
}

// prepareAttend is prepareMatmul for a fused attention.
func prepareAttend(c *op.Call) (op.Run, error) {
	t, err := shapeAttend(c)
	if err != nil {
		return nil, err
	}
	for _, x := range append(append([]*tensor.Tensor{}, c.In...), c.Out[0]) {
		if x.Type != tensor.Float32 {
			return nil, op.Unsupported("attention of %v", x.Type)
		}
	}
	s := t.scores
	c.Kernel = gemm.Name(s.params())
	// Equal numbers of rows in each block: whole tiles of softmax and GEMM in all but the last.
	const lines = 3 * activation.SoftmaxTile
	most := max(lines, blockScores/max(1, s.n)/lines*lines)
	t.blocks = (s.m + most - 1) / most
	t.rows = min(s.m, ((s.m+t.blocks-1)/t.blocks+lines-1)/lines*lines)
	t.blocks = (s.m + t.rows - 1) / t.rows
	t.softmax = activation.SoftmaxRows(s.n)
	threads := c.Pool.Threads()
	t.workspaces = make([]attendWorkspace, threads)
	for i := range t.workspaces {
		t.workspaces[i].scores, t.workspaces[i].sums = op.ScratchOf[float32](c, t.rows*s.n), op.ScratchOf[float32](c, activation.SoftmaxSums)
	}
	// The worker that packs the matrices of a product computes all of it, if there are enough
	// products.
	grain := 1
	if len(s.x)%threads == 0 || len(s.x) >= 4*threads {
		grain = t.blocks
	}
	t.work = t.pieces
	return func(c *op.Call) error {
		t.x, t.y, t.v, t.o = tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])
		for i := range t.steps {
			t.steps[i].operand = tensor.Of[float32](c.In[3+i])
		}
		c.Pool.ForWorker(len(s.x)*t.blocks, grain, t.work)
		for i := range t.workspaces {
			t.workspaces[i].forget()
		}
		for i := range t.steps {
			t.steps[i].operand = nil
		}
		t.x, t.y, t.v, t.o = nil, nil, nil, nil
		return nil
	}, nil
}

// forget releases the matrices of a run.
func (r *attendWorkspace) forget() {
	r.y.Release()
	r.v.Release()
	r.packed = 0
}

// pieces computes blocks lo to hi.
func (t *attend) pieces(worker, lo, hi int) {
	r, s, v := &t.workspaces[worker], t.scores, t.values
	for i := lo; i < hi; i++ {
		b, r0 := i/t.blocks, i%t.blocks*t.rows
		n := min(t.rows, s.m-r0)
		if r.packed != b+1 {
			r.packed = b + 1
			r.y.Pack(s.k, s.n, t.y[s.y[b]:][:s.k*s.n], s.lineY(), s.adjY)
			r.v.Pack(v.k, v.n, t.v[v.y[b]:][:v.k*v.n], v.lineY(), v.adjY)
		}
		x, g := t.x[s.x[b]:][:s.m*s.k], s.params()
		if g.M = n; s.adjX {
			g.LDA, x = s.m, x[r0:]
		} else {
			x = x[r0*s.k:]
		}
		scores := r.scores[:n*s.n]
		r.y.Multiply(g, x, 0, 0, scores)
		for j := range t.steps {
			t.steps[j].run(scores, b, r0, s.n)
		}
		t.softmax(scores, scores, r.sums, s.n, t.beta)
		g = v.params()
		g.M = n
		r.v.Multiply(g, scores, 0, 0, t.o[(b*v.m+r0)*v.n:][:n*v.n])
	}
}

// lineY returns the distance between rows of the right-hand matrices.
func (t *matmul) lineY() int {
	if t.adjY {
		return t.k
	}
	return t.n
}

// run applies the operator to some rows of product b, from row r0 on, of n columns.
func (s *scoreStep) run(scores []float32, b, r0, n int) {
	operand := s.operand[s.at[b]+r0*s.row:]
	switch {
	case s.row == 0 && s.col == 0:
		s.loops.VectorScalar(scores, scores, operand[0])
		return
	case s.row == n && s.col == 1:
		s.loops.Vec(scores, scores, operand[:len(scores)])
		return
	}
	for at := 0; at < len(scores); at += n {
		row := scores[at : at+n]
		if s.col == 1 {
			s.loops.Vec(row, row, operand[:n])
		} else {
			s.loops.VectorScalar(row, row, operand[0])
		}
		if at+n < len(scores) {
			operand = operand[s.row:]
		}
	}
}
