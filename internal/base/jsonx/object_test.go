package jsonx_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// TestObject keeps the order of members, and tells null from an empty object.
func TestObject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"b":1,"a":2,"10":3,"9":4}`, `{}`, `null`} {
		var o jsonx.Object[float64]
		if err := jsonx.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		b, err := jsonx.Marshal(o)
		if err != nil || string(b) != text {
			t.Errorf("%s is written as %s, %v", text, b, err)
		}
	}
	for _, text := range []string{`[1]`, `{"a":"x"}`, `{"a":1`, `{"a":1,"a":2}`, `3`} {
		var o jsonx.Object[float64]
		if err := jsonx.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s is read as %v", text, o)
		}
	}
	o := jsonx.Object[int]{{Name: "a", Value: 1}}
	if v, ok := o.Get("a"); !ok || v != 1 {
		t.Error("a member is not found")
	}
	if _, ok := o.Get("b"); ok {
		t.Error("a member is found that is absent")
	}
}
