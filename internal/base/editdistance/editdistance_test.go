package editdistance

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"top", "top", 0}, {"thread", "threads", 1}, {"formta", "format", 1}, {"tread", "threads", 2}, {"abc", "", 3}, {"by", "on", 2}} {
		if got := Of(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	list := []string{"op", "scope", "block"}
	for s, want := range map[string]string{"scop": "did you mean scope? ", "colour": "", "blok": "did you mean block? "} {
		if got := Suggest(s, list); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
