// Package samples reads the data that a model is evaluated on, and its labels: NumPy arrays,
// tables, images, or folders of them, one for each input of a model or one for its only input.
//
// Data with a wrong shape, values that are not numbers, or a wrong number of labels give a
// [DataError] that names the file, the place and what was expected. Everything is loaded by
// [Open], so that later passes over the data cannot fail.
package samples

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
)

// Options describe the source and number of samples. The zero value generates inputs.
type Options struct {
	// Path is a .npy, .npz or .csv file, an image, or a folder of .npy files or images, whose
	// subfolders, if any, are classes. With "" inputs are generated unless Inputs are given. A
	// folder or .npz may hold data of several inputs under their names.
	Path string
	// Inputs maps names of inputs to such paths.
	Inputs map[string]string
	// Labels is a .npy, .csv or .txt file with a label for each sample, "" for those of Column or
	// of the class folders.
	Labels string
	// Column is the column of the table with labels, by its title or number from 1, or the array
	// of the .npz.
	Column string
	// Mean and Std normalise images: (pixel/255 - Mean)/Std, one value for all channels or one
	// each; nil for 0 and 1.
	Mean, Std []float32
	// Limit is the maximum number of samples, drawn with Seed if there are more; 0 for all.
	Limit int
	Seed  uint64
	// MaxBytes bounds the memory of the data, 0 for no limit.
	MaxBytes int
	// SessionBytes bounds the memory of each session on the data, the data included, 0 for no
	// limit.
	SessionBytes int
	// Feed configures generated inputs; Made is their number, 0 for 16.
	Feed inputs.Options
	Made int
}

// DataError reports an error in the data.
type DataError struct {
	// File is the file, Place the position in it: "row 3, column 2", "sample 7"; "" for the whole
	// file.
	File, Place string
	// Text says what was found and what was expected.
	Text string
}

// Error joins file, place and text.
func (e *DataError) Error() string {
	s := e.File
	if e.Place != "" {
		if s != "" {
			s += ": "
		}
		s += e.Place
	}
	if s == "" {
		return e.Text
	}
	return s + ": " + e.Text
}

func dataError(file, place, format string, args ...any) error {
	return &DataError{file, place, fmt.Sprintf(format, args...)}
}

// Set is a set of samples ready for a model. It is immutable and safe for concurrent reads.
type Set struct {
	// Path is the source of the samples, "" for generated ones, which Random marks.
	Path   string
	Random bool
	// Labels has a label for each sample, nil without labels: numbers as given, or indices of
	// names in Classes, which are sorted.
	Labels  []float64
	Classes []string
	// Batch is the number of samples per run: 1, except for models with a larger fixed batch.
	Batch int
	// Available is the number of samples that the source has, 0 for generated ones.
	Available int

	inputs [][]*tensor.Tensor // by run, in the order of the model's inputs

	sessionBytes, held int // see Memory
}

// Memory returns the limit of sessions that run on the samples, in bytes, 0 for no limit, and how
// much of it all samples of the source take, those of other parts included.
func (s *Set) Memory() (limit, held int) { return s.sessionBytes, s.held }

// Len is the number of samples.
func (s *Set) Len() int { return len(s.inputs) * s.Batch }

// Runs is the number of runs that cover all samples.
func (s *Set) Runs() int { return len(s.inputs) }

// Inputs returns the inputs of a run, in the order of the model's inputs; they must not be
// changed. They hold samples run*Batch to (run+1)*Batch.
func (s *Set) Inputs(run int) []*tensor.Tensor { return s.inputs[run] }

// Bytes is the memory of the inputs.
func (s *Set) Bytes() int {
	n := 0
	for _, in := range s.inputs {
		for _, t := range in {
			n += len(t.Data)
		}
	}
	return n
}

// Split divides the runs into used and held-out ones, drawn with seed. Neither set is empty if
// there are two runs and share is between 0 and 1; both keep the order.
func (s *Set) Split(share float64, seed uint64) (used, held *Set) {
	n := len(s.inputs)
	out := int(share*float64(n) + 0.5)
	if share > 0 && share < 1 && n > 1 {
		out = min(max(out, 1), n-1)
	}
	out = min(max(out, 0), n)
	gone := make([]bool, n)
	for _, i := range rand.New(rand.NewPCG(seed, 0x5eed)).Perm(n)[:out] {
		gone[i] = true
	}
	var in, left []int
	for i, g := range gone {
		if g {
			left = append(left, i)
		} else {
			in = append(in, i)
		}
	}
	return s.Pick(in), s.Pick(left)
}

// Pick returns a set of some of the runs.
func (s *Set) Pick(runs []int) *Set {
	p := &Set{Path: s.Path, Random: s.Random, Classes: s.Classes, Batch: s.Batch, Available: s.Available, sessionBytes: s.sessionBytes, held: s.held}
	for _, r := range runs {
		p.inputs = append(p.inputs, s.inputs[r])
		if s.Labels != nil {
			p.Labels = append(p.Labels, s.Labels[r*s.Batch:(r+1)*s.Batch]...)
		}
	}
	return p
}

// SHA256 returns the hash of samples and labels as the model reads them, in hexadecimal digits.
// It depends on the values, not on their location.
func (s *Set) SHA256() string {
	h := sha256.New()
	for _, in := range s.inputs {
		for _, t := range in {
			fmt.Fprintln(h, t.Type, t.Shape, len(t.Strings), len(t.Data))
			for _, x := range t.Strings {
				fmt.Fprintf(h, "%q\n", x)
			}
			h.Write(t.Data)
		}
	}
	fmt.Fprintln(h, s.Labels, s.Classes)
	return hex.EncodeToString(h.Sum(nil))
}

// WithInputs returns a set of other inputs, without labels, one per run: the inputs of a part of
// the model on these samples.
func (s *Set) WithInputs(inputs [][]*tensor.Tensor) *Set {
	return &Set{Path: s.Path, Random: s.Random, Batch: 1, inputs: inputs, sessionBytes: s.sessionBytes, held: s.held}
}

// Open reads samples for a model. Errors are a [DataError], file system errors, and those of
// [inputs.Inputs] for generated inputs.
func Open(m *graph.Model, o Options) (*Set, error) {
	s, err := open(m, o)
	if err != nil {
		return nil, err
	}
	s.sessionBytes, s.held = o.SessionBytes, s.Bytes()
	return s, nil
}

func open(m *graph.Model, o Options) (*Set, error) {
	if o.Path == "" && len(o.Inputs) == 0 {
		if o.Labels != "" {
			return nil, dataError(o.Labels, "", "has labels of samples, but there is no data")
		}
		return synthetic(m, o)
	}
	r := &reader{model: m, o: o, remainingBytes: o.MaxBytes}
	if err := r.findPaths(); err != nil {
		return nil, err
	}
	if err := r.columns(); err != nil {
		return nil, err
	}
	return r.set()
}

// synthetic generates random samples.
func synthetic(m *graph.Model, o Options) (*Set, error) {
	s := &Set{Random: true, Batch: 1}
	n := cmp.Or(o.Made, 16)
	if o.Limit > 0 {
		n = min(n, o.Limit)
	}
	f := o.Feed
	f.MaxBytes = o.MaxBytes
	if o.MaxBytes > 0 {
		f.MaxBytes = max(1, o.MaxBytes/n)
	}
	for i := range n {
		f.Seed = o.Seed + uint64(i)*0x9e3779b97f4a7c15
		ins, _, err := inputs.Inputs(m, f)
		if err != nil {
			return nil, err
		}
		s.inputs = append(s.inputs, ins)
	}
	return s, nil
}

// reader collects the data of the inputs.
type reader struct {
	model          *graph.Model
	o              Options
	remainingBytes int // bytes that may still be allocated, if o.MaxBytes is not 0

	columnsOf []column // by input
	labels    labels
}

// column is the data of an input: samples from which the wanted ones are selected.
type column struct {
	file string
	// place is the part of the file, "" for all of it.
	place string
	n     int
	// whole is an array whose first axis counts samples; nil where each sample is a file.
	whole *tensor.Tensor
	files []string
	// table says that the elements of a sample are a row of numbers.
	table bool
	// spec says how elements are converted to those of the input.
	spec *inputSpec
}

// reserve reserves memory.
func (r *reader) reserve(file string, n int) error {
	if r.o.MaxBytes == 0 {
		return nil
	}
	if n < 0 || n > r.remainingBytes {
		return dataError(file, "", "the data takes more than %d MiB of memory, the limit; fewer samples can be asked for", r.o.MaxBytes>>20)
	}
	r.remainingBytes -= n
	return nil
}

// chooseSamples draws the samples to use among n.
func (r *reader) chooseSamples(n int) []int {
	if r.o.Limit <= 0 || n <= r.o.Limit {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	some := rand.New(rand.NewPCG(r.o.Seed, 0x1abe1)).Perm(n)[:r.o.Limit]
	slices.Sort(some)
	return some
}

// set builds the inputs of all runs.
func (r *reader) set() (*Set, error) {
	first := r.columnsOf[0]
	s := &Set{Path: r.o.Path, Batch: 1, Available: first.n}
	for _, c := range r.columnsOf {
		if c.n != first.n {
			return nil, dataError(c.file, c.place, "has %d samples, and %s has %d", c.n, first.file, first.n)
		}
		s.Batch = max(s.Batch, c.spec.batch)
	}
	if first.n == 0 {
		return nil, dataError(first.file, first.place, "has no samples")
	}
	if err := r.labels.read(r, first.n); err != nil {
		return nil, err
	}
	chosen := r.chooseSamples(first.n)
	s.Path = cmp.Or(s.Path, first.file)
	chosen = chosen[:len(chosen)/s.Batch*s.Batch]
	if len(chosen) == 0 {
		return nil, dataError(first.file, first.place, "has %d samples, and the model takes %d at a time", first.n, s.Batch)
	}
	s.Classes = r.labels.classes
	if r.labels.values != nil {
		for _, i := range chosen {
			s.Labels = append(s.Labels, r.labels.values[i])
		}
	}
	for lo := 0; lo < len(chosen); lo += s.Batch {
		ins := make([]*tensor.Tensor, len(r.columnsOf))
		for k := range r.columnsOf {
			t, err := r.columnsOf[k].input(r, chosen[lo:lo+s.Batch])
			if err != nil {
				return nil, err
			}
			ins[k] = t
		}
		s.inputs = append(s.inputs, ins)
	}
	return s, nil
}
