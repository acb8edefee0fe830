package lines_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/device/lines"
)

// split feeds a text in pieces of n bytes. Dirty lines have a mark before them.
func split(s *lines.Splitter, text string, n int) (out []string) {
	each := func(l string, dirty bool) {
		if dirty {
			l = "!" + l
		}
		out = append(out, l)
	}
	for len(text) > 0 {
		k := min(n, len(text))
		s.Feed([]byte(text[:k]), each)
		text = text[k:]
	}
	s.End(each)
	return out
}

func TestSplitter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a\nb\n":                 {"a", "b"},
		"a\r\nb\r\n":             {"a", "b"},
		"a\r\r\nb\r\n":           {"a", "b"},
		"a\rb\rc\r":              {"a", "b", "c"},
		"a\r\nb\rc\r\n":          {"a", "bc"},
		"\xff\xff\x00a\n\x00b\n": {"a", "b"},
		"a\xe9b\nc\n":            {"!ab", "c"},
		"\x1b[0;32mok\x1b[0m\nx": {"ok", "!x"},
		"a\x07\n":                {"!a"},
		"\n\n":                   {"", ""},
	} {
		for n := 1; n < 4; n++ {
			if got := split(&lines.Splitter{}, text, n); !slices.Equal(got, want) {
				t.Errorf("%q in pieces of %d: %q, want %q", text, n, got, want)
			}
		}
	}
	if got := split(&lines.Splitter{Marks: true}, "caf\xc3\xa9\n\xe9\n", 1); !slices.Equal(got, []string{"café", "\ufffd"}) {
		t.Errorf("%q", got)
	}
}

func TestGap(t *testing.T) {
	t.Parallel()
	s := &lines.Splitter{}
	var out []string
	each := func(l string, dirty bool) { out = append(out, fmt.Sprint(l, dirty)) }
	s.Feed([]byte("whole\nbeg"), each)
	s.Gap(each)
	s.Feed([]byte("end\nnext\n"), each)
	if want := []string{"wholefalse", "begtrue", "endtrue", "nextfalse"}; !slices.Equal(out, want) {
		t.Errorf("%q, want %q", out, want)
	}
	out = nil
	s.Feed(make([]byte, 1<<20), each)
	for range 100 {
		s.Feed([]byte(fmt.Sprintf("%0*d", 1000, 7)), each)
	}
	s.End(each)
	if len(out) != 1 || len(out[0]) != lines.Max+len("true") {
		t.Errorf("%d lines of an endless one", len(out))
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[1mc\xff\n"), 3)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 1), 100)
		whole, pieces := split(&lines.Splitter{}, string(b), len(b)+1), split(&lines.Splitter{}, string(b), n)
		if !slices.Equal(whole, pieces) {
			t.Fatalf("in one: %q, in pieces of %d: %q", whole, n, pieces)
		}
	})
}
