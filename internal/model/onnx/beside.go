package onnx

import (
	"io"
	"strconv"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// page is what offsets of external data are multiples of, so that the system can map them, and the least size of a constant
// that lies there.
const page = 4096

// Beside is the content of a file of constants beside a model.
type Beside struct {
	location string
	parts    [][]byte
	offsets  []int64
	at       map[*byte]int // parts by their first byte
	end      int64
}

// EncodeBeside writes the model as an ONNX file whose constants of 4096 bytes and more lie in a file beside it, by its name. They
// begin at multiples of 4096; constants that share their bytes do so in the file.
func EncodeBeside(m *graph.Model, location string) ([]byte, *Beside, error) {
	x := &Beside{location: location, at: map[*byte]int{}}
	b, err := encode(m, x)
	return b, x, err
}

// Write writes the file.
func (x *Beside) Write(w io.Writer) error {
	var zeros [page]byte
	at := int64(0)
	for i, p := range x.parts {
		if _, err := w.Write(zeros[:x.offsets[i]-at]); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		at = x.offsets[i] + int64(len(p))
	}
	return nil
}

// add gives data a place, and a tensor that names it.
func (x *Beside) add(b *message, data []byte) {
	k, ok := x.at[&data[0]]
	if !ok || len(x.parts[k]) != len(data) {
		k = len(x.parts)
		x.at[&data[0]] = k
		x.parts, x.offsets = append(x.parts, data), append(x.offsets, (x.end+page-1)/page*page)
		x.end = x.offsets[k] + int64(len(data))
	}
	for _, e := range [][2]string{{"location", x.location}, {"offset", strconv.FormatInt(x.offsets[k], 10)}, {"length", strconv.Itoa(len(data))}} {
		var o message
		o.str(entryKey, e[0])
		o.str(entryValue, e[1])
		b.bytes(tensorExternalData, o)
	}
	b.int(tensorDataLocation, 1)
}
