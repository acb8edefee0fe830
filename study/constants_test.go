package study

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// TestLists compares the lists with the constants of their types.
func TestLists(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for _, name := range []string{"layer.go", "results.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			typ, ok := v.Type.(*ast.Ident)
			text, ok2 := v.Values[0].(*ast.BasicLit)
			if !ok || !ok2 {
				return true
			}
			if s, err := strconv.Unquote(text.Value); err == nil && s != "" {
				want[typ.Name] = append(want[typ.Name], s)
			}
			return true
		})
	}
	for name, got := range map[string][]string{"Cause": texts(Causes()), "Structure": texts(Structures()), "Format": texts(Formats()), "Method": texts(Methods())} {
		slices.Sort(got)
		slices.Sort(want[name])
		if !slices.Equal(got, want[name]) {
			t.Errorf("%s: listed %v, the constants are %v", name, got, want[name])
		}
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
