package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func inferClassifier(c *op.Call) error {
	n, _, err := rows(c.In[0])
	if err != nil {
		return err
	}
	l := classLabels(c)
	c.SetOut(0, l.kind(), []int{n})
	c.SetOut(1, tensor.Float32, []int{n, max(l.len(), 1)})
	return nil
}

// treeClassifier handles the special case of two classes of which only one has weights: its score
// decides alone.
type treeClassifier struct {
	*forest
	labels
	binary, positive bool
}

func prepareTreeClassifier(c *op.Call) (op.Run, error) {
	l := classLabels(c)
	f, err := readForest(c, "class", max(l.len(), 1))
	if err != nil {
		return nil, err
	}
	if err := checkFeatures(c, f.features); err != nil {
		return nil, err
	}
	t := &treeClassifier{forest: f, labels: l, positive: true}
	ids := map[int]bool{}
	for _, v := range f.votes {
		ids[v.target] = true
		t.positive = t.positive && v.weight >= 0
	}
	t.binary = f.targets == 2 && len(ids) == 1
	return eachRow(c, f.targets, func(c *op.Call, i int, x, s []float64, seen []bool) {
		f.scores(x, s, seen)
		var k int
		if f.targets > 2 {
			for j, b := range f.base {
				if j < len(s) {
					s[j] += b
					seen[j] = true
				}
			}
			k = best(s, seen)
			f.post.apply(s)
		} else {
			k, s = t.two(s, seen)
		}
		if l.len() == 1 && l.kind() == tensor.Int64 {
			tensor.Of[int64](c.Out[0])[i] = int64(k) // a single label is not used
		} else {
			l.write(c.Out[0], i, k)
		}
		if c.Wants(1) {
			for j := range f.targets {
				if j < len(s) {
					tensor.Put(c.Out[1], i*f.targets+j, s[j])
				}
			}
		}
	})
}

// best returns the class with the highest score among those with votes.
func best(s []float64, seen []bool) int {
	k := -1
	for j, v := range s {
		if seen[j] && (k < 0 || v > s[k]) {
			k = j
		}
	}
	return max(k, 0)
}

// two computes the scores of at most two classes by ONNX Runtime's rules: the standard does not
// define them.
func (t *treeClassifier) two(s []float64, seen []bool) (int, []float64) {
	both := len(s) == 2 && seen[1]
	switch {
	case len(s) == 2 && len(t.base) == 2 && seen[1]:
		s[1] = t.base[1] + s[0]
		if seen[0] {
			s[0] = -s[1]
		}
	case len(s) == 2 && len(t.base) == 2:
		s[0] += t.base[0] // s[1] had no votes and stays zero
		both = true
	case len(t.base) == 1 && seen[0]:
		s[0] += t.base[0]
	}
	score := s[0]
	if len(s) == 2 && seen[1] {
		score = s[1]
	}
	threshold := 0.0
	if t.binary && t.positive {
		threshold = 0.5
	}
	k := 0
	if score > threshold {
		k = 1
	}
	if both {
		t.post.apply(s)
		return k, s
	}
	return k, binaryScores(t.post, score, t.positive, len(s))
}

// binaryScores computes the scores of both classes from that of the second.
func binaryScores(post transform, score float64, probability bool, n int) []float64 {
	var s []float64
	switch {
	case post == probit:
		s = []float64{math.Sqrt2 * math.Erfinv(2*score-1), 0}
	case post == logistic:
		s = []float64{sigmoid(-score), sigmoid(score)}
	case probability:
		s = []float64{1 - score, score}
	default:
		s = []float64{-score, score}
	}
	if n == 1 {
		return s[len(s)-1:]
	}
	return s
}

func inferTreeRegressor(c *op.Call) error {
	targets := c.Node.Attrs.Int("n_targets", 1)
	if targets < 1 {
		return fmt.Errorf("n_targets %d", targets)
	}
	kind := tensor.Float32
	if c.Node.Op == "TreeEnsemble" {
		kind = c.In[0].Type
	}
	return setRows(c, kind, targets)
}

func prepareTreeRegressor(c *op.Call) (op.Run, error) {
	f, err := readForest(c, "target", c.Node.Attrs.Int("n_targets", 1))
	if err != nil {
		return nil, err
	}
	return f.regress(c)
}

func (f *forest) regress(c *op.Call) (op.Run, error) {
	if err := checkFeatures(c, f.features); err != nil {
		return nil, err
	}
	if len(f.base) != 0 && len(f.base) != f.targets {
		return nil, fmt.Errorf("%d base values for %d targets", len(f.base), f.targets)
	}
	if !slices.Contains([]string{"SUM", "AVERAGE", "MIN", "MAX"}, f.aggregate) {
		return nil, fmt.Errorf("aggregate_function %q", f.aggregate)
	}
	return eachRow(c, f.targets, func(c *op.Call, i int, x, s []float64, seen []bool) {
		f.scores(x, s, seen)
		for j, b := range f.base {
			s[j] += b
		}
		f.post.apply(s)
		tensor.WriteFloat64(c.Out[0], i*f.targets, s, tensor.Conversion{Saturate: true})
	})
}

// prepareTreeEnsemble reads version 5's layout: branches and leaves have lists of their own, and
// each child says which of the two it is.
func prepareTreeEnsemble(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	names := []string{"AVERAGE", "SUM", "MIN", "MAX"}
	agg, post := a.Int("aggregate_function", 1), a.Int("post_transform", 0)
	if agg < 0 || agg > 3 || post < 0 || post > int(probit) {
		return nil, fmt.Errorf("aggregate_function %d, post_transform %d", agg, post)
	}
	f := &forest{targets: a.Int("n_targets", 1), aggregate: names[agg], post: transform(post), roots: a.Ints("tree_roots")}
	feature, values := a.Ints("nodes_featureids"), float64s(c, "nodes_splits")
	yes, yesLeaf := a.Ints("nodes_truenodeids"), a.Ints("nodes_trueleafs")
	no, noLeaf := a.Ints("nodes_falsenodeids"), a.Ints("nodes_falseleafs")
	missing := a.Ints("nodes_missing_value_tracks_true")
	modes := float64s(c, "nodes_modes")
	weights, targets := float64s(c, "leaf_weights"), a.Ints("leaf_targetids")
	n := len(feature)
	for _, l := range []int{len(values), len(yes), len(yesLeaf), len(no), len(noLeaf), len(modes)} {
		if l != n {
			return nil, fmt.Errorf("tree attributes of lengths %d and %d", n, l)
		}
	}
	if len(weights) != len(targets) {
		return nil, fmt.Errorf("%d leaf weights, %d targets", len(weights), len(targets))
	}
	members := float64s(c, "membership_values")
	// Leaves are made where they are referred to, so that every node has one parent.
	child := func(i, leaf int) (int, error) {
		if leaf == 0 {
			if i < 0 || i >= n {
				return 0, fmt.Errorf("tree node %d of %d", i, n)
			}
			return i, nil
		}
		if i < 0 || i >= len(weights) {
			return 0, fmt.Errorf("leaf %d of %d", i, len(weights))
		}
		f.votes = append(f.votes, vote{targets[i], weights[i]})
		f.nodes = append(f.nodes, treeNode{mode: leafNode, from: len(f.votes) - 1, end: len(f.votes)})
		return len(f.nodes) - 1, nil
	}
	f.nodes = make([]treeNode, n)
	for i := range n {
		if modes[i] < 0 || modes[i] > branchMember {
			return nil, fmt.Errorf("tree node mode %v", modes[i])
		}
		t := treeNode{mode: uint8(modes[i]), feature: feature[i], value: values[i], missing: i < len(missing) && missing[i] != 0}
		if t.mode == branchMember {
			k := 0
			for k < len(members) && !math.IsNaN(members[k]) {
				k++
			}
			t.members = members[:k]
			members = members[min(k+1, len(members)):]
		}
		var err error
		if t.yes, err = child(yes[i], yesLeaf[i]); err != nil {
			return nil, err
		}
		// A root that is a leaf is stored as a branch whose two children are the same leaf.
		if t.no, err = child(no[i], noLeaf[i]); err != nil {
			return nil, err
		}
		f.nodes[i] = t
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f.regress(c)
}
