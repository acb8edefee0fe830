package profile

import (
	"reflect"
	"testing"
)

// TestDetachedMetric copies every part of a metric: a field that is added has to be
// copied, too.
func TestDetachedMetric(t *testing.T) {
	m := &Metric{Kind: Counted, Method: "m"}
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
	c := m.detached()
	if !reflect.DeepEqual(m, c) {
		t.Errorf("copy is %+v, want %+v", c, m)
	}
	w := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Pointer && v.Field(i).Pointer() == w.Field(i).Pointer() {
			t.Errorf("%s is shared", v.Type().Field(i).Name)
		}
	}
	if (*Metric)(nil).detached() != nil {
		t.Error("a copy of nothing")
	}
}

// TestDeepShares copies what changes and shares the lists that are replaced as a whole: a profile
// of many layers has most of its memory there.
func TestDeepShares(t *testing.T) {
	p := &Profile{Layers: []Layer{{Op: "Add", MACs: new(int64(3)), Inputs: []Tensor{{Name: "x", Bytes: new(int64(4))}}, Options: []Option{{}}}}}
	c := deep(p)
	a, b := &p.Layers[0], &c.Layers[0]
	if a == b || a.MACs == b.MACs || *b.MACs != 3 {
		t.Error("the layer is shared")
	}
	if &a.Inputs[0] != &b.Inputs[0] || &a.Options[0] != &b.Options[0] {
		t.Error("the lists are copied")
	}
}
