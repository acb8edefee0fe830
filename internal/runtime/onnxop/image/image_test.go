package image

import (
	"bytes"
	stdimage "image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func stream(b []byte) *tensor.Tensor { return tensor.From(tensor.Uint8, []int{len(b)}, b) }

func run(t *testing.T, format string, b []byte) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), optest.Node{Op: "ImageDecoder", Version: 20, Attrs: graph.Attrs{"pixel_format": format}}, stream(b))
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestFormats(t *testing.T) {
	t.Parallel()
	rgb := []byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, 2, 2))
	for i := range 4 {
		m.Set(i%2, i/2, color.NRGBA{rgb[3*i], rgb[3*i+1], rgb[3*i+2], 255})
	}
	var p bytes.Buffer
	if err := png.Encode(&p, m); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 54)
	copy(header, "BM")
	header[10], header[14], header[18], header[22], header[26], header[28] = 54, 40, 2, 2, 1, 24
	bmp := append(header, 255, 0, 0, 30, 20, 10, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0)
	for name, file := range map[string][]byte{
		"png": p.Bytes(),
		"bmp": bmp,
		"ppm": append([]byte("P6 # made by hand\n2 2\n255\n"), rgb...),
		"txt": []byte("P3 2 2 255 255 0 0 0 255 0 0 0 255 10 20 30"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tensor.From(tensor.Uint8, []int{2, 2, 3}, rgb), run(t, "RGB", file)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]byte{0, 0, 255}, run(t, "BGR", file).Data[:3]); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]byte{76, 150, 29, 18}, run(t, "Grayscale", file).Data); d != "" {
				t.Error(d)
			}
		})
	}
	if d := cmp.Diff([]byte{0, 255}, run(t, "Grayscale", []byte("P1 2 1 10")).Data); d != "" {
		t.Errorf("bitmap: %s", d)
	}
}

func TestJPEG(t *testing.T) {
	t.Parallel()
	m := stdimage.NewRGBA(stdimage.Rect(0, 0, 21, 13))
	for i := range 21 * 13 {
		m.Set(i%21, i/21, color.RGBA{uint8(5 * (i % 21)), uint8(9 * (i / 21)), 100, 255})
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 98}); err != nil {
		t.Fatal(err)
	}
	got := run(t, "RGB", b.Bytes())
	for i := range 21 * 13 {
		for k := range 3 {
			if d := int(got.Data[3*i+k]) - int(m.Pix[4*i+k]); d < -6 || d > 6 {
				t.Fatalf("pixel %d channel %d is %d, want about %d", i, k, got.Data[3*i+k], m.Pix[4*i+k])
			}
		}
	}
}

// TestBroken gives an empty image for data that cannot be decoded.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "BM", "P6 9 9 255\n", "P6 99999999 99999999 255\n", "\x89PNG", "\xff\xd8\xff", "II*\x00\xff\xff\xff\x7f", "II*\x00\x08\x00\x00\x00\xff\xff"} {
		if got := run(t, "RGB", []byte(s)); got.Len() != 0 {
			t.Errorf("%q: %v", s, got.Shape)
		}
	}
}

// FuzzDecode must neither panic nor take long.
func FuzzDecode(f *testing.F) {
	m := stdimage.NewRGBA(stdimage.Rect(0, 0, 19, 11))
	var j bytes.Buffer
	if err := jpeg.Encode(&j, m, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(j.Bytes())
	// taken for progressive
	f.Add(bytes.Replace(j.Bytes(), []byte{0xff, 0xc0}, []byte{0xff, 0xc2}, 1))
	f.Add([]byte("P4 8 1 \x55"))
	f.Add([]byte("II*\x00\x08\x00\x00\x00\x01\x00\x00\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decode(b); err == nil && len(p.rgb) != 3*p.w*p.h {
			t.Errorf("%d bytes for %dx%d", len(p.rgb), p.w, p.h)
		}
	})
}
