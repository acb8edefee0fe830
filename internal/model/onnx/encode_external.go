package onnx

import (
	"io"
	"strconv"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// pageSize is the alignment of external data, so that the system can map them, and the minimum
// size of an external constant.
const pageSize = 4096

// ExternalFile is the content of a file of external constants.
type ExternalFile struct {
	location string
	parts    [][]byte
	offsets  []int64
	at       map[*byte]int // parts by their first byte
	end      int64
}

// EncodeExternal encodes the model as an ONNX file whose constants of 4096 bytes and more are in
// an external file with the given name. They are aligned to 4096 bytes; constants that share
// memory share it in the file too.
func EncodeExternal(m *graph.Model, location string) ([]byte, *ExternalFile, error) {
	x := &ExternalFile{location: location, at: map[*byte]int{}}
	b, err := encode(m, x)
	return b, x, err
}

// Write writes the file.
func (x *ExternalFile) Write(w io.Writer) error {
	var zeros [pageSize]byte
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

// add assigns an offset to data, and lets a tensor refer to it.
func (x *ExternalFile) add(b *message, data []byte) {
	k, ok := x.at[&data[0]]
	if !ok || len(x.parts[k]) != len(data) {
		k = len(x.parts)
		x.at[&data[0]] = k
		x.parts, x.offsets = append(x.parts, data), append(x.offsets, (x.end+pageSize-1)/pageSize*pageSize)
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
