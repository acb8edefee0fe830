// Package norm implements ONNX's batch, instance, group and layer normalisations.
package norm

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.Fusing(elem.RealDef("BatchNormalization", op.Needs(5, inferBatchNormalization), prepareBatchNormalization[float32], prepareBatchNormalization[float64])),
		elem.Fusing(elem.RealDef("InstanceNormalization", inferInstanceNormalization, prepareInstanceNormalization[float32], prepareInstanceNormalization[float64])),
		elem.Fusing(elem.RealDef("GroupNormalization", inferGroupNormalization, prepareGroupNormalization[float32], prepareGroupNormalization[float64])),
		elem.RealDef("LayerNormalization", op.Needs(2, InferLayerNormalization), prepareLayerNormalization[float32], prepareLayerNormalization[float64]),
		elem.RealDef("RMSNormalization", op.Needs(2, InferLayerNormalization), PrepareRMSNormalization[float32], PrepareRMSNormalization[float64]),
		elem.RealDef("SimplifiedLayerNormalization", op.Needs(2, InferLayerNormalization), PrepareRMSNormalization[float32], PrepareRMSNormalization[float64]),
		elem.RealDef("LpNormalization", elem.Same, prepareLpNormalization[float32], prepareLpNormalization[float64]),
		elem.RealDef("LRN", elem.Same, prepareLRN[float32], prepareLRN[float64]),
		elem.RealDef("MeanVarianceNormalization", elem.Same, prepareMVN[float32], prepareMVN[float64]),
	}
}

// Moments returns mean and the inverse standard deviation.
func Moments[T tensor.Real](v []T, eps float64) (mean, inv float64) {
	n := float64(max(len(v), 1))
	if f, ok := any(v).([]float32); ok {
		if r := simd.RowKernels(); r != nil {
			mean = r.Sum(f) / n
			return mean, 1 / math.Sqrt(r.Squares(f, mean)/n+eps)
		}
	}
	for _, x := range v {
		mean += float64(x)
	}
	mean /= n
	var q float64
	for _, x := range v {
		d := float64(x) - mean
		q += d * d
	}
	return mean, 1 / math.Sqrt(q/n+eps)
}

// Standardise writes (src - mean)·inv.
func Standardise[T tensor.Real](dst, src []T, mean, inv float64) {
	if d, ok := any(dst).([]float32); ok {
		if r := simd.RowKernels(); r != nil {
			r.Normalise(d, any(src).([]float32), mean, inv)
			return
		}
	}
	for j, v := range src {
		dst[j] = T((float64(v) - mean) * inv)
	}
}

// Affine multiplies dst by g and adds b, unless b is nil.
func Affine[T tensor.Real](dst, g, b []T) {
	if d, ok := any(dst).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Mul(d, d, any(g).([]float32))
			if b != nil {
				e.Add(d, d, any(b).([]float32))
			}
			return
		}
	}
	for j, v := range g[:len(dst)] {
		dst[j] *= v
	}
	for j, v := range b {
		dst[j] += v
	}
}

// perChannel checks that input i holds one value per channel.
func perChannel(c *op.Call, i, n int) error {
	if x := c.Input(i); x == nil || x.Len() != n {
		if x == nil {
			return fmt.Errorf("input %d is missing", i)
		}
		return fmt.Errorf("input %d of shape %s for %d channels", i, tensor.FormatShape(x.Shape), n)
	}
	return nil
}

// inferBatchNormalization handles the outputs of all versions: before 14 four more in training,
// since 14 the running mean and variance.
func inferBatchNormalization(c *op.Call) error {
	x := c.In[0]
	n := 1
	if x.Rank() > 1 {
		n = x.Shape[1]
	} else if x.Rank() == 0 {
		return fmt.Errorf("input is a scalar")
	}
	for i := 1; i < 5; i++ {
		if c.In[i].Len() != n {
			if c.Node.Attrs.Int("spatial", 1) == 0 {
				return op.Unsupported("BatchNormalization with spatial = 0")
			}
			return perChannel(c, i, n)
		}
	}
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	for i := 1; i < len(c.Out); i++ {
		c.SetOut(i, c.In[3].Type, []int{n})
	}
	return nil
}

func batchTraining(c *op.Call) bool {
	if c.Node.Version >= 14 {
		return c.Node.Attrs.Bool("training_mode", false)
	}
	if c.Node.Version < 7 {
		return !c.Node.Attrs.Bool("is_test", false) && len(c.Out) > 1
	}
	return c.Wants(1)
}

func prepareBatchNormalization[T tensor.Real](c *op.Call) (op.Run, error) {
	x := c.In[0]
	n, ch, area := 1, 1, 1
	if x.Rank() > 1 {
		n, ch, area = x.Shape[0], x.Shape[1], tensor.Elements(x.Shape[2:])
	} else {
		n = x.Shape[0]
	}
	train := batchTraining(c)
	eps, momentum := float64(c.Node.Attrs.Float("epsilon", 1e-5)), float64(c.Node.Attrs.Float("momentum", 0.9))
	buf := op.ScratchOf[float64](c, 4*ch)
	gamma, beta, mean, vari := buf[:ch], buf[ch:2*ch], buf[2*ch:3*ch], buf[3*ch:]
	factors := op.ScratchOf[T](c, 2*ch)
	scale, shift := factors[:ch], factors[ch:]
	act := c.Activation
	var in, y []T // of the run: the closure is allocated once
	work := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			k := i % ch
			src, dst := in[i*area:][:area], y[i*area:][:area]
			elem.Scale(dst, src, scale[k], shift[k])
			elem.Clamp(act, dst)
		}
	}
	count := n * ch
	if area == 1 && ch > 1 { // channels are contiguous
		work, count = func(lo, hi int) {
			for i := lo; i < hi; i++ {
				src, dst := in[i*ch:][:ch], y[i*ch:][:ch]
				scaleEach(dst, src, scale, shift)
				elem.Clamp(act, dst)
			}
		}, n
	}
	grain := max(1, (1<<13)*count/max(n*ch*area, 1))
	return func(c *op.Call) error {
		in, y = tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		tensor.Read(gamma, c.In[1], 0)
		tensor.Read(beta, c.In[2], 0)
		tensor.Read(mean, c.In[3], 0)
		tensor.Read(vari, c.In[4], 0)
		if train {
			batchStatistics(c, in, n, ch, area, momentum, mean, vari)
		}
		for k, g := range gamma {
			s := g / math.Sqrt(vari[k]+eps)
			scale[k], shift[k] = T(s), T(beta[k]-mean[k]*s)
		}
		c.Pool.For(count, grain, work)
		return nil
	}, nil
}

// scaleEach writes src·scale + shift, with a scale and a shift per element.
func scaleEach[T tensor.Real](dst, src, scale, shift []T) {
	if d, ok := any(dst).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Mul(d, any(src).([]float32), any(scale).([]float32))
			e.Add(d, d, any(shift).([]float32))
			return
		}
	}
	for k, v := range src {
		dst[k] = v*scale[k] + shift[k]
	}
}

// batchStatistics replaces the running mean and variance by those of the batch and writes the
// updated running values to the optional outputs.
func batchStatistics[T tensor.Real](c *op.Call, x []T, n, ch, area int, momentum float64, mean, vari []float64) {
	count := float64(max(n*area, 1))
	for k := range ch {
		var m, q float64
		for b := range n {
			for _, v := range x[(b*ch+k)*area:][:area] {
				m += float64(v)
			}
		}
		m /= count
		for b := range n {
			for _, v := range x[(b*ch+k)*area:][:area] {
				q += (float64(v) - m) * (float64(v) - m)
			}
		}
		q /= count
		Store(c, 1, k, mean[k]*momentum+m*(1-momentum))
		Store(c, 2, k, vari[k]*momentum+q*(1-momentum))
		Store(c, 3, k, m)
		Store(c, 4, k, q)
		mean[k], vari[k] = m, q
	}
}

// Store writes one element of an optional floating-point output.
func Store(c *op.Call, out, i int, v float64) {
	if !c.Wants(out) {
		return
	}
	tensor.Put(c.Out[out], i, v)
}

func inferInstanceNormalization(c *op.Call) error {
	if err := elem.Same(c); err != nil {
		return err
	}
	if c.In[0].Rank() < 3 {
		return fmt.Errorf("input %s", tensor.FormatShape(c.In[0].Shape))
	}
	for i := 1; i < 3; i++ {
		if err := perChannel(c, i, c.In[0].Shape[1]); err != nil {
			return err
		}
	}
	return nil
}

func prepareInstanceNormalization[T tensor.Real](c *op.Call) (op.Run, error) {
	ch, area := c.In[0].Shape[1], tensor.Elements(c.In[0].Shape[2:])
	eps := float64(c.Node.Attrs.Float("epsilon", 1e-5))
	act := c.Activation
	return op.Parallel(c.In[0].Shape[0]*ch, max(1, 1<<13/max(area, 1)), func(c *op.Call, lo, hi int) {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		gamma, beta := tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		for i := lo; i < hi; i++ {
			src, dst := x[i*area:][:area], y[i*area:][:area]
			mean, inv := Moments(src, eps)
			Standardise(dst, src, mean, inv*float64(gamma[i%ch]))
			elem.Scale(dst, dst, 1, beta[i%ch])
			elem.Clamp(act, dst)
		}
	}), nil
}

// inferGroupNormalization: scale and bias are per group at version 18 and per channel since 21.
func inferGroupNormalization(c *op.Call) error {
	if err := elem.Same(c); err != nil {
		return err
	}
	x, g := c.In[0], c.Node.Attrs.Int("num_groups", 0)
	if x.Rank() < 2 || g < 1 || x.Shape[1]%g != 0 {
		return fmt.Errorf("input %s with %d groups", tensor.FormatShape(x.Shape), g)
	}
	n := x.Shape[1]
	if c.Node.Version < 21 {
		n = g
	}
	for i := 1; i < 3; i++ {
		if err := perChannel(c, i, n); err != nil {
			return err
		}
	}
	return nil
}

func prepareGroupNormalization[T tensor.Real](c *op.Call) (op.Run, error) {
	x, g := c.In[0], c.Node.Attrs.Int("num_groups", 0)
	ch, area := x.Shape[1], tensor.Elements(x.Shape[2:])
	cg := ch / g
	eps := float64(c.Node.Attrs.Float("epsilon", 1e-5))
	perGroup := c.Node.Version < 21
	act := c.Activation
	return op.Parallel(c.In[0].Shape[0]*g, 1, func(c *op.Call, lo, hi int) {
		src, dst := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		gamma, beta := tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		for i := lo; i < hi; i++ {
			src, dst := src[i*cg*area:][:cg*area], dst[i*cg*area:][:cg*area]
			mean, inv := Moments(src, eps)
			for j := range cg {
				k := i%g*cg + j
				if perGroup {
					k = i % g
				}
				d := dst[j*area:][:area]
				Standardise(d, src[j*area:][:area], mean, inv*float64(gamma[k]))
				elem.Scale(d, d, 1, beta[k])
			}
			elem.Clamp(act, dst)
		}
	}), nil
}
