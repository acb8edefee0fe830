package count

import "github.com/opmeter/opmeter/internal/model/graph"

// Operations of composed functions per element; the sum names the elementary
// operations of which each counts one.
const (
	sigmoidOps   = 4 // negate, exp, add, divide
	softmaxOps   = 5 // compare, subtract, exp, add, divide
	layerNormOps = 7 // add (mean); subtract; square, add (variance); multiply; scale; shift
)

// Rule is how one or more operators are counted.
type Rule struct {
	Domain string // domain of the operators
	Group  string // heading in the documentation
	Names  []string
	MACs   string // formula for people, "0" for none
	Ops    string // formula for people
	f      func(*call) amount
}

// Rules lists all rules, in the order of the documentation.
func Rules() []Rule {
	var out []Rule
	for _, l := range []struct {
		domain string
		rules  []Rule
	}{
		{graph.TFLite, liteRules},
		{graph.TFLiteCustom, customRules},
		{graph.ONNX, onnxRules},
		{graph.ONNXML, mlRules},
		{graph.ONNXTraining, trainingRules},
		{graph.Microsoft, microsoftRules},
		{graph.Own, ownRules},
	} {
		for _, r := range l.rules {
			r.Domain = l.domain
			out = append(out, r)
		}
	}
	return out
}

var byName = func() map[[2]string]*Rule {
	m := map[[2]string]*Rule{}
	for _, r := range Rules() {
		for _, n := range r.Names {
			k := [2]string{r.Domain, n}
			if m[k] != nil {
				panic("count: two rules for " + n)
			}
			m[k] = &r
		}
	}
	return m
}()

func find(n *graph.Node) *Rule {
	domain := n.Domain
	switch domain {
	case "ai.onnx", "ai.onnx.preview", "qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general":
		domain = graph.ONNX
	}
	return byName[[2]string{domain, n.Op}]
}

const (
	groupConv    = "Convolution"
	groupProduct = "Matrix multiplication"
	groupRNN     = "Recurrent"
	groupAttend  = "Attention"
	groupPool    = "Pooling"
	groupNorm    = "Normalisation"
	groupElement = "Element-wise"
	groupReduce  = "Reduction"
	groupResize  = "Resampling"
	groupFourier = "Fourier transforms"
	groupQuant   = "Quantisation"
	groupMove    = "Data movement"
	groupControl = "Control flow"
	groupData    = "Depends on the data"
	groupTrain   = "Training"
)

// moves are operators that compute nothing.
func moves(names ...string) Rule {
	return Rule{Group: groupMove, Names: names, MACs: "0", Ops: "0", f: func(*call) amount { return amount{} }}
}

// control are operators whose work is in their bodies.
func control(names ...string) Rule {
	return Rule{Group: groupControl, Names: names, MACs: "those of the bodies, times their executions", Ops: "those of the bodies, times their executions", f: func(*call) amount { return amount{} }}
}

// depends are operators without multiply-accumulates whose operations depend on
// the data.
func depends(names ...string) Rule {
	return Rule{Group: groupData, Names: names, MACs: "0", Ops: "unknown", f: func(*call) amount { return amount{ops: unknown} }}
}

// each is k operations for every element of output 0.
func each(k int64, how string, names ...string) Rule {
	return Rule{
		Group: groupElement, Names: names, MACs: "0", Ops: times(k, "elements(output)") + note(how),
		f: func(c *call) amount { return just(c.mul(k, c.nout(0))) },
	}
}

// eachFused is each with TFLite's fused activation.
func eachFused(k int64, how string, names ...string) Rule {
	return Rule{
		Group: groupElement, Names: names, MACs: "0", Ops: times(k, "elements(output)") + " + activation" + note(how),
		f: func(c *call) amount { n := c.nout(0); return just(c.mul(k, n) + c.fused(n)) },
	}
}

// reduces is k operations for every element of input 0 and some for every element
// of the output.
func reduces(k, perOut int64, how string, names ...string) Rule {
	text := times(k, "elements(input)")
	if perOut > 0 {
		text += " + " + times(perOut, "elements(output)")
	}
	return Rule{
		Group: groupReduce, Names: names, MACs: "0", Ops: text + note(how),
		f: func(c *call) amount { return just(c.mul(k, c.nin(0)) + c.mul(perOut, c.nout(0))) },
	}
}

// in is the rule in another group.
func (r Rule) in(group string) Rule { r.Group = group; return r }

func times(k int64, what string) string {
	if k == 1 {
		return what
	}
	return itoa(k) + "·" + what
}

func note(how string) string {
	if how == "" {
		return ""
	}
	return " (" + how + ")"
}

func itoa(k int64) string {
	if k >= 10 {
		return itoa(k/10) + itoa(k%10)
	}
	return string(rune('0' + k))
}
