package jsontree_test

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsontree"
)

func TestParse(t *testing.T) {
	t.Parallel()
	v, err := jsontree.Parse([]byte("\ufeff" + `{"a":[1,-2.5e3,"x\u00e9",true,null,nan],"b":{"c":"7","d":{}},}`))
	if err != nil {
		t.Fatal(err)
	}
	a := v.Get("a").List()
	if f, ok := a[1].Float(); len(a) != 6 || !ok || f != -2500 || a[2].Str() != "xé" || a[3].Kind != jsontree.Bool || a[4].Kind != jsontree.Null || a[5].Str() != "nan" {
		t.Errorf("%+v", a)
	}
	if n, ok := v.Get("b").Get("c").Int(); !ok || n != 7 || !v.Has("a", "b") || v.Has("z") || v.Get("z").Get("y").Str() != "" || v.Get("z").List() != nil {
		t.Error("members")
	}
	if s := v.Get("a").Brief(); !strings.HasPrefix(s, "[1,-2.5e3,xé,true") {
		t.Error(s)
	}
	if _, ok := a[1].Ints(); ok {
		t.Error("a number is not a list")
	}
	cut, err := jsontree.Parse([]byte(`{"a":1,"b":[1,2`))
	if err == nil || cut.Get("a").Num != 1 {
		t.Errorf("cut: %v %+v", err, cut)
	}
	cut, err = jsontree.Parse([]byte(`{"results":[{"a":1},{"a":2},{"a":3,"b":"x`))
	if l := cut.Get("results").List(); err == nil || len(l) != 3 || l[2].Get("a").Num != 3 {
		t.Errorf("what was whole before the cut stays: %v %+v", err, cut)
	}
	if _, err := jsontree.Parse([]byte(strings.Repeat("[", 200) + strings.Repeat("]", 200))); err == nil {
		t.Error("nesting has no bound")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"a":[1,"x",{"b":null}]}`)
	f.Add(`[[[`)
	f.Fuzz(func(_ *testing.T, s string) {
		v, _ := jsontree.Parse([]byte(s))
		v.Brief()
		v.Get("a").Float()
	})
}
