package samples

import (
	"bytes"
	"image"
	"image/draw"
	_ "image/jpeg" // supported formats
	_ "image/png"  //
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxPixels bounds an image: a few bytes may declare any size.
const maxPixels = 1 << 26

func isImage(ext string) bool { return ext == ".png" || ext == ".jpg" || ext == ".jpeg" }

// imageLayout is the layout of an image in an input.
type imageLayout struct {
	shape                  []int // of a run
	batch                  int
	height, width          int
	channels               int
	stepC, stepY, stepX, n int // in elements; n is the number of elements of an image
}

// imageLayout determines how images become the input; path is the first image, whose size fills
// open dimensions.
func (s *inputSpec) imageLayout(path string) (*imageLayout, error) {
	want := slices.Clone(s.declared())
	if want == nil {
		want = []int{1, 3, -1, -1}
	}
	f := &imageLayout{batch: 1}
	at := 0
	switch len(want) {
	case 2, 3: // without batch, or without channels
		if len(want) == 3 && !isChannels(want[0]) && !isChannels(want[2]) {
			at = 1
		}
	case 4:
		at = 1
	default:
		return nil, dataError(path, "", "is an image, but input %q has the shape %s; two to four dimensions were expected", s.value.Name, tensor.FormatShape(want))
	}
	if at == 1 {
		f.batch = max(1, want[0])
	}
	rest := want[at:]
	y, x, c := 0, 1, -1
	if len(rest) == 3 {
		// The sizes distinguish [H,W,C] from [C,H,W]; if both fit, the model's format does.
		first, last := isChannels(rest[0]), isChannels(rest[2])
		if y, x, c = 1, 2, 0; last && !first || last == first && s.tflite {
			y, x, c = 0, 1, 2
		}
	}
	data, err := infile.Read(path, maxImageBytes)
	if err != nil {
		return nil, err
	}
	img, err := sizeOf(path, data)
	if err != nil {
		return nil, err
	}
	fill := func(i, v int) int {
		if rest[i] < 0 {
			rest[i] = v
		}
		return rest[i]
	}
	f.height, f.width, f.channels = fill(y, img.Height), fill(x, img.Width), 1
	if c >= 0 {
		f.channels = fill(c, 3)
	}
	if f.channels != 1 && f.channels != 3 && f.channels != 4 || f.height < 1 || f.width < 1 {
		return nil, dataError(path, "", "is an image, but input %q has the shape %s; 1, 3 or 4 channels were expected", s.value.Name, tensor.FormatShape(s.declared()))
	}
	if at == 1 {
		want[0] = f.batch
	}
	f.shape = want
	stride := tensor.Strides(rest)
	f.stepY, f.stepX, f.n = stride[y], stride[x], tensor.Elements(rest)
	if c >= 0 {
		f.stepC = stride[c]
	}
	if _, err := tensor.CheckShape(s.typ, f.shape); err != nil {
		return nil, dataError(path, "", "%v", err)
	}
	return f, nil
}

func isChannels(d int) bool { return d == 1 || d == 3 || d == 4 }

func sizeOf(path string, data []byte) (image.Config, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return c, dataError(path, "", "is not a readable image: %v", err)
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return c, dataError(path, "", "has %d×%d pixels, at most %d were expected", c.Width, c.Height, maxPixels)
	}
	return c, nil
}

// image reads an image as real values of the input.
func (r *reader) image(path string, s *inputSpec) (*tensor.Tensor, error) {
	f, err := s.layoutOf(path)
	if err != nil {
		return nil, err
	}
	data, err := infile.Read(path, maxImageBytes)
	if err != nil {
		return nil, err
	}
	if _, err := sizeOf(path, data); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, dataError(path, "", "is not a readable image: %v", err)
	}
	b := img.Bounds()
	rgba := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(rgba, rgba.Bounds(), img, b.Min, draw.Src)
	px := resize(rgba.Pix, b.Dx(), b.Dy(), f.width, f.height)
	t := tensor.New(tensor.Float32, f.n)
	out := tensor.Of[float32](t)
	// Integers without a declared quantisation are the pixel values themselves.
	codes := s.typ.IsInteger() && s.quant == nil && r.o.Mean == nil && r.o.Std == nil
	for y := range f.height {
		for x := range f.width {
			p := px[4*(y*f.width+x):][:4]
			for c := range f.channels {
				v := p[c]
				if f.channels == 1 { // luma of ITU-R BT.601
					v = 0.299*p[0] + 0.587*p[1] + 0.114*p[2]
				}
				if codes {
					out[y*f.stepY+x*f.stepX+c*f.stepC] = float32(math.RoundToEven(float64(v)))
					continue
				}
				out[y*f.stepY+x*f.stepX+c*f.stepC] = (v/255 - pick(r.o.Mean, c, 0)) / pick(r.o.Std, c, 1)
			}
		}
	}
	return t, nil
}

func pick(v []float32, c int, none float32) float32 {
	switch len(v) {
	case 0:
		return none
	case 1:
		return v[0]
	}
	return v[c]
}

// layoutOf returns the layout that the first image determined.
func (s *inputSpec) layoutOf(path string) (*imageLayout, error) {
	if s.frame == nil {
		f, err := s.imageLayout(path)
		if err != nil {
			return nil, err
		}
		s.frame = f
	}
	return s.frame, nil
}

// checkNorm rejects means and deviations that do not match the channels.
func (r *reader) checkNorm(channels int) error {
	for _, v := range []struct {
		name string
		v    []float32
	}{{"mean", r.o.Mean}, {"std", r.o.Std}} {
		if len(v.v) > 1 && len(v.v) != channels {
			return dataError("", "", "%s has %d numbers, 1 or %d were expected, one for each channel", v.name, len(v.v), channels)
		}
		for _, x := range v.v {
			if x != x || math.IsInf(float64(x), 0) || v.name == "std" && x <= 0 {
				return dataError("", "", "%s has the number %v, finite ones were expected, of std above 0", v.name, x)
			}
		}
	}
	return nil
}

// resize resamples sw×sh pixels of four channels each to w×h: bilinear, and with a triangle
// filter over the covered pixels when downscaling.
func resize(src []uint8, sw, sh, w, h int) []float32 {
	across := make([]float32, sh*w*4)
	taps := triangleFilter(sw, w)
	for y := range sh {
		line := src[y*sw*4:][:sw*4]
		for x, t := range taps {
			var sum [4]float32
			for i, k := range t.weights {
				p := line[4*(t.first+i):][:4]
				for c := range 4 {
					sum[c] += k * float32(p[c])
				}
			}
			copy(across[4*(y*w+x):], sum[:])
		}
	}
	out := make([]float32, w*h*4)
	for y, t := range triangleFilter(sh, h) {
		line := out[y*w*4:][:w*4]
		for i, k := range t.weights {
			for x, v := range across[(t.first+i)*w*4:][:w*4] {
				line[x] += k * v
			}
		}
	}
	return out
}

// filterTaps has the weights of the source pixels of a target pixel.
type filterTaps struct {
	first   int
	weights []float32
}

func triangleFilter(from, to int) []filterTaps {
	scale := float64(from) / float64(to)
	reach := max(scale, 1)
	out := make([]filterTaps, to)
	for i := range out {
		middle := (float64(i) + 0.5) * scale
		lo, hi := max(0, int(math.Floor(middle-reach))), min(from, int(math.Ceil(middle+reach)))
		t := filterTaps{first: lo}
		sum := 0.0
		for k := lo; k < hi; k++ {
			v := max(0, 1-math.Abs((float64(k)+0.5-middle)/reach))
			t.weights, sum = append(t.weights, float32(v)), sum+v
		}
		for k := range t.weights {
			t.weights[k] /= float32(sum)
		}
		out[i] = t
	}
	return out
}
