package samples

import (
	"archive/zip"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// npz is an open archive of arrays.
type npz struct {
	file    string
	members map[string]*zip.File
	names   []string
	f       *os.File
}

// openArchive reads the list of arrays.
func openArchive(path string) (*npz, error) {
	f, st, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, dataError(path, "", "is no .npz file: %v", err)
	}
	a := &npz{file: path, members: map[string]*zip.File{}, f: f}
	for _, m := range z.File {
		name, ok := strings.CutSuffix(m.Name, ".npy")
		if !ok {
			continue
		}
		if a.members[name] != nil {
			f.Close()
			return nil, dataError(path, "", "has two arrays %q", name)
		}
		a.members[name] = m
		a.names = append(a.names, name)
	}
	slices.Sort(a.names)
	return a, nil
}

// read reads an array.
func (a *npz) read(r *reader, name string) (*tensor.Tensor, error) {
	m := a.members[name]
	where := "array " + name
	// The actual size counts, not the declared one: a few bytes may declare terabytes.
	most := int64(maxText) * 16
	if r.o.MaxBytes > 0 {
		most = int64(r.remainingBytes) + 1<<20
	}
	f, err := m.Open()
	if err != nil {
		return nil, dataError(a.file, where, "%v", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, dataError(a.file, where, "%v", err)
	}
	if int64(len(data)) > most {
		return nil, dataError(a.file, where, "has more than %d MiB, the limit of memory", most>>20)
	}
	t, err := npy.Parse(data)
	if err == nil {
		_, err = numbers(t.Type, t.Shape)
	}
	if err != nil {
		return nil, dataError(a.file, where, "%v", err)
	}
	return t, r.reserve(a.file, len(t.Data))
}

// openArchive opens an archive and reads labels from it.
func (r *reader) openArchive(path string) (*npz, error) {
	a, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	if err := r.arrayLabels(a); err != nil {
		a.f.Close()
		return nil, err
	}
	return a, nil
}

// member finds the data of one input in its own .npz file.
func (r *reader) member(s *inputSpec, path string) (column, error) {
	a, err := r.openArchive(path)
	if err != nil {
		return column{}, err
	}
	defer a.f.Close()
	return r.pickArray(a, s, s.value.Name, true)
}

// arrayLabels reads the array that Column names.
func (r *reader) arrayLabels(a *npz) error {
	if r.o.Column == "" || r.labels.values != nil || r.labels.names != nil {
		return nil
	}
	if a.members[r.o.Column] == nil {
		return dataError(a.file, "", "has no array %q for labels; its arrays are %s", r.o.Column, quoted(a.names))
	}
	t, err := a.read(r, r.o.Column)
	if err != nil {
		return err
	}
	return r.labels.array(t, a.file, "array "+r.o.Column)
}

// pickArray returns the array named like an input, or the only one if the model has one input.
func (r *reader) pickArray(a *npz, s *inputSpec, name string, only bool) (column, error) {
	pick := name
	if a.members[name] == nil {
		others := slices.DeleteFunc(slices.Clone(a.names), func(n string) bool { return n == r.o.Column })
		if !only || len(others) != 1 {
			return column{}, dataError(a.file, "", "has no array %q, as the model's input is called; its arrays are %s", name, quoted(a.names))
		}
		pick = others[0]
	}
	t, err := a.read(r, pick)
	if err != nil {
		return column{}, err
	}
	return r.array(s, t, a.file, "array "+pick, false)
}
