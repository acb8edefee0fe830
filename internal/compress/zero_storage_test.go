package compress

import (
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestZeroStorage counts what zeros cost in a written file: nine of ten of the weights here.
func TestZeroStorage(t *testing.T) {
	t.Parallel()
	m := linear(3)
	w := tensor.New(tensor.Float32, 8, 4096)
	tensor.Fill(w, func(i int) float64 {
		if i%10 > 0 {
			return 0
		}
		return 1 + float64(i)/7
	})
	m.Main().Values[3].Const, m.Main().Values[3].Shape, m.Main().Values[4].Shape = w, w.Shape, []int{1, 4096}
	a := &Applied{Graph: m}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := a.Write(path); err != nil {
		t.Fatal(err)
	}
	z, err := a.ZeroStorage(path)
	if err != nil {
		t.Fatal(err)
	}
	// The other layer is an identity of 8 rows: 8 of its 64 weights are not zero.
	left := int64(8*4096+9)/10 + 8
	if z.Weights != 8*4096+64 || z.Zeros != z.Weights-left || z.Bytes != 4*z.Weights {
		t.Errorf("%+v", z)
	}
	if z.Sparse < 5*left || z.Sparse > z.Bytes/3 || z.Compressed <= 0 || z.Compressed > z.File/3 {
		t.Errorf("sparse %d of %d bytes, compressed %d of %d", z.Sparse, z.Bytes, z.Compressed, z.File)
	}
}
