package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Result is what another engine made of a model with the inputs of seed 1.
type Result struct {
	Dir      string   `json:"-"`
	Model    string   `json:"model"`
	Engine   string   `json:"engine"`
	Stateful bool     `json:"stateful"`
	Outputs  []Output `json:"outputs"`
	Run2     []Output `json:"run2"` // of a second run with the same inputs, for models with state
	Layers   []Layer  `json:"layers"`
}

// Output is a recorded tensor. Small ones are stored whole in File, large ones
// as the first elements in Head and every StrideStep-th one in Stride.
type Output struct {
	Name       string   `json:"name"`
	Dtype      string   `json:"dtype"`
	Shape      []int    `json:"shape"`
	SHA256     string   `json:"sha256"`
	Min        *float64 `json:"min"` // of the finite elements, nil without any
	Max        *float64 `json:"max"`
	File       string   `json:"file"`
	Head       string   `json:"head"`
	Stride     string   `json:"stride"`
	StrideStep int      `json:"strideStep"`
	First      []Number `json:"first"` // tflite_ops.json: the first elements
}

// Layer is the hash of one operator's output.
type Layer struct {
	Op     int    `json:"op"`
	Kind   string `json:"kind"`
	Tensor int    `json:"tensor"`
	Dtype  string `json:"dtype"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Number is a float that JSON may hold as a string (NaN, infinities).
type Number float64

// UnmarshalJSON implements jsonx.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	var f float64
	if err := jsonx.Unmarshal(b, &f); err == nil {
		*n = Number(f)
		return nil
	}
	var s string
	if err := jsonx.Unmarshal(b, &s); err != nil {
		return err
	}
	if _, err := fmt.Sscan(s, &f); err != nil {
		return fmt.Errorf("number %q: %w", s, err)
	}
	*n = Number(f)
	return nil
}

// Load reads a result.json.
func Load(file string) (*Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Result{Dir: filepath.Dir(file)}
	if err := jsonx.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// Entry is one model of tflite_ops.json.
type Entry struct {
	// Reference names the engine to trust, "" when none ran the model.
	Reference string `json:"reference"`
	// Disputed lists engines that contradict each other.
	Disputed []string `json:"disputed"`
	LiteRT   *Result  `json:"litert"`
	TFJS     *Result  `json:"tfjs"`
	TFLM     *Result  `json:"tflm"`
}

// By returns the result of an engine by its short name, nil if absent.
func (e *Entry) By(engine string) *Result {
	switch engine {
	case "litert":
		return e.LiteRT
	case "tfjs":
		return e.TFJS
	case "tflm":
		return e.TFLM
	}
	return nil
}

// emptyHash is the SHA-256 of no bytes: an engine that could not hand out its
// output.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Trusted returns the result of the reference engine, or of another where that
// one has recorded nothing; nil if absent.
func (e *Entry) Trusted() (engine string, r *Result) {
	for _, engine := range []string{e.Reference, "tflm", "litert", "tfjs"} {
		r := e.By(engine)
		if r == nil {
			continue
		}
		filled := true
		for _, o := range r.Outputs {
			filled = filled && (o.SHA256 != emptyHash || tensor.Elements(o.Shape) == 0)
		}
		if filled {
			return engine, r
		}
	}
	return "", nil
}

// LoadEntries reads tflite_ops.json.
func LoadEntries(file string) (map[string]*Entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all struct {
		Models map[string]*Entry `json:"models"`
	}
	if err := jsonx.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all.Models, nil
}

// sample picks the elements of got that the output recorded, beside what was
// recorded: several pairs for large outputs.
func (o *Output) sample(dir string, got *tensor.Tensor) (want, have []*tensor.Tensor, err error) {
	pick := func(name string, step int) error {
		w, err := npy.ReadFile(filepath.Join(dir, name), nil)
		if err != nil {
			return err
		}
		size := got.Type.Bits() / 8
		n := w.Len()
		h := tensor.New(got.Type, n)
		for i := range n {
			at := i * step * size
			if at+size > len(got.Data) {
				return fmt.Errorf("%d elements recorded, the output has %d", n, got.Len())
			}
			copy(h.Data[i*size:(i+1)*size], got.Data[at:])
		}
		want, have = append(want, w), append(have, h)
		return nil
	}
	switch {
	case o.File != "":
		err = pick(o.File, 1)
	case o.Head != "":
		if err = pick(o.Head, 1); err == nil {
			err = pick(o.Stride, o.StrideStep)
		}
	case o.First != nil:
		w := tensor.New(tensor.Float64, len(o.First))
		for i, v := range o.First {
			tensor.Of[float64](w)[i] = float64(v)
		}
		n := len(o.First)
		if n > got.Len() {
			return nil, nil, fmt.Errorf("%d elements recorded, the output has %d", n, got.Len())
		}
		h := *got
		h.Shape, h.Data = []int{n}, got.Data[:got.Type.Bytes(n)]
		want, have = append(want, w), append(have, &h)
	default:
		err = fmt.Errorf("nothing recorded")
	}
	return want, have, err
}

// sameShape forgives engines that drop or add axes of length one.
func sameShape(a, b []int) bool {
	one := func(d int) bool { return d == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), one), slices.DeleteFunc(slices.Clone(b), one))
}
