package ml

import (
	"fmt"
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Modes of a tree's nodes, with the numbers of TreeEnsemble.
const (
	branchLEQ = iota
	branchLT
	branchGTE
	branchGT
	branchEQ
	branchNEQ
	branchMember
	leafNode
)

var modeNames = map[string]uint8{
	"BRANCH_LEQ": branchLEQ, "BRANCH_LT": branchLT, "BRANCH_GTE": branchGTE, "BRANCH_GT": branchGT,
	"BRANCH_EQ": branchEQ, "BRANCH_NEQ": branchNEQ, "BRANCH_MEMBER": branchMember, "LEAF": leafNode,
}

// treeNode is a branch or a leaf. yes and no are positions in the forest.
type treeNode struct {
	mode      uint8
	missing   bool // a missing value goes to the true branch
	feature   int
	value     float64
	yes, no   int
	members   []float64
	from, end int // a leaf's votes
}

type vote struct {
	target int
	weight float64
}

// treeStep is a node of a forest in which all branches are BRANCH_LEQ and missing values go to
// the false branch. A walk selects the next node without an unpredictable CPU branch.
type treeStep struct {
	value   float64
	feature int32    // -1 for a leaf
	next    [2]int32 // false and true branch; the leaf itself for a leaf
}

// makeSteps makes the steps, if all branches are of the kind that they need.
func (f *forest) makeSteps() {
	if len(f.nodes) > math.MaxInt32 || f.features > math.MaxInt32 {
		return
	}
	steps := make([]treeStep, len(f.nodes))
	for i, n := range f.nodes {
		switch {
		case n.mode == leafNode:
			steps[i] = treeStep{feature: -1, next: [2]int32{int32(i), int32(i)}}
		case n.mode == branchLEQ && !n.missing:
			steps[i] = treeStep{n.value, int32(n.feature), [2]int32{int32(n.no), int32(n.yes)}}
		default:
			return
		}
	}
	f.steps = steps
}

// forest is a tree ensemble of any version in a common layout.
type forest struct {
	nodes     []treeNode
	votes     []vote
	roots     []int
	targets   int
	base      []float64
	aggregate string
	post      transform
	features  int // number of features that the branches need
	steps     []treeStep
	adds      bool // votes are added
	reached   int  // nodes that check has visited
}

// fourLeaves walks from four roots at once in a forest with steps, so that memory accesses
// overlap.
func (f *forest) fourLeaves(roots []int, x []float64) [4]int32 {
	steps := f.steps
	a, b, c, d := int32(roots[0]), int32(roots[1]), int32(roots[2]), int32(roots[3])
	for {
		p, q, r, s := &steps[a], &steps[b], &steps[c], &steps[d]
		if p.feature&q.feature&r.feature&s.feature < 0 {
			return [4]int32{a, b, c, d}
		}
		a, b, c, d = p.beyond(x), q.beyond(x), r.beyond(x), s.beyond(x)
	}
}

// beyond returns the next node, for a leaf the leaf itself. The feature of a leaf is negative and
// reads x[0].
func (s *treeStep) beyond(x []float64) int32 {
	return s.next[tensor.Truth(x[s.feature&^(s.feature>>31)] <= s.value)&1]
}

// leaf walks from a root to its leaf.
func (f *forest) leaf(root int, x []float64) *treeNode {
	if f.steps != nil {
		at := int32(root)
		for {
			s := &f.steps[at]
			if s.feature < 0 {
				return &f.nodes[at]
			}
			at = s.beyond(x)
		}
	}
	n := &f.nodes[root]
	for n.mode != leafNode {
		v := x[n.feature]
		var yes bool
		switch n.mode {
		case branchLEQ:
			yes = v <= n.value
		case branchLT:
			yes = v < n.value
		case branchGTE:
			yes = v >= n.value
		case branchGT:
			yes = v > n.value
		case branchEQ:
			yes = v == n.value
		case branchNEQ:
			yes = v != n.value
		default:
			for _, m := range n.members {
				yes = yes || v == m
			}
		}
		if yes || n.missing && math.IsNaN(v) {
			n = &f.nodes[n.yes]
		} else {
			n = &f.nodes[n.no]
		}
	}
	return n
}

// count adds the votes of a leaf.
func (f *forest) count(leaf *treeNode, s []float64, seen []bool) {
	votes := f.votes[leaf.from:leaf.end]
	if f.adds {
		for _, v := range votes {
			s[v.target] += v.weight
			seen[v.target] = true
		}
		return
	}
	for _, v := range votes {
		switch {
		case !seen[v.target]:
			s[v.target] = v.weight
		case f.aggregate == "MIN":
			s[v.target] = min(s[v.target], v.weight)
		default:
			s[v.target] = max(s[v.target], v.weight)
		}
		seen[v.target] = true
	}
}

// scores aggregates the votes of all trees for one row; seen marks the targets with votes.
func (f *forest) scores(x, s []float64, seen []bool) {
	clear(s)
	clear(seen)
	roots := f.roots
	for ; f.steps != nil && len(roots) >= 4; roots = roots[4:] {
		for _, at := range f.fourLeaves(roots, x) {
			f.count(&f.nodes[at], s, seen)
		}
	}
	for _, r := range roots {
		f.count(f.leaf(r, x), s, seen)
	}
	if f.aggregate == "AVERAGE" && len(f.roots) > 0 {
		for i := range s {
			s[i] /= float64(len(f.roots))
		}
	}
}

// check ensures that walking a tree ends at a leaf: children exist, and no node is reached twice.
func (f *forest) check() error {
	reached := make([]bool, len(f.nodes))
	var open []int
	for _, r := range f.roots {
		if r < 0 || r >= len(f.nodes) {
			return fmt.Errorf("tree root %d of %d nodes", r, len(f.nodes))
		}
		open = append(open, r)
	}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i < 0 || i >= len(f.nodes) {
			return fmt.Errorf("tree node %d of %d", i, len(f.nodes))
		}
		if reached[i] {
			return fmt.Errorf("tree node %d is reached twice", i)
		}
		reached[i] = true
		f.reached++
		n := &f.nodes[i]
		if n.mode == leafNode {
			continue
		}
		if n.feature < 0 {
			return fmt.Errorf("tree node %d asks for feature %d", i, n.feature)
		}
		f.features = max(f.features, n.feature+1)
		open = append(open, n.yes, n.no)
	}
	f.makeSteps()
	f.adds = f.aggregate != "MIN" && f.aggregate != "MAX"
	for _, v := range f.votes {
		if v.target < 0 || v.target >= f.targets {
			return fmt.Errorf("leaf votes for target %d of %d", v.target, f.targets)
		}
	}
	return nil
}

// readForest reads the attributes of TreeEnsembleClassifier and TreeEnsembleRegressor; prefix is
// "class" or "target".
func readForest(c *op.Call, prefix string, targets int) (*forest, error) {
	a := c.Node.Attrs
	f := &forest{targets: targets, base: float64s(c, "base_values"), aggregate: a.Str("aggregate_function", "SUM")}
	var err error
	if f.post, err = postTransform(c); err != nil {
		return nil, err
	}
	tree, id := a.Ints("nodes_treeids"), a.Ints("nodes_nodeids")
	yes, no, feature := a.Ints("nodes_truenodeids"), a.Ints("nodes_falsenodeids"), a.Ints("nodes_featureids")
	modes, values, missing := a.Strs("nodes_modes"), float64s(c, "nodes_values"), a.Ints("nodes_missing_value_tracks_true")
	n := len(tree)
	for _, l := range []int{len(id), len(yes), len(no), len(feature), len(modes), len(values)} {
		if l != n {
			return nil, fmt.Errorf("tree attributes of lengths %d and %d", n, l)
		}
	}
	at := make(map[[2]int]int, n)
	for i := range n {
		at[[2]int{tree[i], id[i]}] = i
	}
	child := make([]bool, n)
	find := func(i, node int) int {
		p, ok := at[[2]int{tree[i], node}]
		if !ok {
			return -1
		}
		child[p] = true
		return p
	}
	f.nodes = make([]treeNode, n)
	for i := range n {
		mode, ok := modeNames[modes[i]]
		if !ok {
			return nil, op.Unsupported("tree node mode %q", modes[i])
		}
		f.nodes[i] = treeNode{mode: mode, feature: feature[i], value: values[i], missing: i < len(missing) && missing[i] != 0}
		if mode != leafNode {
			f.nodes[i].yes, f.nodes[i].no = find(i, yes[i]), find(i, no[i])
		}
	}
	trees := map[int]bool{}
	for i := range n {
		trees[tree[i]] = true
		if !child[i] {
			f.roots = append(f.roots, i)
		}
	}
	if len(f.roots) != len(trees) {
		return nil, fmt.Errorf("%d roots for %d trees", len(f.roots), len(trees))
	}
	if err := f.readVotes(c, prefix, at); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.reached != n { // every node is a root or a child
		return nil, fmt.Errorf("%d tree nodes lie on cycles", n-f.reached)
	}
	return f, nil
}

// readVotes assigns the weights to the leaves.
func (f *forest) readVotes(c *op.Call, prefix string, at map[[2]int]int) error {
	a := c.Node.Attrs
	tree, id, target := a.Ints(prefix+"_treeids"), a.Ints(prefix+"_nodeids"), a.Ints(prefix+"_ids")
	weight := float64s(c, prefix+"_weights")
	if len(id) != len(tree) || len(target) != len(tree) || len(weight) != len(tree) {
		return fmt.Errorf("leaf attributes of lengths %d, %d, %d, %d", len(tree), len(id), len(target), len(weight))
	}
	byLeaf := make(map[int][]vote)
	for i := range tree {
		p, ok := at[[2]int{tree[i], id[i]}]
		if !ok {
			return fmt.Errorf("weight for node %d of tree %d, which does not exist", id[i], tree[i])
		}
		byLeaf[p] = append(byLeaf[p], vote{target[i], weight[i]})
	}
	for i := range f.nodes {
		f.nodes[i].from = len(f.votes)
		f.votes = append(f.votes, byLeaf[i]...)
		f.nodes[i].end = len(f.votes)
	}
	return nil
}

// eachRow makes a run that calls f for the rows of input 0 in parallel. s and seen are scratch
// memory for a score and a mark per target.
func eachRow(c *op.Call, targets int, f func(c *op.Call, i int, x, s []float64, seen []bool)) (op.Run, error) {
	marks := sync.Pool{New: func() any { return &marked{make([]bool, targets)} }}
	return eachRows(c, targets, 0, func(c *op.Call, first int, x, s, _ []float64) {
		m, n := marks.Get().(*marked), len(s)/targets
		for k := range n {
			f(c, first+k, x[k*len(x)/n:][:len(x)/n], s[k*targets:][:targets], m.seen)
		}
		marks.Put(m)
	})
}

// marked is scratch memory of [eachRow].
type marked struct{ seen []bool }

func checkFeatures(c *op.Call, need int) error {
	_, features, err := rows(c.In[0])
	if err != nil {
		return err
	}
	if need > features {
		return fmt.Errorf("model asks for %d features, input is %s", need, tensor.FormatShape(c.In[0].Shape))
	}
	return nil
}
