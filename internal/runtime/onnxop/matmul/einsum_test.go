package matmul

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestEinsumProducts compares GEMMs, for any layout of the operands, with integer sums that are
// added up element by element. Numbers are small, so that both are exact.
func TestEinsumProducts(t *testing.T) {
	t.Parallel()
	equations := []string{
		"ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ji,kj->ik", "ij,jk->ki", "bij,bjk->bik",
		"bhdi,bhdj->bhij", "bhij,bhdj->bhdi", "bihd,bjhd->bhij", "bhij,bjhd->bihd", "bhij,bhjd->bhid",
		"bij,jk->bik", "ij,bjk->bik", "iajb,abk->ijk", "aib,bka->ik", "bhi,hd->bhid", "b,bij->bij", "bid,bjd->bj", "ii,ij->j", "bij,bij->b",
		"bid,hkd->bhik", "bhij,bhjk->bihk", "ijb,jbd->ibd", "bij,bj->bij", "bik,bjk->bij", "bia,bjk->bija", "iab,kjb->iakj", "ij,kj->jik", "bi,bj->bji",
		"ij->ji", "bii->bi", "bij->b", "ij->", "ij,jk,kd->id", "bi,bj,ijk->bk", "bij,bjk,bkd,bd->bi", "i,j,k->ijk", "ai,bj,ai->b", "ij,ij,ij->ij",
	}
	rapid.Check(t, func(t *rapid.T) {
		eq := rapid.SampledFrom(equations).Draw(t, "equation")
		size := map[byte]int{}
		for i := range len(eq) {
			if ch := eq[i]; ch >= 'a' && ch <= 'z' && size[ch] == 0 {
				size[ch] = rapid.SampledFrom([]int{1, 2, 3, 5, 17, 33}).Draw(t, string(ch))
			}
		}
		if size['b'] > 5 {
			size['b'] = 2
		}
		var whole []*tensor.Tensor
		at := 0
		for range strings.Count(eq, ",") + 1 {
			var shape []int
			for ; eq[at] != ',' && eq[at] != '-'; at++ {
				n := size[eq[at]]
				if rapid.IntRange(0, 19).Draw(t, "repeated") == 0 {
					n = 1
				}
				shape = append(shape, n)
			}
			at++
			x := tensor.New(tensor.Int64, shape...)
			step := rapid.IntRange(1, 6).Draw(t, "step")
			tensor.Fill(x, func(i int) float64 { return float64(i*step%7 - 3) })
			whole = append(whole, x)
		}
		node := optest.Node{Op: "Einsum", Version: 13, Attrs: graph.Attrs{"equation": eq}}
		want, err := optest.Run(Defs(), node, whole...)
		if err != nil {
			t.Skip(err) // axes that repeat and fit nothing
		}
		for _, typ := range reals[:2] {
			in := make([]*tensor.Tensor, len(whole))
			for i, x := range whole {
				in[i] = cast(typ, x)
			}
			node.Const = nil
			if last := len(in) - 1; last > 0 {
				node.Const = make([]bool, len(in))
				node.Const[rapid.IntRange(0, last).Draw(t, "which")] = rapid.Bool().Draw(t, "constant")
			}
			got, err := optest.Run(Defs(), node, in...)
			if err != nil {
				t.Fatal(err)
			}
			numbers := make([]float64, want[0].Len())
			for i := range numbers {
				numbers[i] = tensor.At(want[0], i)
			}
			if why := optest.Differ(got[0], numbers, 0, 0); why != "" {
				t.Fatalf("%s, the first of %v, in %v: %s", eq, whole[0].Shape, typ, why)
			}
		}
	})
}
