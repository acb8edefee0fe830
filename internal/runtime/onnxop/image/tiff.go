package image

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Tags of a TIFF directory that matter here.
const (
	tagWidth       = 256
	tagHeight      = 257
	tagBits        = 258
	tagCompression = 259
	tagPhotometric = 262
	tagOffsets     = 273
	tagSamples     = 277
	tagRows        = 278
	tagCounts      = 279
	tagPlanar      = 284
	tagPredictor   = 317
)

// decodeTIFF reads the first image of a TIFF file: grey or RGB with eight bits per sample in
// strips, uncompressed or deflated.
func decodeTIFF(b []byte) (*rgbImage, error) {
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	tags, err := directory(b, order)
	if err != nil {
		return nil, err
	}
	one := func(tag, def int) int {
		if v := tags[tag]; len(v) > 0 {
			return v[0]
		}
		return def
	}
	w, h, channels := one(tagWidth, 0), one(tagHeight, 0), one(tagSamples, 1)
	for _, n := range tags[tagBits] {
		if n != 8 {
			return nil, op.Unsupported("TIFF with %d bits a sample", n)
		}
	}
	photo, planar, predictor := one(tagPhotometric, 2), one(tagPlanar, 1), one(tagPredictor, 1)
	if len(tags[tagBits]) == 0 || photo > 2 || photo == 2 && channels < 3 || channels < 1 || channels > 4 || planar != 1 || predictor > 2 {
		return nil, op.Unsupported("TIFF with %d samples, photometric %d, planar %d, predictor %d", channels, photo, planar, predictor)
	}
	p, err := newImage(w, h)
	if err != nil {
		return nil, err
	}
	offsets, counts := tags[tagOffsets], tags[tagCounts]
	rows := min(max(one(tagRows, h), 1), h)
	if len(offsets) == 0 || len(offsets) != len(counts) || (h+rows-1)/rows != len(offsets) {
		return nil, op.Unsupported("TIFF without strips")
	}
	for i, at := range offsets {
		n := min(rows, h-i*rows)
		if at < 0 || counts[i] < 0 || at > len(b) || counts[i] > len(b)-at {
			return nil, errShort
		}
		data, err := unfold(b[at:at+counts[i]], one(tagCompression, 1), n*w*channels)
		if err != nil {
			return nil, err
		}
		p.strip(data, i*rows, n, channels, photo, predictor)
	}
	return p, nil
}

// strip writes n rows of samples to the image.
func (p *rgbImage) strip(data []byte, row, n, channels, photo, predictor int) {
	for y := range n {
		line := data[y*p.w*channels:][:p.w*channels]
		if predictor == 2 {
			line = bytes.Clone(line)
			for i := channels; i < len(line); i++ {
				line[i] += line[i-channels]
			}
		}
		for x := range p.w {
			out, px := p.rgb[3*((row+y)*p.w+x):], line[x*channels:]
			if photo == 2 {
				copy(out[:3], px)
				continue
			}
			v := px[0]
			if photo == 0 {
				v = 255 - v // zero is white
			}
			out[0], out[1], out[2] = v, v, v
		}
	}
}

// directory reads the integer fields of the first directory.
func directory(b []byte, order binary.ByteOrder) (map[int][]int, error) {
	if len(b) < 8 {
		return nil, errShort
	}
	at := int(order.Uint32(b[4:]))
	if at+2 > len(b) {
		return nil, errShort
	}
	n := int(order.Uint16(b[at:]))
	if at+2+12*n > len(b) {
		return nil, errShort
	}
	tags := map[int][]int{}
	for i := range n {
		e := b[at+2+12*i:][:12]
		tag, kind, count := int(order.Uint16(e)), order.Uint16(e[2:]), int(order.Uint32(e[4:]))
		size := map[uint16]int{1: 1, 3: 2, 4: 4}[kind]
		if size == 0 {
			continue
		}
		data := e[8:]
		if count*size > 4 {
			o := int(order.Uint32(e[8:]))
			if count > len(b) || o > len(b) || count*size > len(b)-o {
				return nil, errShort
			}
			data = b[o:]
		}
		v := make([]int, count)
		for k := range v {
			switch size {
			case 1:
				v[k] = int(data[k])
			case 2:
				v[k] = int(order.Uint16(data[2*k:]))
			default:
				v[k] = int(order.Uint32(data[4*k:]))
			}
		}
		tags[tag] = v
	}
	return tags, nil
}

// unfold decompresses a strip to n bytes.
func unfold(b []byte, compression, n int) ([]byte, error) {
	switch compression {
	case 1:
		if len(b) < n {
			return nil, errShort
		}
		return b[:n], nil
	case 8, 32946:
		r, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		out := make([]byte, n)
		_, err = io.ReadFull(r, out)
		return out, err
	case 32773:
		return packBits(b, n)
	}
	return nil, op.Unsupported("TIFF compression %d", compression)
}

// packBits decodes Apple's run-length code.
func packBits(b []byte, n int) ([]byte, error) {
	out := make([]byte, 0, n)
	for len(b) > 0 && len(out) < n {
		k := int(int8(b[0]))
		b = b[1:]
		switch {
		case k >= 0 && k < len(b):
			out = append(out, b[:k+1]...)
			b = b[k+1:]
		case k < 0 && k > -128 && len(b) > 0:
			out = append(out, bytes.Repeat(b[:1], 1-k)...)
			b = b[1:]
		case k != -128:
			return nil, errShort
		}
	}
	if len(out) < n {
		return nil, errors.New("run-length data ends early")
	}
	return out[:n], nil
}
