package samples

import (
	"archive/zip"
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

type in struct {
	name  string
	typ   tensor.Type
	shape []int
	quant *tensor.Quant
}

// model is one with inputs and without operators.
func model(ins ...in) *graph.Model {
	g := &graph.Graph{}
	for i, v := range ins {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: v.name, Type: v.typ, Shape: v.shape, HasShape: v.shape != nil, Quant: v.quant})
		g.Inputs = append(g.Inputs, i)
	}
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}}
}

func f32(shape []int, v ...float32) *tensor.Tensor {
	if len(v) == 0 {
		v = make([]float32, tensor.Elements(shape))
		for i := range v {
			v[i] = float32(i)
		}
	}
	return tensor.From(tensor.Float32, shape, v)
}

// put writes a file: an array, or text.
func put(t testing.TB, dir, name string, content any) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	switch c := content.(type) {
	case *tensor.Tensor:
		if err := npy.Write(&b, c); err != nil {
			t.Fatal(err)
		}
	case map[string]*tensor.Tensor:
		z := zip.NewWriter(&b)
		for n, x := range c {
			w, err := z.Create(n + ".npy")
			if err == nil {
				err = npy.Write(w, x)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	case image.Image:
		if err := png.Encode(&b, c); err != nil {
			t.Fatal(err)
		}
	case string:
		b.WriteString(c)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func plain(w, h int, c color.Color) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, c)
		}
	}
	return m
}

// Every kind of data becomes the inputs that the model takes.
func TestOpen(t *testing.T) {
	t.Parallel()
	vec := in{"x", tensor.Float32, []int{-1, 3}, nil}
	quant := &tensor.Quant{Scale: []float32{0.5}, Zero: []int64{10}}
	for _, tt := range []struct {
		name   string
		ins    []in
		files  map[string]any
		o      Options // Path and the like are relative
		runs   int
		shape  []int
		first  []float64 // elements of the last run's first input
		labels []float64
	}{
		{"array", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3})}, Options{Path: "d.npy"}, 2, []int{1, 3}, []float64{3, 4, 5}, nil},
		{"array of one sample", []in{{"x", tensor.Float32, []int{1, 2, 2}, nil}}, map[string]any{"d.npy": f32([]int{1, 2, 2})}, Options{Path: "d.npy"}, 1, []int{1, 2, 2}, []float64{0, 1, 2, 3}, nil},
		{"array without an axis for samples", []in{{"x", tensor.Float32, []int{1, 2, 2}, nil}}, map[string]any{"d.npy": f32([]int{2, 2})}, Options{Path: "d.npy"}, 1, []int{1, 2, 2}, []float64{0, 1, 2, 3}, nil},
		{"array without ones", []in{{"x", tensor.Float32, []int{-1, 1, 2, 2}, nil}}, map[string]any{"d.npy": f32([]int{3, 2, 2})}, Options{Path: "d.npy"}, 3, []int{1, 1, 2, 2}, []float64{8, 9, 10, 11}, nil},
		{"flat rows", []in{{"x", tensor.Float32, []int{-1, 1, 2, 2}, nil}}, map[string]any{"d.npy": f32([]int{2, 4})}, Options{Path: "d.npy"}, 2, []int{1, 1, 2, 2}, []float64{4, 5, 6, 7}, nil},
		{"whole inputs", []in{{"x", tensor.Float32, []int{1, 3}, nil}}, map[string]any{"d.npy": f32([]int{2, 1, 3})}, Options{Path: "d.npy"}, 2, []int{1, 3}, []float64{3, 4, 5}, nil},
		{"fixed batch", []in{{"x", tensor.Float32, []int{2, 3}, nil}}, map[string]any{"d.npy": f32([]int{5, 3})}, Options{Path: "d.npy"}, 2, []int{2, 3}, []float64{6, 7, 8, 9, 10, 11}, nil},
		{"no batch", []in{{"x", tensor.Float32, []int{3}, nil}}, map[string]any{"d.npy": f32([]int{2, 3})}, Options{Path: "d.npy"}, 2, []int{3}, []float64{3, 4, 5}, nil},
		{"open lengths", []in{{"x", tensor.Float32, []int{-1, -1}, nil}}, map[string]any{"d.npy": f32([]int{2, 5})}, Options{Path: "d.npy"}, 2, []int{1, 5}, []float64{5, 6, 7, 8, 9}, nil},
		{"float64", []in{vec}, map[string]any{"d.npy": tensor.From(tensor.Float64, []int{1, 3}, []float64{.5, 1, 2})}, Options{Path: "d.npy"}, 1, []int{1, 3}, []float64{.5, 1, 2}, nil},
		{"bytes as reals", []in{vec}, map[string]any{"d.npy": tensor.From(tensor.Uint8, []int{1, 3}, []uint8{0, 7, 255})}, Options{Path: "d.npy"}, 1, []int{1, 3}, []float64{0, 7, 255}, nil},
		{"reals as codes", []in{{"x", tensor.Uint8, []int{1, 3}, quant}}, map[string]any{"d.npy": f32([]int{1, 3}, -100, 1, 2.3)}, Options{Path: "d.npy"}, 1, []int{1, 3}, []float64{0, 12, 15}, nil},
		{"codes as they are", []in{{"x", tensor.Uint8, []int{1, 3}, quant}}, map[string]any{"d.npy": tensor.From(tensor.Uint8, []int{1, 3}, []uint8{0, 7, 255})}, Options{Path: "d.npy"}, 1, []int{1, 3}, []float64{0, 7, 255}, nil},
		{"tokens", []in{{"x", tensor.Int64, []int{-1, 2}, nil}}, map[string]any{"d.npy": f32([]int{2, 2})}, Options{Path: "d.npy"}, 2, []int{1, 2}, []float64{2, 3}, nil},
		{"table", []in{vec}, map[string]any{"d.csv": "1,2,3\n4,5,6\n"}, Options{Path: "d.csv"}, 2, []int{1, 3}, []float64{4, 5, 6}, nil},
		{"table with titles and labels", []in{vec}, map[string]any{"d.csv": "a;kind;b;c\n1;7;2;3\n4;8;5;6\n"}, Options{Path: "d.csv", Column: "kind"}, 2, []int{1, 3}, []float64{4, 5, 6}, []float64{7, 8}},
		{"table with names", []in{vec}, map[string]any{"d.csv": "1,2,3,dog\n4,5,6,cat\n"}, Options{Path: "d.csv", Column: "4"}, 2, []int{1, 3}, []float64{4, 5, 6}, []float64{1, 0}},
		{"labels of a text", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}), "l.txt": "3\n1\n\n"}, Options{Path: "d.npy", Labels: "l.txt"}, 2, []int{1, 3}, []float64{3, 4, 5}, []float64{3, 1}},
		{"labels of an array", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}), "l.npy": f32([]int{2, 1}, 4, 5)}, Options{Path: "d.npy", Labels: "l.npy"}, 2, []int{1, 3}, []float64{3, 4, 5}, []float64{4, 5}},
		{"labels of a table", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}), "l.csv": "species\n4\n5\n"}, Options{Path: "d.npy", Labels: "l.csv"}, 2, []int{1, 3}, []float64{3, 4, 5}, []float64{4, 5}},
		{"archive", []in{vec}, map[string]any{"d.npz": map[string]*tensor.Tensor{"any": f32([]int{2, 3}), "y": f32([]int{2})}}, Options{Path: "d.npz", Column: "y"}, 2, []int{1, 3}, []float64{3, 4, 5}, []float64{0, 1}},
		{"archive of two inputs", []in{vec, {"z", tensor.Float32, []int{-1}, nil}}, map[string]any{"d.npz": map[string]*tensor.Tensor{"x": f32([]int{2, 3}), "z": f32([]int{2})}}, Options{Path: "d.npz"}, 2, []int{1, 3}, []float64{3, 4, 5}, nil},
		{"folder of two inputs", []in{vec, {"z", tensor.Float32, []int{-1}, nil}}, map[string]any{"d/x.npy": f32([]int{2, 3}), "d/z/1.npy": f32([]int{1}), "d/z/2.npy": f32([]int{1})}, Options{Path: "d"}, 2, []int{1, 3}, []float64{3, 4, 5}, nil},
		{"folder", []in{vec}, map[string]any{"d/1.npy": f32([]int{3}), "d/2.npy": f32([]int{1, 3}, 7, 8, 9), "d/.hidden": "x"}, Options{Path: "d"}, 2, []int{1, 3}, []float64{7, 8, 9}, nil},
		{"classes", []in{vec}, map[string]any{"d/b/1.npy": f32([]int{3}), "d/a/2.npy": f32([]int{3})}, Options{Path: "d"}, 2, []int{1, 3}, []float64{0, 1, 2}, []float64{0, 1}},
		{"classes that are numbers", []in{vec}, map[string]any{"d/5/1.npy": f32([]int{3}), "d/12/2.npy": f32([]int{3})}, Options{Path: "d"}, 2, []int{1, 3}, []float64{0, 1, 2}, []float64{12, 5}},
		{"picture", []in{{"x", tensor.Float32, []int{1, 3, 2, 2}, nil}}, map[string]any{"p.png": plain(5, 7, color.RGBA{255, 0, 51, 255})}, Options{Path: "p.png", Mean: []float32{0.5}, Std: []float32{0.5, 0.5, 0.1}}, 1, []int{1, 3, 2, 2}, []float64{1, 1, 1, 1, -1, -1, -1, -1, -3, -3, -3, -3}, nil},
		{"image, channels last", []in{{"x", tensor.Float32, []int{1, 2, 1, 3}, nil}}, map[string]any{"p.png": plain(3, 3, color.RGBA{255, 0, 51, 255})}, Options{Path: "p.png"}, 1, []int{1, 2, 1, 3}, []float64{1, 0, .2, 1, 0, .2}, nil},
		{"image as quantised values", []in{{"x", tensor.Uint8, []int{1, 2, 1, 3}, &tensor.Quant{Scale: []float32{1. / 255}, Zero: []int64{0}}}}, map[string]any{"p.png": plain(3, 3, color.RGBA{255, 1, 51, 255})}, Options{Path: "p.png"}, 1, []int{1, 2, 1, 3}, []float64{255, 1, 51, 255, 1, 51}, nil},
		{"limit", []in{vec}, map[string]any{"d.npy": f32([]int{9, 3})}, Options{Path: "d.npy", Limit: 4}, 4, []int{1, 3}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n, c := range tt.files {
				put(t, dir, n, c)
			}
			tt.o.Path = filepath.Join(dir, tt.o.Path)
			if tt.o.Labels != "" {
				tt.o.Labels = filepath.Join(dir, tt.o.Labels)
			}
			s, err := Open(model(tt.ins...), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if s.Runs() != tt.runs || s.Len() != tt.runs*s.Batch || s.Random {
				t.Fatalf("%d runs of %d, want %d", s.Runs(), s.Len(), tt.runs)
			}
			x := s.Inputs(s.Runs() - 1)[0]
			if !slices.Equal(x.Shape, tt.shape) || x.Type != tt.ins[0].typ {
				t.Fatalf("%v %v, want %v", x.Type, x.Shape, tt.shape)
			}
			if tt.first != nil {
				got := make([]float64, x.Len())
				tensor.Read(got, x, 0)
				for i, v := range tt.first {
					if math.Abs(got[i]-v) > 1e-5 {
						t.Fatalf("elements %v, want %v", got, tt.first)
					}
				}
			}
			if !slices.Equal(s.Labels, tt.labels) {
				t.Errorf("labels %v, want %v", s.Labels, tt.labels)
			}
		})
	}
}

// What is wrong with data is one line that names file, place and what was expected.
func TestFaults(t *testing.T) {
	t.Parallel()
	vec := in{"x", tensor.Float32, []int{-1, 3}, nil}
	nan := float32(math.NaN())
	for _, tt := range []struct {
		name  string
		ins   []in
		files map[string]any
		o     Options
		want  string
	}{
		{"shape", []in{vec}, map[string]any{"d.npy": f32([]int{2, 4})}, Options{Path: "d.npy"}, `d.npy: has the shape 2x4, samples by 3 a sample, as input "x" has ?x3 were expected`},
		{"no number", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}, 1, 2, 3, 4, nan, 6)}, Options{Path: "d.npy"}, "d.npy: element [1, 1]: is NaN, finite numbers were expected"},
		{"infinite", []in{vec}, map[string]any{"d/1.npy": f32([]int{3}, 1, float32(math.Inf(-1)), 3)}, Options{Path: "d"}, "1.npy: element [1]: is -Inf, finite"},
		{"too large", []in{vec}, map[string]any{"d.npy": tensor.From(tensor.Float64, []int{1, 3}, []float64{1, 1e300, 2})}, Options{Path: "d.npy"}, "element [0, 1]: is 1e+300, which float32 cannot hold"},
		{"fraction for tokens", []in{{"x", tensor.Int64, []int{-1, 1}, nil}}, map[string]any{"d.npy": f32([]int{1, 1}, .5)}, Options{Path: "d.npy"}, "integers were expected"},
		{"code out of range", []in{{"x", tensor.Uint8, []int{-1, 1}, nil}}, map[string]any{"d.npy": tensor.From(tensor.Int64, []int{1, 1}, []int64{256})}, Options{Path: "d.npy"}, "is 256, uint8 from 0 to 255 was expected"},
		{"labels", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}), "l.npy": f32([]int{3})}, Options{Path: "d.npy", Labels: "l.npy"}, "l.npy: has 3 labels, 2 were expected"},
		{"labels of two axes", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}), "l.npy": f32([]int{2, 2})}, Options{Path: "d.npy", Labels: "l.npy"}, "l.npy: has the shape 2x2, one label for each sample"},
		{"no label", []in{vec}, map[string]any{"d.npy": f32([]int{2, 3}), "l.txt": "1\n\n2\n"}, Options{Path: "d.npy", Labels: "l.txt"}, "l.txt: label 2: is empty"},
		{"ragged table", []in{vec}, map[string]any{"d.csv": "1,2,3\n4,5\n"}, Options{Path: "d.csv"}, "d.csv: line 2: has 2 cells, 3 were expected"},
		{"word in a table", []in{vec}, map[string]any{"d.csv": "1,2,3\n4,x,6\n"}, Options{Path: "d.csv"}, `d.csv: line 2, column 2: is "x", a number was expected; if the column holds labels, name it with --label-column`},
		{"word beside labels", []in{vec}, map[string]any{"d.csv": "1,2,3,cat\n4,x,6,dog\n"}, Options{Path: "d.csv", Column: "4"}, `d.csv: line 2, column 2: is "x", a number was expected`},
		{"labels among columns", []in{vec}, map[string]any{"d.csv": "1,2,3\n4,5,6\n", "l.csv": "id,label\n1,cat\n2,dog\n"}, Options{Path: "d.csv", Labels: "l.csv"}, "l.csv: has 2 columns; name the one with labels with --label-column"},
		{"no number in a table", []in{vec}, map[string]any{"d.csv": "1,2,3\n4,nan,6\n"}, Options{Path: "d.csv"}, "d.csv: line 2, column 2: is nan, a finite number was expected"},
		{"narrow table", []in{vec}, map[string]any{"d.csv": "1,2\n4,5\n"}, Options{Path: "d.csv"}, "d.csv: has 2 numbers in a row, 3 a sample"},
		{"only titles", []in{vec}, map[string]any{"d.csv": "a,b,c\n"}, Options{Path: "d.csv"}, "has no rows of numbers"},
		{"no such column", []in{vec}, map[string]any{"d.csv": "a,b,c\n1,2,3\n"}, Options{Path: "d.csv", Column: "y"}, `has no column "y"; its columns are "a", "b", "c"`},
		{"another name", []in{vec, {"z", tensor.Float32, []int{-1}, nil}}, map[string]any{"d.npz": map[string]*tensor.Tensor{"x": f32([]int{2, 3})}}, Options{Path: "d.npz"}, `has no array "z", as the model's input is called; its arrays are "x"`},
		{"unequal inputs", []in{vec, {"z", tensor.Float32, []int{-1}, nil}}, map[string]any{"d.npz": map[string]*tensor.Tensor{"x": f32([]int{2, 3}), "z": f32([]int{3})}}, Options{Path: "d.npz"}, "array z: has 3 samples"},
		{"one file for two inputs", []in{vec, {"z", tensor.Float32, []int{-1}, nil}}, map[string]any{"d.npy": f32([]int{2, 3})}, Options{Path: "d.npy"}, "has data of one input"},
		{"no archive", []in{vec}, map[string]any{"d.npz": "PK"}, Options{Path: "d.npz"}, "d.npz: is no .npz file"},
		{"no array", []in{vec}, map[string]any{"d.npy": "hello"}, Options{Path: "d.npy"}, "d.npy: not a .npy file"},
		{"not an image", []in{{"x", tensor.Float32, []int{1, 3, 2, 2}, nil}}, map[string]any{"p.png": "hello"}, Options{Path: "p.png"}, "p.png: is not a readable image"},
		{"image for a vector", []in{{"x", tensor.Float32, []int{1}, nil}}, map[string]any{"p.png": plain(1, 1, color.Black)}, Options{Path: "p.png"}, "two to four dimensions were expected"},
		{"means", []in{{"x", tensor.Float32, []int{1, 3, 2, 2}, nil}}, map[string]any{"p.png": plain(1, 1, color.Black)}, Options{Path: "p.png", Mean: []float32{1, 2}}, "mean has 2 numbers, 1 or 3 were expected"},
		{"files beside folders", []in{vec}, map[string]any{"d/a/1.npy": f32([]int{3}), "d/2.npy": f32([]int{3})}, Options{Path: "d"}, "has files (2.npy) beside folders (a)"},
		{"another file", []in{vec}, map[string]any{"d/readme.md": "x"}, Options{Path: "d"}, "readme.md: is not a sample"},
		{"files of two shapes", []in{{"x", tensor.Float32, []int{1, -1}, nil}}, map[string]any{"d/1.npy": f32([]int{3}), "d/2.npy": f32([]int{4})}, Options{Path: "d"}, "2.npy: has the shape 4"},
		{"no data that is read", []in{vec}, map[string]any{"d.txt": "1"}, Options{Path: "d.txt"}, "is not a supported data file"},
		{"too few for a batch", []in{{"x", tensor.Float32, []int{4, 3}, nil}}, map[string]any{"d.npy": f32([]int{3, 3})}, Options{Path: "d.npy"}, "has 3 samples, and the model takes 4 at a time"},
		{"memory", []in{vec}, map[string]any{"d.npy": f32([]int{1 << 16, 3})}, Options{Path: "d.npy", MaxBytes: 1 << 18}, "more than 0 MiB of memory"},
		{"none", []in{vec}, map[string]any{"d.npy": f32([]int{0, 3})}, Options{Path: "d.npy"}, "d.npy: has no samples"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n, c := range tt.files {
				put(t, dir, n, c)
			}
			tt.o.Path = filepath.Join(dir, tt.o.Path)
			if tt.o.Labels != "" {
				tt.o.Labels = filepath.Join(dir, tt.o.Labels)
			}
			_, err := Open(model(tt.ins...), tt.o)
			e, ok := errors.AsType[*DataError](err)
			if !ok || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %T %v, want %q", err, err, tt.want)
			}
			_ = e
		})
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Path: put(t, dir, "d.npy", f32([]int{10, 1})), Labels: put(t, dir, "l.npy", f32([]int{10}))}
	s, err := Open(model(in{"x", tensor.Float32, []int{-1, 1}, nil}), o)
	if err != nil {
		t.Fatal(err)
	}
	used, held := s.Split(0.3, 1)
	again, _ := s.Split(0.3, 1)
	if used.Len() != 7 || held.Len() != 3 || !slices.Equal(used.Labels, again.Labels) {
		t.Fatalf("%d used, %d held out", used.Len(), held.Len())
	}
	all := append(slices.Clone(used.Labels), held.Labels...)
	slices.Sort(all)
	if !slices.Equal(all, s.Labels) || !slices.IsSorted(used.Labels) {
		t.Errorf("labels %v and %v", used.Labels, held.Labels)
	}
	for _, p := range []*Set{used, held} {
		for i := range p.Runs() {
			if got := float64(tensor.Of[float32](p.Inputs(i)[0])[0]); got != p.Labels[i] {
				t.Errorf("sample %v has label %v", got, p.Labels[i])
			}
		}
	}
}

// Without data, inputs are made, and marked.
func TestMade(t *testing.T) {
	t.Parallel()
	s, err := Open(model(in{"x", tensor.Float32, []int{-1, 3}, nil}), Options{Made: 5})
	if err != nil || !s.Random || s.Len() != 5 {
		t.Fatal(s, err)
	}
	if bytes.Equal(s.Inputs(0)[0].Data, s.Inputs(1)[0].Data) {
		t.Error("two samples are the same")
	}
}

func fuzz(f *testing.F, name string, seeds ...any) {
	dir := f.TempDir()
	for i, s := range seeds {
		b, err := os.ReadFile(put(f, dir, string(rune('a'+i))+name, s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	m := model(in{"x", tensor.Float32, []int{-1, 3}, nil})
	if strings.HasSuffix(name, ".png") {
		m = model(in{"x", tensor.Uint8, []int{1, -1, 4, 3}, nil})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{{Path: path}, {Path: path, Column: "y"}, {Path: put(t, t.TempDir(), "d.npy", f32([]int{2, 3})), Labels: path}} {
			o.MaxBytes = 1 << 22
			s, err := Open(m, o)
			if err != nil {
				if _, ok := errors.AsType[*DataError](err); !ok {
					t.Errorf("error %T %v", err, err)
				}
				continue
			}
			for i := range s.Runs() {
				x := s.Inputs(i)[0]
				for k := range x.Len() {
					if v := tensor.At(x, k); math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("element %d is %v", k, v)
					}
				}
			}
		}
	})
}

func FuzzArray(f *testing.F) { fuzz(f, "d.npy", f32([]int{2, 3}), f32([]int{3})) }
func FuzzArchive(f *testing.F) {
	fuzz(f, "d.npz", map[string]*tensor.Tensor{"x": f32([]int{2, 3}), "y": f32([]int{2})})
}

func FuzzTable(f *testing.F) {
	fuzz(f, "d.csv", "1,2,3\n4,5,6\n", "a;b;y;c\n1;2;x;3\n", "\"a\",y\n")
}
func FuzzPicture(f *testing.F) { fuzz(f, "p.png", plain(3, 2, color.White)) }
func FuzzLabels(f *testing.F)  { fuzz(f, "l.txt", "1\n2\n", "a\nb\n") }
