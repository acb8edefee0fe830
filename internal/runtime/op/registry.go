package op

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Registry maps operators to their definitions.
type Registry struct {
	parts []*registryPart
	// Schemas are the operator tables of the formats, see [Registry.Check].
	Schemas []*Schemas
	// Widen wraps Prepare of a float32 operator so that it converts float16 inputs and outputs.
	// Nil if no such wrapper is registered.
	Widen func(prepare func(*Call) (Run, error)) func(*Call) (Run, error)
}

// Check validates a node's inputs, outputs and attributes against the tables of the formats, see
// [Schemas.Check]. Nodes of operators that are in no table pass. A node of a file must not have
// an attribute that only planning passes set.
func (r *Registry) Check(n *graph.Node, in, out []*tensor.Tensor) error {
	if err := refusePlanAttrs(n); err != nil {
		return err
	}
	for _, s := range r.Schemas {
		if err := s.Check(n, in, out); err != nil {
			return err
		}
	}
	return nil
}

// OutputTypes returns the types of a node's outputs as far as they follow from the types of its
// inputs alone, see [Schemas.Outputs].
func (r *Registry) OutputTypes(n *graph.Node, in []*tensor.Tensor) []tensor.Type {
	for _, s := range r.Schemas {
		if s.Has(n.Domain, n.Op, n.Version) {
			return s.Outputs(n, in)
		}
	}
	return make([]tensor.Type, len(n.Outputs))
}

// UnknownAttributes lists a node's attributes that the tables do not have for its operator.
func (r *Registry) UnknownAttributes(n *graph.Node) []string {
	for _, s := range r.Schemas {
		if u := s.Unknown(n); len(u) > 0 {
			return u
		}
	}
	return nil
}

// OptionalOutput reports whether the tables allow a node of this operator to omit output i,
// regardless of its types.
func (r *Registry) OptionalOutput(n *graph.Node, i int) bool {
	for _, s := range r.Schemas {
		if s.Has(n.Domain, n.Op, n.Version) {
			return s.optionalOutput(n, i)
		}
	}
	return false
}

// registryPart is a group of a registry's definitions.
type registryPart struct {
	holds func(domain string) bool // reports whether it defines a domain; nil: any
	lists []func() []Def           // each builds its definitions once

	mu   sync.Mutex
	defs map[[2]string][]*Def // those looked up, by domain and name, highest Since first
}

// NewRegistry makes a registry of the given lists. A later definition with the same domain, name
// and Since replaces an earlier one.
func NewRegistry(lists ...[]Def) *Registry {
	r := &Registry{}
	r.AddLazy(nil, func() []Def { return slices.Concat(lists...) })
	return r
}

// AddLazy adds definitions of domains that the registry does not have yet. holds reports which
// domains these are; nil stands for all. A list is built only when an operator is looked up that
// no earlier list has, because models use few of the many operators. All definitions of an
// operator must be in one list.
func (r *Registry) AddLazy(holds func(domain string) bool, lists ...func() []Def) {
	p := &registryPart{holds: holds, defs: map[[2]string][]*Def{}}
	for _, l := range lists {
		p.lists = append(p.lists, sync.OnceValue(l))
	}
	r.parts = append(r.parts, p)
}

// find returns the definitions of an operator, highest Since first.
func (p *registryPart) find(domain, name string) []*Def {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := [2]string{domain, name}
	have, ok := p.defs[k]
	if ok {
		return have
	}
	for _, list := range p.lists {
		l := list()
		for i := range l {
			if d := &l[i]; d.Name == name && d.Domain == domain {
				have = insert(have, d)
			}
		}
		if have != nil {
			break
		}
	}
	p.defs[k] = have
	return have
}

// insert inserts a definition in order, or replaces the one with the same Since.
func insert(have []*Def, d *Def) []*Def {
	j, same := slices.BinarySearchFunc(have, d, func(e, d *Def) int { return cmp.Compare(d.Since, e.Since) })
	if same {
		have[j] = d
		return have
	}
	return slices.Insert(have, j, d)
}

// Unknown returns the error for a node without a definition: it tells an operator that no version
// defines from one of other versions.
func (r *Registry) Unknown(domain, name string, version int) error {
	var since []string
	for _, p := range r.parts {
		if p.holds != nil && !p.holds(domain) {
			continue
		}
		for _, d := range slices.Backward(p.find(domain, name)) {
			span := fmt.Sprintf("from %d", d.Since)
			if d.Until > 0 {
				span = fmt.Sprintf("%d to %d", d.Since, d.Until)
			}
			since = append(since, span)
		}
	}
	text := fmt.Sprintf("version %d; known: %s", version, strings.Join(since, ", "))
	switch {
	case since != nil:
	case slices.Contains([]string{graph.ONNX, graph.ONNXML, graph.ONNXTraining, graph.Microsoft, graph.TFLite}, domain):
		text = "unknown operator"
	case domain == graph.TFLiteCustom:
		text = "custom operator"
	default:
		text = fmt.Sprintf("unknown domain %q", domain)
	}
	return &UnsupportedError{text, ErrUnknown}
}

// Find returns the definition of an operator at a version, nil if it is absent.
func (r *Registry) Find(domain, name string, version int) *Def {
	for _, p := range r.parts {
		if p.holds != nil && !p.holds(domain) {
			continue
		}
		for _, d := range p.find(domain, name) {
			if version >= d.Since && (d.Until == 0 || version <= d.Until) {
				return d
			}
		}
	}
	return nil
}

// All lists every definition by domain, name and version.
func (r *Registry) All() []*Def {
	var out []*Def
	for _, p := range r.parts {
		seen := map[[2]string]bool{}
		for _, list := range p.lists {
			for _, d := range list() {
				if k := [2]string{d.Domain, d.Name}; !seen[k] {
					seen[k] = true
					out = append(out, p.find(k[0], k[1])...)
				}
			}
		}
	}
	sorting.Func(out, func(a, b *Def) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Since, b.Since))
	})
	return out
}
