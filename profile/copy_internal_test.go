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
