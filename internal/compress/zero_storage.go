package compress

import (
	"compress/gzip"
	"io"
	"os"

	"github.com/opmeter/opmeter/internal/model/weights"
)

// ZeroStorage says what the zero weights of a written model cost.
type ZeroStorage struct {
	// Weights and Zeros count the weights of the layers. Bytes is what they take in the file.
	Weights, Zeros, Bytes int64
	// Sparse is what they would take as non-zero values with their column indices, where that is
	// less.
	Sparse int64
	// File is the size of the file, Compressed its size under gzip.
	File, Compressed int64
}

// maxCompressed bounds the files that are compressed to learn their size.
const maxCompressed = 256 << 20

// ZeroStorage counts the zeros of the model and compresses its file.
func (a *Applied) ZeroStorage(path string) (z ZeroStorage, err error) {
	for _, l := range weights.All(a.Graph, nil) {
		if l.Fixed != "" {
			continue
		}
		z.Weights, z.Zeros = z.Weights+l.Weights(), z.Zeros+l.Zeros
		each := l.Const.Type.Bytes(8) // of eight, since weights may have less than a byte
		dense, index := l.Weights()*int64(each)/8, int64(1)
		if l.Cols > 256 {
			index = 2
		}
		left := l.Weights() - l.Zeros
		sparse := left*int64(each)/8 + left*index + 4*int64(l.Rows+1)
		z.Bytes, z.Sparse = z.Bytes+dense, z.Sparse+min(dense, sparse)
	}
	f, err := os.Open(path)
	if err != nil {
		return z, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxCompressed {
		return z, err
	} else {
		z.File = info.Size()
	}
	var n counter
	w := gzip.NewWriter(&n)
	if _, err := io.Copy(w, f); err != nil {
		return z, err
	}
	err = w.Close()
	z.Compressed = int64(n)
	return z, err
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }
