// Package submodel makes models of parts of a model, as files that any engine reads.
//
// A cut keeps some nodes of the main graph with all nodes that they depend on, and has as
// outputs what the nodes that are left out, or the model's own outputs, need of it. The
// file is changed where it has to be and nowhere else: weights, options, operator sets,
// functions, bodies of control flow and inputs stay byte for byte as they are, so that an
// engine has no other reason to execute the rest differently. Weights that no node of the
// cut reads are left out of ONNX files; elements that lie in files beside an ONNX model are
// put into the cut, which may stand in any folder.
//
// What cannot be cut is an [Error] with a code.
package submodel

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// Code says why a model cannot be cut at a place.
type Code string

// Reasons.
const (
	NoNode     Code = "no_node"     // a node that the file's main graph does not have
	InFunction Code = "in_function" // a part of what is one call in the file
	Between    Code = "between"     // others lie between the nodes and depend on them
	NoOutput   Code = "no_output"   // nobody needs what the nodes make
	NoConstant Code = "no_constant" // elements in a file beside the model that cannot be put into the cut
	TooLarge   Code = "too_large"   // more than a file of the format can have
	Malformed  Code = "malformed"   // the file, or the cut of it, is none
)

// Error says why a model cannot be cut.
type Error struct {
	Code Code
	Text string
	Err  error
}

// Error gives the text, and the cause behind it.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Text + ": " + e.Err.Error()
	}
	return e.Text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Source is a model that parts are made of.
type Source struct {
	m *graph.Model
	// nodes are those of the file's main graph, in the order of the file. made is the node
	// that makes a value, by the value.
	nodes []node
	made  map[int]int
	// outputs are the values that are outputs of the model.
	outputs map[int]bool
	// inputs are those that a run is given.
	inputs map[int]bool
	// name is that of a value in the file.
	name func(value int) string
	// file is the node of the file by that of the model, -1 where none could be told.
	file []int
	// emit writes the file with some of the nodes, and with these values as outputs. in are the inputs of a
	// stretch, nil for those of the file.
	emit func(keep []bool, outputs []int, in *entries) ([]byte, error)
}

// node is what a node of the file reads and writes, values as numbers.
type node struct {
	reads, writes []int
	// effect marks a node that does more than to make its outputs, such as to set a variable:
	// what comes after it may depend on it.
	effect bool
}

// Model is a part of a model.
type Model struct {
	// Data is the file.
	Data []byte
	// Nodes is the number of nodes in it.
	Nodes int
	// Outputs are the names of its outputs, in order.
	Outputs []string
}

// New takes a model in memory, which must stay unchanged as long as the source is used. name
// stands for the file in errors, dir is the folder of external data, "" for none. Errors are an
// [Error]. [Source.Close] releases external data.
func New(data []byte, name, dir string) (*Source, error) {
	var s *Source
	err := mapped.Guard(func() (err error) {
		if len(data) >= 8 && string(data[4:8]) == "TFL3" {
			s, err = newTFLite(data, name)
		} else {
			s, err = newONNX(data, name, dir)
		}
		return err
	})
	if err != nil {
		return nil, malformed(name, err)
	}
	s.made = make(map[int]int)
	for i := range s.nodes {
		for _, v := range s.nodes[i].writes {
			if _, twice := s.made[v]; !twice {
				s.made[v] = i
			}
		}
	}
	return s, nil
}

// Open takes a model file; the same as [New] of what it holds. The file must not be an archive.
func Open(path string) (*Source, error) {
	f, err := mapped.Open(path)
	if err != nil {
		return nil, malformed(path, err)
	}
	s, err := New(f.Data, path, filepath.Dir(path))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	rest := s.m.Close
	s.m.Close = func() error {
		if rest == nil {
			return f.Close()
		}
		return errors.Join(rest(), f.Close())
	}
	return s, nil
}

func malformed(name string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Malformed, Text: name + " cannot be cut", Err: err}
}

// Close releases the files that the model was read from.
func (s *Source) Close() error {
	if s.m.Close == nil {
		return nil
	}
	return s.m.Close()
}

// Model is the whole model. Its nodes are what [Source.Prefix] and [Source.Around] count.
func (s *Source) Model() *graph.Model { return s.m }

// Prefix makes a model of the first nodes of the model's main graph, up to and including the
// one at position last.
func (s *Source) Prefix(last int) (*Model, error) {
	if last < 0 || last >= len(s.file) {
		return nil, errorf(NoNode, "node %d of %d", last, len(s.file))
	}
	keep := make([]bool, len(s.nodes))
	for i, f := range s.file[:last+1] {
		switch {
		case f >= 0:
			keep[f] = true
		case i == last:
			return nil, errorf(InFunction, "node %d is in no call that could be told", last)
		}
	}
	for i, f := range s.file[last+1:] {
		if f >= 0 && keep[f] {
			return nil, errorf(InFunction, "nodes %d and %d are parts of one call", last, last+1+i)
		}
	}
	s.close(keep)
	return s.make(keep)
}

// Around makes two models: one of some nodes of the main graph and all that they depend on, and
// one without the nodes themselves. What the first one does more than the second is what the
// nodes do. without is nil where they depend on no node.
func (s *Source) Around(nodes []int) (with, without *Model, err error) {
	inner := make([]bool, len(s.nodes))
	for _, n := range nodes {
		if n < 0 || n >= len(s.file) {
			return nil, nil, errorf(NoNode, "node %d of %d", n, len(s.file))
		}
		if s.file[n] < 0 {
			return nil, nil, errorf(InFunction, "node %d is in no call that could be told", n)
		}
		inner[s.file[n]] = true
	}
	if len(nodes) == 0 {
		return nil, nil, errorf(NoNode, "no nodes")
	}
	for n, f := range s.file {
		if f >= 0 && inner[f] && !slices.Contains(nodes, n) {
			return nil, nil, errorf(InFunction, "node %d is part of a call with others", n)
		}
	}
	all := slices.Clone(inner)
	s.close(all)
	before := make([]bool, len(s.nodes))
	for i := range s.nodes {
		before[i] = all[i] && !inner[i]
	}
	// What the nodes depend on must not depend on them.
	rest := slices.Clone(before)
	s.close(rest)
	for i := range rest {
		if rest[i] && inner[i] {
			return nil, nil, errorf(Between, "other nodes lie between those that are to be cut out")
		}
	}
	if with, err = s.make(all); err != nil {
		return nil, nil, err
	}
	real := false // beside constants, which make no model
	for _, f := range s.file {
		real = real || f >= 0 && before[f]
	}
	if !real {
		return with, nil, nil
	}
	if without, err = s.make(before); err != nil {
		return nil, nil, err
	}
	return with, without, nil
}

// close adds what the nodes depend on.
func (s *Source) close(keep []bool) {
	var stack []int
	last := -1
	for i, k := range keep {
		if k {
			stack, last = append(stack, i), i
		}
	}
	// Of what sets a variable nobody knows who depends on it.
	for i := range s.nodes[:last+1] {
		if s.nodes[i].effect && !keep[i] {
			keep[i] = true
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, v := range s.nodes[i].reads {
			if from, ok := s.made[v]; ok && !keep[from] {
				keep[from] = true
				stack = append(stack, from)
			}
		}
	}
}

// make writes a cut and reads it again: what is wrong with it is to be known here and not in an
// engine.
func (s *Source) make(keep []bool) (*Model, error) { return s.write(keep, nil) }

// write does what make does, for a stretch too, which has inputs of its own.
func (s *Source) write(keep []bool, in *entries) (*Model, error) {
	needed := map[int]bool{}
	for i, k := range keep {
		if !k {
			for _, v := range s.nodes[i].reads {
				needed[v] = true
			}
		}
	}
	out := &Model{}
	var outputs []int
	have := map[int]bool{}
	for i, k := range keep {
		if !k {
			continue
		}
		out.Nodes++
		for _, v := range s.nodes[i].writes {
			if (needed[v] || s.outputs[v]) && !have[v] {
				have[v] = true
				outputs = append(outputs, v)
			}
		}
	}
	if len(outputs) == 0 {
		return nil, errorf(NoOutput, "nobody needs what the nodes make")
	}
	var whole *graph.Model
	err := mapped.Guard(func() (err error) {
		if out.Data, err = s.emit(keep, outputs, in); err != nil {
			return err
		}
		if s.m.Format == "tflite" {
			whole, err = tflite.Parse(out.Data, s.m.Path)
		} else {
			whole, err = onnx.Parse(out.Data, s.m.Path, "")
		}
		return err
	})
	if err != nil {
		return nil, malformed(s.m.Path, err)
	}
	g := whole.Main()
	if len(g.Outputs) != len(outputs) || in == nil && len(g.Inputs) > len(s.m.Main().Inputs) {
		return nil, errorf(Malformed, "%s: the cut has %d outputs, want %d", s.m.Path, len(g.Outputs), len(outputs))
	}
	for _, id := range g.Outputs {
		if id < 0 {
			return nil, errorf(Malformed, "%s: the cut lacks an output", s.m.Path)
		}
		out.Outputs = append(out.Outputs, g.Values[id].Name)
	}
	if whole.Close != nil {
		return out, whole.Close()
	}
	return out, nil
}
