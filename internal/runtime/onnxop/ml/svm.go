package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// machine holds the parameters that support vector classifiers and regressors share.
type machine struct {
	kernel               string
	gamma, coef0, degree float64
	vectors              []float64 // count × features
	// points are compared with rows: the vectors, or the coefficients of classes.
	points            *matrix
	count, features   int
	coefficients, rho []float64
	probA, probB      []float64
	post              transform
}

func newMachine(c *op.Call) (*machine, error) {
	a := c.Node.Attrs
	m := &machine{
		kernel: a.Str("kernel_type", "LINEAR"), vectors: float64s(c, "support_vectors"),
		coefficients: float64s(c, "coefficients"), rho: float64s(c, "rho"), probA: float64s(c, "prob_a"), probB: float64s(c, "prob_b"),
	}
	if !slices.Contains([]string{"LINEAR", "POLY", "RBF", "SIGMOID"}, m.kernel) {
		return nil, fmt.Errorf("kernel_type %q", m.kernel)
	}
	p := float64s(c, "kernel_params")
	if m.kernel != "LINEAR" && len(p) != 3 {
		return nil, fmt.Errorf("%d kernel parameters", len(p))
	}
	if len(p) == 3 {
		m.gamma, m.coef0, m.degree = p[0], p[1], p[2]
	}
	var err error
	if _, m.features, err = rows(c.In[0]); err != nil {
		return nil, err
	}
	m.post, err = postTransform(c)
	return m, err
}

// similarities writes to near the kernel function of each row of x and each point.
func (m *machine) similarities(near, x []float64) {
	f := m.features
	clear(near)
	switch m.kernel {
	case "LINEAR":
		m.points.addProducts(near, x)
		return
	case "RBF":
		for at := 0; at < len(near); at, x = at+m.points.lines, x[f:] {
			for k := range m.points.lines {
				var far float64
				for i, v := range m.points.values[k*f:][:f] {
					far += (x[i] - v) * (x[i] - v)
				}
				near[at+k] = -m.gamma * far
			}
		}
		exponentials(near)
		return
	}
	m.points.addProducts(near, x)
	for k, v := range near {
		near[k] = m.gamma*v + m.coef0
	}
	vectors := simd.CurveKernels()
	switch {
	case m.kernel == "POLY" && m.degree == 2:
		for k, v := range near {
			near[k] = v * v
		}
	case m.kernel == "POLY" && m.degree == 3:
		for k, v := range near {
			near[k] = v * v * v
		}
	case m.kernel == "POLY":
		for k, v := range near {
			near[k] = math.Pow(v, m.degree)
		}
	case vectors.HasDoubles():
		vectors.TanhDoubles(near, near)
	default:
		for k, v := range near {
			near[k] = math.Tanh(v)
		}
	}
}

func inferSVMRegressor(c *op.Call) error { return setRows(c, tensor.Float32, 1) }

func prepareSVMRegressor(c *op.Call) (op.Run, error) {
	m, err := newMachine(c)
	if err != nil {
		return nil, err
	}
	m.count = c.Node.Attrs.Int("n_supports", 0)
	oneClass := c.Node.Attrs.Int("one_class", 0) == 1
	linear := m.count == 0
	if linear {
		m.vectors, m.count = m.coefficients, 1 // no support vectors: the coefficients are the model
		m.coefficients = []float64{1}
	}
	if len(m.vectors) != m.count*m.features || len(m.coefficients) != m.count || len(m.rho) < 1 {
		return nil, fmt.Errorf("%d coefficients, %d support values, %d rho for %d features", len(m.coefficients), len(m.vectors), len(m.rho), m.features)
	}
	m.points = newMatrix(m.vectors, m.count, m.features)
	return eachRows(c, m.count, 0, func(c *op.Call, first int, x, near, _ []float64) {
		m.similarities(near, x)
		y := tensor.Of[float32](c.Out[0])[first:]
		for i := 0; len(near) > 0; i, near = i+1, near[m.count:] {
			s := near[:1]
			s[0] = m.rho[0] + dot(m.coefficients, near[:m.count])
			switch {
			case !oneClass:
				m.post.apply(s)
			case s[0] <= 0:
				s[0] = -1
			default:
				s[0] = 1
			}
			y[i] = float32(s[0])
		}
	})
}

// svmClassifier votes between pairs of classes. Without support vectors it scores classes
// directly.
type svmClassifier struct {
	*machine
	labels
	classes int
	per     []int // support vectors of each class
	start   []int
	linear  bool
	mixed   bool // coefficients of both signs
}

func newSVMClassifier(c *op.Call) (*svmClassifier, error) {
	m, err := newMachine(c)
	if err != nil {
		return nil, err
	}
	s := &svmClassifier{machine: m, labels: classLabels(c), per: c.Node.Attrs.Ints("vectors_per_class")}
	s.classes = s.len()
	if s.classes < 1 {
		return nil, fmt.Errorf("no class labels")
	}
	for _, n := range s.per {
		if n < 0 {
			return nil, fmt.Errorf("vectors_per_class %v", s.per)
		}
		s.start = append(s.start, m.count)
		m.count += n
	}
	for _, v := range m.coefficients {
		s.mixed = s.mixed || v < 0
	}
	if m.count == 0 {
		s.linear = true
		if len(m.coefficients) != s.classes*m.features || len(m.rho) < 1 {
			return nil, fmt.Errorf("%d coefficients for %d classes of %d features", len(m.coefficients), s.classes, m.features)
		}
		return s, nil
	}
	pairs := s.classes * (s.classes - 1) / 2
	if len(s.per) != s.classes || len(m.vectors) != m.count*m.features || len(m.coefficients) != (s.classes-1)*m.count || len(m.rho) < pairs {
		return nil, fmt.Errorf("%d support values, %d coefficients, %d rho for %d classes of %d features",
			len(m.vectors), len(m.coefficients), len(m.rho), s.classes, m.features)
	}
	if n := len(m.probA); n != len(m.probB) || n != 0 && n < pairs {
		return nil, fmt.Errorf("%d prob_a, %d prob_b for %d pairs", n, len(m.probB), pairs)
	}
	return s, nil
}

// width returns the number of scores per row.
func (s *svmClassifier) width() int {
	switch {
	case s.linear || len(s.probA) > 0 || s.classes == 2:
		return s.classes
	}
	return s.classes * (s.classes - 1) / 2
}

func inferSVMClassifier(c *op.Call) error {
	if err := inferClassifier(c); err != nil {
		return err
	}
	s, err := newSVMClassifier(c)
	if err != nil {
		return err
	}
	if c.Wants(1) {
		c.Out[1].Shape[1] = s.width()
	}
	return nil
}

func prepareSVMClassifier(c *op.Call) (op.Run, error) {
	s, err := newSVMClassifier(c)
	if err != nil {
		return nil, err
	}
	width, count := s.width(), s.count
	s.points = newMatrix(s.vectors, s.count, s.features)
	if s.linear {
		count = s.classes
		s.points = newMatrix(s.coefficients, s.classes, s.features)
	}
	return eachRows(c, count, s.workspace(), func(c *op.Call, first int, x, near, workspace []float64) {
		s.similarities(near, x)
		for i := first; len(near) > 0; i, near = i+1, near[count:] {
			k, out := s.classify(near[:count], workspace)
			s.write(c.Out[0], i, k)
			if c.Wants(1) {
				tensor.Convert(tensor.Of[float32](c.Out[1])[i*width:][:width], out)
			}
		}
	})
}

// workspace returns the scratch size of [svmClassifier.classify]: votes, pairs, two pair scores,
// and the scratch memory of [svmClassifier.couple].
func (s *svmClassifier) workspace() int {
	n := s.classes
	return n + n*(n-1)/2 + 2 + 2*n*n + 2*n
}

// classify returns the class of a row and its scores. near holds its similarities to the support
// vectors, or its products with the coefficients of classes.
func (s *svmClassifier) classify(near, workspace []float64) (int, []float64) {
	if s.linear {
		for k := range near {
			near[k] += s.rho[0]
		}
		k := slices.Index(near, slices.Max(near))
		s.post.apply(near)
		return k, near
	}
	pairs := s.classes * (s.classes - 1) / 2
	votes, pair, rest := workspace[:s.classes], workspace[s.classes:][:0:pairs], workspace[s.classes+pairs:]
	clear(votes)
	for i := range s.classes {
		for j := i + 1; j < s.classes; j++ {
			v := s.rho[len(pair)]
			v += dot(s.coefficients[(j-1)*s.count+s.start[i]:][:s.per[i]], near[s.start[i]:][:s.per[i]])
			v += dot(s.coefficients[i*s.count+s.start[j]:][:s.per[j]], near[s.start[j]:][:s.per[j]])
			pair = append(pair, v)
			if v > 0 {
				votes[i]++
			} else {
				votes[j]++
			}
		}
	}
	k := slices.Index(votes, slices.Max(votes))
	if len(s.probA) > 0 {
		p := s.couple(pair, rest[2:])
		s.post.apply(p)
		return k, p
	}
	if s.classes == 2 {
		return k, s.pairScores(pair[0], rest[:2])
	}
	s.post.apply(pair)
	return k, pair
}

// pairScores writes the two scores of a single decision between two classes to out. The post
// transform is not applied to them, as in ONNX Runtime.
func (s *svmClassifier) pairScores(v float64, out []float64) []float64 {
	switch {
	case s.post == logistic:
		out[0], out[1] = sigmoid(-v), sigmoid(v)
	case s.mixed && s.post == none:
		out[0], out[1] = -v, v
	default:
		out[0], out[1] = 1-v, v
	}
	return out
}

// couple turns pairwise probabilities into class probabilities by the iteration of Wu, Lin and
// Weng (2004), second approach. The result is in workspace.
func (s *svmClassifier) couple(pair, workspace []float64) []float64 {
	n := s.classes
	r, q, p, qp := workspace[:n*n], workspace[n*n:][:n*n], workspace[2*n*n:][:n], workspace[2*n*n+n:][:n]
	clear(q)
	at := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			p := sigmoid(-(pair[at]*s.probA[at] + s.probB[at]))
			r[i*n+j] = min(max(p, 1e-7), 1-1e-7)
			r[j*n+i] = 1 - r[i*n+j]
			at++
		}
	}
	for i := range n {
		p[i] = 1 / float64(n)
		for j := range n {
			if i != j {
				q[i*n+i] += r[j*n+i] * r[j*n+i]
				q[i*n+j] = -r[j*n+i] * r[i*n+j]
			}
		}
	}
	for range max(100, n) {
		var pqp, worst float64
		for i := range n {
			qp[i] = 0
			for j, v := range q[i*n:][:n] {
				qp[i] += v * p[j]
			}
			pqp += p[i] * qp[i]
		}
		for _, v := range qp {
			worst = max(worst, math.Abs(v-pqp))
		}
		if worst < 0.005/float64(n) {
			break
		}
		for i := range n {
			d := (pqp - qp[i]) / q[i*n+i]
			p[i] += d
			pqp = (pqp + d*(d*q[i*n+i]+2*qp[i])) / ((1 + d) * (1 + d))
			for j := range n {
				qp[j] = (qp[j] + d*q[i*n+j]) / (1 + d)
				p[j] /= 1 + d
			}
		}
	}
	return p
}
