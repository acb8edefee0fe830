package mvp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// processor estimates layers that only the processor executes. The type of a figure is the first
// input's element type, or "any". Operators and types without coefficients have no estimate.
type processor struct {
	ops map[string]map[string]chip.Operator // by operator and type

	// other estimates what was not measured on this chip, by another target with the same core;
	// nil if the target file names none.
	other  *cortexm.Estimator
	layers []cortexm.Layer
}

// fallBack reads the figures of the target that the runtime names for operators without own
// figures.
func (p *processor) fallBack(m *graph.Model, g *graph.Graph, t *chip.Target, rt *chip.Runtime) error {
	id := rt.MVP.Processor
	if id == "" {
		return nil
	}
	set, err := chip.Load("")
	if err != nil {
		return err
	}
	o, err := set.Find(id)
	if err != nil {
		return fmt.Errorf("processor: %w", err)
	}
	k := o.Runtime("")
	if k == nil || k.Cortexm == nil {
		return fmt.Errorf("processor: target %s has no runtime with the cycle model cortexm", id)
	}
	if p.other, err = cortexm.NewEstimator(t, k, chip.Options{}); err != nil {
		return fmt.Errorf("processor: target %s: %w", id, err)
	}
	p.layers = cortexm.Layers(m, g, cortexm.Kernels{Family: k.Cortexm.Family, Tier: k.Cortexm.Tier})
	return nil
}

// features lists the figures of an operator in the order of featureNames.
func features(o *chip.Operator) [7]*float64 {
	return [...]*float64{&o.Fixed, &o.Element, &o.Input, &o.Padded, &o.Byte, &o.MAC, &o.Tap}
}

var featureNames = [...]string{"fixed", "element", "input", "padded", "byte", "mac", "tap"}

// newProcessor extracts the coefficients of operators by name; see [coefficients].
func newProcessor(named map[string]float64) *processor {
	p := &processor{ops: map[string]map[string]chip.Operator{}}
	for name, v := range named {
		rest, ok := strings.CutPrefix(name, "op.")
		if !ok {
			continue
		}
		f := strings.Split(rest, ".")
		if p.ops[f[0]] == nil {
			p.ops[f[0]] = map[string]chip.Operator{}
		}
		o := p.ops[f[0]][f[1]]
		*features(&o)[slices.Index(featureNames[:], f[2])] = v
		p.ops[f[0]][f[1]] = o
	}
	return p
}

// cycles estimates one layer; missing says why there is no estimate.
func (p *processor) cycles(m *graph.Model, g *graph.Graph, n *graph.Node, in, out []*tensor.Tensor) (v float64, kernel string, missing *chip.Missing) {
	var x, y *tensor.Tensor
	if len(in) > 0 {
		x = in[0]
		if n.Op == "TRANSPOSE_CONV" && len(in) > 2 {
			x = in[2]
		}
	}
	if len(out) > 0 {
		y = out[0]
	}
	typ := chip.AnyType
	if x != nil {
		typ = x.Type.String()
	}
	c, ok := p.ops[n.Op][typ]
	if !ok {
		c, ok = p.ops[n.Op][chip.AnyType]
	}
	if !ok || n.Domain != graph.TFLite {
		return 0, "", p.missing(n, typ)
	}
	var macs float64
	if c.MAC != 0 {
		w := count.Count(m, g, n, in, out)
		if w.MACs == nil {
			return 0, "", &chip.Missing{Code: chip.MissingShape, Text: fmt.Sprintf("the multiply-accumulates of %s are not known", n.Key())}
		}
		macs = float64(*w.MACs)
	}
	ni, no := elements(x), elements(y)
	v = c.Fixed + c.Element*no + c.Input*ni + c.Padded*max(no-ni, 0) + c.MAC*macs
	if y != nil {
		v += c.Byte * float64(y.Type.Bytes(int(no)))
	}
	v += c.Tap * no * float64(n.Attrs.Int("filter_height", 1)) * float64(n.Attrs.Int("filter_width", 1))
	return v, "cpu/" + strings.ToLower(n.Op), nil
}

// missing says which measurement an estimate of n on data of a type would need.
func (p *processor) missing(n *graph.Node, typ string) *chip.Missing {
	m := &chip.Missing{Code: chip.MissingData, Text: fmt.Sprintf("no measurement of %s with %s data to estimate from", n.Key(), typ)}
	if n.Domain != graph.TFLite {
		m.Code = chip.MissingOperator
		return m
	}
	if len(p.ops[n.Op]) > 0 {
		m.Code = chip.MissingType
	}
	return m
}

func elements(t *tensor.Tensor) float64 {
	if t == nil {
		return 0
	}
	return float64(tensor.Elements(t.Shape))
}
