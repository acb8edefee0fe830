package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/gate"
)

// network is a model of convolutions whose work and weights follow from its shape.
type network struct {
	size, channels, classes int
	// stem is the kernel of the first convolution, filters the channels of the separable blocks.
	stem    int
	filters []int
	seed    int
	name    string
}

func (n network) clone() network {
	n.filters = slices.Clone(n.filters)
	return n
}

// text is its description as a file.
func (n *network) text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ntype: int8\nseed: %d\ninput: {name: image, shape: [1, %d, %d, %d]}\nlayers:\n", n.name, n.seed, n.size, n.size, n.channels)
	fmt.Fprintf(&b, "  - {op: conv, filters: %d, kernel: %d, stride: 2, activation: relu}\n", n.filters[0], n.stem)
	for _, f := range n.filters[1:] {
		fmt.Fprintf(&b, "  - {op: depthwise, kernel: 3, activation: relu}\n  - {op: conv, filters: %d, kernel: 1, activation: relu}\n", f)
	}
	fmt.Fprintf(&b, "  - {op: avg_pool}\n  - {op: flatten}\n  - {op: dense, units: %d}\n", n.classes)
	return []byte(b.String())
}

// known are its figures by formulas that do not come from opmeter.
func (n *network) known() map[string]float64 {
	out := (n.size + 1) / 2
	area := out * out
	macs := area * n.stem * n.stem * n.channels * n.filters[0]
	params := n.stem*n.stem*n.channels*n.filters[0] + n.filters[0]
	before := n.filters[0]
	for _, f := range n.filters[1:] {
		macs += area*9*before + area*before*f
		params += 9*before + before + before*f + f
		before = f
	}
	macs += before * n.classes
	params += before*n.classes + n.classes
	return map[string]float64{"macs": float64(macs), "params": float64(params), "layers": float64(4 + 2*(len(n.filters)-1))}
}

// edits are the kinds of changes.
var edits = []struct {
	name string
	edit func(n *network, r *rand.Rand)
}{
	{"nothing", func(*network, *rand.Rand) {}},
	{"other name", func(n *network, _ *rand.Rand) { n.name = "renamed" }},
	{"other weights", func(n *network, r *rand.Rand) { n.seed += 1 + r.IntN(1000) }},
	{"one filter more", func(n *network, r *rand.Rand) { n.filters[r.IntN(len(n.filters))]++ }},
	{"one filter fewer", func(n *network, r *rand.Rand) { n.filters[r.IntN(len(n.filters))]-- }},
	{"one class more", func(n *network, _ *rand.Rand) { n.classes++ }},
	{"block added", func(n *network, r *rand.Rand) {
		i := 1 + r.IntN(len(n.filters))
		n.filters = slices.Insert(n.filters, i, n.filters[i-1])
	}},
	{"block removed", func(n *network, r *rand.Rand) {
		i := 1 + r.IntN(len(n.filters)-1)
		n.filters = slices.Delete(n.filters, i, i+1)
	}},
	{"larger input", func(n *network, _ *rand.Rand) { n.size += 2 }},
	{"larger kernel", func(n *network, _ *rand.Rand) { n.stem += 2 }},
}

// exactResult counts what the exact part decided.
type exactResult struct {
	Changes int      `json:"changes"`
	Right   int      `json:"right"`
	Figures int      `json:"figures"`
	Wrong   []string `json:"wrong,omitempty"`
}

// exact judges changes of known size.
func exact(changes int) (*exactResult, error) {
	res := &exactResult{}
	rules := gate.Default().For("model.tflite", gate.Host)
	for i := range changes {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		base := network{size: 8 + 2*r.IntN(12), channels: 1 + r.IntN(3), classes: 2 + r.IntN(10), stem: 3, name: "net"}
		for range 2 + r.IntN(4) {
			base.filters = append(base.filters, 4+r.IntN(29))
		}
		fresh := base.clone()
		kind := edits[i%len(edits)]
		kind.edit(&fresh, r)
		a, err := side(&base)
		if err != nil {
			return nil, err
		}
		b, err := side(&fresh)
		if err != nil {
			return nil, err
		}
		rows := gate.Judge(rules, a, b, true)
		before, after := base.known(), fresh.known()
		right := true
		for key := range before {
			res.Figures++
			k := slices.IndexFunc(rows, func(r gate.Row) bool { return r.Figure == key })
			switch {
			case k < 0:
				right = false
				res.Wrong = append(res.Wrong, fmt.Sprintf("%d, %s: %s is not judged", i, kind.name, key))
			case *rows[k].Base != before[key] || *rows[k].New != after[key] || rows[k].Verdict != expected(before[key], after[key]):
				right = false
				res.Wrong = append(res.Wrong, fmt.Sprintf("%d, %s: %s %v → %v is %s, known %v → %v", i, kind.name, key, *rows[k].Base, *rows[k].New, rows[k].Verdict, before[key], after[key]))
			}
		}
		res.Changes++
		if right {
			res.Right++
		}
	}
	return res, nil
}

func expected(before, after float64) gate.Verdict {
	switch {
	case after > before:
		return gate.Worse
	case after < before:
		return gate.Better
	}
	return gate.Equal
}

func side(n *network) (*gate.Side, error) {
	m, err := opmeter.OpenBytes("net.yaml", n.text())
	if err != nil {
		return nil, err
	}
	defer m.Close()
	p, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		return nil, err
	}
	return gate.NewSide(p), nil
}

func (r *exactResult) show() bool {
	fmt.Printf("Exact figures: %d of %d changes right, %d figures\n", r.Right, r.Changes, r.Figures)
	for _, w := range r.Wrong[:min(len(r.Wrong), 10)] {
		fmt.Println("  wrong:", w)
	}
	return r.Right == r.Changes
}
