package onnx

import (
	"container/heap"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// order sorts a graph's nodes topologically. Nodes keep the file's order as far as possible.
func (b *builder) order(g *graph.Graph) error {
	producer := make([]int32, len(g.Values))
	for i := range producer {
		producer[i] = -1
	}
	for i, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 {
				producer[id] = int32(i)
			}
		}
	}
	sorted := true
	for i, n := range g.Nodes {
		b.m.EachInput(n, func(id int) {
			if producer[id] >= int32(i) {
				sorted = false
			}
		})
	}
	if sorted {
		return nil
	}
	next := make([][]int32, len(g.Nodes))
	waits := make([]int, len(g.Nodes))
	for i, n := range g.Nodes {
		b.m.EachInput(n, func(id int) {
			if p := producer[id]; p >= 0 {
				next[p] = append(next[p], int32(i))
				waits[i]++
			}
		})
	}
	var ready intHeap
	for i, w := range waits {
		if w == 0 {
			ready = append(ready, i)
		}
	}
	out := make([]*graph.Node, 0, len(g.Nodes))
	for len(ready) > 0 {
		i := heap.Pop(&ready).(int)
		out = append(out, g.Nodes[i])
		for _, k := range next[i] {
			if waits[k]--; waits[k] == 0 {
				heap.Push(&ready, int(k))
			}
		}
	}
	if len(out) < len(g.Nodes) {
		return fmt.Errorf("the graph has a cycle: %s", b.cycle(g, producer, waits))
	}
	g.Nodes = out
	for i, n := range g.Nodes {
		n.Index = i
	}
	b.warn("Nodes of graph %q are not in an order in which they can run; they were sorted.", g.Name)
	return nil
}

// cycle names the nodes of one cycle among the unsorted ones.
func (b *builder) cycle(g *graph.Graph, producer []int32, waits []int) string {
	at := 0
	for waits[at] == 0 {
		at++
	}
	seen := map[int]int{}
	var path []int
	for {
		if start, ok := seen[at]; ok {
			path = path[start:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		before := at
		b.m.EachInput(g.Nodes[at], func(id int) {
			if p := producer[id]; p >= 0 && waits[p] > 0 {
				before = int(p)
			}
		})
		at = before
	}
	const show = 5
	var names []string
	for i := len(path) - 1; i >= 0 && len(names) < show; i-- {
		n := g.Nodes[path[i]]
		names = append(names, fmt.Sprintf("node %d (%s %q)", n.Index, n.Key(), n.Name))
	}
	if len(path) > show {
		names = append(names, fmt.Sprintf("and %d more", len(path)-show))
	}
	return strings.Join(names, ", ")
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
