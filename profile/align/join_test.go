package align

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opmeter/opmeter/profile"
	"pgregory.net/rapid"
)

// model makes a profile of layers in short: "op name nodes…", nodes as 0, or 0? for
// one that was found by order; "Fused>2" before the operator for one that layer 2 does.
func model(layers ...string) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
	for i, s := range layers {
		f := strings.Fields(s)
		l := profile.Layer{Index: int64(i), State: profile.Ran}
		if into, ok := strings.CutPrefix(f[0], "Fused>"); ok {
			l.State, l.FusedInto = profile.Fused, new(int64(into[0]-'0'))
			f = f[1:]
		}
		l.Op, l.Name = f[0], strings.Trim(f[1], "-")
		if len(f) > 2 {
			l.Provenance = &profile.Provenance{Confidence: profile.Exact}
		}
		for _, n := range f[2:] {
			s := profile.SourceNode{Node: int64(n[0] - '0')}
			if strings.HasSuffix(n, "?") {
				s.Confidence = profile.ByOrder
			}
			l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, s)
		}
		p.Layers = append(p.Layers, l)
	}
	return p
}

func show(ps []Pair) string {
	var out []string
	for _, p := range ps {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%v=%v %s", p.A, p.B, p.Confidence)))
	}
	return strings.Join(out, "\n")
}

func TestJoin(t *testing.T) {
	t.Parallel()
	named := func(p *profile.Profile, structure, file string) *profile.Profile {
		p.Model.StructureSHA256, p.Model.SHA256 = structure, file
		return p
	}
	for _, tt := range []struct {
		name string
		a, b *profile.Profile
		want string
	}{
		{"none", model(), model(), ""},
		{"one to one", model("Conv a 0", "Add b 1"), model("Conv x 0", "Add y 1"), "[0]=[0] exact\n[1]=[1] exact"},
		{"another order", model("Conv a 0", "Add b 1"), model("Add y 1", "Conv x 0"), "[0]=[1] exact\n[1]=[0] exact"},
		{"one to two", model("Conv a 0 1"), model("Conv x 0", "Relu y 1"), "[0]=[0 1] exact"},
		{"two to one", model("Conv x 0", "Relu y 1"), model("Conv a 0 1"), "[0 1]=[0] exact"},
		{"two to two, overlapping", model("A a 0 1", "B b 2"), model("C c 0", "D d 1 2"), "[0 1]=[0 1] exact"},
		{"a node split in three", model("A a 0", "A b 0", "A c 0"), model("B x 0"), "[0 1 2]=[0] exact"},
		{"a node twice in a layer", model("A a 0 0"), model("B x 0"), "[0]=[0] exact"},
		{"less sure in a", model("A a 0?"), model("B x 0"), "[0]=[0] by order"},
		{"less sure in b", model("A a 0"), model("B x 0?"), "[0]=[0] by order"},
		{"only in a", model("A a 0", "B b 1"), model("A a 0"), "[0]=[0] exact\n[1]=[] unknown"},
		{"only in b", model("A a 0"), model("A a 0", "B b 1"), "[0]=[0] exact\n[]=[1] unknown"},
		{"no nodes: by name", model("A x", "A y"), model("A y", "A x"), "[0]=[1] by name\n[1]=[0] by name"},
		{"names that stand twice: by order", model("A x", "A x"), model("A x", "A x"), "[0]=[0] by order\n[1]=[1] by order"},
		{"no names: by order", model("A -", "B -", "A -"), model("A -", "A -", "B -"), "[0]=[0] by order\n[1]=[2] by order\n[2]=[1] by order"},
		{"not as many", model("A -", "A -"), model("A -"), "[]=[0] unknown\n[0]=[] unknown\n[1]=[] unknown"},
		{"nodes in one only", model("A x 0"), model("A x"), "[0]=[0] by name"},
		{"another structure", named(model("A x 0", "A y 1"), "1", ""), named(model("A y 0", "A x 1"), "2", ""), "[0]=[1] by name\n[1]=[0] by name"},
		{"another file, structure not known", named(model("A x 0", "A y 1"), "", "1"), named(model("A y 0", "A x 1"), "2", "2"), "[0]=[1] by name\n[1]=[0] by name"},
		{"another file of one structure", named(model("A x 0", "A y 1"), "1", "1"), named(model("A y 0", "A x 1"), "1", "2"), "[0]=[0] exact\n[1]=[1] exact"},
		{"fused in one", model("Conv a 0", "Fused>0 Relu b 1"), model("Conv a 0", "Relu b 1"), "[0 1]=[0 1] exact"},
		{"fused in both", model("Conv a 0", "Fused>0 Relu b 1"), model("Conv a 0", "Fused>0 Relu b 1"), "[0]=[0] exact\n[1]=[1] exact"},
		{"a chain of fused ones", model("A a 0", "Fused>0 B b 1", "Fused>1 C c 2"), model("A a 0", "Fused>0 B b 1", "C c 2"), "[0 1 2]=[0 1 2] exact"},
		{"a chain, the other way", model("Fused>1 A a 0", "Fused>2 B b 1", "C c 2"), model("A a 0", "Fused>2 B b 1", "C c 2"), "[0 1 2]=[0 1 2] exact"},
		{"fused by name", model("Conv a", "Fused>0 Relu b"), model("Conv a", "Relu b"), "[0 1]=[0 1] by name"},
	} {
		if got := show(Layers(tt.a, tt.b)); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestJoinOfAny: every layer is in one pair, pairs are in order, the same every time,
// and a join the other way round has the same pairs.
func TestAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(side string) *profile.Profile {
			var ls []string
			n := rapid.IntRange(0, 8).Draw(t, side)
			for i := range n {
				s := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "op") + " " + rapid.SampledFrom([]string{"-", "x", "y", "z"}).Draw(t, "name")
				if into := rapid.IntRange(-2*n, n-1).Draw(t, "into"); into >= 0 && into != i {
					s = fmt.Sprintf("Fused>%d %s", into, s)
				}
				for _, k := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(t, "nodes") {
					s += fmt.Sprintf(" %d", k)
				}
				ls = append(ls, s)
			}
			return model(ls...)
		}
		a, b := draw("a"), draw("b")
		ps := Layers(a, b)
		seen := map[string]int{}
		last := int64(-1)
		for _, p := range ps {
			for k, is := range [][]int64{p.A, p.B} {
				for n, i := range is {
					seen[fmt.Sprint(k, i)]++
					if n > 0 && is[n-1] >= i {
						t.Fatalf("%v is not in order", p)
					}
				}
			}
			if (p.Confidence == profile.Unknown) != (len(p.A) == 0 || len(p.B) == 0) || p.Confidence == "" {
				t.Fatalf("%+v", p)
			}
			if len(p.A) > 0 {
				if p.A[0] <= last {
					t.Fatal("pairs are not in the order of a")
				}
				last = p.A[0]
			}
		}
		for k, n := range seen {
			if n != 1 {
				t.Fatalf("layer %s is in %d pairs", k, n)
			}
		}
		if len(seen) != len(a.Layers)+len(b.Layers) {
			t.Fatalf("%d layers of %d", len(seen), len(a.Layers)+len(b.Layers))
		}
		for range 3 {
			if d := cmp.Diff(ps, Layers(a, b)); d != "" {
				t.Fatal(d)
			}
		}
		back := map[string]bool{}
		for _, p := range Layers(b, a) {
			back[fmt.Sprint(p.B, p.A, p.Confidence)] = true
		}
		for _, p := range ps {
			if !back[fmt.Sprint(p.A, p.B, p.Confidence)] {
				t.Fatalf("%v is absent the other way round", p)
			}
		}
	})
}
