package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/protoread"
)

// Open maps a model file and reads its structure. Constants are slices of the mapping until the
// model's Close. External data files are looked up in the model's folder.
func Open(path string) (*graph.Model, error) { return open(path, false) }

// OpenShapes is [Open] for a model whose external data files may be missing: see
// [graph.Model].Absent.
func OpenShapes(path string) (*graph.Model, error) { return open(path, true) }

func open(path string, shapes bool) (*graph.Model, error) {
	f, err := mapped.Open(path)
	if err != nil {
		return nil, &Error{File: path, Offset: -1, Err: cause(err)}
	}
	dir := filepath.Dir(path)
	m, err := Parse(f.Data, path, dir)
	if absent := err; shapes && errors.Is(err, fs.ErrNotExist) {
		if m, err = parse(f.Data, path, &external{dir: dir, optional: true}); err == nil {
			m.Absent = absent
			m.Warnings = append(m.Warnings, fmt.Sprintf("External data is missing: shapes and counts are known, the weights are not. %v", absent))
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	rest, check := m.Close, m.Check
	m.Close = func() error { return errors.Join(rest(), f.Close()) }
	m.Check = func() error { return cmp.Or(f.Check(), check()) }
	return m, nil
}

// Parse reads a model from memory, which must stay unchanged while the model is used. The name is
// for errors and Model.Path; dir is the folder of external data, "" if absent. The model's
// Close releases that data.
func Parse(data []byte, name, dir string) (*graph.Model, error) {
	return parse(data, name, &external{dir: dir})
}

func parse(data []byte, name string, x *external) (m *graph.Model, err error) {
	defer func() {
		if err != nil {
			m = nil
			err = located(err, name)
			_ = x.close()
		}
	}()
	err = mapped.Guard(func() error { m, err = x.model(data, name); return err })
	return m, err
}

// model reads the structure of a model.
func (x *external) model(data []byte, name string) (*graph.Model, error) {
	if len(data) == 0 {
		return nil, errorf(-1, "file is empty")
	}
	d := &decoder{ext: x, intern: map[string]string{}, dense: 16<<20 + 64*int64(len(data))}
	raw, err := d.model(protoread.NewReader(data))
	var w *protoread.Error
	switch {
	case errors.As(err, &w): // not inside any known ONNX message
		return nil, errorf(w.Offset, "file is truncated, damaged or not an ONNX model: %s", w.Msg)
	case err != nil:
		return nil, err
	}
	if raw.graph == nil {
		return nil, errorf(-1, "no graph in the file: it is not an ONNX model")
	}
	m := &graph.Model{
		Format: "onnx", Path: name, Name: raw.graph.name, Description: raw.doc,
		Producer:  strings.TrimSpace(raw.producer + " " + raw.version),
		FileBytes: int64(len(data)), IRVersion: int(raw.ir), Opsets: raw.opsets, Close: x.close, Check: x.check,
	}
	for _, e := range raw.meta {
		m.Metadata = append(m.Metadata, graph.Metadata{Name: e.key, Data: e.value})
	}
	if raw.training {
		m.Warnings = append(m.Warnings, "Training information in the file is ignored.")
	}
	b := &builder{m: m, raw: raw, budget: 100_000 + len(data)/4}
	if err := b.build(); err != nil {
		return nil, err
	}
	m.Beside, m.BesideBytes, m.BesideFileBytes = x.paths(), x.bytes, x.fileBytes()
	return m, m.Validate()
}

// located adds the file's name to an error.
func located(err error, name string) error {
	err = under(err, "")
	var e *Error
	if errors.As(err, &e) {
		e.File = name
	}
	return err
}
