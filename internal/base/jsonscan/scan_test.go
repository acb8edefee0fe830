package jsonscan_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
)

// read lists what a text passes on, as "key=value".
func read(r io.Reader, o jsonscan.Options) (got []string, res jsonscan.Result, err error) {
	o.Stream = func(key string) bool { return key == "events" }
	res, err = jsonscan.Each(r, o, func(key string, v []byte) error {
		got = append(got, key+"="+string(v))
		return nil
	})
	return got, res, err
}

// TestEach reads documents as recorders leave them, whole and byte by byte.
func TestEach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
		cut  bool
		bad  int64
	}{
		{`[]`, nil, false, 0},
		{`[1, {"a":[2]} ,"x]"]`, []string{"=1", `={"a":[2]}`, `="x]"`}, false, 0},
		{"\ufeff[1,\r\n]", []string{"=1"}, false, 0},
		{`[{"a":1},`, []string{`={"a":1}`}, true, 0},
		{`[{"a":1},{"b":`, []string{`={"a":1}`}, true, 0},
		{`[{"a":"\"}`, nil, true, 0},
		{`{"x":3,"events":[{"a":1},{"a":2}],"y":{"events":[0]}}`, []string{"x=3", `events={"a":1}`, `events={"a":2}`, `y={"events":[0]}`}, false, 0},
		{`{"events":{"a":1}}`, []string{`events={"a":1}`}, false, 0},
		{`[1][2]{"z":3}`, []string{"=1", "=2", "z=3"}, false, 0},
		{"[{\"a\":\"x\"y\"},\n{\"a\":2}]", []string{`={"a":2}`}, false, 1},
		{`[1,}2]`, []string{"=1"}, true, 1},
		{"[" + strings.Repeat("[", 300) + "\n,7]", []string{"=7"}, false, 1},
		{`{"a":1`, []string{"a=1"}, true, 0},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.text), "bytes": iotest.OneByteReader(strings.NewReader(c.text))} {
			got, res, err := read(r, jsonscan.Options{})
			if err != nil || !slices.Equal(got, c.want) || res.Cut != c.cut || res.Bad != c.bad || res.Bytes != int64(len(c.text)) {
				t.Errorf("%s %.40q: %q, %+v, %v; want %q, cut %v, bad %d", name, c.text, got, res, err, c.want, c.cut, c.bad)
			}
		}
	}
	for _, s := range []string{"", "  ", "x", "1"} {
		if _, _, err := read(strings.NewReader(s), jsonscan.Options{}); !errors.Is(err, jsonscan.ErrNone) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestLarge leaves out what is beyond the bound and goes on behind it.
func TestLarge(t *testing.T) {
	t.Parallel()
	text := `[1,"` + strings.Repeat("x", 3<<20) + `",2]`
	got, res, err := read(strings.NewReader(text), jsonscan.Options{MaxValue: 1 << 20})
	if err != nil || !slices.Equal(got, []string{"=1", "=2"}) || res.Large != 1 {
		t.Errorf("%q, %+v, %v", got, res, err)
	}
}

// TestLine passes on lines that are not JSON.
func TestLine(t *testing.T) {
	t.Parallel()
	var lines []string
	got, res, err := read(strings.NewReader("[\n{\"n\":\"a\"b\"},\n{\"n\":1}\n]"), jsonscan.Options{Line: func(b []byte) bool {
		lines = append(lines, string(b))
		return true
	}})
	if err != nil || !slices.Equal(got, []string{`={"n":1}`}) || !slices.Equal(lines, []string{`{"n":"a"b"}`}) || res.Bad != 0 {
		t.Errorf("%q, %q, %+v, %v", got, lines, res, err)
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":"x\"","c":{"d":[1]}}`: `a:1 b:"x\"" c:{"d":[1]} `,
		`[1, -2.5e3 ,null]`:               `:1 :-2.5e3 :null `,
		`{ }`:                             ``,
		`{"a" 1}`:                         `byte 5: want a colon`,
		`{"a":"x"y"}`:                     `a:"x" byte 8: want a comma`,
		`{a:1}`:                           `byte 1: want a name`,
		`[1`:                              `:1 byte 2: ends within a value`,
		`7`:                               `byte 0: no JSON: want { or [`,
	} {
		var got strings.Builder
		err := jsonscan.Walk([]byte(text), func(k, v []byte) bool {
			fmt.Fprintf(&got, "%s:%s ", k, v)
			return true
		})
		if err != nil {
			got.WriteString(err.Error())
		}
		if got.String() != want {
			t.Errorf("%s: %q, want %q", text, got.String(), want)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"a\n\u00e9\ud83d\ude00\/"`: "a\né😀/",
		`"\ud800x"`:                 "\ufffdx",
		`"\q"`:                      `\q`,
		"\"\xff\"":                  "\ufffd",
		`"\u12"`:                    `\u12`,
	} {
		if got, ok := jsonscan.Unquote([]byte(text)); !ok || got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]int64{"0": 0, "-12": -12, `"34"`: 34, "5.0": 5, "9223372036854775807": 9223372036854775807, "1e3": 1000} {
		if got, ok := jsonscan.Int([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"", "x", "1.5", "null", `"a"`, "-", "1e400", "NaN"} {
		if got, ok := jsonscan.Int([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
	for _, text := range []string{"nan", "inf", "Infinity", "", "true", "1e999"} {
		if got, ok := jsonscan.Number([]byte(text)); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzEach checks that any text ends, and that what is passed on is what Walk
// can look at.
func FuzzEach(f *testing.F) {
	f.Add(`[{"a":1},{"b":"\"}]`)
	f.Add(`{"events":[1,2`)
	f.Fuzz(func(t *testing.T, text string) {
		a, ra, ea := read(strings.NewReader(text), jsonscan.Options{MaxValue: 1 << 16})
		b, rb, eb := read(iotest.OneByteReader(strings.NewReader(text)), jsonscan.Options{MaxValue: 1 << 16})
		if !slices.Equal(a, b) || ra.Cut != rb.Cut || ra.Bad != rb.Bad || (ea == nil) != (eb == nil) {
			t.Fatalf("whole %q %+v %v, by bytes %q %+v %v", a, ra, ea, b, rb, eb)
		}
		for _, v := range a {
			_ = jsonscan.Walk([]byte(v), func(_, _ []byte) bool { return true })
		}
	})
}

// TestSingle stops before a second document, unless the first one may be one event of many.
func TestSingle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		values int64
		more   bool
	}{
		`{"events":[1,2]}` + "\n" + `{"events":[3]}`: {2, true},
		`{"events":[1,2]}` + " \n":                   {2, false},
		`{"a":1}` + "\n" + `{"a":2}`:                 {2, false},
		`[1,2][3]`:                                   {3, false},
	} {
		documents := 0
		o := jsonscan.Options{Stream: jsonscan.Keys("events"), Single: true, Document: func() { documents++ }}
		res, err := jsonscan.Each(strings.NewReader(text), o, func(string, []byte) error { return nil })
		if err != nil || res.Values != want.values || res.More != want.more || documents == 0 {
			t.Errorf("%s: %+v, %v, %d documents", text, res, err, documents)
		}
	}
}
