package inputs

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// dims holds the sizes of named dimensions.
type dims struct {
	// given holds sizes that follow from the options, taken those that were set to 1.
	given, taken map[string]int
	// batch holds the names of the first dimensions of inputs.
	batch map[string]bool
}

// DimNames lists the names that the file gives to open dimensions of a graph's inputs, in order.
func DimNames(g *graph.Graph) []string {
	var out []string
	for _, id := range g.Inputs {
		v := g.Values[id]
		for i := range v.Shape {
			if n := dimName(v, i); n != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// dimName returns the name of an open dimension, "" for others.
func dimName(v *graph.Value, i int) string {
	if i >= len(v.DimNames) || i >= len(v.Shape) || v.Shape[i] >= 0 {
		return ""
	}
	return v.DimNames[i]
}

// solve finds the sizes of named dimensions: sizes in the options, sizes of inputs whose shape is
// given, sums and products of these, and 1 for the rest.
func solve(g *graph.Graph, o Options, files []*tensor.Tensor) (*dims, error) {
	known := DimNames(g)
	d := &dims{given: map[string]int{}, taken: map[string]int{}, batch: map[string]bool{}}
	for _, n := range slices.Sorted(maps.Keys(o.Dims)) {
		if !slices.Contains(known, n) {
			return nil, unknownDim(n, known)
		}
		d.given[n] = o.Dims[n]
	}
	for k, id := range g.Inputs {
		v := g.Values[id]
		shape, ok := o.Shapes[v.Name]
		switch {
		case files[k] != nil:
			shape = files[k].Shape
		case ok:
		case o.Overrides.Dims[v.Name] != nil:
			shape = o.Overrides.Dims[v.Name]
		default:
			continue
		}
		for i := range shape {
			if n := dimName(v, i); n != "" {
				if _, has := d.given[n]; !has {
					d.given[n] = shape[i]
				}
			}
		}
	}
	// The batch is the first dimension of inputs. If its name occurs elsewhere too, it is set
	// there as well.
	if o.Batch > 0 {
		for _, id := range g.Inputs {
			if n := dimName(g.Values[id], 0); n != "" {
				d.batch[n] = true
				if _, has := d.given[n]; !has {
					d.given[n] = o.Batch
				}
			}
		}
	}
	d.derive(known)
	if err := d.complete(known, o.Dims); err != nil {
		return nil, err
	}
	for _, n := range known {
		_, has := d.given[n]
		if _, ok := d.value(n); !has && !ok && !compound(n, known) {
			d.taken[n] = 1
		}
	}
	d.derive(known)
	return d, nil
}

func unknownDim(name string, known []string) error {
	if len(known) == 0 {
		return optionError("dim", "the model has no dimension %q; none of its inputs has a named one", name)
	}
	return optionError("dim", "the model has no dimension %q; its open ones are %s", name, quoteAll(known))
}

// derive sets names that are sums and products of others, such as "past_sequence_length + 1", and
// the total of cached and new positions. Sizes derived from given ones count as given, sizes
// derived from one that was set to 1 do not.
func (d *dims) derive(known []string) {
	for range known {
		for _, n := range known {
			if _, ok := d.value(n); ok {
				continue
			}
			parts := terms(n, known)
			if parts == nil {
				continue
			}
			to, sum, ok := d.given, 0, true
			for _, factors := range parts {
				p := 1
				for _, f := range factors {
					v, has := d.value(f)
					if _, was := d.taken[f]; was {
						to = d.taken
					}
					if c, err := strconv.Atoi(f); err == nil {
						v, has = c, true
					}
					ok = ok && has
					p *= v
				}
				sum += p
			}
			if ok && sum > 0 && sum < 1<<40 {
				to[n] = sum
			}
		}
	}
}

// complete sets a name that is missing in a sum whose total and other parts are given, such as the
// cached positions of all positions. It fails if the options name a sum with other parts. Files
// and shapes may contradict a name: a cache may be a longer buffer.
func (d *dims) complete(known []string, named map[string]int) error {
	for _, n := range known {
		total, ok := d.given[n]
		parts := terms(n, known)
		if !ok || parts == nil {
			continue
		}
		sum, missing := 0, []string(nil)
		for _, factors := range parts {
			p := 1
			for _, f := range factors {
				v, has := d.given[f]
				if c, err := strconv.Atoi(f); err == nil {
					v, has = c, true
				}
				if !has {
					missing = append(missing, f)
				}
				p *= v
			}
			if len(missing) > 0 && len(factors) > 1 {
				missing = append(missing, "") // a factor of a product does not follow
				continue
			}
			sum += p
		}
		_, asked := named[n]
		switch {
		case len(missing) == 0 && sum != total && asked && namesAll(named, parts):
			return optionError("dim", "%q is %d, but its parts (%s) add up to %d: leave one of them out", n, total, joinTerms(parts), sum)
		case len(missing) == 1 && total >= sum:
			d.given[missing[0]] = total - sum
		case len(missing) == 1 && asked:
			return optionError("dim", "%q is %d, which is less than its parts (%s): %d", n, total, joinTerms(parts), sum)
		}
	}
	return nil
}

// namesAll reports whether the options name all parts of a sum but the numbers.
func namesAll(named map[string]int, parts [][]string) bool {
	for _, f := range slices.Concat(parts...) {
		if _, err := strconv.Atoi(f); err == nil {
			continue
		}
		if _, ok := named[f]; !ok {
			return false
		}
	}
	return true
}

// joinTerms writes a sum of products.
func joinTerms(parts [][]string) string {
	var out []string
	for _, factors := range parts {
		out = append(out, strings.Join(factors, " * "))
	}
	return strings.Join(out, " + ")
}

// compound reports whether a name is composed of others.
func compound(name string, known []string) bool { return terms(name, known) != nil }

// terms splits a name that is a sum of products of known names and numbers; nil for others.
// Exporters of language models name the length of the cache, the number of new positions, and
// their sum with the word "total".
func terms(name string, known []string) [][]string {
	if strings.ContainsAny(name, "+*") && !strings.ContainsAny(name, "()") {
		var out [][]string
		named := false
		for _, t := range strings.Split(name, "+") {
			var factors []string
			for _, f := range strings.Split(t, "*") {
				f = strings.TrimSpace(f)
				_, err := strconv.Atoi(f)
				if err != nil && (!slices.Contains(known, f) || f == name) {
					return nil
				}
				named = named || err != nil
				factors = append(factors, f)
			}
			out = append(out, factors)
		}
		if !named {
			return nil
		}
		return out
	}
	if !hasWord(name, "total") {
		return nil
	}
	var past, fresh []string
	for _, n := range known {
		switch {
		case n == name || hasWord(n, "batch") || hasWord(n, "total"):
		case hasWord(n, "past") || hasWord(n, "cache"):
			past = append(past, n)
		case hasWord(n, "seq") || hasWord(n, "sequence") || hasWord(n, "len") || hasWord(n, "length"):
			fresh = append(fresh, n)
		}
	}
	if len(past) != 1 || len(fresh) != 1 {
		return nil // ambiguous
	}
	return [][]string{{past[0]}, {fresh[0]}}
}

// hasWord reports whether a name contains a word, such as "past" in "past_seq_len".
func hasWord(name, word string) bool {
	return slices.Contains(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }), word)
}

func (d *dims) value(name string) (int, bool) {
	if v, ok := d.given[name]; ok {
		return v, true
	}
	v, ok := d.taken[name]
	return v, ok
}

// shape returns the shape of an input, and which of its dimensions were not given.
func (d *dims) shape(v *graph.Value, o Options) (shape []int, assumed []bool, err error) {
	if s, ok := o.Shapes[v.Name]; ok {
		return slices.Clone(s), nil, nil
	}
	if s, ok := o.Overrides.Dims[v.Name]; ok {
		shape = slices.Clone(s)
		if o.Batch > 0 && len(shape) > 0 {
			shape[0] = o.Batch
		}
		return shape, nil, nil
	}
	shape = synth.Shape(v)
	for i := range shape {
		if i >= len(v.Shape) || v.Shape[i] >= 0 {
			continue
		}
		if n := dimName(v, i); n != "" {
			if x, ok := d.value(n); ok {
				shape[i] = x
			}
			if _, ok := d.given[n]; ok {
				continue
			}
		}
		if i == 0 && o.Batch > 0 {
			continue
		}
		if assumed == nil {
			assumed = make([]bool, len(shape))
		}
		assumed[i] = true
	}
	if o.Batch > 0 && len(shape) > 0 && !d.batchElsewhere(v) {
		shape[0] = o.Batch
	}
	return shape, assumed, nil
}

// batchElsewhere reports whether an input has the batch in another position than the first, and
// its first dimension is fixed: a state with the layers first.
func (d *dims) batchElsewhere(v *graph.Value) bool {
	for i := range v.Shape {
		if i > 0 && d.batch[dimName(v, i)] {
			return v.Shape[0] >= 0
		}
	}
	return false
}
