// Package resize implements ONNX's operators that resample images: Resize, GridSample, regions of
// interest, and non-maximum suppression.
package resize

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		{Name: "Resize", Since: 10, Infer: op.Needs(1, inferResize), Prepare: prepareResize},
		{Name: "Upsample", Since: 1, Infer: op.Needs(1, inferResize), Prepare: prepareResize},
		elem.RealDef("GridSample", op.Needs(2, inferGridSample), prepareGridSample[float32], prepareGridSample[float64]),
		elem.RealDef("AffineGrid", op.Needs(2, inferAffineGrid), prepareAffineGrid[float32], prepareAffineGrid[float64]),
		elem.RealDef("RoiAlign", op.Needs(3, inferRoiAlign), prepareRoiAlign32, prepareRoiAlign[float64]),
		elem.RealDef("MaxRoiPool", op.Needs(2, inferMaxRoiPool), prepareMaxRoiPool[float32], prepareMaxRoiPool[float64]),
		{Name: "NonMaxSuppression", Since: 10, Types: []tensor.Type{tensor.Float32}, Infer: op.Needs(2, inferNMS), Prepare: op.Simple(runNMS)},
	}
}

// resize is one Resize or Upsample with its inputs read.
type resize struct {
	in, out                    []int
	scale                      []float64
	ratio                      [][2]int  // scales as fractions, where sizes are given; else nil
	roi                        []float64 // starts, then ends, of all axes
	mode, coordinates, nearest string
	cubicA, extrapolation      float64
	excludeOutside, antialias  bool
	oldNearest                 bool // Resize 10 and Upsample: floor up, ceil down
}

// newResize reads attributes and the inputs that hold scales, sizes and the region. It returns
// op.ErrDynamic when they are not known.
func newResize(c *op.Call) (*resize, error) {
	a, x := c.Node.Attrs, c.In[0]
	r := &resize{
		in: x.Shape, mode: a.Str("mode", "nearest"), nearest: a.Str("nearest_mode", "round_prefer_floor"),
		coordinates: a.Str("coordinate_transformation_mode", "half_pixel"),
		cubicA:      float64(a.Float("cubic_coeff_a", -0.75)), extrapolation: float64(a.Float("extrapolation_value", 0)),
		excludeOutside: a.Bool("exclude_outside", false), antialias: a.Bool("antialias", false),
	}
	if r.mode == "bilinear" {
		r.mode = "linear"
	}
	if r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic" {
		return nil, fmt.Errorf("mode %q", r.mode)
	}
	if c.Node.Op == "Upsample" || c.Node.Version < 11 {
		r.coordinates, r.oldNearest = "asymmetric", true
		scales, err := oldScales(c)
		if err != nil {
			return nil, err
		}
		return r, r.fromScales(scales, op.Iota(len(r.in)))
	}
	return r, r.read(c)
}

// oldScales finds the scales of Upsample 1, 7 and 9 and of Resize 10.
func oldScales(c *op.Call) ([]float64, error) {
	a := c.Node.Attrs
	if c.Has(1) {
		return floatElements(c.In[1])
	}
	if s := a.Floats("scales"); s != nil {
		out := make([]float64, len(s))
		for i, v := range s {
			out[i] = float64(v)
		}
		return out, nil
	}
	if a.Has("height_scale") && a.Has("width_scale") {
		return []float64{1, 1, float64(a.Float("height_scale", 1)), float64(a.Float("width_scale", 1))}, nil
	}
	return nil, errors.New("scales are missing")
}

// floatElements reads a known floating-point tensor.
func floatElements(x *tensor.Tensor) ([]float64, error) {
	if !x.Known() {
		return nil, op.ErrDynamic
	}
	return tensor.All[float64](x)
}

// read reads roi, scales and sizes, inputs 1 to 3 since version 11.
func (r *resize) read(c *op.Call) error {
	rank := len(r.in)
	axes := c.Node.Attrs.Ints("axes")
	if axes == nil {
		axes = op.Iota(rank)
	}
	for i := range axes {
		var err error
		if axes[i], err = op.Axis(axes[i], rank); err != nil {
			return err
		}
	}
	if r.coordinates == "tf_crop_and_resize" {
		if !c.Has(1) {
			return errors.New("roi is missing")
		}
		roi, err := floatElements(c.In[1])
		if err != nil {
			return err
		}
		if len(roi) != 2*len(axes) {
			return fmt.Errorf("roi of %d elements for %d axes", len(roi), len(axes))
		}
		r.roi = make([]float64, 2*rank)
		for i := range rank {
			r.roi[rank+i] = 1
		}
		for i, a := range axes {
			r.roi[a], r.roi[rank+a] = roi[i], roi[len(axes)+i]
		}
	}
	if s := c.Input(2); s != nil && s.Len() > 0 {
		scales, err := floatElements(s)
		if err != nil {
			return err
		}
		return r.fromScales(scales, axes)
	}
	if !c.Has(3) {
		return errors.New("scales and sizes are missing")
	}
	sizes, err := op.Ints(c.In[3])
	if err != nil {
		return err
	}
	return r.fromSizes(sizes, axes, c.Node.Attrs.Str("keep_aspect_ratio_policy", "stretch"))
}

func (r *resize) fromScales(scales []float64, axes []int) error {
	rank := len(r.in)
	r.scale, r.out = make([]float64, rank), slices.Clone(r.in)
	element.Fill(r.scale, 1)
	if len(scales) != len(axes) {
		return fmt.Errorf("%d scales for %d axes", len(scales), len(axes))
	}
	for i, a := range axes {
		s := scales[i]
		if !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("scale %v", s)
		}
		r.scale[a] = s
		// The specification multiplies by the region too; ONNX Runtime and the reference do not.
		n := float32(r.in[a]) * float32(s)
		if n > 1<<30 {
			return fmt.Errorf("scale %v of an axis of %d", s, r.in[a])
		}
		r.out[a] = int(math.Floor(float64(n)))
	}
	return nil
}

func (r *resize) fromSizes(sizes, axes []int, policy string) error {
	if len(sizes) != len(axes) {
		return fmt.Errorf("%d sizes for %d axes", len(sizes), len(axes))
	}
	r.scale, r.out = make([]float64, len(r.in)), slices.Clone(r.in)
	element.Fill(r.scale, 1)
	r.ratio = slices.Repeat([][2]int{{1, 1}}, len(r.in))
	var common [2]int
	for i, a := range axes {
		if sizes[i] < 0 {
			return fmt.Errorf("size %d", sizes[i])
		}
		r.out[a] = sizes[i]
		if r.in[a] == 0 {
			continue
		}
		if sizes[i] > maxAxis || r.in[a] > maxAxis {
			return fmt.Errorf("size %d of an axis of %d", sizes[i], r.in[a])
		}
		r.setRatio(a, [2]int{sizes[i], r.in[a]})
		order := sizes[i]*common[1] - common[0]*r.in[a]
		if common[1] == 0 || policy == "not_larger" && order < 0 || policy == "not_smaller" && order > 0 {
			common = r.ratio[a]
		}
	}
	switch policy {
	case "stretch":
		return nil
	case "not_larger", "not_smaller":
	default:
		return fmt.Errorf("keep_aspect_ratio_policy %q", policy)
	}
	for _, a := range axes {
		if common[1] > 0 {
			r.setRatio(a, common)
			r.out[a] = floorDiv(2*common[0]*r.in[a]+common[1], 2*common[1])
		}
	}
	return nil
}

// maxAxis bounds axes whose sizes are given, so that products of two and a small factor fit.
const maxAxis = 1 << 29

// setRatio sets the scale of an axis.
func (r *resize) setRatio(axis int, ratio [2]int) {
	r.ratio[axis], r.scale[axis] = ratio, float64(ratio[0])/float64(ratio[1])
}

// floorDiv returns a/b, rounded down, for b > 0.
func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// fraction maps output position x along an axis, whose scale is a fraction, to a position in the
// input as a fraction: n/d with d > 0. ok is false for modes without one.
func (r *resize) fraction(axis, x int) (n, d int, ok bool) {
	in, out, p, q := r.in[axis], r.out[axis], r.ratio[axis][0], r.ratio[axis][1]
	if p == 0 {
		return 0, 0, false
	}
	switch r.coordinates {
	case "align_corners":
		n, d = x*(in-1), p*in/q-1
		if p*in%q != 0 { // the length before it was rounded
			if n > math.MaxInt/q {
				return 0, 0, false
			}
			n, d = n*q, p*in-q
		}
		if d <= 0 || out == 1 {
			return 0, 1, true
		}
		return n, d, true
	case "asymmetric":
		return x * q, p, true
	case "tf_half_pixel_for_nn":
		if p == q {
			return x, 1, true
		}
		return (2*x + 1) * q, 2 * p, true
	case "half_pixel_symmetric":
		return in*p - out*q + (2*x+1)*q - p, 2 * p, true
	case "pytorch_half_pixel":
		if out == 1 {
			return -1, 2, true
		}
	case "half_pixel":
	default:
		return 0, 0, false
	}
	return (2*x+1)*q - p, 2 * p, true
}

func inferResize(c *op.Call) error {
	r, err := newResize(c)
	if err != nil {
		return err
	}
	if slices.Contains(r.in, 0) && !slices.Contains(r.out, 0) {
		return fmt.Errorf("cannot make %s of the empty %s", tensor.FormatShape(r.out), tensor.FormatShape(r.in))
	}
	return c.Result(c.In[0].Type, r.out)
}

// source maps output position x along an axis to a position in the input. The arithmetic is
// float32 like the scales: if a position is on a pixel or half-way between two, the last bit
// decides which one nearest mode uses.
func (r *resize) source(axis, x int) float64 {
	in, out, scale, pos := float32(r.in[axis]), float32(r.out[axis]), float32(r.scale[axis]), float32(x)
	switch r.coordinates {
	case "align_corners":
		width := r.scale[axis] * float64(r.in[axis]) // not rounded
		if width == 1 || r.out[axis] == 1 {
			return 0
		}
		return float64(x) * float64(r.in[axis]-1) / (width - 1)
	case "asymmetric":
		return float64(pos / scale)
	case "tf_half_pixel_for_nn":
		if scale == 1 {
			return float64(x)
		}
		return float64((pos + 0.5) / scale)
	case "tf_crop_and_resize":
		start, end := float32(r.roi[axis]), float32(r.roi[len(r.in)+axis])
		if r.out[axis] == 1 {
			return float64(0.5 * (start + end) * (in - 1))
		}
		return float64(start*(in-1) + pos*(end-start)*(in-1)/(out-1))
	case "pytorch_half_pixel":
		if r.out[axis] == 1 {
			return -0.5
		}
	case "half_pixel_symmetric":
		adjust := out / (scale * in)
		return float64(in/2*(1-adjust) + (pos+0.5)/scale - 0.5)
	}
	return float64((pos+0.5)/scale - 0.5)
}

// check rejects unknown coordinate modes.
func (r *resize) check() error {
	switch r.coordinates {
	case "align_corners", "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", "pytorch_half_pixel", "half_pixel_symmetric", "half_pixel":
		return nil
	}
	return fmt.Errorf("coordinate_transformation_mode %q", r.coordinates)
}

// pixel returns the input position that nearest mode uses for output position x; negative if it
// is outside and the extrapolation value applies.
func (r *resize) pixel(axis int, x int) int {
	last := r.in[axis] - 1
	if r.ratio != nil {
		if n, d, ok := r.fraction(axis, x); ok {
			return min(max(r.round(n, d), 0), last)
		}
	}
	p := r.source(axis, x)
	if r.coordinates == "tf_crop_and_resize" && (p < 0 || p > float64(last)) {
		return -1
	}
	var q float64
	switch {
	case r.oldNearest && r.scale[axis] < 1:
		q = math.Ceil(p)
	case r.oldNearest, r.nearest == "floor":
		q = math.Floor(p)
	case r.nearest == "ceil":
		q = math.Ceil(p)
	case r.nearest == "round_prefer_ceil":
		q = math.Floor(p + 0.5)
	default:
		q = math.Ceil(p - 0.5)
	}
	return min(max(int(q), 0), last)
}

// round rounds n/d as nearest mode does. No digit is lost: positions half-way between two pixels
// are frequent.
func (r *resize) round(n, d int) int {
	switch r.nearest {
	case "floor":
		return floorDiv(n, d)
	case "ceil":
		return -floorDiv(-n, d)
	case "round_prefer_ceil":
		return floorDiv(2*n+d, 2*d)
	}
	return -floorDiv(d-2*n, 2*d)
}

// resizeTaps is the interpolation along one axis: n input positions and weights for each output
// position, and which output positions get the extrapolation value.
type resizeTaps struct {
	axis, n int
	at      []int
	weight  []float64
	outside []bool
}

func (r *resize) table(axis int) *resizeTaps {
	t := &resizeTaps{axis: axis, outside: make([]bool, r.out[axis])}
	in := r.in[axis]
	for x := range r.out[axis] {
		p := r.source(axis, x)
		if r.coordinates == "tf_crop_and_resize" && (p < 0 || p > float64(in-1)) {
			t.outside[x] = true
		}
		base := math.Floor(p)
		frac := p - base
		if frac == 0 { // the left neighbour is preferred
			base, frac = base-1, 1
		}
		first, w := r.weights(frac, r.scale[axis])
		t.n = len(w)
		sum := 0.0
		for i := range w {
			q := int(base) + first + i
			if r.excludeOutside && (q < 0 || q >= in) {
				w[i] = 0
			}
			sum += w[i]
			t.at = append(t.at, min(max(q, 0), in-1))
		}
		if (r.excludeOutside || r.antialias) && sum != 0 {
			for i := range w {
				w[i] /= sum
			}
		}
		t.weight = append(t.weight, w...)
	}
	return t
}

// weights returns the kernel for a position frac right of a pixel: the offset of the first tap
// from that pixel, and the taps.
func (r *resize) weights(frac, scale float64) (first int, w []float64) {
	kernel, radius := triangle, 1.0
	if r.mode == "cubic" {
		a := r.cubicA
		kernel, radius = func(x float64) float64 { return cubic(x, a) }, 2.0
	}
	s := 1.0
	if r.antialias {
		s = min(scale, 1)
	}
	first = int(math.Floor(-radius/s)) + 1
	for i := first; i < 2-first; i++ {
		w = append(w, kernel((float64(i)-frac)*s))
	}
	return first, w
}

func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

// cubic is the cubic convolution kernel with parameter a.
func cubic(x, a float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

// inferNMS checks boxes [N,B,4] and scores [N,C,B]; the number of remaining boxes is known only
// after the run.
func inferNMS(c *op.Call) error {
	b, s := c.In[0].Shape, c.In[1].Shape
	if len(b) != 3 || len(s) != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2] {
		return fmt.Errorf("boxes %s with scores %s", tensor.FormatShape(b), tensor.FormatShape(s))
	}
	if c.In[0].Type != tensor.Float32 || c.In[1].Type != tensor.Float32 {
		return op.Unsupported("boxes of %v with scores of %v", c.In[0].Type, c.In[1].Type)
	}
	return op.ErrDynamic
}

// box is a rectangle given by its corners.
type box struct{ y0, x0, y1, x1, area float32 }

func readBox(v []float32, center bool) (b box) {
	if center { // x, y, width, height
		b = box{y0: v[1] - v[3]/2, x0: v[0] - v[2]/2, y1: v[1] + v[3]/2, x1: v[0] + v[2]/2}
	} else {
		b = box{y0: min(v[0], v[2]), x0: min(v[1], v[3]), y1: max(v[0], v[2]), x1: max(v[1], v[3])}
	}
	b.area = (b.y1 - b.y0) * (b.x1 - b.x0)
	return b
}

// overlap returns the intersection over union.
func (a *box) overlap(b *box) float32 {
	h, w := min(a.y1, b.y1)-max(a.y0, b.y0), min(a.x1, b.x1)-max(a.x0, b.x0)
	if h <= 0 || w <= 0 || a.area <= 0 || b.area <= 0 {
		return 0
	}
	return h * w / (a.area + b.area - h*w)
}

// meets reports whether one of boxes overlaps a by more than iou.
func (a *box) meets(boxes []box, iou float32) bool {
	for i := range boxes {
		if a.overlap(&boxes[i]) > iou {
			return true
		}
	}
	return false
}

func runNMS(c *op.Call) error {
	boxes, scores := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1])
	n, classes, count := c.In[1].Shape[0], c.In[1].Shape[1], c.In[1].Shape[2]
	limit := 0
	if c.Has(2) && c.In[2].Len() > 0 {
		// exporters write the largest integer for no limit
		limit = int(min(tensor.At(c.In[2], 0), float64(count)))
	}
	var iou float32
	if c.Has(3) && c.In[3].Len() > 0 {
		iou = float32(tensor.At(c.In[3], 0))
	}
	if iou < 0 || iou > 1 {
		return fmt.Errorf("iou_threshold %v", iou)
	}
	hasFloor := c.Has(4) && c.In[4].Len() > 0
	var floor float32
	if hasFloor {
		floor = float32(tensor.At(c.In[4], 0))
	}
	center := c.Node.Attrs.Bool("center_point_box", false)
	var picked []int64
	places := make([]int, 0, count)
	var kept []box
	for i := range n * classes {
		if limit <= 0 {
			break
		}
		score := scores[i*count:][:count]
		places, kept = places[:0], kept[:0]
		for k, s := range score {
			if !hasFloor || s > floor {
				places = append(places, k)
			}
		}
		order.SortDescending(places, score)
		for _, k := range places {
			if len(kept) >= limit {
				break
			}
			b := readBox(boxes[(i/classes*count+k)*4:][:4], center)
			if !b.meets(kept, iou) {
				kept = append(kept, b)
				picked = append(picked, int64(i/classes), int64(i%classes), int64(k))
			}
		}
	}
	y, err := c.Make(0, tensor.Int64, []int{len(picked) / 3, 3})
	if err != nil {
		return err
	}
	copy(tensor.Of[int64](y), picked)
	return nil
}
