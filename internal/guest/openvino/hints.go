//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"fmt"
	"unsafe"

	"github.com/opmeter/opmeter/internal/ingest"
)

// place says where a counter's node stands.
type place int

const (
	elsewhere place = iota
	executed        // a node of the executed graph
	fused           // part of the one before it
)

// readGraphs writes both graphs and reads them back, nil where that cannot be done: a note says so.
func (s *session) readGraphs(r *recorder) *graphs {
	if s.l.write == nil {
		r.notes = append(r.notes, fmt.Sprintf("OpenVINO %s does not let its graphs be written here: executed nodes are found in the model by their names alone.", s.l.version))
		return nil
	}
	g, err := func() (*graphs, error) {
		read, err := s.graph(s.model, "read")
		if err != nil {
			return nil, err
		}
		var m uintptr
		if st := invoke(s.l.c.runtimeModel, s.compiled, uintptr(unsafe.Pointer(&m))); st != 0 || m == 0 {
			return nil, s.l.failed("", st, "no executed graph")
		}
		defer invoke(s.l.c.modelFree, m)
		ran, err := s.graph(m, "executed")
		if err != nil {
			return nil, err
		}
		return newGraphs(read, ran, s.task.Format), nil
	}()
	if err != nil {
		r.notes = append(r.notes, fmt.Sprintf("The graphs of OpenVINO could not be read (%v): executed nodes are found in the model by their names alone.", err))
		return nil
	}
	return g
}

// graph writes a graph and reads it.
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

// graphs is what both graphs say of executed nodes.
type graphs struct {
	read, ran *irGraph
	lite      bool
}

func newGraphs(read, ran *irGraph, format string) *graphs {
	return &graphs{read: read, ran: ran, lite: format == "tflite"}
}

// of says where a counter's node stands and what it does.
func (g *graphs) of(n *node) (ingest.Hint, place) {
	if g == nil {
		return ingest.Hint{Nodes: []string{n.name}}, elsewhere
	}
	at, ok := g.ran.byName[n.name]
	if !ok {
		return ingest.Hint{Nodes: []string{n.name}}, fused
	}
	h := ingest.Hint{}
	for _, o := range append([]string{n.name}, g.ran.layers[at].origins...) {
		if i, ok := g.read.byName[o]; ok {
			h.Outputs = append(h.Outputs, g.read.makes(i)...)
		}
	}
	return h, executed
}

// makes lists the tensors that a layer makes, or those that what it makes becomes.
func (g *irGraph) makes(i int) []string {
	for _, o := range g.layers[i].outs {
		if len(o.names) > 0 {
			return o.names
		}
	}
	return nil
}
