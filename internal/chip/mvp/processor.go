package mvp

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/tensor"
)

// processor estimates layers that the processor does alone, from coefficients
// named op.OPERATOR.TYPE.FEATURE. The type is that of the first input's
// elements, or "any". An operator and type without coefficients has no estimate.
type processor struct {
	ops map[string]map[string]float64 // "OPERATOR.TYPE" to coefficients by feature

	// What was not measured on this chip is estimated as on another target of the
	// same core; nil when the target file names none.
	other  *cortexm.Estimator
	layers []cortexm.Layer
}

// Processor is the setting that names the target whose figures are used for
// operators that were not measured on this one.
const Processor = "processor"

// fallBack reads the figures of the target that the runtime names for operators
// without figures of its own.
func (p *processor) fallBack(m *graph.Model, g *graph.Graph, t *chip.Target, rt *chip.Runtime) error {
	id := rt.Settings[Processor]
	if id == "" {
		return nil
	}
	set, err := chip.Load("")
	if err != nil {
		return err
	}
	o, err := set.Find(id)
	if err != nil {
		return fmt.Errorf("setting %s: %w", Processor, err)
	}
	k := o.Runtime("")
	if k == nil || k.Model != "cortexm" {
		return fmt.Errorf("setting %s: target %s has no runtime with the cycle model cortexm", Processor, id)
	}
	if p.other, err = cortexm.NewEstimator(t, k); err != nil {
		return fmt.Errorf("setting %s: target %s: %w", Processor, id, err)
	}
	p.layers = cortexm.Layers(m, g, cortexm.Kernels{Family: k.Settings[cortexm.Family], Tier: k.Settings[cortexm.Tier]})
	return nil
}

// features that coefficients may use.
var features = map[string]bool{
	"fixed":   true, // per layer
	"element": true, // per element of the first output
	"input":   true, // per element of the first input
	"padded":  true, // per element of the output beyond those of the input
	"byte":    true, // per byte of the first output
	"mac":     true, // per multiply-accumulate
	"tap":     true, // per element that a pooling window reads
}

func newProcessor(coefficients map[string]float64) (*processor, error) {
	p := &processor{ops: map[string]map[string]float64{}}
	for name, v := range coefficients {
		rest, ok := strings.CutPrefix(name, "op.")
		if !ok {
			continue
		}
		at := strings.LastIndexByte(rest, '.')
		if at < 0 || !features[rest[at+1:]] || !strings.Contains(rest[:at], ".") {
			return nil, fmt.Errorf("coefficient %q is not of the form op.OPERATOR.TYPE.FEATURE with a known feature", name)
		}
		key := rest[:at]
		if p.ops[key] == nil {
			p.ops[key] = map[string]float64{}
		}
		p.ops[key][rest[at+1:]] = v
	}
	return p, nil
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
	typ := "any"
	if x != nil {
		typ = x.Type.String()
	}
	c := p.ops[n.Op+"."+typ]
	if c == nil {
		c = p.ops[n.Op+".any"]
	}
	if c == nil || n.Domain != graph.TFLite {
		return 0, "", p.missing(n, typ)
	}
	var macs float64
	if c["mac"] != 0 {
		w := count.Count(m, g, n, in, out)
		if w.MACs == nil {
			return 0, "", &chip.Missing{Code: chip.MissingShape, Text: fmt.Sprintf("the multiply-accumulates of %s are not known", n.Key())}
		}
		macs = float64(*w.MACs)
	}
	ni, no := elements(x), elements(y)
	v = c["fixed"] + c["element"]*no + c["input"]*ni + c["padded"]*max(no-ni, 0) + c["mac"]*macs
	if y != nil {
		v += c["byte"] * float64(y.Type.Bytes(int(no)))
	}
	v += c["tap"] * no * float64(n.Attrs.Int("filter_height", 1)) * float64(n.Attrs.Int("filter_width", 1))
	return v, "cpu/" + strings.ToLower(n.Op), nil
}

// missing says what there would have to be to estimate n on data of a type.
func (p *processor) missing(n *graph.Node, typ string) *chip.Missing {
	m := &chip.Missing{Code: chip.MissingData, Text: fmt.Sprintf("no measurement of %s with %s data to estimate from", n.Key(), typ)}
	if n.Domain != graph.TFLite {
		m.Code = chip.MissingOperator
		return m
	}
	for key := range p.ops {
		if strings.HasPrefix(key, n.Op+".") {
			m.Code = chip.MissingType
		}
	}
	return m
}

func elements(t *tensor.Tensor) float64 {
	if t == nil {
		return 0
	}
	return float64(tensor.Elements(t.Shape))
}
