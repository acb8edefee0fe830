// Package image implements ONNX's ImageDecoder: PNG, JPEG, BMP, TIFF and the portable formats
// (PBM, PGM, PPM). JPEG is reconstructed as in libjpeg, with linearly interpolated chroma, as the
// standard requires.
package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	stdimage "image"
	"image/png"
	"slices"

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

// rgbImage is a decoded image: eight bits per channel, red, green, blue.
type rgbImage struct {
	w, h int
	rgb  []byte
}

// maxPixels bounds the decoded size of a small file.
const maxPixels = 1 << 26

var errTooLarge = errors.New("image is too large")

func newImage(w, h int) (*rgbImage, error) {
	if w <= 0 || h <= 0 || w > maxPixels/h {
		return nil, errTooLarge
	}
	return &rgbImage{w, h, make([]byte, 3*w*h)}, nil
}

func inferDecoder(c *op.Call) error {
	if c.In[0].Type != tensor.Uint8 || c.In[0].Rank() != 1 {
		return fmt.Errorf("stream is %v of rank %d", c.In[0].Type, c.In[0].Rank())
	}
	if f := c.Node.Attrs.Str("pixel_format", "RGB"); !slices.Contains([]string{"RGB", "BGR", "Grayscale"}, f) {
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
		p = &rgbImage{}
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

func decode(b []byte) (*rgbImage, error) {
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

func decodePNG(b []byte) (*rgbImage, error) {
	cfg, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	p, err := newImage(cfg.Width, cfg.Height)
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

var errShort = errors.New("image data ends early")

// decodeBMP reads uncompressed Windows bitmaps of 8, 24 and 32 bits a pixel.
func decodeBMP(b []byte) (*rgbImage, error) {
	if len(b) < 54 {
		return nil, errShort
	}
	le := binary.LittleEndian
	start, header := int(le.Uint32(b[10:])), int(le.Uint32(b[14:]))
	w, h := int(int32(le.Uint32(b[18:]))), int(int32(le.Uint32(b[22:])))
	bits, packing, colours := int(le.Uint16(b[28:])), le.Uint32(b[30:]), int(le.Uint32(b[46:]))
	down := h < 0
	if down {
		h = -h
	}
	if header < 40 || packing != 0 && packing != 3 || bits != 8 && bits != 24 && bits != 32 {
		return nil, op.Unsupported("BMP with %d bits a pixel and compression %d", bits, packing)
	}
	p, err := newImage(w, h)
	if err != nil {
		return nil, err
	}
	stride := (w*bits/8 + 3) &^ 3
	if start > len(b) || len(b)-start < stride*h {
		return nil, errShort
	}
	var palette []byte
	if bits == 8 {
		if colours == 0 || colours > 256 {
			colours = 256
		}
		if 14+header+4*colours > len(b) {
			return nil, errShort
		}
		palette = b[14+header:][:4*colours]
	}
	for y := range h {
		row := b[start+y*stride:]
		to := h - 1 - y
		if down {
			to = y
		}
		for x := range w {
			px := row[x*bits/8:]
			if palette != nil {
				if 4*int(px[0]) >= len(palette) {
					return nil, errors.New("colour is outside the palette")
				}
				px = palette[4*int(px[0]):]
			}
			o := 3 * (to*w + x)
			p.rgb[o], p.rgb[o+1], p.rgb[o+2] = px[2], px[1], px[0]
		}
	}
	return p, nil
}

// decodePNM reads the portable formats, as text (P1 to P3) and binary (P4 to P6).
func decodePNM(b []byte) (*rgbImage, error) {
	kind, at := b[1]-'0', 2
	// Pixels of P1 are single digits that need no space between them.
	next := func(single bool) (int, error) {
		for at < len(b) && (b[at] <= ' ' || b[at] == '#') {
			if b[at] == '#' {
				for at < len(b) && b[at] != '\n' {
					at++
				}
				continue
			}
			at++
		}
		n, from := 0, at
		for at < len(b) && b[at] >= '0' && b[at] <= '9' && n < 1<<30 {
			n = 10*n + int(b[at]-'0')
			at++
			if single {
				break
			}
		}
		if at == from {
			return 0, errShort
		}
		return n, nil
	}
	var head [3]int
	head[2] = 1
	fields := 3
	if kind == 1 || kind == 4 {
		fields = 2
	}
	for i := range fields {
		v, err := next(false)
		if err != nil {
			return nil, err
		}
		head[i] = v
	}
	w, h, top := head[0], head[1], head[2]
	if top < 1 || top > 65535 {
		return nil, errors.New("largest value is out of range")
	}
	p, err := newImage(w, h)
	if err != nil {
		return nil, err
	}
	at++ // one white space ends the header
	return p, samples(p, b, at, kind, top, next)
}

// samples reads the pixels of a portable image.
func samples(p *rgbImage, b []byte, at int, kind byte, top int, next func(single bool) (int, error)) error {
	channels, wide := 1, 1
	if kind == 3 || kind == 6 {
		channels = 3
	}
	if top > 255 {
		wide = 2
	}
	if kind == 4 {
		stride := (p.w + 7) / 8
		if at > len(b) || len(b)-at < stride*p.h {
			return errShort
		}
		for i := range p.w * p.h {
			x, y := i%p.w, i/p.w
			v := 255 * (1 - b[at+y*stride+x/8]>>(7-x%8)&1)
			p.rgb[3*i], p.rgb[3*i+1], p.rgb[3*i+2] = v, v, v
		}
		return nil
	}
	if kind > 4 && (at > len(b) || len(b)-at < p.w*p.h*channels*wide) {
		return errShort
	}
	for i := range p.w * p.h {
		for k := range channels {
			var v int
			switch {
			case kind < 4:
				var err error
				if v, err = next(kind == 1); err != nil {
					return err
				}
			case wide == 2:
				v = int(binary.BigEndian.Uint16(b[at+2*(i*channels+k):]))
			default:
				v = int(b[at+i*channels+k])
			}
			if kind == 1 {
				v = 1 - v
			}
			if top != 255 {
				v = (v*255 + top/2) / top
			}
			p.rgb[3*i+k] = clamp(v)
		}
		if channels == 1 {
			p.rgb[3*i+1], p.rgb[3*i+2] = p.rgb[3*i], p.rgb[3*i]
		}
	}
	return nil
}
