package control

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/kernel/random"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// philox is the counter-based generator Philox 4x32 with ten rounds.
type philox struct {
	key     [2]uint32
	counter [4]uint32
	out     [4]uint32
	left    int
}

// newPhilox seeds a generator. Two zero seeds request an arbitrary sequence. It is always the same
// here, so that profiles are reproducible.
func newPhilox(c *op.Call) *philox {
	lo, hi := uint64(c.Node.Attrs.Int("seed", 0)), uint64(c.Node.Attrs.Int("seed2", 0))
	return &philox{key: [2]uint32{uint32(lo), uint32(lo >> 32)}, counter: [4]uint32{0, 0, uint32(hi), uint32(hi >> 32)}}
}

func (p *philox) next() uint32 {
	if p.left == 0 {
		p.refill()
	}
	v := p.out[4-p.left]
	p.left--
	return v
}

func (p *philox) refill() {
	p.out, p.left = random.Philox(p.key, p.counter), 4
	for i := range p.counter {
		if p.counter[i]++; p.counter[i] != 0 {
			break
		}
	}
}

// float returns a number in [0, 1) of 23 random bits.
func (p *philox) float() float32 {
	return math.Float32frombits(127<<23|p.next()&0x7fffff) - 1
}

// pair returns two normal numbers by the method of Box and Muller.
func (p *philox) pair() (float32, float32) {
	u := max(p.float(), 1e-7)
	angle := 2 * math.Pi * float64(p.float())
	r := math.Sqrt(-2 * math.Log(float64(u)))
	return float32(r * math.Sin(angle)), float32(r * math.Cos(angle))
}

// generator returns the session's generator of a node.
func generator(c *op.Call) *philox {
	key := fmt.Sprintf("random/%d/%d", c.Graph.Index, c.Node.Index)
	if p, ok := c.Env.State(key).(*philox); ok {
		return p
	}
	p := newPhilox(c)
	c.Env.SetState(key, p)
	return p
}

func inferRandom(c *op.Call) error {
	shape, err := op.Ints(c.In[0])
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Float32, shape)
	return nil
}

func prepareRandom(fill func(p *philox, y []float32)) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		p := generator(c)
		return func(c *op.Call) error {
			fill(p, tensor.Of[float32](c.Out[0]))
			return nil
		}, nil
	}
}

func uniform(p *philox, y []float32) {
	for i := range y {
		y[i] = p.float()
	}
}

func normal(p *philox, y []float32) {
	for i := 0; i < len(y); i += 2 {
		a, b := p.pair()
		y[i] = a
		if i+1 < len(y) {
			y[i+1] = b
		}
	}
}

// inferMultinomial reads logits of shape batch x classes and the number of samples.
func inferMultinomial(c *op.Call) error {
	n, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	x := c.In[0]
	if x.Rank() != 2 || x.Shape[1] == 0 || len(n) != 1 || n[0] < 0 {
		return fmt.Errorf("%v samples of logits %s", n, tensor.FormatShape(x.Shape))
	}
	t := c.Graph.Values[c.Node.Outputs[0]].Type
	if t == tensor.Invalid {
		t = tensor.Int64
	}
	if x.Type != tensor.Float32 || t != tensor.Int32 && t != tensor.Int64 {
		return op.Unsupported("samples of %v from logits of %v", t, x.Type)
	}
	c.SetOut(0, t, []int{x.Shape[0], n[0]})
	return nil
}

func prepareMultinomial(c *op.Call) (op.Run, error) {
	p := generator(c)
	classes := c.In[0].Shape[1]
	sum := make([]float64, classes)
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), c.Out[0]
		n := y.Shape[1]
		for b := range y.Shape[0] {
			cumulate(sum, x[b*classes:][:classes])
			for s := range n {
				v := float64(p.float()) * sum[classes-1]
				k := 0
				for k < classes-1 && sum[k] <= v {
					k++
				}
				if y.Type == tensor.Int64 {
					tensor.Of[int64](y)[b*n+s] = int64(k)
				} else {
					tensor.Of[int32](y)[b*n+s] = int32(k)
				}
			}
		}
		return nil
	}, nil
}

// cumulate computes cumulative sums of the unnormalised probabilities of logits.
func cumulate(sum []float64, logits []float32) {
	top := logits[0]
	for _, v := range logits {
		top = max(top, v)
	}
	total := 0.0
	for i, v := range logits {
		total += math.Exp(float64(v - top))
		sum[i] = total
	}
}
