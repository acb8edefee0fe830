package opmeter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// ErrMemory is wrapped by a [ModelError] if the model, in the requested shapes, takes more memory
// than the limit.
var ErrMemory = errors.New("not enough memory")

// ErrChanged is wrapped by a [ModelError] if the model's file, or one with its weights, changed
// while the model was in use.
var ErrChanged = errors.New("the file changed while it was in use")

// OptionError reports an option with an invalid value, or with one that does not fit the model or
// target.
type OptionError struct {
	// Option is the field of the options, such as "Threads" or "Inputs.Shapes", or the name of an
	// argument, such as "target".
	Option string
	// Text says what is wrong with the value and which values are valid.
	Text string
	// Err is the cause, nil for none.
	Err error
}

// Error gives the option and the text.
func (e *OptionError) Error() string { return e.Option + ": " + e.Text }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// ModelError reports a fault of a model, or why this computer cannot run it.
type ModelError struct {
	// File is the model's file as it was named.
	File string
	// Place is the place in the model, such as "graph.node[12]" or
	// "Model.subgraphs[0].tensors[3]"; empty for the model as a whole.
	Place string
	// Offset is the byte in the file, -1 if the fault has no single place.
	Offset int64
	// Err says what is wrong.
	Err error
}

// Error gives file, place and offset as far as they are known, and what is wrong.
func (e *ModelError) Error() string {
	s := e.File
	if e.Place != "" {
		s += ": " + e.Place
	}
	if e.Offset >= 0 {
		s += " at byte " + strconv.FormatInt(e.Offset, 10)
	}
	if s == "" {
		return e.Err.Error()
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// NodeError reports a node of a model that failed in a run.
type NodeError struct {
	// File is the model's file as it was named.
	File string
	// Graph and Node are positions in the file, from 0.
	Graph, Node int
	// Op is the operator with its domain, Name the node's name, "" if it has none.
	Op, Name string
	// Err says what went wrong.
	Err error
}

// Error gives file, graph, node, operator and name, then the cause.
func (e *NodeError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.File, e.place(), e.Err)
}

// place names the node.
func (e *NodeError) place() string {
	where, name := "", ""
	if e.Graph > 0 {
		where = fmt.Sprintf("graph %d ", e.Graph)
	}
	if e.Name != "" {
		name = " " + strconv.Quote(e.Name)
	}
	return fmt.Sprintf("%snode %d (%s%s)", where, e.Node, e.Op, name)
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// UnrunError reports that most of a model did not run, so that it has no latency. The profile comes
// with the error: it has the figures of the other layers, and the cause of each that did not run.
type UnrunError struct {
	File string
	// Layers are the indices of those that did not run, of Of.
	Layers []int64
	Of     int
}

// Error states how much did not run.
func (e *UnrunError) Error() string {
	return fmt.Sprintf("%s: %d of %d layers did not run: no latency for the model", e.File, len(e.Layers), e.Of)
}

// TooLargeError reports a model whose inference takes more work than the options allow.
type TooLargeError struct {
	// File is the model's file as it was named.
	File string
	// MaxMACs is the limit that was set, in multiply-accumulates.
	MaxMACs int64
}

// Error gives file and limit.
func (e *TooLargeError) Error() string {
	return e.File + ": " + (&host.TooLargeError{Limit: e.MaxMACs}).Error()
}

// inputOptions holds the fields of the options by the names in errors of package inputs.
var inputOptions = map[string]string{"iterations": "Inputs.Iterations", "shape": "Inputs.Shapes", "dim": "Inputs.Dims", "input": "Inputs.Files", "batch": "Inputs.Batch", "carry": "Carry"}

// failed gives an error its public type. Errors of a public type stay unchanged.
func failed(file string, err error) error {
	if err == nil {
		return nil
	}
	if public(err) {
		return err
	}
	if e, ok := errors.AsType[*inputs.OptionError](err); ok {
		return &OptionError{Option: inputOptions[e.Option], Text: e.Text, Err: err}
	}
	if is[*chip.UnknownError](err) {
		return &OptionError{Option: "target", Text: err.Error(), Err: err}
	}
	if e, ok := errors.AsType[*estimate.UseError](err); ok {
		return &OptionError{Option: map[string]string{"runtime": "Runtime", "build": "Build", "flash": "Flash", "clock": "ClockHz"}[e.Option], Text: e.Text, Err: err}
	}
	if e, ok := errors.AsType[*machine.HoldError](err); ok {
		return &OptionError{Option: "MaxMemory", Text: e.Error(), Err: err}
	}
	if e, ok := errors.AsType[*host.TooLargeError](err); ok {
		return &TooLargeError{File: file, MaxMACs: e.Limit}
	}
	if e, ok := errors.AsType[*host.ContradictionError](err); ok {
		n := nodeError(file, e.First)
		return &ModelError{File: file, Place: n.place(), Offset: -1, Err: hinted(n.Err, e.Hint)}
	}
	if e, ok := errors.AsType[*engine.NodeError](err); ok {
		return nodeError(file, e)
	}
	if e, ok := errors.AsType[*plan.MalformedError](err); ok {
		n := nodeError(file, &engine.NodeError{Graph: e.Graph, Node: e.Node, Err: e.Err})
		return &ModelError{File: file, Place: n.place(), Offset: -1, Err: n.Err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, profile.ErrJournal) {
		return journalError(err)
	}
	if is[*op.LimitError](err) {
		return &ModelError{File: file, Offset: -1, Err: caused(trimmed{err, file + ": "})}
	}
	if is[*source.FaultError](err) {
		return err
	}
	return modelError(file, err)
}

// journalError is the public error for a journal that cannot be created.
func journalError(err error) error {
	return &OptionError{Option: "Journal", Text: strings.TrimPrefix(err.Error(), profile.ErrJournal.Error()+": "), Err: err}
}

func nodeError(file string, e *engine.NodeError) *NodeError {
	return &NodeError{File: file, Graph: e.Graph, Node: e.Node.Index, Op: e.Node.Key(), Name: e.Node.Name, Err: caused(e.Err)}
}

// hinted adds a sentence to an error, nothing for "".
func hinted(err error, hint string) error {
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w. %s", err, hint)
}

// public reports whether an error is of one of the types of this package.
func public(err error) bool {
	return is[*OptionError](err) || is[*ModelError](err) || is[*NodeError](err) || is[*TooLargeError](err)
}

// is reports whether an error, or one that it wraps, has a type.
func is[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

// modelError returns a ModelError with the place that the cause names.
func modelError(file string, err error) error {
	if e, ok := errors.AsType[*mapped.ChangedError](err); ok {
		return &ModelError{File: e.File, Offset: -1, Err: caused(e)}
	}
	if e, ok := errors.AsType[*onnx.Error](err); ok {
		return &ModelError{File: e.File, Place: e.Path, Offset: e.Offset, Err: e.Err}
	}
	if e, ok := errors.AsType[*tflite.Error](err); ok {
		return &ModelError{File: e.File, Place: e.Path, Offset: e.Offset, Err: e.Err}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &ModelError{File: e.Path, Offset: -1, Err: e.Err}
	}
	return &ModelError{File: file, Offset: -1, Err: trimmed{err, file + ": "}}
}

// caused marks an error as a case of [ErrMemory] or [ErrChanged].
func caused(err error) error {
	if is[*op.LimitError](err) {
		return marked{err, ErrMemory}
	}
	if is[*mapped.ChangedError](err) {
		return marked{err, ErrChanged}
	}
	return err
}

// marked is an error that is also another one.
type marked struct {
	error
	as error
}

// Is reports what the error was marked as.
func (e marked) Is(target error) bool { return target == e.as }

func (e marked) Unwrap() error { return e.error }

// trimmed is an error whose text does not repeat the file's name.
type trimmed struct {
	error
	prefix string
}

func (e trimmed) Error() string {
	s := e.error.Error()
	if len(s) > len(e.prefix) && s[:len(e.prefix)] == e.prefix {
		return s[len(e.prefix):]
	}
	return s
}

func (e trimmed) Unwrap() error { return e.error }
