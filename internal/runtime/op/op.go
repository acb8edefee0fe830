package op

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// ErrDynamic is returned (wrapped or not) by Infer when output shapes depend on
// input elements that are not known. At run time all inputs are known; an Infer
// that still returns ErrDynamic leaves it to Run to make the outputs with
// [Call.Make] (If, Loop, sequences, strings).
var ErrDynamic = errors.New("output shape is known only at run time")

// ErrUnsupported is wrapped by Prepare and Infer when the operator is known but
// this combination of types or options is not, and by [ErrUnknown]. The engine then
// treats the node as unsupported and says why.
var ErrUnsupported = errors.New("not supported")

// ErrUnknown is wrapped where there is no definition for an operator at all.
var ErrUnknown = fmt.Errorf("%w: no such operator", ErrUnsupported)

// UnsupportedError says what exactly is not supported.
type UnsupportedError struct {
	Detail string
	kind   error
}

// Error says that it is not supported, and what.
func (e *UnsupportedError) Error() string { return ErrUnsupported.Error() + ": " + e.Detail }

// Unwrap returns [ErrUnsupported] or [ErrUnknown].
func (e *UnsupportedError) Unwrap() error { return e.kind }

// Unsupported makes an error that wraps [ErrUnsupported].
func Unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...), ErrUnsupported}
}

// Unknown makes the error for an operator that has no definition at a version.
func Unknown(version int) error {
	return &UnsupportedError{fmt.Sprintf("version %d", version), ErrUnknown}
}

// Run computes one inference of a prepared node. It reads c.In, writes c.Out.
type Run func(c *Call) error

// Def defines one operator for a range of versions.
type Def struct {
	Domain, Name string
	// Since and Until bound the operator-set version (ONNX) or operator version
	// (TFLite), both inclusive; 0 means no bound. Where several definitions match,
	// the one with the highest Since is taken.
	Since, Until int
	// Types lists the element types of the main input that Prepare takes, for
	// people (`opmeter ops`). Nil means any.
	Types []tensor.Type
	// Infer sets Type and Shape of every element of c.Out that is not nil.
	Infer func(c *Call) error
	// Prepare gets the node ready for one set of shapes and returns what runs it. It
	// names the kernel that it chose in c.Kernel where it had a choice.
	Prepare func(c *Call) (Run, error)
	// Stateful marks operators whose result is not a function of their inputs
	// alone (random numbers, variables, resources): they are never folded.
	Stateful bool
	// ShapeOnly marks operators that read the types and shapes of their inputs but
	// no elements (Shape, Size, Rank): they are folded as soon as those are known.
	ShapeOnly bool
	// InPlace tells the planner that output 0 may share memory with input 0 when
	// both have the same size and input 0 is not needed afterwards.
	InPlace bool
	// Fuses tells that Prepare honours Call.Activation.
	Fuses bool
	// Uniform gives the one element that output 0 has everywhere, for definitions that fill: it is written out for those readers only that
	// cannot do without. Nil for others.
	Uniform func(c *Call) *tensor.Tensor
	// AcceptsUniform tells whether Prepare does not need the elements of input i, which is constant and has this one everywhere: it finds it
	// in Call.Same. Nil for never.
	AcceptsUniform func(c *Call, i int, one *tensor.Tensor) bool
	// NHWC tells how Prepare honours Call.LastIn and Call.LastOut for a call whose shapes are known; nil for not at all.
	NHWC func(c *Call) NHWCSupport
}

// NHWCSupport says which pictures of 8-bit codes, in [N,C,H,W], a call takes and makes with their channels last in memory.
type NHWCSupport uint8

// The ways of operators with channels that are last.
const (
	NHWCNever NHWCSupport = iota
	// NHWCAll operators have all their pictures in the same order.
	NHWCAll
	// NHWCAny operators have the pictures that they read in one order, and what they make in any other.
	NHWCAny
	// NHWCOutOnly operators make pictures in any order, and read none that has channels last.
	NHWCOutOnly
	// NHWCBoth is AnyLast for what is slower unless both are last.
	NHWCBoth
)

// Versions repeats a definition for each operator-set version in which the format
// changed the operator without changing what this implementation does.
func Versions(d Def, since ...int) []Def {
	out := make([]Def, len(since))
	for i, s := range since {
		d.Since = s
		out[i] = d
	}
	return out
}

// Simple is Prepare for operators that have nothing to prepare.
func Simple(run Run) func(*Call) (Run, error) {
	return func(*Call) (Run, error) { return run, nil }
}

// Call is what a definition's functions are given. In and Out follow the node's
// inputs and outputs; absent optional ones are nil (trailing ones may be
// missing altogether: use [Call.Input] and [Call.Has]).
type Call struct {
	Model *graph.Model
	Graph *graph.Graph
	Node  *graph.Node
	In    []*tensor.Tensor
	Out   []*tensor.Tensor
	// Activation is a following activation that the engine has fused into this
	// node. Only set for definitions with Fuses.
	Activation activation.Clamp
	// NHWCIn says that the pictures of codes that the node reads have their channels last in memory, although their shapes
	// are [N,C,H,W]; LastOut says so of what it makes. Only set for definitions whose Last takes it.
	NHWCIn, NHWCOut bool
	// Fixed tells for each input whether it keeps its value for the life of the
	// prepared node: constants of the model and what was folded from them. Nil
	// stands for the model's constants.
	Fixed []bool
	// Uniform has by input the element that is everywhere in a constant that is not written out, nil for others; it may be shorter than In. Only
	// set for definitions whose TakesSame takes it.
	Uniform []*tensor.Tensor
	Pool    *workers.Pool
	// Kernel names the way of computing that Prepare chose, such as "im2col"; empty
	// where an operator has one way.
	Kernel string
	// Recipe is what Prepare worked out, for those who write the node as a program for
	// another machine: a type of internal/runtime/tfliteop/recipe. Nil where a definition does not
	// tell.
	Recipe any
	Env    Env // never nil while preparing and running; nil while inferring
	// Recycler is what Prepare makes of constants in, if it keeps nothing of that; nil for fresh memory.
	Recycler *Recycler
	// Limit bounds each piece of memory that the node may ask for, in bytes; 0
	// stands for no limit.
	Limit      int
	workspace  *Workspace // working memory that the call shares with others; nil for memory of its own
	scratch    [][]byte
	packed     []int
	copied     []int
	copyRanges []CopyRange
}

// CopyRange says that bytes of an output are those of an input in the same order, one after the other in both.
type CopyRange struct {
	Out, OutOffset int // number of the output, and its first byte
	In, InOffset   int // number of the input, and its first byte
	Bytes          int
}

// Env is what the engine offers to operators beyond their tensors.
type Env interface {
	// Body returns the runner of a nested graph, by its index in Model.Graphs.
	Body(graph int) (Body, error)
	// State returns the session's value under the key, nil when there is none.
	// It lives as long as the session: variables, random generators.
	State(key string) any
	// SetState stores a value under the key.
	SetState(key string, v any)
	// Turn is asked before each turn of a loop that began at the given time, and before
	// a call of a graph with the zero time, which stands for the begin of the inference.
	// It fails with a [LoopError] when the loop is taken for endless: where nothing
	// bounds the number of its turns, or an inference has taken very many, and the time
	// for it is over.
	Turn(began time.Time, bounded bool) error
	// Hold notes that the node keeps n more bytes until it gives them back with a
	// negative n: what a loop collects. It fails with a [LimitError] when that is too
	// much.
	Hold(n int, bounded bool) error
}

// Body runs a nested graph. Its results may be inputs of its next run, and may lie in the memory of its inputs. Nobody may write to them, and
// they stand until the run after the next: what is to stay longer has to be copied.
type Body interface {
	Run(inputs []*tensor.Tensor) (outputs []*tensor.Tensor, err error)
}

// Input returns input i, nil when it is absent.
func (c *Call) Input(i int) *tensor.Tensor {
	if i < 0 || i >= len(c.In) {
		return nil
	}
	return c.In[i]
}

// Has reports whether input i is present.
func (c *Call) Has(i int) bool { return c.Input(i) != nil }

// Wants reports whether output i is asked for.
func (c *Call) Wants(i int) bool { return i >= 0 && i < len(c.Out) && c.Out[i] != nil }

// Const reports whether input i is constant, so that Prepare may look at its
// elements. Other inputs may change from run to run.
func (c *Call) Const(i int) bool {
	if c.Fixed != nil {
		return i >= 0 && i < len(c.Fixed) && c.Fixed[i]
	}
	if i < 0 || i >= len(c.Node.Inputs) || c.Node.Inputs[i] < 0 || c.Graph == nil {
		return false
	}
	v := c.Graph.Values[c.Node.Inputs[i]]
	return v.Const != nil && !v.Variable
}

// Known reports whether those of the inputs that there are, are constants whose elements are known for good.
func (c *Call) Known(inputs ...int) bool {
	for _, i := range inputs {
		if c.Has(i) && (!c.Const(i) || !c.In[i].Known()) {
			return false
		}
	}
	return true
}

// SetOut sets type and shape of output i if it is wanted. The shape is kept, not
// copied.
func (c *Call) SetOut(i int, t tensor.Type, shape []int) {
	if c.Wants(i) {
		c.Out[i].Type, c.Out[i].Shape = t, shape
	}
}

// Make gives output i a type, a shape and fresh elements, from within Run, for
// operators whose shapes are only known then.
func (c *Call) Make(i int, t tensor.Type, shape []int) (*tensor.Tensor, error) {
	if err := c.AffordTensor(t, shape); err != nil {
		return nil, err
	}
	x := c.Out[i]
	*x = tensor.Tensor{Type: t, Shape: shape, Quant: x.Quant}
	x.Alloc()
	return x, nil
}

// Scratch reserves n bytes for the time of the node's run and returns them.
// Called from Prepare; the bytes are 8-byte aligned, and the node's own until its run ends: others
// may write to them between its runs, so that their content is arbitrary at the start of each. It panics with a [LimitError],
// which the engine returns as the error of Prepare, when n is beyond Limit.
func (c *Call) Scratch(n int) []byte {
	if err := c.Afford(n); err != nil {
		panic(err)
	}
	var b []byte
	if c.workspace != nil && c.workspace.open {
		b = c.workspace.alloc(n)
	} else {
		b = tensor.New(tensor.Uint8, n).Data
	}
	c.scratch = append(c.scratch, b)
	return b
}

// ScratchOf is [Call.Scratch] for n elements of a type.
func ScratchOf[T tensor.Number](c *Call, n int) []T {
	var z T
	return tensor.Of[T](&tensor.Tensor{Data: c.Scratch(n * int(unsafe.Sizeof(z)))})
}

// cacheBytes is more than caches of the third level usually hold for one thread.
const cacheBytes = 64 << 20

// ConstantsExceedCache tells whether the constants of the model are so large together that each run reads them from memory.
func (c *Call) ConstantsExceedCache() bool {
	if c.Model == nil {
		return false
	}
	return oncePerSession(c, "constants", func() int {
		sum := 0
		for _, g := range c.Model.Graphs {
			for _, v := range g.Values {
				if v.Const != nil {
					sum += len(v.Const.Data)
				}
			}
		}
		return sum
	}) > cacheBytes
}

// oncePerSession is what made makes, once for a session.
func oncePerSession[T any](c *Call, key string, made func() T) T {
	if c.Env == nil {
		return made()
	}
	x, ok := c.Env.State(key).(T)
	if !ok {
		x = made()
		c.Env.SetState(key, x)
	}
	return x
}

// Packed notes, in Prepare, that Run does not read the constant input i of its call: Prepare has kept what it
// needs of it.
func (c *Call) Packed(i int) { c.packed = append(c.packed, i) }

// Copied is [Call.Packed] where Prepare has kept nothing of the input's memory either: something else may be written there.
func (c *Call) Copied(i int) { c.Packed(i); c.copied = append(c.copied, i) }

// IsCopied reports whether [Call.Copied] has noted input i.
func (c *Call) IsCopied(i int) bool { return slices.Contains(c.copied, i) }

// IsPacked reports whether [Call.Packed] has noted input i.
func (c *Call) IsPacked(i int) bool { return slices.Contains(c.packed, i) }

// NoteCopy notes, in Prepare, what Run copies from an input to an output. The planner may lay the output so that the bytes are in
// their place already: Run has to find out whether they are, and leaves them as they are then.
func (c *Call) NoteCopy(p CopyRange) {
	if c.workspace != nil && c.workspace.open {
		c.copyRanges = append(c.copyRanges, p)
	}
}

// CopyRanges lists what [Call.Piece] has noted.
func (c *Call) CopyRanges() []CopyRange { return c.copyRanges }

// Share gives what is made of the constant input i of a call, in Prepare, in a form: once for all nodes of a session that read the constant
// so, as those of an unrolled loop do, whose weights would else be in memory once a turn.
func Share[T any](c *Call, i int, form string, made func() T) T {
	if c.Graph == nil || c.Env == nil {
		return made()
	}
	id := c.Node.Inputs[i]
	v, readers := c.Graph.Values[id], c.readers()
	if v.Const == nil || v.Variable || id >= len(readers) || readers[id] < 2 {
		return made()
	}
	return oncePerSession(c, fmt.Sprintf("%p %s", v.Const, form), made)
}

// readers counts how many inputs of the file's nodes each value of the graph is, once for a session; plans may add values behind those.
func (c *Call) readers() []int {
	return oncePerSession(c, fmt.Sprintf("%p readers", c.Graph), func() []int {
		n := make([]int, len(c.Graph.Values))
		for _, node := range c.Graph.Nodes {
			for _, id := range node.Inputs {
				if id >= 0 && id < len(n) {
					n[id]++
				}
			}
		}
		return n
	})
}

// LimitError tells that a model asks for more memory than it may have.
type LimitError struct{ Want, Limit int }

// Error gives both sizes, in MiB or from 1 GiB on in GiB.
func (e *LimitError) Error() string {
	// What is beyond a limit looks like it: it is rounded up to a tenth of a unit.
	up := func(v float64) float64 { return math.Ceil(v*10) / 10 }
	same := func(v float64) float64 { return v }
	return fmt.Sprintf("needs %s of memory, the limit is %s", binary(e.Want, up), binary(e.Limit, same))
}

// binary is a size with a unit.
func binary(n int, round func(float64) float64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", round(float64(n)/(1<<20)))
	}
	return fmt.Sprintf("%.1f GiB", round(float64(n)/(1<<30)))
}

// LoopError tells that a loop was taken for endless.
type LoopError struct {
	Limit time.Duration
	Calls bool // not a loop, but graphs that call each other
}

// Error says how long the loop may run.
func (e *LoopError) Error() string {
	if e.Calls {
		return fmt.Sprintf("the graphs that it calls, more than a million times, had not ended after %v, which is the limit for loops without a known end", e.Limit)
	}
	return fmt.Sprintf("its loop had not ended after %v, which is the limit for loops without a known end", e.Limit)
}

// WorkError tells that a constant takes more work than it may.
type WorkError struct{ Want, Limit int64 }

// Error gives both in thousand millions of operations.
func (e *WorkError) Error() string {
	return fmt.Sprintf("this constant takes %.0f thousand million operations to compute, the limit is %.0f", float64(e.Want)/1e9, float64(e.Limit)/1e9)
}

// MaxText bounds the elements of one tensor of strings, in bytes. Models hold words
// and identifiers, not libraries.
const MaxText = 128 << 20

// AffordText fails with a [LimitError] when strings of n bytes together are more than
// a tensor may have.
func (c *Call) AffordText(n int) error {
	limit := MaxText
	if c.Limit > 0 {
		limit = min(limit, c.Limit)
	}
	if n > limit {
		return &LimitError{Want: n, Limit: limit}
	}
	return nil
}

// Afford fails with a [LimitError] when n bytes are beyond Limit.
func (c *Call) Afford(n int) error {
	if c.Limit > 0 && n > c.Limit {
		return &LimitError{Want: n, Limit: c.Limit}
	}
	return nil
}

// AffordTensor checks a shape as [tensor.CheckShape] does and its memory against
// Limit.
func (c *Call) AffordTensor(t tensor.Type, shape []int) error {
	n, err := tensor.CheckShape(t, shape)
	if err != nil {
		return err
	}
	if t == tensor.String {
		return c.AffordText(16 * n) // a string's header; n is bounded by CheckShape
	}
	return c.Afford(t.Bytes(n))
}

// ScratchBytes is the sum of what Scratch has given out.
func (c *Call) ScratchBytes() int {
	n := 0
	for _, s := range c.scratch {
		n += len(s)
	}
	return n
}

// Errorf makes an error; the engine adds node index, operator and name.
func (c *Call) Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// NeedInputs fails unless inputs 0 to n-1 are present.
func (c *Call) NeedInputs(n int) error {
	for i := range n {
		if !c.Has(i) {
			return fmt.Errorf("input %d is missing", i)
		}
	}
	return nil
}

// Ints reads a known integer tensor of type int32 or int64 (or narrower) as
// ints. It returns [ErrDynamic] when the elements are not known.
func Ints(x *tensor.Tensor) ([]int, error) {
	if err := knownInts(x); err != nil {
		return nil, err
	}
	wide := make([]int64, x.Len())
	tensor.Read(wide, x, 0)
	out := make([]int, len(wide))
	for i, v := range wide {
		out[i] = int(v)
	}
	return out, nil
}

// ReadInts is [Ints] into memory for as many as the tensor has, in a run that must not allocate.
func ReadInts(dst []int64, x *tensor.Tensor) error {
	if err := knownInts(x); err != nil {
		return err
	}
	tensor.Read(dst, x, 0)
	return nil
}

// knownInts fails for what is no known integer tensor.
func knownInts(x *tensor.Tensor) error {
	switch {
	case x == nil:
		return errors.New("tensor is missing")
	case !x.Known():
		return ErrDynamic
	case !x.Type.IsInteger():
		return fmt.Errorf("%v tensor where integers are expected", x.Type)
	}
	return nil
}

// Axis resolves a possibly negative axis against a rank.
func Axis(axis, rank int) (int, error) {
	a := axis
	if a < 0 {
		a += rank
	}
	if a < 0 || a >= rank {
		return 0, fmt.Errorf("axis %d is outside rank %d", axis, rank)
	}
	return a, nil
}
