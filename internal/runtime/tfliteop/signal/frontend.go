package signal

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func checkWindow(c *op.Call) error {
	x, w := c.In[0], c.In[1]
	if w.Rank() != 1 || w.Shape[0] == 0 || x.Len()%w.Shape[0] != 0 {
		return fmt.Errorf("window %s for shape %s", tensor.FormatShape(w.Shape), tensor.FormatShape(x.Shape))
	}
	return nil
}

func prepareWindow(c *op.Call, o flexbuffer.Value) (op.Run, error) {
	shift := o.GetInt("shift", 0)
	if shift < 0 || shift > 31 {
		return nil, fmt.Errorf("shift of %d bits", shift)
	}
	return func(c *op.Call) error {
		x, w, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.In[1]), tensor.Of[int16](c.Out[0])
		for at := 0; at < len(x); at += len(w) {
			xs, ys := x[at:at+len(w)], y[at:at+len(w)]
			for i, v := range w {
				r := int32(xs[i]) * int32(v) >> shift
				ys[i] = int16(min(max(r, math.MinInt16), math.MaxInt16))
			}
		}
		return nil
	}, nil
}

// inferShift sets the second output, the number of bits.
func inferShift(c *op.Call) error {
	c.SetOut(1, tensor.Int32, []int{})
	return nil
}

// runAutoScale shifts the block up until its largest value uses all bits.
func runAutoScale(c *op.Call) error {
	x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
	top := int32(0)
	for _, v := range x {
		top = max(top, int32(v), -int32(v))
	}
	shift := max(15-bits.Len32(uint32(top)), 0)
	for i, v := range x {
		y[i] = v << shift
	}
	if c.Wants(1) {
		tensor.Of[int32](c.Out[1])[0] = int32(shift)
	}
	return nil
}

func inferEnergy(c *op.Call) error {
	if err := want(c, tensor.Int16); err != nil {
		return err
	}
	x := c.In[0]
	if x.Rank() < 1 || x.Shape[x.Rank()-1]%2 != 0 {
		return fmt.Errorf("spectrum of shape %s", tensor.FormatShape(x.Shape))
	}
	c.SetOut(0, tensor.Uint32, withLast(x.Shape, x.Shape[x.Rank()-1]/2))
	return nil
}

func prepareEnergy(c *op.Call, o flexbuffer.Value) (op.Run, error) {
	n := c.Out[0].Len()
	lo, hi := int(o.GetInt("start_index", 0)), int(o.GetInt("end_index", int64(n)))
	if lo < 0 || hi < lo || hi > n {
		return nil, fmt.Errorf("bins %d to %d of %d", lo, hi, n)
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[uint32](c.Out[0])
		clear(y)
		for i := lo; i < hi; i++ {
			r, q := int32(x[2*i]), int32(x[2*i+1])
			y[i] = uint32(r*r) + uint32(q*q)
		}
		return nil
	}, nil
}

// inferFilterBank reads the spectrum, weights and their complements, then for each channel the
// first bin, the first weight and the width.
func inferFilterBank(c *op.Call) error {
	if err := want(c, tensor.Uint32, tensor.Int16, tensor.Int16, tensor.Int16, tensor.Int16, tensor.Int16); err != nil {
		return err
	}
	o, err := optionsOf(c)
	if err != nil {
		return err
	}
	n := int(o.GetInt("num_channels", 0))
	if n < 1 || c.In[3].Len() != n+1 || c.In[4].Len() != n+1 || c.In[5].Len() != n+1 {
		return fmt.Errorf("%d channels with tables of %d, %d and %d", n, c.In[3].Len(), c.In[4].Len(), c.In[5].Len())
	}
	c.SetOut(0, tensor.Uint64, []int{n})
	return nil
}

// runFilterBank adds each bin to two neighbouring triangular filters. The first filter has a
// falling side only, which is the start of the first channel.
func runFilterBank(c *op.Call) error {
	x, y := tensor.Of[uint32](c.In[0]), tensor.Of[uint64](c.Out[0])
	rise, fall := tensor.Of[int16](c.In[1]), tensor.Of[int16](c.In[2])
	bins, weights, widths := tensor.Of[int16](c.In[3]), tensor.Of[int16](c.In[4]), tensor.Of[int16](c.In[5])
	var sum, next uint64
	for i, width := range widths {
		b, w, n := int(bins[i]), int(weights[i]), int(width)
		if b < 0 || w < 0 || n < 0 || b+n > len(x) || w+n > len(rise) || w+n > len(fall) {
			return fmt.Errorf("channel %d reads %d bins from %d with weights from %d", i, n, b, w)
		}
		for j := range n {
			v := uint64(x[b+j])
			sum += uint64(rise[w+j]) * v
			next += uint64(fall[w+j]) * v
		}
		if i > 0 {
			y[i-1] = sum
		}
		sum, next = next, 0
	}
	return nil
}

func checkScale(c *op.Call) error {
	if c.In[1].Len() != 1 {
		return fmt.Errorf("scale of shape %s", tensor.FormatShape(c.In[1].Shape))
	}
	return nil
}

func runSquareRoot(c *op.Call) error {
	shift := min(uint32(tensor.Single[int32](c.In[1])), 32)
	y := tensor.Of[uint32](c.Out[0])
	for i, v := range tensor.Of[uint64](c.In[0]) {
		y[i] = squareRoot(v) >> shift
	}
	return nil
}

// squareRoot rounds to nearest, but saturates to the bits of the result: 16 for numbers below
// 2^32, else 32.
func squareRoot(v uint64) uint32 {
	r := uint64(math.Sqrt(float64(v)))
	for r > math.MaxUint32 || r*r > v {
		r--
	}
	for r < math.MaxUint32 && (r+1)*(r+1) <= v {
		r++
	}
	limit := uint64(math.MaxUint32)
	if v>>32 == 0 {
		limit = math.MaxUint16
	}
	if v-r*r > r && r != limit {
		r++
	}
	return uint32(r)
}

// inferNoise sets the second output, the noise of each channel.
func inferNoise(c *op.Call) error {
	c.SetOut(1, tensor.Uint32, c.In[0].Shape)
	return nil
}

// prepareSubtraction estimates the noise in each channel and subtracts it. A minimum share of the
// signal remains.
func prepareSubtraction(c *op.Call, o flexbuffer.Value) (op.Run, error) {
	get := func(k string) uint64 { return uint64(uint32(o.GetInt(k, 0))) }
	smooth := [2]uint64{get("smoothing"), get("alternate_smoothing")}
	keep := [2]uint64{get("one_minus_smoothing"), get("alternate_one_minus_smoothing")}
	rest, up, down := get("min_signal_remaining"), get("smoothing_bits"), get("spectral_subtraction_bits")
	clamping := o.GetBool("clamping", false) || o.GetInt("clamping", 0) != 0
	if up > 31 || down > 63 {
		return nil, fmt.Errorf("%d smoothing and %d subtraction bits", up, down)
	}
	noise := sessionSlice[uint32](c, c.In[0].Len())
	return func(c *op.Call) error {
		x, y := tensor.Of[uint32](c.In[0]), tensor.Of[uint32](c.Out[0])
		for i, v := range x {
			scaled := v << up
			noise[i] = uint32((uint64(scaled)*smooth[i&1] + uint64(noise[i])*keep[i&1]) >> down)
			estimate := noise[i]
			if estimate > scaled {
				estimate = scaled
				if clamping {
					noise[i] = estimate
				}
			}
			y[i] = max((scaled-estimate)>>up, uint32(uint64(v)*rest>>down))
		}
		if c.Wants(1) {
			copy(tensor.Of[uint32](c.Out[1]), noise)
		}
		return nil
	}, nil
}

// checkPCAN reads the signal, the noise estimate and the table of gains.
func checkPCAN(c *op.Call) error {
	if c.In[0].Len() != c.In[1].Len() || c.In[2].Len() < 4*32-3 {
		return fmt.Errorf("signal %s, noise %s, %d table entries", tensor.FormatShape(c.In[0].Shape), tensor.FormatShape(c.In[1].Shape), c.In[2].Len())
	}
	return nil
}

// preparePCAN is per-channel amplitude normalisation: gain control by the noise of each channel.
func preparePCAN(c *op.Call, o flexbuffer.Value) (op.Run, error) {
	shift := o.GetInt("snr_shift", 0)
	if shift < 0 || shift > 63 {
		return nil, fmt.Errorf("shift of %d bits", shift)
	}
	return func(c *op.Call) error {
		x, noise, gains := tensor.Of[uint32](c.In[0]), tensor.Of[uint32](c.In[1]), tensor.Of[int16](c.In[2])
		y := tensor.Of[uint32](c.Out[0])
		for i, v := range x {
			gain := uint32(int32(gainFor(noise[i], gains)))
			y[i] = shrink(uint32(uint64(v) * uint64(gain) >> shift))
		}
		return nil
	}, nil
}

// gainFor interpolates the table with a parabola in each octave.
func gainFor(noise uint32, table []int16) int16 {
	if noise <= 2 {
		return table[noise]
	}
	octave := bits.Len32(noise)
	t := table[4*octave-6:]
	frac := int32(noise>>max(octave-11, 0)<<max(11-octave, 0)) & 0x3ff
	r := int32(t[2]) * frac >> 5
	r += int32(t[1]) << 5
	r *= frac
	r = (r + 1<<14) >> 15
	return int16(r + int32(t[0]))
}

// shrink is quadratic below 2 (in 12 fraction bits) and linear above; the result
// has 6 fraction bits.
func shrink(snr uint32) uint32 {
	if snr < 2<<12 {
		return snr * snr >> (2 + 2*12 - 6)
	}
	return snr>>(12-6) - 1<<6
}

func prepareLog(c *op.Call, o flexbuffer.Value) (op.Run, error) {
	scale, shift := uint32(o.GetInt("output_scale", 1)), o.GetInt("input_correction_bits", 0)
	if shift < 0 || shift > 31 {
		return nil, fmt.Errorf("correction of %d bits", shift)
	}
	return func(c *op.Call) error {
		y := tensor.Of[int16](c.Out[0])
		for i, v := range tensor.Of[uint32](c.In[0]) {
			y[i] = 0
			if v <<= shift; v > 1 {
				y[i] = int16(min(naturalLog(v, scale), math.MaxInt16))
			}
		}
		return nil
	}, nil
}

// logTable holds 2^16 * (log2(1+x) - x) at x = i/128.
var logTable = func() (t [129]int32) {
	for i := range t {
		x := float64(i) / 128
		t[i] = int32(math.Round((math.Log2(1+x) - x) * 65536))
	}
	return t
}()

// naturalLog is ln(x) times scale, computed with 16 fraction bits.
func naturalLog(x, scale uint32) uint32 {
	whole := bits.Len32(x) - 1
	frac := int32(x - 1<<whole)
	if whole < 16 {
		frac <<= 16 - whole
	} else {
		frac >>= whole - 16
	}
	seg := frac >> 9
	low, high := logTable[seg], logTable[seg+1]
	// The reference shifts by 16 where 9 would interpolate; the bits must agree.
	frac += low + (high-low)*(frac-seg<<9)>>16
	log2 := uint32(whole)<<16 + uint32(frac)
	const ln2, half = 45426, 1 << 15
	ln := uint32((ln2*uint64(log2) + half) >> 16)
	return (scale*ln + half) >> 16
}
