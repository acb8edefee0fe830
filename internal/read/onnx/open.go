package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/read/wire"
)

// Open maps a model file and reads its structure. Constants are slices of the
// mapping until the model's Close. Files of external data are looked for in the
// model's folder.
func Open(path string) (*graph.Model, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &Error{File: path, Offset: -1, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{File: path, Offset: -1, Err: cause(err)}
	}
	defer f.Close()
	data, unmap, err := mapAll(f)
	if err != nil {
		return nil, &Error{File: path, Offset: -1, Err: cause(err)}
	}
	m, err := Parse(data, path, filepath.Dir(path))
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	rest := m.Close
	m.Close = func() error { return errors.Join(rest(), unmap()) }
	return m, nil
}

// Parse reads a model from memory, which must stay unchanged as long as the
// model is used. The name is for errors and Model.Path; dir is the folder of
// external data, "" when there is none. The model's Close releases that data.
func Parse(data []byte, name, dir string) (m *graph.Model, err error) {
	x := &external{dir: dir}
	defer func() {
		if err != nil {
			m = nil
			err = located(err, name)
			_ = x.close()
		}
	}()
	defer catchFault(&err)()
	if len(data) == 0 {
		return nil, errorf(-1, "file is empty")
	}
	d := &decoder{ext: x, intern: map[string]string{}, dense: 16<<20 + 64*int64(len(data))}
	raw, err := d.model(wire.NewReader(data))
	var w *wire.Error
	switch {
	case errors.As(err, &w): // not within any message that ONNX knows
		return nil, errorf(w.Offset, "file is truncated, damaged or not an ONNX model: %s", w.Msg)
	case err != nil:
		return nil, err
	}
	if raw.graph == nil {
		return nil, errorf(-1, "no graph in the file: it is not an ONNX model")
	}
	m = &graph.Model{
		Format: "onnx", Path: name, Name: raw.graph.name, Description: raw.doc,
		Producer:  strings.TrimSpace(raw.producer + " " + raw.version),
		FileBytes: int64(len(data)), IRVersion: int(raw.ir), Opsets: raw.opsets, Close: x.close,
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
	return m, m.Validate()
}

// located puts the file's name into an error.
func located(err error, name string) error {
	err = under(err, "")
	var e *Error
	if errors.As(err, &e) {
		e.File = name
	}
	return err
}

// catchFault turns a memory fault, which a mapped file raises when it is cut
// short by somebody else, into an error instead of the end of the process. Use
// as defer catchFault(&err)().
func catchFault(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		switch e := recover().(type) {
		case nil:
		case interface {
			error
			Addr() uintptr
		}:
			*err = fmt.Errorf("the file changed while it was read: %w", e)
		default:
			panic(e)
		}
	}
}
