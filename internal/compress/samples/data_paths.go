package samples

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxText bounds tables and label files in bytes, maxImageBytes an image file, maxFiles the
// number of files.
const (
	maxText       = 1 << 30
	maxImageBytes = 256 << 20
	maxFiles      = 1 << 20
)

// findPaths finds a path for every input in o.Inputs, or leaves o.Path for all.
func (r *reader) findPaths() error {
	names := r.names()
	for n := range r.o.Inputs {
		if !slices.Contains(names, n) {
			return dataError(r.o.Inputs[n], "", "is data of input %q, and the model's inputs are %s", n, quoted(names))
		}
	}
	if r.o.Path == "" {
		for _, n := range names {
			if r.o.Inputs[n] == "" {
				return dataError("", "", "there is no data of input %q; the model's inputs are %s", n, quoted(names))
			}
		}
		return nil
	}
	if len(names) == 0 {
		return dataError(r.o.Path, "", "is data, but the model has no inputs")
	}
	if len(r.o.Inputs) > 0 && len(names) > 1 {
		return dataError(r.o.Path, "", "is data of the whole model, but data of single inputs is given too: use one of them")
	}
	if strings.EqualFold(filepath.Ext(r.o.Path), ".npz") {
		return nil
	}
	st, err := os.Stat(r.o.Path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		r.o.Inputs = byInput(r.o.Path, names)
		if r.o.Inputs != nil {
			return nil
		}
	}
	if len(names) > 1 {
		return dataError(r.o.Path, "", "has data of one input, but the model has %s; a .npz or a folder with data under these names was expected", quoted(names))
	}
	r.o.Inputs = map[string]string{names[0]: r.o.Path}
	return nil
}

// byInput finds the entries of a folder that are named like inputs; nil where one is missing.
func byInput(dir string, names []string) map[string]string {
	found := map[string]string{}
	for _, n := range names {
		if !filepath.IsLocal(n) {
			return nil
		}
		for _, end := range []string{"", ".npy", ".csv"} {
			if _, err := os.Stat(filepath.Join(dir, n+end)); err == nil {
				found[n] = filepath.Join(dir, n+end)
				break
			}
		}
		if found[n] == "" {
			return nil
		}
	}
	return found
}

func (r *reader) names() []string {
	g := r.model.Main()
	var names []string
	for _, id := range g.Inputs {
		names = append(names, g.Values[id].Name)
	}
	return names
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}

// columns finds the data of every input, in one .npz file or at their paths.
func (r *reader) columns() error {
	names := r.names()
	find := func(s *inputSpec, name string) (column, error) { return r.column(s, r.o.Inputs[name]) }
	if len(r.o.Inputs) == 0 && r.o.Path != "" {
		a, err := r.openArchive(r.o.Path)
		if err != nil {
			return err
		}
		defer a.f.Close()
		find = func(s *inputSpec, name string) (column, error) { return r.pickArray(a, s, name, len(names) == 1) }
	}
	for k, n := range names {
		s, err := newSpec(r.model, k)
		if err != nil {
			return err
		}
		c, err := find(s, n)
		if err != nil {
			return err
		}
		r.columnsOf = append(r.columnsOf, c)
	}
	return nil
}

// column finds the data of an input at a path.
func (r *reader) column(s *inputSpec, path string) (column, error) {
	st, err := os.Stat(path)
	if err != nil {
		return column{}, err
	}
	if st.IsDir() {
		return r.folder(s, path)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".npy":
		t, err := r.npy(path)
		if err != nil {
			return column{}, err
		}
		return r.array(s, t, path, "", false)
	case ext == ".npz":
		return r.member(s, path)
	case ext == ".csv" || ext == ".tsv":
		t, err := r.table(path)
		if err != nil {
			return column{}, err
		}
		return r.array(s, t, path, "", true)
	case isImage(ext):
		return r.fileColumn(s, []string{path})
	}
	return column{}, dataError(path, "", "is not a supported data file: .npy, .npz, .csv, .png, .jpg or a folder was expected")
}

// npy reads an array within the memory limit.
func (r *reader) npy(path string) (*tensor.Tensor, error) {
	t, err := npy.ReadFile(path, func(t tensor.Type, shape []int) error {
		n, err := numbers(t, shape)
		if err == nil {
			err = r.reserve(path, t.Bytes(n))
		}
		return err
	})
	return t, r.asDataError(path, err)
}

// numbers returns the elements of an array of numbers.
func numbers(t tensor.Type, shape []int) (int, error) {
	if t == tensor.String {
		return 0, errors.New("holds text, numbers were expected")
	}
	return tensor.CheckShape(t, shape)
}

// asDataError converts errors in the content of a file to a DataError.
func (r *reader) asDataError(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if e, ok := errors.AsType[*DataError](err); ok {
		return e
	}
	return dataError(path, "", "%s", strings.TrimPrefix(err.Error(), path+": "))
}

// folder finds samples among the files of a folder, or of its subfolders, which are classes.
func (r *reader) folder(s *inputSpec, dir string) (column, error) {
	files, dirs, err := list(dir)
	if err != nil {
		return column{}, err
	}
	switch {
	case len(files) > 0 && len(dirs) > 0:
		return column{}, dataError(dir, "", "has files (%s) beside folders (%s); either of them was expected", filepath.Base(files[0]), filepath.Base(dirs[0]))
	case len(dirs) == 0:
		if len(files) == 0 {
			return column{}, dataError(dir, "", "has no files")
		}
		return r.fileColumn(s, files)
	}
	var all, classes []string
	for _, d := range dirs {
		in, deeper, err := list(d)
		if err != nil {
			return column{}, err
		}
		if len(deeper) > 0 {
			return column{}, dataError(d, "", "has folders, and is itself one of a class; files were expected")
		}
		for range in {
			classes = append(classes, filepath.Base(d))
		}
		all = append(all, in...)
	}
	if len(all) == 0 {
		return column{}, dataError(dir, "", "has folders without files")
	}
	if r.labels.names == nil {
		r.labels.names, r.labels.file = classes, dir
		for _, d := range dirs {
			r.labels.all = append(r.labels.all, filepath.Base(d))
		}
	}
	return r.fileColumn(s, all)
}

// list lists files and folders except hidden ones, ordered by name.
func list(dir string) (files, dirs []string, err error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range es {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.EqualFold(name, "thumbs.db") || strings.EqualFold(name, "desktop.ini") {
			continue
		}
		path := filepath.Join(dir, name)
		st, err := os.Stat(path)
		if err != nil {
			return nil, nil, err
		}
		if st.IsDir() {
			dirs = append(dirs, path)
			continue
		}
		if kind := infile.Kind(st.Mode()); kind != "" {
			return nil, nil, dataError(path, "", "is %s, a file of data was expected", kind)
		}
		if ext := strings.ToLower(filepath.Ext(name)); ext != ".npy" && !isImage(ext) {
			return nil, nil, dataError(path, "", "is not a sample: .npy, .png or .jpg was expected")
		}
		files = append(files, path)
	}
	if len(files) > maxFiles {
		return nil, nil, dataError(dir, "", "has %d files, at most %d were expected", len(files), maxFiles)
	}
	return files, dirs, nil
}

// fileColumn makes a column of files with one sample each.
func (r *reader) fileColumn(s *inputSpec, files []string) (column, error) {
	c := column{file: files[0], n: len(files), files: files, spec: s}
	if isImage(strings.ToLower(filepath.Ext(files[0]))) {
		p, err := s.layoutOf(files[0])
		if err != nil {
			return c, err
		}
		if err := r.checkNorm(p.channels); err != nil {
			return c, err
		}
		s.shape, s.batch = p.shape, p.batch
		return c, nil
	}
	t, err := r.file(files[0], s)
	if err != nil {
		return c, err
	}
	if !s.fit(t.Shape, false) {
		return c, dataError(files[0], "", "has the shape %s, %s was expected", tensor.FormatShape(t.Shape), s.expected())
	}
	return c, nil
}

// file reads one sample.
func (r *reader) file(path string, s *inputSpec) (*tensor.Tensor, error) {
	if isImage(strings.ToLower(filepath.Ext(path))) {
		return r.image(path, s)
	}
	t, err := npy.ReadFile(path, func(t tensor.Type, shape []int) error {
		n, err := numbers(t, shape)
		if most := max(r.o.MaxBytes, 0); err == nil && most > 0 && t.Bytes(n) > most {
			err = fmt.Errorf("%s of %v exceed the memory limit", tensor.FormatShape(shape), t)
		}
		return err
	})
	return t, r.asDataError(path, err)
}
