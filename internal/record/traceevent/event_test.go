package traceevent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/traceevent"
)

// TestNanos reads microseconds exactly, by arithmetic with fractions.
func TestNanos(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"0", "-0", "1", "-17", "12.5", "0.001", "3605057436108.407", "1669783687464181", "9000000000000000", "9223372036854775", "123456789012.0005", "1.0000000001",
		"1e3", "1.5E-3", `"42"`, `"-1.25"`, "895158157822.123456789", "-0.75", "1669783687464181.5",
	} {
		r, ok := new(big.Rat).SetString(strings.Trim(s, `"`))
		if !ok {
			t.Fatal(s)
		}
		r.Mul(r, big.NewRat(1000, 1))
		sign := r.Sign()
		r.Abs(r).Add(r, big.NewRat(1, 2))
		want := new(big.Int).Div(r.Num(), r.Denom()).Int64()
		if sign < 0 {
			want = -want
		}
		if got, ok := traceevent.Nanos([]byte(s)); !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "x", "null", `""`, "-", ".", "1.2.3", "1e30", "99999999999999999999", "{}", "NaN", "1.x"} {
		if got, ok := traceevent.Nanos([]byte(s)); ok {
			t.Errorf("%q: %d", s, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	var e traceevent.Event
	if e.Parse([]byte(`{"ph":"X","name":"a \"b\" c" , "cat":"x","args":{"k":[1,{"z":"]"}],"t":"\\"},"ts":1.5,"dur":"2","id":7,"pid":"p","tid":3,"flow_in":true,"other":{"name":"inner"}}, {`)) == 0 {
		t.Fatal("not an event")
	}
	if e.Phase != 'X' || e.TS != 1500 || e.Dur != 2000 || string(traceevent.Text(e.Name)) != `a "b" c` || string(traceevent.Bare(e.PID)) != "p" || string(e.TID) != "3" || !e.FlowIn {
		t.Errorf("%+v", e)
	}
	var args []string
	e.Each(func(k, v []byte) { args = append(args, fmt.Sprintf("%s=%s", k, v)) })
	if d := cmp.Diff([]string{`k=[1,{"z":"]"}]`, `t="\\"`}, args); d != "" {
		t.Error(d)
	}
	for _, s := range []string{"", "{", "[]", `"x"`, `{"a"`, `{"a":}`, `{"a":1`, `{a:1}`, `{"args":{"x":1}`, `{"args":{x}}`} {
		if e.Parse([]byte(s)) != 0 {
			t.Errorf("%s is taken for an event", s)
		}
	}
	if e.Parse([]byte("{}")) != 2 || e.Parse([]byte(`{"args":{}},`)) != 11 || e.HasTS {
		t.Error("an empty event is none")
	}
}

// TestEach passes on every event once and in order, wherever pieces of the text end, and ends with
// the context.
func TestEach(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(`{"a":1,"list":[7,`)
	const events = 30_000
	for i := range events {
		fmt.Fprintf(&text, `{"ts":%d,"name":"%s"},`, i, strings.Repeat("x", i%100))
	}
	text.WriteString(`{"ts":1,"name":"` + strings.Repeat("y", 3<<20) + `"}],"z":[{"ts":5}]}`)
	o := jsonscan.Options{Stream: func(k string) bool { return k == "list" }}
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text.String()), "pieces": iotest.HalfReader(strings.NewReader(text.String()))} {
		var others []string
		n, none := int64(0), 0
		res, err := traceevent.Each(t.Context(), r, o, func(key string, e *traceevent.Event) {
			switch {
			case key != "list":
				t.Errorf("an event of %q", key)
			case !e.HasTS:
				none++
			case n < events && (e.TS != n*1000 || len(e.Name) != int(n%100)+2):
				t.Errorf("event %d is %d %s", n, e.TS, e.Name)
				n++
			default:
				n++
			}
		}, func(key string, v []byte) { others = append(others, key+"="+string(v)) })
		if err != nil || n != events+1 || none != 1 || res.Values != events+4 || res.Cut {
			t.Errorf("%s: %v, %d events, %d without a time, %+v", name, err, n, none, res)
		}
		if d := cmp.Diff([]string{"a=1", `z=[{"ts":5}]`}, others); d != "" {
			t.Error(d)
		}
	}
	none := func(string, *traceevent.Event) {}
	if _, err := traceevent.Each(t.Context(), iotest.ErrReader(io.ErrUnexpectedEOF), o, none, func(string, []byte) {}); err == nil {
		t.Error("no error of the reader")
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	if _, err := traceevent.Each(ctx, strings.NewReader(text.String()), o, func(string, *traceevent.Event) {
		if n++; n == 5 {
			cancel()
		}
	}, func(string, []byte) {}); !errors.Is(err, context.Canceled) || n > 10_000 {
		t.Errorf("%v after %d events", err, n)
	}
}

// FuzzParse checks that members of what is one value are those that a slower walk finds.
func FuzzParse(f *testing.F) {
	f.Add(`{"args":{"a":1,"b":"\"x"},"ts":5}`)
	f.Fuzz(func(t *testing.T, s string) {
		var e traceevent.Event
		ok := e.Parse([]byte(s)) > 0
		e.Each(func(_, _ []byte) {})
		var keys []string
		if err := jsonscan.Walk([]byte(s), func(k, _ []byte) bool { keys = append(keys, string(k)); return true }); err == nil && ok && s[0] == '{' {
			var got []string
			traceevent.Members([]byte(s), func(k, _ []byte) { got = append(got, string(k)) })
			if !slices.Equal(got, keys) {
				t.Errorf("%q: %q, want %q", s, got, keys)
			}
		}
		traceevent.Nanos([]byte(s))
	})
}
