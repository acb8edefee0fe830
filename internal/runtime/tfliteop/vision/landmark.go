package vision

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// affine maps the pixels of a crop to the pixels of the image.
type affine struct{ xx, xy, x0, yx, yy, y0 float32 }

// affineOf reads the 4x4 matrix in which the third row and column are for depth.
func affineOf(m []float32) affine { return affine{m[0], m[1], m[3], m[4], m[5], m[7]} }

func (a affine) at(x, y float32) (float32, float32) {
	return a.xx*x + a.xy*y + a.x0, a.yx*x + a.yy*y + a.y0
}

// region holds the options that describe a crop around landmarks.
type region struct {
	left, right   int
	target        float64 // angle of the line from left to right in the crop, radians
	width, height float64 // of the crop, pixels
	sx, sy        float64 // scale factors
	points        []int
}

func regionOf(c *op.Call) (r region, err error) {
	if err := c.NeedInputs(1); err != nil {
		return r, err
	}
	o, err := layer.Options(c)
	if err != nil {
		return r, err
	}
	x := c.In[0]
	if x.Type != tensor.Float32 || x.Rank() != 3 || x.Shape[0] != 1 || x.Shape[2] != 3 {
		return r, op.Unsupported("landmarks %v %s", x.Type, tensor.FormatShape(x.Shape))
	}
	r = region{
		left: int(o.GetInt("left_rotation_idx", 0)), right: int(o.GetInt("right_rotation_idx", 0)),
		target: o.GetFloat("target_rotation_radians", 0),
		width:  float64(o.GetInt("output_width", 0)), height: float64(o.GetInt("output_height", 0)),
		sx: o.GetFloat("scale_x", 1), sy: o.GetFloat("scale_y", 1),
	}
	for _, p := range o.GetInts("subset_idxs") {
		r.points = append(r.points, int(p))
	}
	for _, p := range append([]int{r.left, r.right}, r.points...) {
		if p < 0 || p >= x.Shape[1] {
			return r, fmt.Errorf("landmark %d of %d", p, x.Shape[1])
		}
	}
	if r.width < 1 || r.height < 1 || len(r.points) == 0 {
		return r, fmt.Errorf("crop of %v x %v around %d landmarks", r.width, r.height, len(r.points))
	}
	return r, nil
}

func inferMatrix(c *op.Call, _ region) { c.SetOut(0, tensor.Float32, []int{1, 4, 4}) }

// prepareMatrix finds the rotated rectangle around the landmarks and the map from the crop to it:
// scale about the crop's centre, rotate, shift.
func prepareMatrix(_ *op.Call, r region) (op.Run, error) {
	return func(c *op.Call) error {
		p := tensor.Of[float32](c.In[0])
		at := func(i int) (x, y float64) { return float64(p[3*i]), float64(p[3*i+1]) }
		lx, ly := at(r.left)
		rx, ry := at(r.right)
		angle := r.target - math.Atan2(-(ry-ly), rx-lx)
		angle -= 2 * math.Pi * math.Floor((angle+math.Pi)/(2*math.Pi))
		// Bounds in the frame of the crop, rotated back by the angle.
		sin, cos := math.Sincos(angle)
		x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
		for _, i := range r.points {
			x, y := at(i)
			x, y = cos*x+sin*y, cos*y-sin*x
			x0, y0, x1, y1 = min(x0, x), min(y0, y), max(x1, x), max(y1, y)
		}
		mx, my := (x0+x1)/2, (y0+y1)/2
		cx, cy := cos*mx-sin*my, sin*mx+cos*my
		ax, ay := r.sx*(x1-x0)/r.width, r.sy*(y1-y0)/r.height
		xx, xy, yx, yy := cos*ax, -sin*ay, sin*ax, cos*ay
		y := tensor.Of[float32](c.Out[0])
		clear(y)
		y[0], y[1], y[3] = float32(xx), float32(xy), float32(cx-xx*r.width/2-xy*r.height/2)
		y[4], y[5], y[7] = float32(yx), float32(yy), float32(cy-yx*r.width/2-yy*r.height/2)
		y[10], y[15] = 1, 1
		return nil
	}, nil
}

// checkMatrix checks a tensor and its 4x4 matrix.
func checkMatrix(c *op.Call, rank int) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	x, m := c.In[0], c.In[1]
	if x.Type != tensor.Float32 || m.Type != tensor.Float32 || x.Rank() != rank || x.Shape[0] != 1 || m.Len() != 16 {
		return op.Unsupported("%v %s with matrix %v %s", x.Type, tensor.FormatShape(x.Shape), m.Type, tensor.FormatShape(m.Shape))
	}
	return nil
}

// warpOf reads the height and width of the result.
func warpOf(c *op.Call) (size [2]int, err error) {
	if err := checkMatrix(c, 4); err != nil {
		return size, err
	}
	o, err := layer.Options(c)
	if err != nil {
		return size, err
	}
	size = [2]int{int(o.GetInt("output_height", 0)), int(o.GetInt("output_width", 0))}
	if min(size[0], size[1]) < 1 {
		return size, fmt.Errorf("result of %d x %d", size[0], size[1])
	}
	return size, nil
}

func inferWarp(c *op.Call, size [2]int) {
	c.SetOut(0, tensor.Float32, []int{1, size[0], size[1], c.In[0].Shape[3]})
}

// prepareWarp interpolates between four pixels of the image, which is zero outside. From version 2
// on coordinates are those of pixel centres.
func prepareWarp(c *op.Call, size [2]int) (op.Run, error) {
	half := float32(0)
	if c.Node.Version >= 2 {
		half = 0.5
	}
	ih, iw, ch := c.In[0].Shape[1], c.In[0].Shape[2], c.In[0].Shape[3]
	ow := size[1]
	var m affine // allocated once, as the closure below: a run must not allocate
	var x, y []float32
	work := func(lo, hi int) {
		for r := lo; r < hi; r++ {
			for k := range ow {
				u, v := m.at(float32(k)+half, float32(r)+half)
				out := y[(r*ow+k)*ch:][:ch]
				clear(out)
				bilinear(out, x, u-half, v-half, ih, iw)
			}
		}
	}
	return func(c *op.Call) error {
		x, y, m = tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), affineOf(tensor.Of[float32](c.In[1]))
		c.Pool.For(size[0], 1, work)
		return nil
	}, nil
}

// bilinear adds the weighted neighbours of a position, as far as they are inside the image.
func bilinear(out, x []float32, u, v float32, h, w int) {
	fu, fv := math.Floor(float64(u)), math.Floor(float64(v))
	if !(fu >= -1 && fv >= -1 && fu < float64(w) && fv < float64(h)) {
		return
	}
	c0, r0 := int(fu), int(fv)
	du, dv := u-float32(fu), v-float32(fv)
	for i, weight := range [4]float32{(1 - du) * (1 - dv), du * (1 - dv), (1 - du) * dv, du * dv} {
		c, r := c0+i&1, r0+i>>1
		if c < 0 || r < 0 || c >= w || r >= h {
			continue
		}
		for k, p := range x[(r*w+c)*len(out):][:len(out)] {
			out[k] += weight * p
		}
	}
}

// transformOf returns the number of coordinates of a landmark.
func transformOf(c *op.Call) (n int, err error) {
	if err := checkMatrix(c, 3); err != nil {
		return 0, err
	}
	if n = c.In[0].Shape[2]; n < 2 {
		return n, fmt.Errorf("landmarks of %d coordinates", n)
	}
	return n, nil
}

func inferTransform(c *op.Call, _ int) { c.SetOut(0, tensor.Float32, c.In[0].Shape) }

// prepareTransform transforms x and y of the landmarks and copies other coordinates.
func prepareTransform(_ *op.Call, n int) (op.Run, error) {
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		m := affineOf(tensor.Of[float32](c.In[1]))
		copy(y, x)
		for i := 0; i < len(x); i += n {
			y[i], y[i+1] = m.at(x[i], x[i+1])
		}
		return nil
	}, nil
}
