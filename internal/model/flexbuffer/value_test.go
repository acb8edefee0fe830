package flexbuffer

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"a": int64(-5), "b": uint64(1) << 63, "c": 0.25, "d": "text", "e": true, "f": nil, "": []byte{1, 2, 3},
		"g": []any{int64(1), "two", []any{}, map[string]any{"x": false}}, "h": map[string]any{},
	}
	b, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Error(diff)
	}
	v, _ := Parse(b)
	if v.GetInt("a", 0) != -5 || v.GetFloat("c", 0) != 0.25 || v.GetText("d", "") != "text" || !v.GetBool("e", false) || v.GetInt("none", 7) != 7 {
		t.Error("entries by name differ")
	}
	if _, err := Encode(struct{}{}); err == nil {
		t.Error("a struct is accepted")
	}
}

// TestTyped reads what the encoder does not write: narrow words, typed and fixed
// vectors, indirect numbers.
func TestTyped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		data []byte
		want any
	}{
		{"int8", []byte{0xfe, byte(Int) << 2, 1}, int64(-2)},
		{"float32", []byte{0, 0, 0x80, 0x3f, byte(Float)<<2 | 2, 4}, 1.0},
		{"typed", []byte{2, 7, 0xff, 2, byte(VectorInt) << 2, 1}, []any{int64(7), int64(-1)}},
		{"fixed", []byte{1, 2, 3, 3, byte(VectorUint3) << 2, 1}, []any{uint64(1), uint64(2), uint64(3)}},
		{"bools", []byte{2, 1, 0, 2, byte(VectorBool) << 2, 1}, []any{true, false}},
		{"indirect", []byte{0x34, 0x12, 2, byte(IndirectInt)<<2 | 1, 1}, int64(0x1234)},
		{"string", []byte{2, 'h', 'i', 0, 3, byte(String) << 2, 1}, "hi"},
	} {
		got, err := Decode(tc.data)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// TestModels decodes the options of all custom operators of the real models.
func TestModels(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(filepath.Join(material.Path(t, "models", "real"), "*.tflite"))
	decoded := 0
	for _, f := range files {
		m, err := tflite.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range m.Graphs {
			for _, n := range g.Nodes {
				b, ok := n.Attrs["custom_options"].([]byte)
				if n.Domain != graph.TFLiteCustom || !ok {
					continue
				}
				v, err := Decode(b)
				if err != nil {
					t.Logf("%s: %s: %v", filepath.Base(f), n.Op, err)
					continue
				}
				if _, ok := v.(map[string]any); ok {
					decoded++
					if n.Op == "TFLite_Detection_PostProcess" {
						t.Logf("%s: %v", n.Op, v)
					}
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if decoded == 0 {
		t.Error("no custom options decoded")
	}
	t.Logf("%d option maps decoded", decoded)
}

func FuzzDecode(f *testing.F) {
	b, _ := Encode(map[string]any{"a": []any{1, "x", 2.5}, "b": map[string]any{"c": true}})
	f.Add(b)
	f.Add([]byte{1, 2, 3, 3, byte(VectorUint3) << 2, 1})
	f.Add([]byte{0, 0, byte(Vector) << 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Decode(data)
		if v, err := Parse(data); err == nil {
			v.GetInts("a")
		}
	})
}
