package align

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"pgregory.net/rapid"
)

// drawn makes a random network, whose tensors may have names of no meaning and may be equal.
func drawn(t *rapid.T, label string) *profile.Profile {
	return built("", func(g *maker) {
		made := []string{"in"}
		n := rapid.IntRange(1, 14).Draw(t, label)
		for i := range n {
			in := func() string { return rapid.SampledFrom(made).Draw(t, "in") }
			name := fmt.Sprint(label, i)
			switch rapid.SampledFrom([]string{"Conv", "Conv", "Relu", "Add", "Sub", "Concat", "Cast", "bias"}).Draw(t, "op") {
			case "Conv":
				g.conv(name, in(), 8, rapid.SampledFrom([]int64{1, 3}).Draw(t, "kernel"))
			case "Relu":
				g.add("Relu", name, []string{in()}, image)
			case "Add":
				g.add("Add", name, []string{in(), in()}, image)
			case "Sub":
				g.add("Sub", name, []string{in(), in()}, image)
			case "Concat":
				g.add("Concat", name, []string{in(), in(), in()}, image)
			case "Cast":
				g.add("Cast", name, []string{in()}, image)
			default:
				g.add("Add", name, []string{in()}, image, []int64{8})
			}
			made = append(made, name)
		}
	})
}

// other gives a profile the identity of another file, so that nodes say nothing.
func other(p *profile.Profile) *profile.Profile {
	q := *p
	q.Model.StructureSHA256 = strings.Repeat("e", 64)
	q.Layers = slices.Clone(p.Layers)
	return &q
}

// sorted writes pairs in an order that does not depend on that of the layers.
func sorted(ps []Pair, name func(side int, i int64) string) []string {
	var out []string
	for _, p := range ps {
		var sides [2][]string
		for side, ls := range [][]int64{p.A, p.B} {
			for _, i := range ls {
				sides[side] = append(sides[side], name(side, i))
			}
			slices.Sort(sides[side])
		}
		out = append(out, fmt.Sprint(sides, p.Kind, p.Confidence, p.Certain))
	}
	slices.Sort(out)
	return out
}

// TestItself: of a profile and itself, each layer is the partner of itself.
func TestItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, "a")
		for _, pair := range Layers(p, other(p)) {
			if len(pair.A) != 1 || !slices.Equal(pair.A, pair.B) || pair.Kind != Same {
				t.Fatalf("%+v", pair)
			}
		}
	})
}

// TestMirrored: with the profiles exchanged the pairs are the same ones, and each layer is in one.
func TestMirrored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(t, "a"), drawn(t, "b")
		index := func(side int, i int64) string { return fmt.Sprint(side, "/", i) }
		there := Layers(a, b)
		back := Layers(b, a)
		for i := range back {
			back[i] = back[i].mirrored()
		}
		if x, y := sorted(there, index), sorted(back, index); !slices.Equal(x, y) {
			t.Fatalf("%v\nand the other way round\n%v", x, y)
		}
		seen := map[string]bool{}
		for _, p := range there {
			for side, ls := range [][]int64{p.A, p.B} {
				for _, i := range ls {
					if k := index(side, i); seen[k] {
						t.Fatalf("layer %s is in two pairs", k)
					} else {
						seen[k] = true
					}
				}
			}
		}
		if len(seen) != len(a.Layers)+len(b.Layers) {
			t.Fatalf("%d layers of %d are in pairs", len(seen), len(a.Layers)+len(b.Layers))
		}
	})
}

// TestOrder: the order in which a file lists nodes that do not depend on each other changes nothing
// of what is certain.
func TestOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(t, "a"), drawn(t, "b")
		c := permuted(t, b)
		name := func(b *profile.Profile) func(int, int64) string {
			return func(side int, i int64) string { return []*profile.Profile{a, b}[side].Layers[i].Name }
		}
		certain := func(ps []Pair) []Pair { return slices.DeleteFunc(ps, func(p Pair) bool { return !p.Certain }) }
		x, y := sorted(certain(Layers(a, b)), name(b)), sorted(certain(Layers(a, c)), name(c))
		if !slices.Equal(x, y) {
			t.Fatalf("%v\nin another order\n%v", x, y)
		}
	})
}

// permuted lists the layers of a profile in another order of execution.
func permuted(t *rapid.T, p *profile.Profile) *profile.Profile {
	q := *p
	q.Layers = nil
	ready := map[string]bool{"in": true}
	left := slices.Clone(p.Layers)
	for len(left) > 0 {
		var can []int
		for i, l := range left {
			if !slices.ContainsFunc(l.Inputs, func(in profile.Tensor) bool { return !in.Constant && !ready[in.Name] }) {
				can = append(can, i)
			}
		}
		i := rapid.SampledFrom(can).Draw(t, "next")
		l := left[i]
		left = slices.Delete(left, i, i+1)
		ready[l.Name] = true
		l.Index = int64(len(q.Layers))
		q.Layers = append(q.Layers, l)
	}
	return &q
}

// TestHostile aligns profiles that no model has.
func TestHostile(t *testing.T) {
	t.Parallel()
	cycle := built("", func(g *maker) {
		for i := range 1000 {
			g.add("Add", fmt.Sprint("x", i), []string{fmt.Sprint("x", (i+1)%1000), fmt.Sprint("x", i), ""}, image)
		}
	})
	names := built("", func(g *maker) {
		for range 1000 {
			g.add("Conv", "x", []string{"x"}, image)
		}
	})
	wide := built("", func(g *maker) {
		var ins []string
		for i := range 700 {
			g.conv(fmt.Sprint("a", i), "in", 8, 3)
			ins = append(ins, fmt.Sprint("a", i))
		}
		g.add("Concat", "all", ins, image)
		for i := range 700 {
			g.conv(fmt.Sprint("b", i), "all", 8, 3)
		}
	})
	for _, a := range []*profile.Profile{cycle, names, wide, built("", func(*maker) {})} {
		for _, b := range []*profile.Profile{other(cycle), other(names), other(wide)} {
			n := 0
			for _, p := range Layers(a, b) {
				n += len(p.A) + len(p.B)
			}
			if n != len(a.Layers)+len(b.Layers) {
				t.Errorf("%d layers of %d are in pairs", n, len(a.Layers)+len(b.Layers))
			}
		}
	}
}

// TestBodies: bodies of control flow are compared with those of the partner alone.
func TestBodies(t *testing.T) {
	t.Parallel()
	with := func(kernels ...int64) *profile.Profile {
		return built("", func(g *maker) {
			x := g.conv("a", "in", 8, 3)
			x = g.add("If", "if", []string{x}, image)
			owner := int64(len(g.p.Layers) - 1)
			for i, k := range kernels {
				graph := fmt.Sprint("branch", i)
				for n := range 2 {
					g.conv(fmt.Sprint("c", i, n), []string{"in", fmt.Sprint("c", i, 0)}[n], 8, k)
					g.last().Graph, g.last().Parent = graph, &owner
				}
			}
			g.conv("z", x, 8, 3)
		})
	}
	a, b := with(1, 5), with(1, 5)
	b.Layers[2].Op, b.Model.StructureSHA256 = "Softmax", strings.Repeat("c", 64)
	want := "Conv | Conv: same\nIf | If: same\nConv | Softmax: replaced ?\nConv | Conv: same\nConv | Conv: same\nConv | Conv: same\nConv | Conv: same"
	if got := written(a, b, Layers(a, b)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
