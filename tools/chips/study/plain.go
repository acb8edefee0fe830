package study

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// Plain is what operators without an optimised kernel cost: cycles per element (or
// per multiply-accumulate) by term, and how far a new operator on a new core lies
// from that.
type Plain struct {
	// Cost per unit of work, by term; terms below [cortexm.PlainMAC] are not used.
	Cost cortexm.Vector
	// Half is the half-width of the band in logarithms: an operator and a core left
	// out at a time.
	Half cortexm.Vector
	// Held lists the left-out costs.
	Held []PlainHeld
	// Kinds is the half-width for carrying the cost of one kind of kernel with
	// weights over to another on the same core.
	Kinds float64
}

// PlainHeld is the measured cost of an operator on a core with its prediction from
// other operators on other cores.
type PlainHeld struct {
	Term                int
	Core, Op            string
	Measured, Predicted float64 // cycles per unit
	Half                float64 // of the band made without this operator and core
}

// plainCost is what one operator costs on one core.
type plainCost struct {
	term     int
	core, op string
	log      float64
}

// unoptimised names operators of a published table of single operators on a
// Cortex-M55 that run in plain C there, on a tensor of 1x32x32x16. STRIDED_SLICE is
// not among them because the size of what it cuts out is not printed.
var unoptimised = map[string]bool{
	"RELU": true, "RELU6": true, "HARD_SWISH": true, "LEAKY_RELU": true, "SUB": true, "EQUAL": true, "NOT_EQUAL": true, "GREATER": true, "LESS": true,
	"MEAN": true, "REDUCE_MAX": true, "TANH": true, "SPLIT": true, "SPLIT_V": true,
}

const heliaElements = 32 * 32 * 16

// LoadPlain reads what operators in plain C cost from the table of layers.
func LoadPlain(path string) (*Plain, error) {
	t, err := fit.OpenTable(path)
	if err != nil {
		return nil, err
	}
	logs := map[plainCost][]float64{}
	for _, r := range t.Rows {
		c, units := plainRow(r)
		cycles, _ := strconv.ParseFloat(r["cycles"], 64)
		if units <= 0 || cycles < 1000 || c.core == "" {
			continue
		}
		logs[c] = append(logs[c], math.Log(cycles/units))
	}
	var costs []plainCost
	for c, l := range logs {
		slices.Sort(l)
		c.log = stats.Median(l)
		costs = append(costs, c)
	}
	slices.SortFunc(costs, func(a, b plainCost) int {
		if a.term != b.term {
			return a.term - b.term
		}
		return strings.Compare(a.op+"|"+a.core, b.op+"|"+b.core)
	})
	return newPlain(costs), nil
}

var firstSize = regexp.MustCompile(`(\d+)x(\d+)x(\d+)|h: (\d+), w: (\d+)|(\d+)`)

// plainRow sorts a row of the table; units is 0 for rows that say nothing about
// kernels in plain C.
func plainRow(r map[string]string) (c plainCost, units float64) {
	if !strings.HasPrefix(r["evidence"], "measured") {
		return c, 0
	}
	c.core, c.op = coreID(r["core"]), strings.ToUpper(r["layer_type"])
	macs, _ := strconv.ParseFloat(r["macs"], 64)
	switch {
	case strings.HasPrefix(r["runtime"], "TFLM upstream"):
		if !unoptimised[c.op] {
			return c, 0
		}
		c.term = plainTerm(c.op)
		return c, heliaElements
	case r["runtime"] == "ANSI C", r["runtime"] == "TFLM (reference kernels)":
		if macs > 0 {
			c.term = cortexm.PlainMAC
			c.op = weightedKind(c.op)
			return c, macs
		}
		if r["runtime"] != "ANSI C" {
			return c, 0
		}
		// Mean and softmax of that library are other algorithms than those of
		// TensorFlow Lite Micro.
		c.op = map[string]string{"ELEMENTWISE_ADD": "ADD", "ELEMENTWISE_MUL": "MUL", "HARD_SWISH": "HARD_SWISH"}[c.op]
		c.term = plainTerm(c.op)
		return c, printedSize(r["notes"])
	case r["runtime"] == "TFLM (MLTK)":
		if n, _ := strconv.ParseFloat(r["accelerator_cycles"], 64); n > 0 {
			return c, 0
		}
		in, out := product(r["input_shape"]), product(r["output_shape"])
		c.term = plainTerm(c.op)
		switch {
		case c.op == "UNIDIRECTIONAL_SEQUENCE_LSTM" && macs > 0:
			c.term = cortexm.PlainMAC
			return c, macs
		case c.term == cortexm.PlainReduce:
			out = in
		}
		if out < 100 && (c.term != cortexm.PlainTable || out < 10) {
			return c, 0 // mostly the overhead of the call
		}
		return c, out
	}
	return c, 0
}

// plainTerm is the term of an operator in plain C, 0 for those of no interest.
func plainTerm(op string) int {
	l := cortexm.Describe(op, 1, cortexm.Kernels{Family: "tflm-reference"})
	for k := cortexm.PlainMAC; k < cortexm.Terms; k++ {
		if l.Work[k] > 0 {
			return k
		}
	}
	return 0
}

func weightedKind(op string) string {
	switch {
	case strings.HasPrefix(op, "D"):
		return "depthwise"
	case strings.HasPrefix(op, "F"):
		return "dense"
	}
	return "conv"
}

// printedSize reads the size in notes such as "size = 1615; memory External".
func printedSize(notes string) float64 {
	n := 0.0
	for i, s := range firstSize.FindStringSubmatch(notes) {
		if v, err := strconv.ParseFloat(s, 64); i > 0 && err == nil {
			n = max(n, 1) * v
		}
	}
	return n
}

func product(shape string) float64 {
	n := 1.0
	for _, d := range ints(shape) {
		n *= float64(d)
	}
	if len(ints(shape)) == 0 {
		return 0
	}
	return n
}

func newPlain(costs []plainCost) *Plain {
	p := &Plain{}
	for term := cortexm.PlainMAC; term < cortexm.Terms; term++ {
		all := func(plainCost) bool { return true }
		v, ok := centre(costs, term, all)
		if !ok {
			continue
		}
		p.Cost[term] = math.Exp(v)
		p.Half[term] = plainHalf(costs, term, all)
		for _, c := range costs {
			if c.term != term {
				continue
			}
			others := func(o plainCost) bool { return o.op != c.op && o.core != c.core }
			if v, ok := centre(costs, term, others); ok {
				p.Held = append(p.Held, PlainHeld{term, c.core, c.op, math.Exp(c.log), math.Exp(v), plainHalf(costs, term, func(o plainCost) bool { return o.op != c.op && o.core != c.core })})
			}
		}
	}
	p.Kinds = kindsHalf(costs)
	return p
}

// centre is the middle logarithm of costs, each operator counting once.
func centre(costs []plainCost, term int, keep func(plainCost) bool) (float64, bool) {
	by := map[string][]float64{}
	for _, c := range costs {
		if c.term == term && keep(c) {
			by[c.op] = append(by[c.op], c.log)
		}
	}
	var means []float64
	for _, op := range slices.Sorted(maps.Keys(by)) {
		means = append(means, stats.Mean(by[op]))
	}
	if len(means) == 0 {
		return 0, false
	}
	slices.Sort(means)
	return stats.Median(means), true
}

// few is the number of operators below which their spread says little of the rest.
const few = 8

// plainHalf predicts each operator on each core from other operators on other
// cores.
func plainHalf(costs []plainCost, term int, keep func(plainCost) bool) float64 {
	var miss []float64
	for _, c := range costs {
		if c.term != term || !keep(c) {
			continue
		}
		if v, ok := centre(costs, term, func(o plainCost) bool { return keep(o) && o.op != c.op && o.core != c.core }); ok {
			miss = append(miss, math.Abs(c.log-v))
		}
	}
	if len(miss) < 3 {
		return nothing
	}
	half := fit.Quantile(miss)
	if len(miss) < few {
		half = math.Max(half, math.Ln2) // a handful of operators says little of the rest
	}
	return half
}

// kindsHalf carries the cost per multiply-accumulate from one kind of kernel to
// another on the same core, with the ratio of the kinds on other cores.
func kindsHalf(costs []plainCost) float64 {
	var miss []float64
	at := func(core, op string) (float64, bool) {
		for _, c := range costs {
			if c.term == cortexm.PlainMAC && c.core == core && c.op == op {
				return c.log, true
			}
		}
		return 0, false
	}
	for _, c := range costs {
		if c.term != cortexm.PlainMAC {
			continue
		}
		for _, from := range []string{"conv", "depthwise", "dense"} {
			here, ok := at(c.core, from)
			if from == c.op || !ok {
				continue
			}
			var ratios []float64
			for _, o := range costs {
				if o.term == cortexm.PlainMAC && o.op == c.op && o.core != c.core {
					if v, ok := at(o.core, from); ok {
						ratios = append(ratios, o.log-v)
					}
				}
			}
			if len(ratios) > 0 {
				miss = append(miss, math.Abs(c.log-here-stats.Mean(ratios)))
			}
		}
	}
	if len(miss) < 3 {
		return nothing
	}
	return fit.Quantile(miss)
}
