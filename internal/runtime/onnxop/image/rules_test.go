package image

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// tiff writes a file of one image: its tags as short or long numbers and its strips.
func tiff(order binary.ByteOrder, w, h, samples, photo, compression, predictor, rows int, strips ...[]byte) []byte {
	b := make([]byte, 8)
	copy(b, "II*\x00")
	if order == binary.BigEndian {
		copy(b, "MM\x00*")
	}
	u32 := func(v int) []byte { x := make([]byte, 4); order.PutUint32(x, uint32(v)); return x }
	u16 := func(v int) []byte { x := make([]byte, 2); order.PutUint16(x, uint16(v)); return x }
	var offsets, counts []int
	for _, s := range strips {
		offsets, counts = append(offsets, len(b)), append(counts, len(s))
		b = append(b, s...)
	}
	list := func(v []int) int { // numbers that lie apart
		at := len(b)
		for _, x := range v {
			b = append(b, u32(x)...)
		}
		return at
	}
	type tag struct{ id, kind, count, value int }
	tags := []tag{
		{tagWidth, 3, 1, w}, {tagHeight, 4, 1, h}, {tagBits, 1, 1, 8}, {tagCompression, 3, 1, compression}, {tagPhotometric, 3, 1, photo}, {tagSamples, 3, 1, samples}, {tagRows, 3, 1, rows}, {tagPredictor, 3, 1, predictor}, {999, 5, 9, 0},
	}
	if len(strips) == 1 {
		tags = append(tags, tag{tagOffsets, 4, 1, offsets[0]}, tag{tagCounts, 4, 1, counts[0]})
	} else {
		tags = append(tags, tag{tagOffsets, 4, len(offsets), list(offsets)}, tag{tagCounts, 4, len(counts), list(counts)})
	}
	order.PutUint32(b[4:], uint32(len(b)))
	b = append(b, u16(len(tags))...)
	for _, t := range tags {
		b = append(append(append(b, u16(t.id)...), u16(t.kind)...), u32(t.count)...)
		switch {
		case t.kind == 1:
			b = append(b, byte(t.value), 0, 0, 0)
		case t.kind == 3 && t.count == 1:
			b = append(append(b, u16(t.value)...), 0, 0)
		default:
			b = append(b, u32(t.value)...)
		}
	}
	return b
}

func deflated(b ...byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// bmp writes a bitmap; pixels come as they lie in the file.
func bmp(w, h int32, bits uint16, compression uint32, palette, pixels []byte) []byte {
	b := make([]byte, 54)
	copy(b, "BM")
	le := binary.LittleEndian
	le.PutUint32(b[10:], uint32(54+len(palette)))
	le.PutUint32(b[14:], 40)
	le.PutUint32(b[18:], uint32(w))
	le.PutUint32(b[22:], uint32(h))
	le.PutUint16(b[28:], bits)
	le.PutUint32(b[30:], compression)
	le.PutUint32(b[46:], uint32(len(palette)/4))
	return append(append(b, palette...), pixels...)
}

// TestImages decodes files written by hand; rgb lists pixels row by row.
func TestImages(t *testing.T) {
	t.Parallel()
	le, be := binary.LittleEndian, binary.BigEndian
	// 3 x 2 of three samples
	six := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}
	for _, tt := range []struct {
		name  string
		file  []byte
		shape []int
		rgb   []byte
	}{
		{"tiff", tiff(le, 3, 2, 3, 2, 1, 1, 2, six), []int{2, 3, 3}, six},
		{"tiff, big-endian, two strips", tiff(be, 3, 2, 3, 2, 1, 1, 1, six[:9], six[9:]), []int{2, 3, 3}, six},
		{"tiff, more rows than there are", tiff(le, 3, 2, 3, 2, 1, 1, 99, six), []int{2, 3, 3}, six},
		{"tiff, a short last strip", tiff(le, 1, 3, 1, 1, 1, 1, 2, []byte{5, 6}, []byte{7}), []int{3, 1, 3}, []byte{5, 5, 5, 6, 6, 6, 7, 7, 7}},
		{"tiff, white is zero", tiff(le, 2, 1, 1, 0, 1, 1, 1, []byte{0, 200}), []int{1, 2, 3}, []byte{255, 255, 255, 55, 55, 55}},
		{"tiff, four samples", tiff(le, 1, 1, 4, 2, 1, 1, 1, []byte{1, 2, 3, 99}), []int{1, 1, 3}, []byte{1, 2, 3}},
		{"tiff, two samples of grey", tiff(le, 2, 1, 2, 1, 1, 1, 1, []byte{1, 99, 2, 99}), []int{1, 2, 3}, []byte{1, 1, 1, 2, 2, 2}},
		{"tiff, differences", tiff(le, 3, 2, 1, 1, 1, 2, 2, []byte{1, 2, 3, 10, 250, 1}), []int{2, 3, 3}, []byte{1, 1, 1, 3, 3, 3, 6, 6, 6, 10, 10, 10, 4, 4, 4, 5, 5, 5}},
		{"tiff, differences of colours", tiff(le, 2, 1, 3, 2, 1, 2, 1, []byte{1, 2, 3, 10, 20, 30}), []int{1, 2, 3}, []byte{1, 2, 3, 11, 22, 33}},
		{"tiff, deflated", tiff(le, 3, 2, 3, 2, 8, 1, 2, deflated(six...)), []int{2, 3, 3}, six},
		{"tiff, deflated by its old number", tiff(le, 3, 2, 3, 2, 32946, 1, 2, deflated(six...)), []int{2, 3, 3}, six},
		{"tiff, runs", tiff(le, 5, 1, 1, 1, 32773, 1, 1, []byte{0xfe, 7, 0x80, 1, 8, 9}), []int{1, 5, 3}, []byte{7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 9, 9, 9}},
		{"bmp, rows padded", bmp(1, 2, 24, 0, nil, []byte{3, 2, 1, 0, 6, 5, 4, 0}), []int{2, 1, 3}, []byte{4, 5, 6, 1, 2, 3}},
		{"bmp, downwards", bmp(1, -2, 24, 0, nil, []byte{3, 2, 1, 0, 6, 5, 4, 0}), []int{2, 1, 3}, []byte{1, 2, 3, 4, 5, 6}},
		{"bmp, four bytes", bmp(2, 1, 32, 3, nil, []byte{3, 2, 1, 99, 6, 5, 4, 99}), []int{1, 2, 3}, []byte{1, 2, 3, 4, 5, 6}},
		{"bmp, palette", bmp(3, 1, 8, 0, []byte{3, 2, 1, 0, 6, 5, 4, 0}, []byte{1, 0, 1, 0}), []int{1, 3, 3}, []byte{4, 5, 6, 1, 2, 3, 4, 5, 6}},
		{"text of bits", []byte("P1\n# two rows\n3 2\n1 0 1\n010"), []int{2, 3, 3}, []byte{0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255}},
		{"text of greys", []byte("P2 2 1 3 1 3"), []int{1, 2, 3}, []byte{85, 85, 85, 255, 255, 255}},
		{"text of colours", []byte("P3 1 1 511 0 256 511"), []int{1, 1, 3}, []byte{0, 128, 255}},
		{"bits", []byte("P4 9 2\n\x80\x80\x01\x00"), []int{2, 9, 3}, func() []byte {
			v := bytes.Repeat([]byte{255}, 54)
			copy(v, []byte{0, 0, 0})
			copy(v[24:], []byte{0, 0, 0}) // the ninth
			copy(v[27+21:], []byte{0, 0, 0})
			return v
		}()},
		{"greys", []byte("P5 2 1 255\n\x07\x08"), []int{1, 2, 3}, []byte{7, 7, 7, 8, 8, 8}},
		{"wide greys", []byte("P5 2 1 65535\n\x80\x80\x00\x7f"), []int{1, 2, 3}, []byte{128, 128, 128, 0, 0, 0}},
		{"wide colours", []byte("P6 1 1 256\n\x00\x00\x01\x00\x00\x80"), []int{1, 1, 3}, []byte{0, 255, 128}},
		{"brighter than white", []byte("P5 1 1 100\n\xc8"), []int{1, 1, 3}, []byte{255, 255, 255}},
	} {
		got := run(t, "RGB", tt.file)
		if !cmp.Equal(got.Shape, tt.shape) || !bytes.Equal(got.Data, tt.rgb) {
			t.Errorf("%s: %v %v, want %v %v", tt.name, got.Shape, got.Data, tt.shape, tt.rgb)
		}
	}
}

// TestTruncatedImages: files that end within the last pixel give an empty image, as any broken
// stream.
func TestTruncatedImages(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	bad := bmp(1, 1, 24, 0, nil, []byte{1, 2, 3, 0})
	for name, file := range map[string][]byte{
		"bmp":                  bad[:len(bad)-1],
		"bmp header":           bad[:53],
		"bmp colour":           bmp(1, 1, 8, 0, []byte{1, 2, 3, 0}, []byte{1, 0, 0, 0}),
		"bmp no width":         bmp(0, 1, 24, 0, nil, nil),
		"bmp large":            bmp(1<<14, 1<<13, 24, 0, nil, nil),
		"greys":                []byte("P5 2 1 255\n\x07"),
		"wide greys":           []byte("P5 1 1 256\n\x07"),
		"colours":              []byte("P6 1 1 255\n\x07\x07"),
		"bits":                 []byte("P4 9 1\n\x80"),
		"text":                 []byte("P2 2 1 3 1"),
		"no largest value":     []byte("P2 2 1 0 0 0"),
		"large largest value":  []byte("P2 1 1 65536 0"),
		"no height":            []byte("P5 2"),
		"strip":                tiff(le, 1, 2, 1, 1, 1, 1, 2, []byte{5}),
		"runs":                 tiff(le, 3, 1, 1, 1, 32773, 1, 1, []byte{1, 7, 7}),
		"run without its byte": tiff(le, 3, 1, 1, 1, 32773, 1, 1, []byte{0xfe}),
		"literals":             tiff(le, 3, 1, 1, 1, 32773, 1, 1, []byte{2, 7, 7}),
		"deflated":             tiff(le, 3, 1, 1, 1, 8, 1, 1, deflated(1, 2)),
		"not deflated":         tiff(le, 3, 1, 1, 1, 8, 1, 1, []byte{1, 2, 3}),
	} {
		if got := run(t, "RGB", file); got.Len() != 0 || !cmp.Equal(got.Shape, []int{0, 0, 3}) {
			t.Errorf("%s: %v", name, got.Shape)
		}
	}
	if got := run(t, "Grayscale", []byte("BM")); !cmp.Equal(got.Shape, []int{0, 0, 1}) {
		t.Errorf("%v", got.Shape)
	}
}

// TestUnsupportedImages: unsupported formats are reported as such.
func TestUnsupportedImages(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	for want, file := range map[string][]byte{
		"WebP":                     []byte("RIFF\x00\x00\x00\x00WEBPVP8 "),
		"JPEG 2000":                []byte("\xff\x4f\xff\x51"),
		"BMP with 4 bits":          bmp(1, 1, 4, 0, nil, []byte{0, 0, 0, 0}),
		"compression 1":            bmp(1, 1, 8, 1, make([]byte, 4), []byte{0, 0, 0, 0}),
		"TIFF compression 5":       tiff(le, 1, 1, 1, 1, 5, 1, 1, []byte{5}),
		"predictor 3":              tiff(le, 1, 1, 1, 1, 1, 3, 1, []byte{5}),
		"photometric 3":            tiff(le, 1, 1, 1, 3, 1, 1, 1, []byte{5}),
		"TIFF with 5 samples":      tiff(le, 1, 1, 5, 1, 1, 1, 1, []byte{5, 5, 5, 5, 5}),
		"2 samples, photometric 2": tiff(le, 1, 1, 2, 2, 1, 1, 1, []byte{5, 5}),
		"TIFF without strips":      tiff(le, 1, 2, 1, 1, 1, 1, 1, []byte{5}),
	} {
		_, err := optest.Run(Defs(), optest.Node{Op: "ImageDecoder", Version: 20}, stream(file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, tt := range map[string]struct {
		x *tensor.Tensor
		f string
	}{"stream is int8 of rank 1": {tensor.New(tensor.Int8, 1), "RGB"}, "stream is uint8 of rank 2": {tensor.New(tensor.Uint8, 1, 1), "RGB"}, `pixel_format is "HSV"`: {tensor.New(tensor.Uint8, 1), "HSV"}} {
		if _, err := optest.Run(Defs(), optest.Node{Op: "ImageDecoder", Version: 20, Attrs: graph.Attrs{"pixel_format": tt.f}}, tt.x); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if luma(255, 255, 255) != 255 || luma(0, 0, 0) != 0 || luma(100, 0, 0) != 30 || luma(0, 100, 0) != 59 || luma(0, 0, 100) != 11 {
		t.Error("brightness")
	}
}
