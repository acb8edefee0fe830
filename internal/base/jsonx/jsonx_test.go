package jsonx

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestMarshal(t *testing.T) {
	t.Parallel()
	v := map[string]any{"b": 1, "a": []int{1, 2}, "c": "<&>"}
	got, err := Marshal(v)
	if want := `{"a":[1,2],"b":1,"c":"<&>"}`; err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v; want %s", got, err, want)
	}
	got, err = MarshalIndent(struct {
		A int `json:"a"`
	}{1})
	if want := "{\n  \"a\": 1\n}\n"; err != nil || string(got) != want {
		t.Errorf("MarshalIndent = %q, %v; want %q", got, err, want)
	}
	var w strings.Builder
	if err := MarshalWrite(&w, 1); err != nil || w.String() != "1\n" {
		t.Errorf("MarshalWrite = %q, %v", w.String(), err)
	}
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, wantErr string
		strict            bool
	}{
		{name: "plain", in: `{"a":1}`},
		{name: "unknown member", in: `{"a":1,"z":[{}]}`},
		{name: "unknown member, strict", in: `{"z":1}`, strict: true, wantErr: "z"},
		{name: "duplicate", in: `{"a":1,"a":2}`, wantErr: "duplicate"},
		{name: "cut", in: `{"a":`, wantErr: "EOF"},
		{name: "deep", in: strings.Repeat("[", 1e5), wantErr: "nest deeper"},
		{name: "brackets in text", in: `{"s":"` + strings.Repeat(`[\"`, 100) + `"}`},
		{name: "wrong type", in: `{"a":"x"}`, wantErr: "/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var v struct {
				A int    `json:"a"`
				S string `json:"s"`
			}
			read := Unmarshal
			if tt.strict {
				read = UnmarshalStrict
			}
			err := read([]byte(tt.in), &v)
			w := v
			if pieces := UnmarshalRead(iotest.OneByteReader(strings.NewReader(tt.in)), &w); !tt.strict && ((pieces == nil) != (err == nil) || w != v) {
				t.Errorf("in pieces: %+v, %v; at once: %+v, %v", w, pieces, v, err)
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestFirstString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in, name, value string
		ok              bool
	}{
		{` {"a" : "b", `, "a", "b", true},
		{`{"a":"b`, "", "", false},
		{`{"a":1}`, "", "", false},
		{`{}`, "", "", false},
		{`["a","b"]`, "", "", false},
		{``, "", "", false},
	} {
		if name, value, ok := FirstString([]byte(tt.in)); name != tt.name || value != tt.value || ok != tt.ok {
			t.Errorf("FirstString(%s) = %q, %q, %v; want %q, %q, %v", tt.in, name, value, ok, tt.name, tt.value, tt.ok)
		}
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	if got, want := string(AppendString([]byte("x"), "a\"\n\xff\u2028")), "x\"a\\\"\\n\ufffd\u2028\""; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIsSyntax(t *testing.T) {
	t.Parallel()
	var v struct{ A int }
	for in, want := range map[string]bool{`{`: true, `x`: true, `{"A":"x"}`: false, `{"B":` + strings.Repeat("[", 100): true} {
		if err := UnmarshalRead(strings.NewReader(in), &v); err == nil || IsSyntax(err) != want {
			t.Errorf("%.20s: %v is a fault of the syntax: %v, want %v", in, err, !want, want)
		}
	}
}

func TestMarshalIndentShows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "日本語 é", `"日本語 é"`},
		{"c1 control and del", "a\u009bb\x7f", `"a\u009bb\u007f"`},
		{"direction and zero width", "\u202ea\u200b", `"\u202ea\u200b"`},
		{"beyond the first plane", "\U000e0041", `"\udb40\udc41"`},
	} {
		got, err := MarshalIndent(tt.in)
		if err != nil || string(got) != tt.want+"\n" {
			t.Errorf("%s: %s (%v), want %s", tt.name, got, err, tt.want)
		}
		var back string
		if err := Unmarshal(got, &back); err != nil || back != tt.in {
			t.Errorf("%s: reads back as %q (%v)", tt.name, back, err)
		}
	}
}

// TestMarshalWrite writes characters of every length across the ends of pieces.
func TestMarshalWrite(t *testing.T) {
	t.Parallel()
	for _, in := range []any{
		strings.Repeat("é\u202e日\U000e0041\u0080🙂a", 20_000), []string{"\u202e"}, "", map[string]float64{"\u200b": 1.5}, "é",
	} {
		var b bytes.Buffer
		if err := MarshalWrite(&b, in); err != nil {
			t.Fatal(err)
		}
		want, err := MarshalIndent(in)
		if err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%.40q is %.80s, want %.80s (%v)", in, b.Bytes(), want, err)
		}
	}
	var b bytes.Buffer
	w := &shown{w: &b}
	for _, c := range []byte("é\u202e日\U000e0041🙂") {
		if _, err := w.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.String(), `é\u202e日\udb40\udc41🙂`; got != want || len(w.rest) > 0 {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestManyObjects refuses text whose objects would take far more memory than itself,
// and takes as many as people write.
func TestManyObjects(t *testing.T) {
	t.Parallel()
	type wide struct{ A, B, C, D [10]int64 }
	many := func(object string, n int) []byte {
		return []byte("[" + strings.TrimSuffix(strings.Repeat(object+",", n), ",") + "]")
	}
	for _, tt := range []struct {
		name, object string
		n            int
		ok           bool
	}{
		{"some empty ones", "{}", freeObjects, true},
		{"many empty ones", "{}", 2 * freeObjects, false},
		{"many with content", `{"a":1,"b":"a text"}`, 3 * freeObjects, true},
		{"braces in texts", `{"a":"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"}`, freeObjects, true},
	} {
		b := many(tt.object, tt.n)
		var v, w []wide
		for how, err := range map[string]error{"whole": Unmarshal(b, &v), "in pieces": UnmarshalRead(bytes.NewReader(b), &w)} {
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, errMany) {
				t.Errorf("%s, %s: %v", tt.name, how, err)
			}
		}
	}
}
