package litert

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func ops(names ...string) []step {
	out := make([]step, len(names))
	for i, n := range names {
		out[i] = step{node: -1, name: n}
	}
	return out
}

func TestAlign(t *testing.T) {
	t.Parallel()
	const conv, depth, fc = "Convolution (NHWC, F32) IGEMM", "Convolution (NHWC, F32) DWConv", "Fully Connected (NC, F32) GEMM"
	for _, tt := range []struct {
		name  string
		nodes string
		steps []step
		want  []int
		sure  bool
	}{
		{"one each", "CONV_2D DEPTHWISE_CONV_2D CONV_2D", ops(conv, depth, fc), []int{0, 1, 2}, true},
		{"padding in the convolution", "PAD CONV_2D PAD CONV_2D", ops(conv, conv), []int{1, 3}, true},
		{"padding of its own", "PAD CONV_2D PAD CONV_2D", ops("Constant Pad (ND, X32)", conv, conv), []int{0, 1, 3}, true},
		{"limits behind sums", "ADD ADD", ops("Add (ND)", "Clamp (NC)", "Add (ND)"), []int{0, 0, 1}, true},
		{"limit is not in front", "ADD CONV_2D", ops("Add (ND)", "Clamp (NC)", conv), []int{0, 0, 1}, true},
		{"activation of its own", "CONV_2D RELU6 CONV_2D", ops(conv, "Clamp (NC)", conv), []int{0, 1, 2}, true},
		{"dynamic", "FULLY_CONNECTED FULLY_CONNECTED", ops("Convert (NC, F32, QD8)", "Fully Connected (NC, QD8, F32, QC8W) GEMM", "Convert (NC, F32, QD8)", "Fully Connected (NC, QD8, F32, QC8W) GEMM"), []int{0, 0, 1, 1}, true},
		{"pieces", "CONCATENATION ADD", ops("Copy (NC, X32)", "Copy (NC, X32)", "Add (ND)"), []int{0, 0, 1}, true},
		{"interpreter's node between", "CONV_2D SOFTMAX CONV_2D", []step{{-1, conv}, {1, "SOFTMAX"}, {-1, conv}}, []int{0, 1, 2}, true},
		{"composite", "FULLY_CONNECTED STABLEHLO_COMPOSITE FULLY_CONNECTED", ops(fc, "Multiply (ND)", "Transpose (ND, X32) Transpose", "Dynamic Fully Connected (NC, F32) GEMM", "Softmax (NC, F32)", "Transpose (ND, X32) Transpose", "Dynamic Fully Connected (NC, F32) GEMM", "Static Reshape (NC)", fc), []int{0, 1, 1, 1, 1, 1, 1, 1, 2}, true},
		{"fused elements", "MUL SUB CONV_2D", ops("Invalid Unary Op", conv), []int{1, 2}, true},
		{"sum of squares", "MUL SUM DIV", ops(scaled+" (ND) Reduce2", "Divide (ND)"), []int{1, 2}, true},
		{"rows for a dense layer", "FULLY_CONNECTED FULLY_CONNECTED", ops(fc, "Static Reshape (NC)", fc), []int{0, 1, 1}, true},
		// Either of two nodes may have vanished.
		{"ambiguous", "RESHAPE RESHAPE ADD", ops("Static Reshape (NC)", "Add (ND)"), []int{-1, 2}, true},
		// What is left over says that the delegate did something else than thought.
		{"left over", "CONV_2D CONV_2D", ops(conv, "Something New (NC)", conv), []int{0, -1, 1}, false},
		{"missing", "CONV_2D SOFTMAX CONV_2D", ops(conv, conv), []int{0, 2}, false},
		{"nothing fits", "CONV_2D", ops("Softmax (NC, F32)"), []int{-1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, sure := align(strings.Fields(tt.nodes), tt.steps, func(n int) int { return n })
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			for i, s := range sure {
				if s != tt.sure && tt.steps[i].node < 0 {
					t.Errorf("step %d: sure %t, want %t", i, s, tt.sure)
				}
			}
		})
	}
}

// graphOf makes a graph of lines "op: inputs > outputs".
func graphOf(t *testing.T, lines ...string) *knownGraph {
	t.Helper()
	g := &knownGraph{owner: -1, made: make([]bool, 100)}
	for _, l := range lines {
		op, rest, _ := strings.Cut(l, ":")
		in, out, _ := strings.Cut(rest, ">")
		n := knownNode{op: op}
		for _, f := range strings.Fields(in) {
			var v int
			if _, err := fmt.Sscan(f, &v); err != nil {
				t.Fatal(err)
			}
			n.inputs = append(n.inputs, v)
		}
		for _, f := range strings.Fields(out) {
			var v int
			if _, err := fmt.Sscan(f, &v); err != nil {
				t.Fatal(err)
			}
			n.outputs = append(n.outputs, v)
			g.made[v] = true
			n.names = append(n.names, fmt.Sprintf("t%d", v))
		}
		g.nodes = append(g.nodes, n)
	}
	return g
}

// TestOrder divides a graph by hand: nodes 1 and 4 stay with the interpreter.
//
//	0 ─ 1 ─ 3
//	 \─ 2 ─ 5, 4 reads the input
func TestOrder(t *testing.T) {
	t.Parallel()
	g := graphOf(t, "A: 0 > 1", "B: 1 > 2", "C: 1 > 3", "D: 2 > 4", "E: 0 > 5", "F: 3 > 6")
	taken := func(n int) bool { return n != 1 && n != 4 }
	if got, want := g.order(taken, false), []int{0, 2, 5, 1, 4, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := g.order(taken, true), []int{0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("scattered: got %v, want %v", got, want)
	}
	// Nodes with effects keep their order whatever sort they are.
	g.nodes[1].effects, g.nodes[2].effects = true, true
	if got, want := g.order(taken, false), []int{0, 1, 4, 2, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("effects: got %v, want %v", got, want)
	}
	// A graph that waits for its own output ends.
	loop := graphOf(t, "A: 2 > 1", "B: 1 > 2")
	if got := loop.order(func(int) bool { return true }, false); len(got) != 0 {
		t.Errorf("loop: %v", got)
	}
}

func FuzzAlign(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{3, 2, 1, 0, 255})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		kinds := []string{"CONV_2D", "ADD", "MUL", "RESHAPE", "PAD", "STABLEHLO_COMPOSITE", "SOFTMAX", "FULLY_CONNECTED", "NEVER"}
		names := []string{"Convolution (NHWC, F32) IGEMM", "Add (ND)", "Multiply (ND)", "Static Reshape (NC)", "Clamp (NC)", "Invalid Unary Op", "Softmax (NC)", "", "Copy (NC"}
		nodes := make([]string, min(len(a), 60))
		for i := range nodes {
			nodes[i] = kinds[int(a[i])%len(kinds)]
		}
		steps := make([]step, min(len(b), 60))
		for i := range steps {
			steps[i] = step{node: -1, name: names[int(b[i])%len(names)]}
			if b[i] >= 128 {
				steps[i].node = int(b[i]) - 128
			}
		}
		got, sure := align(nodes, steps, func(n int) int {
			if n >= len(nodes) {
				return -1
			}
			return n
		})
		if len(got) != len(steps) || len(sure) != len(steps) {
			t.Fatalf("%d and %d for %d steps", len(got), len(sure), len(steps))
		}
		for i, n := range got {
			if n < -1 || n >= len(nodes) {
				t.Errorf("step %d: node %d of %d", i, n, len(nodes))
			}
			if n >= 0 && steps[i].node < 0 && fits(nodes[n], steps[i:i+1]) == 0 && !slices.Contains(kernels[nodes[n]].beside, "Clamp") && !kernels[nodes[n]].any {
				t.Errorf("step %d %q for %s", i, steps[i].name, nodes[n])
			}
		}
	})
}
