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
)

// Case is one operator of the int16 conformance archive.
type Case struct {
	Name   string // such as "add/add0"
	Model  []byte
	Inputs [][]int16
	Golden []int16
}

// Cases reads the archive: models beside files NAME_inputK_int16.csv and
// NAME_golden_int16.csv.
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
			csv, ok := files[fmt.Sprintf("%s_input%d_int16.csv", stem, k)]
			if !ok {
				break
			}
			v, err := numbersOf(csv)
			if err != nil {
				return nil, fmt.Errorf("%s input %d: %w", stem, k, err)
			}
			c.Inputs = append(c.Inputs, v)
		}
		if c.Golden, err = numbersOf(files[stem+"_golden_int16.csv"]); err != nil {
			return nil, fmt.Errorf("%s: %w", stem, err)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func numbersOf(csv []byte) ([]int16, error) {
	var out []int16
	for _, f := range bytes.FieldsFunc(csv, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' }) {
		n, err := strconv.ParseInt(string(f), 10, 16)
		if err != nil {
			return nil, err
		}
		out = append(out, int16(n))
	}
	return out, nil
}
