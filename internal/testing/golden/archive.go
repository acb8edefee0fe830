package golden

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Case is one operator of the int16 conformance archive.
type Case struct {
	Name   string // such as "add/add0"
	Model  []byte
	Inputs []Values
	Golden Values
}

// Values are the numbers of one tensor without its shape.
type Values struct {
	Type tensor.Type
	List []int64
}

// Tensor gives the values a shape, nil when they do not fit it.
func (v Values) Tensor(shape []int) *tensor.Tensor {
	x := tensor.New(v.Type, shape...)
	switch {
	case x.Len() != len(v.List):
		return nil
	case v.Type == tensor.Int16:
		for i, n := range v.List {
			tensor.Of[int16](x)[i] = int16(n)
		}
	case v.Type == tensor.Int32:
		for i, n := range v.List {
			tensor.Of[int32](x)[i] = int32(n)
		}
	}
	return x
}

// Cases reads the archive: models beside files NAME_inputK_TYPE.csv and
// NAME_golden_TYPE.csv, where TYPE is int16 or int32.
func Cases(file string) ([]Case, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[path.Clean(h.Name)], err = io.ReadAll(t); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	var out []Case
	for name, data := range files {
		stem, ok := strings.CutSuffix(name, ".tflite")
		if !ok {
			continue
		}
		c := Case{Name: stem, Model: data}
		for k := 0; ; k++ {
			v, err := values(files, fmt.Sprintf("%s_input%d", stem, k))
			if err != nil {
				return nil, err
			}
			if v.List == nil {
				break
			}
			c.Inputs = append(c.Inputs, v)
		}
		if c.Golden, err = values(files, stem+"_golden"); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// values reads the file of either type; the list is nil if absent.
func values(files map[string][]byte, stem string) (Values, error) {
	for _, t := range []tensor.Type{tensor.Int16, tensor.Int32} {
		if csv, ok := files[fmt.Sprintf("%s_%v.csv", stem, t)]; ok {
			list, err := numbersOf(csv, t.Bits())
			if err != nil {
				return Values{}, fmt.Errorf("%s: %w", stem, err)
			}
			return Values{Type: t, List: list}, nil
		}
	}
	return Values{}, nil
}

func numbersOf(csv []byte, bits int) ([]int64, error) {
	out := []int64{}
	for _, f := range bytes.FieldsFunc(csv, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' }) {
		n, err := strconv.ParseInt(string(f), 10, bits)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}
