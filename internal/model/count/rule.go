package count

import (
	"sync"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// Operations of composite functions per element, each elementary operation counting one.
const (
	sigmoidOps   = 4 // negate, exp, add, divide
	softmaxOps   = 5 // compare, subtract, exp, add, divide
	layerNormOps = 7 // add (mean); subtract; square, add (variance); multiply; scale; shift
)

// Rule describes how one or more operators are counted.
type Rule struct {
	Domain string // domain of the operators
	Group  string // heading in the documentation
	Names  []string
	MACs   string // displayed formula, "0" for none
	Ops    string // displayed formula
	f      func(*call) amount
}

// Rules lists all rules, in the order of the documentation.
func Rules() []Rule {
	var out []Rule
	for _, l := range []struct {
		domain string
		rules  []Rule
	}{
		{graph.TFLite, liteRules()},
		{graph.TFLiteCustom, customRules()},
		{graph.ONNX, onnxRules()},
		{graph.ONNXML, mlRules()},
		{graph.ONNXTraining, trainingRules()},
		{graph.Microsoft, microsoftRules()},
		{graph.Own, ownRules()},
	} {
		for _, r := range l.rules {
			r.Domain = l.domain
			out = append(out, r)
		}
	}
	return out
}

// byName is made when the first operator is counted: most commands count none.
var byName = sync.OnceValue(func() map[[2]string]*Rule {
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
})

func find(n *graph.Node) *Rule {
	domain := n.Domain
	switch domain {
	case "ai.onnx", "ai.onnx.preview", "qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general":
		domain = graph.ONNX
	}
	return byName()[[2]string{domain, n.Op}]
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

// dataMovement is for operators that compute nothing.
func dataMovement(names ...string) Rule {
	return Rule{Group: groupMove, Names: names, MACs: "0", Ops: "0", f: func(*call) amount { return amount{} }}
}

// controlFlow is for operators whose work is in their subgraphs.
func controlFlow(names ...string) Rule {
	return Rule{Group: groupControl, Names: names, MACs: "those of the bodies, times their executions", Ops: "those of the bodies, times their executions", f: func(*call) amount { return amount{} }}
}

// dataDependent is for operators without multiply-accumulates whose operations depend on the
// data.
func dataDependent(names ...string) Rule {
	return Rule{Group: groupData, Names: names, MACs: "0", Ops: "unknown", f: func(*call) amount { return amount{ops: unknown} }}
}

// perOutputElement is k operations per element of output 0.
func perOutputElement(k int64, how string, names ...string) Rule {
	return Rule{
		Group: groupElement, Names: names, MACs: "0", Ops: times(k, "elements(output)") + note(how),
		f: func(c *call) amount { return opsOnly(c.mul(k, c.nout(0))) },
	}
}

// perOutputElementFused is perOutputElement with TFLite's fused activation.
func perOutputElementFused(k int64, how string, names ...string) Rule {
	return Rule{
		Group: groupElement, Names: names, MACs: "0", Ops: times(k, "elements(output)") + " + activation" + note(how),
		f: func(c *call) amount { n := c.nout(0); return opsOnly(c.mul(k, n) + c.fused(n)) },
	}
}

// reduces is k operations per element of input 0 and perOut per element of the output.
func reduces(k, perOut int64, how string, names ...string) Rule {
	text := times(k, "elements(input)")
	if perOut > 0 {
		text += " + " + times(perOut, "elements(output)")
	}
	return Rule{
		Group: groupReduce, Names: names, MACs: "0", Ops: text + note(how),
		f: func(c *call) amount { return opsOnly(c.mul(k, c.nin(0)) + c.mul(perOut, c.nout(0))) },
	}
}

// in returns the rule in another group.
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
