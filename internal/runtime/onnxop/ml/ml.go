// Package ml implements the classical models of the ai.onnx.ml domain: tree ensembles, linear
// models, support vector machines, encoders and scalers.
package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of the ai.onnx.ml domain.
func Defs() []op.Def {
	def := func(name string, infer func(*op.Call) error, p func(*op.Call) (op.Run, error)) op.Def {
		return op.Def{Domain: graph.ONNXML, Name: name, Since: 1, Types: numeric, Infer: op.Needs(1, infer), Prepare: p}
	}
	of := func(d op.Def, types ...tensor.Type) op.Def { d.Types = types; return d }
	return []op.Def{
		def("TreeEnsembleClassifier", inferClassifier, prepareTreeClassifier),
		def("TreeEnsembleRegressor", inferTreeRegressor, prepareTreeRegressor),
		of(def("TreeEnsemble", inferTreeRegressor, prepareTreeEnsemble), tensor.Float32, tensor.Float64, tensor.Float16),
		def("LinearClassifier", inferLinearClassifier, prepareLinearClassifier),
		def("LinearRegressor", inferLinearRegressor, prepareLinearRegressor),
		def("SVMClassifier", inferSVMClassifier, prepareSVMClassifier),
		def("SVMRegressor", inferSVMRegressor, prepareSVMRegressor),
		def("Normalizer", inferFloat, prepareNormalizer),
		def("Scaler", inferFloat, prepareScaler),
		def("Binarizer", elem.Same, prepareBinarizer),
		def("Imputer", elem.Same, prepareImputer),
		{Domain: graph.ONNXML, Name: "FeatureVectorizer", Since: 1, Types: numeric, Infer: inferVectorizer, Prepare: op.Simple(runVectorizer)},
		of(def("ArrayFeatureExtractor", op.Needs(2, inferExtractor), prepareExtractor), append(numeric, tensor.String)...),
		of(def("LabelEncoder", op.Infer(newLabelEncoder), prepareLabelEncoder)),
		of(def("CategoryMapper", inferCategoryMapper, prepareCategoryMapper), tensor.String, tensor.Int64),
		of(def("OneHotEncoder", inferOneHot, prepareOneHot), append(numeric, tensor.String)...),
		of(def("ZipMap", inferZipMap, prepareZipMap), tensor.Float32),
		of(def("DictVectorizer", inferDict, op.Simple(runDictVectorizer)), tensor.Map),
		of(def("CastMap", inferDict, op.Simple(runCastMap)), tensor.Map),
	}
}

// numbers widens a numeric tensor to float64.
func numbers(dst []float64, x *tensor.Tensor) ([]float64, error) {
	n := x.Len()
	if cap(dst) < n {
		dst = make([]float64, n)
	}
	dst = dst[:n]
	if !x.Type.IsNumber() {
		return nil, op.Unsupported("input of %v", x.Type)
	}
	tensor.Read(dst, x, 0)
	return dst, nil
}

// numeric lists the element types that [numbers] reads and the domain allows.
var numeric = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32}

// rows splits a shape into rows and features: a vector is one row.
func rows(x *tensor.Tensor) (n, features int, err error) {
	switch x.Rank() {
	case 1:
		return 1, x.Shape[0], nil
	case 2:
		return x.Shape[0], x.Shape[1], nil
	}
	return 0, 0, fmt.Errorf("input %s, want rank 1 or 2", tensor.FormatShape(x.Shape))
}

// setRows gives output 0 a row of width elements of type t for each row of input 0.
func setRows(c *op.Call, t tensor.Type, width int) error {
	n, _, err := rows(c.In[0])
	if err != nil {
		return err
	}
	return c.Result(t, []int{n, width})
}

// float64s widens an attribute list, or reads the tensor attribute that replaces it in later
// versions.
func float64s(c *op.Call, name string) []float64 {
	if t := c.Node.Attrs.Tensor(name + "_as_tensor"); t != nil {
		v, _ := numbers(nil, t)
		return v
	}
	if t := c.Node.Attrs.Tensor(name); t != nil {
		v, _ := numbers(nil, t)
		return v
	}
	list := c.Node.Attrs.Floats(name)
	if list == nil {
		return nil
	}
	out := make([]float64, len(list))
	tensor.Convert(out, list)
	return out
}

// labels holds the classes of a classifier, by number or by name.
type labels struct {
	ints  []int
	names []string
}

func classLabels(c *op.Call) labels {
	a := c.Node.Attrs
	l := labels{ints: a.Ints("classlabels_int64s"), names: a.Strs("classlabels_strings")}
	if l.ints == nil {
		l.ints = a.Ints("classlabels_ints")
	}
	return l
}

func (l labels) len() int { return max(len(l.ints), len(l.names)) }

func (l labels) kind() tensor.Type {
	if len(l.names) > 0 {
		return tensor.String
	}
	return tensor.Int64
}

// write stores label k as element i. A class without a label has its number as the label.
func (l labels) write(y *tensor.Tensor, i, k int) {
	switch {
	case len(l.names) > 0:
		y.Strings[i] = ""
		if k < len(l.names) {
			y.Strings[i] = l.names[k]
		}
	case k < len(l.ints):
		tensor.Of[int64](y)[i] = int64(l.ints[k])
	default:
		tensor.Of[int64](y)[i] = int64(k)
	}
}

// transform is the function applied to a row of scores.
type transform uint8

const (
	none transform = iota
	softmax
	logistic
	softmaxZero
	probit
)

var transforms = map[string]transform{"": none, "NONE": none, "SOFTMAX": softmax, "LOGISTIC": logistic, "SOFTMAX_ZERO": softmaxZero, "PROBIT": probit}

func postTransform(c *op.Call) (transform, error) {
	name := c.Node.Attrs.Str("post_transform", "NONE")
	t, ok := transforms[name]
	if !ok {
		return 0, fmt.Errorf("post_transform %q", name)
	}
	return t, nil
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// sigmoids replaces s by its logistic function.
func sigmoids(s []float64) {
	if vectors := simd.CurveKernels(); vectors.HasDoubles() {
		vectors.SigmoidDoubles(s, s)
		return
	}
	for i, v := range s {
		s[i] = sigmoid(v)
	}
}

// exponentials replaces s by e to the power of s.
func exponentials(s []float64) {
	if vectors := simd.CurveKernels(); vectors.HasDoubles() {
		vectors.ExpDoubles(s, s, 0)
		return
	}
	for i, v := range s {
		s[i] = math.Exp(v)
	}
}

// apply transforms a row of scores.
func (t transform) apply(s []float64) { t.rows(s, len(s)) }

// rows transforms rows of width scores. A row of one score is unchanged except by probit, as in
// ONNX Runtime.
func (t transform) rows(s []float64, width int) {
	if width == 1 && t != probit {
		return
	}
	switch t {
	case logistic:
		sigmoids(s)
	case probit:
		for i, v := range s {
			s[i] = math.Sqrt2 * math.Erfinv(2*v-1)
		}
	case softmax:
		for at := 0; at < len(s); at += width {
			row := s[at:][:width]
			m := slices.Max(row)
			for i, v := range row {
				row[i] = v - m
			}
		}
		exponentials(s)
		for at := 0; at < len(s); at += width {
			share(s[at:][:width])
		}
	case softmaxZero:
		for at := 0; at < len(s); at += width {
			row := s[at:][:width]
			m := slices.Max(row)
			for i, v := range row {
				if math.Abs(v) < 1e-7 {
					row[i] = 0
				} else {
					row[i] = math.Exp(v - m)
				}
			}
			share(row)
		}
	}
}

// share divides a row by its sum, if that is not zero.
func share(row []float64) {
	var sum float64
	for _, v := range row {
		sum += v
	}
	if sum != 0 {
		for i := range row {
			row[i] /= sum
		}
	}
}

// matrix is a float64 matrix, lines × features, that is multiplied by rows of features.
type matrix struct {
	lines, features int
	values          []float64
	turned          []float64 // transposed for SIMD kernels; nil without them
}

func newMatrix(values []float64, lines, features int) *matrix {
	m := &matrix{lines: lines, features: features, values: values}
	// Fewer than three lines leave most of a vector empty.
	if lines >= 3 && simd.FoldKernels().HasDoubles() {
		m.turned = make([]float64, len(values))
		for i := range lines {
			for j, v := range values[i*features:][:features] {
				m.turned[j*lines+i] = v
			}
		}
	}
	return m
}

// addProducts adds the products of the matrix and rows of features x to rows of sums, which hold
// one sum per line of the matrix.
func (m *matrix) addProducts(sums, x []float64) {
	f := m.features
	for ; len(sums) > 0; sums, x = sums[m.lines:], x[f:] {
		s, x := sums[:m.lines], x[:f]
		if m.turned != nil && simd.AddProducts(simd.FoldKernels(), s, x, 1, m.turned, m.lines, f) {
			continue
		}
		w := m.values
		for ; len(s) >= 4; s, w = s[4:], w[4*f:] {
			a, b, c, d := s[0], s[1], s[2], s[3]
			p, q, r, u := w[:f], w[f:][:f], w[2*f:][:f], w[3*f:][:f]
			for j, v := range x {
				a += p[j] * v
				b += q[j] * v
				c += r[j] * v
				d += u[j] * v
			}
			s[0], s[1], s[2], s[3] = a, b, c, d
		}
		for i := range s {
			s[i] += dot(w[i*f:][:f], x)
		}
	}
}

// eachRows makes a run that calls f for blocks of rows of input 0 in parallel. f gets the number
// of the first row, the features as float64, width numbers of scratch memory per row, and
// workspace more numbers.
func eachRows(c *op.Call, width, workspace int, f func(c *op.Call, first int, x, s, workspace []float64)) (op.Run, error) {
	if !c.In[0].Type.IsNumber() {
		return nil, op.Unsupported("input of %v", c.In[0].Type)
	}
	_, features, err := rows(c.In[0])
	if err != nil {
		return nil, err
	}
	some := min(max(1, 1<<13/max(features, width, 1)), 256)
	each := some*(features+width) + workspace
	scratch := op.ScratchOf[float64](c, c.Pool.Threads()*each)
	// Made once, with the closure below: a run must not allocate.
	var call *op.Call
	work := func(worker, lo, hi int) {
		mine := scratch[worker*each:][:each]
		for ; lo < hi; lo += some {
			n := min(some, hi-lo)
			x, s := mine[:n*features], mine[some*features:][:n*width]
			tensor.Read(x, call.In[0], lo*features)
			f(call, lo, x, s, mine[some*(features+width):])
		}
	}
	return func(c *op.Call) error {
		n, _, err := rows(c.In[0])
		if err != nil {
			return err
		}
		call = c
		c.Pool.ForWorker(n, 16, work)
		return nil
	}, nil
}
