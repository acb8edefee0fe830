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

// ErrDynamic is returned (wrapped or not) by Infer when output shapes depend on unknown input
// elements. At run time all inputs are known. If Infer still returns ErrDynamic then, Run makes
// the outputs with [Call.Make] (If, Loop, sequences, strings).
var ErrDynamic = errors.New("output shape is known only at run time")

// ErrUnsupported is wrapped by Prepare and Infer when the operator is known but this combination
// of types or options is not, and by [ErrUnknown]. The engine then marks the node as unsupported
// and reports the reason.
var ErrUnsupported = errors.New("not supported")

// ErrUnknown is wrapped when an operator has no definition at all.
var ErrUnknown = fmt.Errorf("%w: no such operator", ErrUnsupported)

// UnsupportedError describes what is not supported.
type UnsupportedError struct {
	Detail string
	kind   error
}

// Error returns the text of [ErrUnsupported] followed by the detail.
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
	// Since and Until bound the operator-set version (ONNX) or operator version (TFLite), both
	// inclusive; 0 means no bound. If several definitions match, the one with the highest Since
	// is used.
	Since, Until int
	// Types lists the element types of the main input that Prepare supports, for display
	// (`opmeter ops`). Nil means any.
	Types []tensor.Type
	// Infer sets Type and Shape of every non-nil element of c.Out.
	Infer func(c *Call) error
	// Prepare prepares the node for one combination of shapes and returns the function that runs
	// it. It sets c.Kernel to the name of the kernel if it could choose between several.
	Prepare func(c *Call) (Run, error)
	// Stateful marks operators whose result does not depend on their inputs alone (random
	// numbers, variables, resources). They are never constant-folded.
	Stateful bool
	// ShapeOnly marks operators that read types and shapes of their inputs but no elements
	// (Shape, Size, Rank). They are folded as soon as types and shapes are known.
	ShapeOnly bool
	// InPlace allows the planner to share the memory of output 0 and input 0 when both have the
	// same size and input 0 is not needed afterwards.
	InPlace bool
	// Updates lists pairs of an input and an output that may be the same memory if both have the
	// same type and shape, such as caches that Run appends to. Run then writes only what changes.
	Updates [][2]int
	// Fuses says that Prepare honours Call.Activation.
	Fuses bool
	// Uniform returns the element that output 0 has at every position, for operators that fill a
	// tensor. The tensor is materialised only for consumers that need it. Nil for other
	// operators.
	Uniform func(c *Call) *tensor.Tensor
	// AcceptsUniform reports whether Prepare does not need the elements of the constant input i,
	// which has the same element at every position: Prepare reads it from Call.Uniform. Nil means
	// never.
	AcceptsUniform func(c *Call, i int, one *tensor.Tensor) bool
	// NHWC reports how Prepare honours Call.NHWCIn and Call.NHWCOut for a call whose shapes are
	// known. Nil means not at all.
	NHWC func(c *Call) NHWCSupport
}

// NHWCSupport says which 8-bit quantised [N,C,H,W] tensors an operator can read and write in
// channels-last memory order.
type NHWCSupport uint8

// Levels of support for channels-last (NHWC) memory order.
const (
	NHWCNever NHWCSupport = iota
	// NHWCAll operators have all their feature maps in the same order.
	NHWCAll
	// NHWCAny operators read all their inputs in one order and write their outputs in either
	// order.
	NHWCAny
	// NHWCOutOnly operators write either order, but cannot read channels-last inputs.
	NHWCOutOnly
	// NHWCBoth is NHWCAny for operators that are slower unless inputs and outputs are
	// channels-last.
	NHWCBoth
)

// Versions repeats a definition for each operator-set version in which the format changed the
// operator without an effect on this implementation.
func Versions(d Def, since ...int) []Def {
	out := make([]Def, len(since))
	for i, s := range since {
		d.Since = s
		out[i] = d
	}
	return out
}

// Simple is the Prepare function of operators that need no preparation.
func Simple(run Run) func(*Call) (Run, error) {
	return func(*Call) (Run, error) { return run, nil }
}

// Needs wraps infer with a check that inputs 0 to n-1 are present.
func Needs(n int, infer func(c *Call) error) func(c *Call) error {
	return func(c *Call) error {
		if err := c.NeedInputs(n); err != nil {
			return err
		}
		return infer(c)
	}
}

// Infer makes the Infer function of an operator from read, which checks the node and sets its
// outputs. Prepare obtains the same geometry with [Must].
func Infer[G any](read func(c *Call) (G, error)) func(c *Call) error {
	return func(c *Call) error {
		_, err := read(c)
		return err
	}
}

// Must returns v. It is for a Prepare that repeats what Infer has checked: an error is impossible
// then, and Must panics with it.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Parallel makes a run that calls f for ranges of n work items in parallel, each at least grain
// long as for [workers.Pool.For]. The run does not allocate.
func Parallel(n, grain int, f func(c *Call, lo, hi int)) Run {
	return func(c *Call) error {
		workers.Do(c.Pool, n, grain, c, f)
		return nil
	}
}

// ParallelWorkers is [Parallel] with the number of the worker, for its scratch memory.
func ParallelWorkers(n, grain int, f func(c *Call, worker, lo, hi int)) Run {
	var call *Call
	work := func(worker, lo, hi int) { f(call, worker, lo, hi) }
	return func(c *Call) error {
		call = c
		c.Pool.ForWorker(n, grain, work)
		call = nil
		return nil
	}
}

// noShape marks an output whose shape Infer has not set.
var noShape = []int{-1}

// InferOutputs calls Infer. It fails if Infer leaves a requested output without a shape: such an
// output is never computed.
func (d *Def) InferOutputs(c *Call) error {
	for i, x := range c.Out {
		if x != nil && !c.isVariable(i) {
			x.Shape = noShape
		}
	}
	err := d.Infer(c)
	for i, x := range c.Out {
		if x == nil || len(x.Shape) != 1 || &x.Shape[0] != &noShape[0] {
			continue
		}
		x.Shape = nil
		if err == nil && !x.Type.IsContainer() {
			err = Unsupported("output %d, which is requested, is not computed", i)
		}
	}
	return err
}

// isVariable reports whether output i is a variable, which has a shape of its own.
func (c *Call) isVariable(i int) bool {
	if c.Graph == nil || c.Node == nil || i >= len(c.Node.Outputs) {
		return false
	}
	id := c.Node.Outputs[i]
	return id >= 0 && id < len(c.Graph.Values) && c.Graph.Values[id].Variable
}

// Call is the argument of a definition's functions. In and Out follow the node's inputs and
// outputs. Absent optional ones are nil; trailing ones may be missing altogether: use
// [Call.Input] and [Call.Has].
type Call struct {
	Model *graph.Model
	Graph *graph.Graph
	Node  *graph.Node
	In    []*tensor.Tensor
	Out   []*tensor.Tensor
	// Activation is a following activation that the engine has fused into this node. It is set
	// only for definitions with Fuses.
	Activation activation.Clamp
	// NHWCIn says that the quantised feature maps that the node reads are channels-last in
	// memory, although their shapes are [N,C,H,W]. NHWCOut says the same of its outputs. They are
	// set only for definitions whose NHWC allows it.
	NHWCIn, NHWCOut bool
	// Exact forbids approximations that the file permits, such as rounded activations.
	Exact bool
	// Fixed says for each input whether its value stays the same for the life of the prepared
	// node: constants of the model and values folded from them. Nil stands for the model's
	// constants.
	Fixed []bool
	// Uniform holds, by input, the element of a constant that has it at every position and is not
	// materialised, nil for other inputs. It may be shorter than In. It is set only for
	// definitions whose AcceptsUniform allows it.
	Uniform []*tensor.Tensor
	Pool    *workers.Pool
	// Kernel names the kernel that Prepare chose, such as "im2col". It is empty where an operator
	// has only one.
	Kernel string
	// Computes is the element type that the kernel multiplies in, if it is not that of the operands.
	Computes tensor.Type
	// Recipe is the result of Prepare for code generators that emit the node as a program for
	// another machine: a type of internal/runtime/tfliteop/recipe. Nil if a definition does not
	// provide it.
	Recipe any
	Env    Env // never nil while preparing and running; nil while inferring
	// Recycler provides the memory for temporary results that Prepare computes from constants and
	// does not keep. Nil means fresh memory.
	Recycler *Recycler
	// Limit bounds each block of memory that the node may request, in bytes; 0 means no limit. It
	// is what others leave of a limit of the model, of which they use Held bytes.
	Limit, Held int
	kept        bool
	workspace   *Workspace // scratch memory that the call shares with others; nil for its own
	scratch     [][]byte
	packed      []int
	copied      []int
	copyRanges  []CopyRange
}

// CopyRange says that a range of bytes of an output is a copy of a range of bytes of an input,
// contiguous in both.
type CopyRange struct {
	Out, OutOffset int // output index and byte offset in it
	In, InOffset   int // input index and byte offset in it
	Bytes          int
}

// Env provides the engine's services to operators.
type Env interface {
	// Body returns the runner of a nested graph, by its index in Model.Graphs.
	Body(graph int) (Body, error)
	// State returns the session's value under the key, nil when it is absent. It lives as long as
	// the session: variables, random generators.
	State(key string) any
	// SetState stores a value under the key.
	SetState(key string, v any)
	// Turn is called before each iteration of a loop with the time at which the loop began.
	// Before a call of a graph it is called with the zero time, which stands for the start of the
	// inference. It fails with a [LoopError] when the loop is considered endless: its number of
	// iterations is unbounded, or an inference has run very many of them, and the time limit has
	// passed.
	Turn(began time.Time, bounded bool) error
	// Hold records that the node keeps n more bytes (the results that a loop collects) until it
	// releases them with a negative n. It fails with a [LimitError] when the total exceeds the
	// limit.
	Hold(n int, bounded bool) error
}

// Body runs a nested graph. Its results may be inputs of its next run and may share memory with
// its inputs. Callers must not write to them. They stay valid until the run after the next; copy
// what is needed for longer.
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

// Wants reports whether output i is requested.
func (c *Call) Wants(i int) bool { return i >= 0 && i < len(c.Out) && c.Out[i] != nil }

// Const reports whether input i is constant, so that Prepare may read its elements. Other inputs
// may change from run to run.
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

// Known reports whether every one of the given inputs is absent or a constant whose elements are
// known.
func (c *Call) Known(inputs ...int) bool {
	for _, i := range inputs {
		if c.Has(i) && (!c.Const(i) || !c.In[i].Known()) {
			return false
		}
	}
	return true
}

// SetOut sets type and shape of output i if it is requested. It keeps the shape slice without
// copying it.
func (c *Call) SetOut(i int, t tensor.Type, shape []int) {
	if c.Wants(i) {
		c.Out[i].Type, c.Out[i].Shape = t, shape
	}
}

// Result sets type and shape of output 0, see [Call.SetOut]. It returns nil, the result of an Infer
// that ends with it.
func (c *Call) Result(t tensor.Type, shape []int) error {
	c.SetOut(0, t, shape)
	return nil
}

// Make gives output i a type, a shape and fresh elements from within Run, for operators whose
// shapes are known only at run time.
func (c *Call) Make(i int, t tensor.Type, shape []int) (*tensor.Tensor, error) {
	if err := c.AffordTensor(t, shape); err != nil {
		return nil, err
	}
	x := c.Out[i]
	*x = tensor.Tensor{Type: t, Shape: shape, Quant: x.Quant}
	x.Alloc()
	return x, nil
}

// Scratch reserves n bytes for the duration of the node's run and returns them. Call it from
// Prepare. The bytes are 8-byte aligned. Other nodes may write to them between runs, so their
// content is arbitrary at the start of each run. Scratch panics with a [LimitError] when n
// exceeds Limit; the engine returns it as the error of Prepare.
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

// cacheBytes is more than a last-level cache usually holds for one thread.
const cacheBytes = 64 << 20

// ConstantsExceedCache reports whether the model's constants are so large in total that every run
// reads them from memory.
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

// oncePerSession returns the value under the key in the session's state, computed by made on
// first use.
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

// Packed records, in Prepare, that Run does not read the constant input i: Prepare has kept what
// it needs of it.
func (c *Call) Packed(i int) { c.packed = append(c.packed, i) }

// Copied is [Call.Packed] for inputs of whose memory Prepare has kept no part either: the memory
// may be reused.
func (c *Call) Copied(i int) { c.Packed(i); c.copied = append(c.copied, i) }

// IsCopied reports whether [Call.Copied] was called for input i.
func (c *Call) IsCopied(i int) bool { return slices.Contains(c.copied, i) }

// IsPacked reports whether [Call.Packed] was called for input i.
func (c *Call) IsPacked(i int) bool { return slices.Contains(c.packed, i) }

// NoteCopy records, in Prepare, which bytes Run copies from an input to an output. The planner
// may then place the output so that the bytes already are at their destination. Run has to check
// for that and skip the copy.
func (c *Call) NoteCopy(p CopyRange) {
	if c.workspace != nil && c.workspace.open {
		c.copyRanges = append(c.copyRanges, p)
	}
}

// CopyRanges lists the ranges recorded by [Call.NoteCopy].
func (c *Call) CopyRanges() []CopyRange { return c.copyRanges }

// Share returns, in Prepare, the result of made, a form of the constant input i. All nodes of a
// session that read the constant in this form share one result. An unrolled loop would otherwise
// hold its weights once per iteration.
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

// readers returns, by value of the graph, how many inputs of the file's nodes refer to it. It is
// computed once per session. Plans may add values after those of the file.
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

// Keeper is an [Env] that counts what prepared nodes keep.
type Keeper interface {
	// Keep counts n bytes that a node is about to keep. The error is a [LimitError], or
	// [ErrPlanned] in sessions that never run.
	Keep(n int) error
}

// ErrPlanned ends a Prepare that would keep much memory in a session that never runs.
var ErrPlanned = errors.New("planned only")

// Keep counts, in Prepare, n bytes that the node keeps between runs, such as packed weights. Call
// it before they are allocated: it panics with an error of [Keeper], which the engine handles. A
// negative number corrects an earlier call.
func (c *Call) Keep(n int) {
	c.kept = true
	if k, ok := c.Env.(Keeper); ok {
		if err := k.Keep(n); err != nil {
			panic(err)
		}
	}
}

// Kept reports whether [Call.Keep] was called.
func (c *Call) Kept() bool { return c.kept }

// LimitError reports that a model requests more memory than the limit allows. Want includes what
// the model uses already.
type LimitError struct{ Want, Limit int }

// Error states both sizes in MiB, from 1 GiB on in GiB.
func (e *LimitError) Error() string {
	// Round up to a tenth of a unit so that a size above the limit does not print as the limit
	// itself.
	up := func(v float64) float64 { return math.Ceil(v*10) / 10 }
	same := func(v float64) float64 { return v }
	return fmt.Sprintf("needs %s of memory, the limit is %s", binary(e.Want, up), binary(e.Limit, same))
}

// binary formats a size with its unit.
func binary(n int, round func(float64) float64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", round(float64(n)/(1<<10)))
	}
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", round(float64(n)/(1<<20)))
	}
	return fmt.Sprintf("%.1f GiB", round(float64(n)/(1<<30)))
}

// LoopError reports that a loop was considered endless.
type LoopError struct {
	Limit time.Duration
	Calls bool // graphs that call each other, not a loop
}

// Error states the time limit of loops.
func (e *LoopError) Error() string {
	if e.Calls {
		return fmt.Sprintf("the graphs that it calls, more than a million times, had not ended after %v, which is the limit for loops without a known end", e.Limit)
	}
	return fmt.Sprintf("its loop had not ended after %v, which is the limit for loops without a known end", e.Limit)
}

// WorkError reports that a constant needs more operations to compute than the limit allows.
type WorkError struct{ Want, Limit int64 }

// Error states both numbers in thousand millions of operations.
func (e *WorkError) Error() string {
	return fmt.Sprintf("this constant takes %.0f thousand million operations to compute, the limit is %.0f", float64(e.Want)/1e9, float64(e.Limit)/1e9)
}

// MaxText bounds the elements of one string tensor, in bytes. Models hold words and identifiers,
// not libraries.
const MaxText = 128 << 20

// AffordText fails with a [LimitError] when n bytes of strings in total exceed the limit of a
// tensor.
func (c *Call) AffordText(n int) error {
	if n > MaxText {
		return &LimitError{Want: n, Limit: MaxText}
	}
	return c.Afford(n)
}

// Afford fails with a [LimitError] when n bytes exceed Limit.
func (c *Call) Afford(n int) error {
	if c.Limit > 0 && n > c.Limit {
		return &LimitError{Want: n + c.Held, Limit: c.Limit + c.Held}
	}
	return nil
}

// AffordTensor checks a shape like [tensor.CheckShape] and its memory against Limit.
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

// ScratchBytes is the sum of all sizes that Scratch has reserved.
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

// Ints reads a known integer tensor (int32, int64 or fewer bits) as ints. It returns [ErrDynamic]
// when the elements are not known.
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

// ReadInts is [Ints] into caller-provided memory of the tensor's length, for runs that must not
// allocate.
func ReadInts(dst []int64, x *tensor.Tensor) error {
	if err := knownInts(x); err != nil {
		return err
	}
	tensor.Read(dst, x, 0)
	return nil
}

// knownInts fails unless x is an integer tensor with known elements.
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

// SameMemory reports whether two slices are the same part of memory, such as those of a pair of
// [Def.Updates].
func SameMemory[E any](a, b []E) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Iota lists the integers below n, such as the axes of rank n.
func Iota(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}
