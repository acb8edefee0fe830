package image

import (
	"bytes"
	"errors"
	"fmt"
	stdimage "image"
	"image/png"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{{
		Name: "ImageDecoder", Since: 20, Types: []tensor.Type{tensor.Uint8},
		Infer: op.Needs(1, inferDecoder), Prepare: op.Simple(runDecoder),
	}}
}

// picture is a decoded image: eight bits per channel, red, green, blue.
type picture struct {
	w, h int
	rgb  []byte
}

// maxPixels bounds the decoded size of a small file.
const maxPixels = 1 << 26

var errTooLarge = errors.New("image is too large")

func newPicture(w, h int) (*picture, error) {
	if w <= 0 || h <= 0 || w > maxPixels/h {
		return nil, errTooLarge
	}
	return &picture{w, h, make([]byte, 3*w*h)}, nil
}

func inferDecoder(c *op.Call) error {
	if c.In[0].Type != tensor.Uint8 || c.In[0].Rank() != 1 {
		return fmt.Errorf("stream is %v of rank %d", c.In[0].Type, c.In[0].Rank())
	}
	switch f := c.Node.Attrs.Str("pixel_format", "RGB"); f {
	case "RGB", "BGR", "Grayscale":
	default:
		return fmt.Errorf("pixel_format is %q", f)
	}
	return op.ErrDynamic
}

// runDecoder decodes. A broken stream gives an empty image, as the standard requires; an
// unsupported format is an error.
func runDecoder(c *op.Call) error {
	format := c.Node.Attrs.Str("pixel_format", "RGB")
	channels := 3
	if format == "Grayscale" {
		channels = 1
	}
	p, err := decode(c.In[0].Data)
	if errors.Is(err, op.ErrUnsupported) {
		return err
	}
	if err != nil {
		p = &picture{}
	}
	y, err := c.Make(0, tensor.Uint8, []int{p.h, p.w, channels})
	if err != nil {
		return err
	}
	for i := range p.w * p.h {
		r, g, b := p.rgb[3*i], p.rgb[3*i+1], p.rgb[3*i+2]
		switch format {
		case "RGB":
			y.Data[3*i], y.Data[3*i+1], y.Data[3*i+2] = r, g, b
		case "BGR":
			y.Data[3*i], y.Data[3*i+1], y.Data[3*i+2] = b, g, r
		default:
			y.Data[i] = luma(r, g, b)
		}
	}
	return nil
}

// luma is the brightness by ITU-R 601, in 16-bit fixed point.
func luma(r, g, b byte) byte {
	return byte((19595*uint32(r) + 38470*uint32(g) + 7471*uint32(b) + 1<<15) >> 16)
}

func decode(b []byte) (*picture, error) {
	has := func(prefix string) bool { return bytes.HasPrefix(b, []byte(prefix)) }
	switch {
	case has("\x89PNG"):
		return decodePNG(b)
	case has("\xff\xd8"):
		return decodeJPEG(b)
	case has("BM"):
		return decodeBMP(b)
	case has("II*\x00"), has("MM\x00*"):
		return decodeTIFF(b)
	case len(b) > 2 && b[0] == 'P' && b[1] >= '1' && b[1] <= '6':
		return decodePNM(b)
	case has("RIFF") && len(b) > 12 && string(b[8:12]) == "WEBP":
		return nil, op.Unsupported("WebP images")
	case has("\x00\x00\x00\x0cjP  "), has("\xff\x4f\xff\x51"):
		return nil, op.Unsupported("JPEG 2000 images")
	}
	return nil, errors.New("unknown image format")
}

func decodePNG(b []byte) (*picture, error) {
	cfg, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	p, err := newPicture(cfg.Width, cfg.Height)
	if err != nil {
		return nil, err
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	// Transparency is dropped, not blended, so colours must not be premultiplied.
	for y := range p.h {
		for x := range p.w {
			at := p.rgb[3*(y*p.w+x):]
			switch m := img.(type) {
			case *stdimage.NRGBA:
				copy(at[:3], m.Pix[m.PixOffset(x, y):])
			case *stdimage.NRGBA64:
				o := m.Pix[m.PixOffset(x, y):]
				at[0], at[1], at[2] = o[0], o[2], o[4]
			default:
				r, g, b, _ := img.At(x, y).RGBA()
				at[0], at[1], at[2] = byte(r>>8), byte(g>>8), byte(b>>8)
			}
		}
	}
	return p, nil
}
