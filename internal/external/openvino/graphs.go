//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"fmt"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// readGraphs writes both graphs and reads them back. If that fails, it returns nil and adds a
// note.
func (s *session) readGraphs(r *recorder) *graphs {
	if s.l.write == nil {
		r.notes = append(r.notes, fmt.Sprintf("OpenVINO %s does not let its graphs be written here: executed nodes are found in the model by their names alone.", s.l.version))
		return nil
	}
	g, err := s.compareGraphs()
	if err != nil {
		r.notes = append(r.notes, fmt.Sprintf("The graphs of OpenVINO could not be read (%v): executed nodes are found in the model by their names alone.", err))
		return nil
	}
	return g
}

func (s *session) compareGraphs() (*graphs, error) {
	read, err := s.graph(s.model, "read")
	if err != nil {
		return nil, err
	}
	var m uintptr
	if st := invoke(s.l.c.runtimeModel, s.compiled, uintptr(unsafe.Pointer(&m))); st != 0 || m == 0 {
		return nil, s.l.failed(external.Failed, st, "no executed graph")
	}
	defer invoke(s.l.c.modelFree, m)
	ran, err := s.graph(m, "executed")
	if err != nil {
		return nil, err
	}
	file, err := openModel(s.task)
	if err != nil {
		return nil, err
	}
	if file.Close != nil {
		defer func() { _ = file.Close() }()
	}
	return newGraphs(read, ran, file), nil
}

// openModel reads the model of a task.
func openModel(t *external.Task) (*graph.Model, error) {
	if t.Format == "tflite" {
		return tflite.Open(t.Model)
	}
	return onnx.Open(t.Model)
}

// graph writes a graph and reads it back.
func (s *session) graph(m uintptr, name string) (*irGraph, error) {
	f, err := s.l.write.write(m, s.task.Folder, name)
	if err != nil {
		return nil, err
	}
	g, err := readIR(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return g, err
}
