// Package submodel extracts parts of a model as files that any engine can read.
//
// An extracted model keeps some nodes of the main graph with all nodes that they depend on. Its
// outputs are the values that the removed nodes, or the model's own outputs, need of it. The file
// changes only where necessary. Weights, options, operator sets, functions, control flow
// subgraphs and inputs stay identical byte for byte, so that an engine has no other reason to
// execute the rest differently. Weights that no remaining node reads are dropped from ONNX files.
// External data of an ONNX model is embedded, so the result can be stored in any folder.
//
// A failure is an [Error] with a code.
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

// Code says why a part cannot be extracted.
type Code string

// Reasons.
const (
	NoNode     Code = "no_node"     // the file's main graph has no such node
	InFunction Code = "in_function" // a part of what is a single function call in the file
	Between    Code = "between"     // other nodes in between depend on the nodes
	NoOutput   Code = "no_output"   // no other node or output needs the results
	NoConstant Code = "no_constant" // external data that cannot be embedded
	TooLarge   Code = "too_large"   // exceeds the size limit of the format
	Malformed  Code = "malformed"   // the file, or the extracted model, is invalid
)

// Error says why a part cannot be extracted.
type Error struct {
	Code Code
	Text string
	Err  error
}

// Error returns the text and the cause.
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

// Source is a model to extract parts from.
type Source struct {
	m *graph.Model
	// nodes are the nodes of the file's main graph in file order. made maps a value to its
	// producer.
	nodes []node
	made  map[int]int
	// outputs are the values that are outputs of the model.
	outputs map[int]bool
	// inputs are the values supplied to a run.
	inputs map[int]bool
	// name returns the name of a value in the file.
	name func(value int) string
	// number returns the number of a value of the model's main graph, false if the file's graph
	// has no such value.
	number func(id int) (int, bool)
	// file maps nodes of the model to nodes of the file, -1 where unknown.
	file []int
	// emit writes the file with some of the nodes and the given outputs. in are the inputs of a
	// window, nil for those of the file.
	emit func(keep []bool, outputs []int, in *windowInputs) ([]byte, error)
}

// node has the values that a node of the file reads and writes, by number.
type node struct {
	reads, writes []int
	// effect marks a node with side effects, such as setting a variable: later nodes may depend
	// on it.
	effect bool
}

// Model is an extracted part of a model.
type Model struct {
	// Data is the file content.
	Data []byte
	// Nodes is its number of nodes.
	Nodes int
	// Outputs are the names of its outputs, in order.
	Outputs []string
}

// New reads a model in memory, which must stay unchanged while the source is used. name is for
// error messages, dir is the folder of external data, "" for none. Errors are an [Error].
// [Source.Close] releases external data.
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

// Open reads a model file, like [New] with its content. The file must not be an archive.
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

// Model is the complete model. [Source.Prefix] and [Source.WithAndWithout] refer to its nodes.
func (s *Source) Model() *graph.Model { return s.m }

// Prefix extracts the first nodes of the model's main graph, up to and including position last.
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
	s.addDependencies(keep)
	return s.extract(keep)
}

// WithAndWithout extracts two models: some nodes of the main graph with all their dependencies,
// and the dependencies alone. The difference between both is the work of the nodes. without is
// nil where they depend on no node.
func (s *Source) WithAndWithout(nodes []int) (with, without *Model, err error) {
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
	s.addDependencies(all)
	before := make([]bool, len(s.nodes))
	for i := range s.nodes {
		before[i] = all[i] && !inner[i]
	}
	// The dependencies must not depend on the nodes.
	rest := slices.Clone(before)
	s.addDependencies(rest)
	for i := range rest {
		if rest[i] && inner[i] {
			return nil, nil, errorf(Between, "other nodes lie between those that are to be cut out")
		}
	}
	if with, err = s.extract(all); err != nil {
		return nil, nil, err
	}
	real := false // nodes other than constants, which alone are not a model
	for _, f := range s.file {
		real = real || f >= 0 && before[f]
	}
	if !real {
		return with, nil, nil
	}
	if without, err = s.extract(before); err != nil {
		return nil, nil, err
	}
	return with, without, nil
}

// Has reports whether the file's graph has a value of the model's main graph: values inside a call
// of a function are only in the model.
func (s *Source) Has(id int) bool {
	v, ok := s.number(id)
	if ok {
		_, ok = s.made[v]
	}
	return ok
}

// Values extracts the nodes that some values of the model's main graph depend on, with these values
// as outputs, in order.
func (s *Source) Values(ids []int) (*Model, error) {
	keep := make([]bool, len(s.nodes))
	var outputs []int
	for _, id := range ids {
		if !s.Has(id) {
			return nil, errorf(NoNode, "no node of the file computes value %d (%q)", id, s.m.Main().Values[id].Name)
		}
		v, _ := s.number(id)
		keep[s.made[v]] = true
		outputs = append(outputs, v)
	}
	s.addDependencies(keep)
	out := &Model{}
	for _, k := range keep {
		if k {
			out.Nodes++
		}
	}
	return s.check(out, keep, outputs, nil)
}

// addDependencies adds the dependencies of the kept nodes.
func (s *Source) addDependencies(keep []bool) {
	var stack []int
	last := -1
	for i, k := range keep {
		if k {
			stack, last = append(stack, i), i
		}
	}
	// Any node may depend on one that sets a variable.
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

// extract writes a part and reads it again, so that errors show up here and not in an engine.
func (s *Source) extract(keep []bool) (*Model, error) { return s.write(keep, nil) }

// write does the same for windows too, which have their own inputs.
func (s *Source) write(keep []bool, in *windowInputs) (*Model, error) {
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
	return s.check(out, keep, outputs, in)
}

// check writes nodes with the given outputs, and reads the result again.
func (s *Source) check(out *Model, keep []bool, outputs []int, in *windowInputs) (*Model, error) {
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
