package conformance

import (
	"archive/tar"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Test is one backend test: a model and data sets.
type Test struct {
	Suite, Name string
	Model       []byte
	Sets        []DataSet
	// Ops lists the operators of the model, Types those of its inputs and outputs,
	// Opset is the operator set of the default domain, 0 when it is not imported.
	Ops, Types []string
	Opset      int
	// Runtime is what ONNX Runtime 1.30 does with the test: pass, fail, error,
	// skip or crash.
	Runtime string
}

// DataSet holds the serialized inputs and expected outputs of one run, nil where
// a file is absent.
type DataSet struct{ Inputs, Outputs [][]byte }

// maxFile bounds one unpacked file and maxArchive all of them, in bytes.
const (
	maxFile    = 64 << 20
	maxArchive = 2 << 30
)

var testPath = regexp.MustCompile(`^([a-z-]+)/(test_\w+)/(?:model\.onnx|test_data_set_(\d{1,3})/(input|output)_(\d{1,3})\.pb)$`)

// Load reads the archive and the tables of a folder that holds
// onnx_node_tests.tar.zst, onnx_node_tests_index.csv and onnx_node_tests_ort.csv.
// Tests come ordered by suite and name.
func Load(dir string) ([]*Test, error) {
	f, err := os.Open(filepath.Join(dir, "onnx_node_tests.tar.zst"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tests, err := unpack(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if err := describe(tests, dir); err != nil {
		return nil, err
	}
	return sorted(tests), nil
}

// LoadDir reads tests that lie unpacked in a folder, as suite/test/model.onnx and
// suite/test/test_data_set_0/input_0.pb, without the tables.
func LoadDir(dir string) ([]*Test, error) {
	tests := map[string]*Test{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		m := testPath.FindStringSubmatch(name)
		if err != nil || m == nil || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		of(tests, m).add(m, data)
		return nil
	})
	return sorted(tests), err
}

// of returns the test that a member, whose path matched testPath, belongs to.
func of(tests map[string]*Test, m []string) *Test {
	id := m[1] + "/" + m[2]
	if tests[id] == nil {
		tests[id] = &Test{Suite: m[1], Name: m[2]}
	}
	return tests[id]
}

func sorted(tests map[string]*Test) []*Test {
	return slices.SortedFunc(maps.Values(tests), func(a, b *Test) int { return strings.Compare(a.ID(), b.ID()) })
}

// ID is "suite/name".
func (t *Test) ID() string { return t.Suite + "/" + t.Name }

func unpack(r io.Reader) (map[string]*Test, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(512<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	tests := map[string]*Test{}
	total := int64(0)
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return tests, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		m := testPath.FindStringSubmatch(h.Name)
		if m == nil || h.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("unexpected member %q", h.Name)
		}
		if total += h.Size; h.Size > maxFile || total > maxArchive {
			return nil, fmt.Errorf("member %q of %d bytes is too large", h.Name, h.Size)
		}
		data := make([]byte, h.Size)
		if _, err := io.ReadFull(tr, data); err != nil {
			return nil, err
		}
		of(tests, m).add(m, data)
	}
}

// add stores a member, whose path matched testPath.
func (t *Test) add(m []string, data []byte) {
	if m[3] == "" {
		t.Model = data
		return
	}
	set, _ := strconv.Atoi(m[3])
	index, _ := strconv.Atoi(m[5])
	for len(t.Sets) <= set {
		t.Sets = append(t.Sets, DataSet{})
	}
	list := &t.Sets[set].Inputs
	if m[4] == "output" {
		list = &t.Sets[set].Outputs
	}
	for len(*list) <= index {
		*list = append(*list, nil)
	}
	(*list)[index] = data
}

// describe adds what the tables beside the archive say.
func describe(tests map[string]*Test, dir string) error {
	err := eachRow(filepath.Join(dir, "onnx_node_tests_index.csv"), func(row map[string]string) {
		t := tests[row["suite"]+"/"+row["test"]]
		if t == nil {
			return
		}
		t.Ops = strings.Fields(row["ops"])
		for f := range strings.SplitSeq(row["input_types"]+";"+row["output_types"], ";") {
			if f != "" {
				t.Types = append(t.Types, f)
			}
		}
		for f := range strings.FieldsSeq(row["opsets"]) {
			if v, ok := strings.CutPrefix(f, "ai.onnx:"); ok {
				t.Opset, _ = strconv.Atoi(v)
			}
		}
	})
	if err != nil {
		return err
	}
	return eachRow(filepath.Join(dir, "onnx_node_tests_ort.csv"), func(row map[string]string) {
		if t := tests[row["suite"]+"/"+row["test"]]; t != nil {
			t.Runtime = row["result"]
		}
	})
}

func eachRow(path string, visit func(map[string]string)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		row := make(map[string]string, len(head))
		for i, h := range head {
			row[h] = rec[i]
		}
		visit(row)
	}
}

// Core reports whether the test belongs to the first target: a node test that
// uses only float32, int32, int64 and bool, at an operator set up to 22.
func (t *Test) Core() bool {
	if t.Suite != "node" || t.Opset == 0 || t.Opset > 22 {
		return false
	}
	for _, ty := range t.Types {
		switch ty {
		case "float32", "int32", "int64", "bool":
		default:
			return false
		}
	}
	return true
}
