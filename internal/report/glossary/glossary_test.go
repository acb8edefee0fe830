package glossary

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/opmeter/opmeter/profile"
)

// Every definition is one sentence of at most 25 words, under a name of its own.
func TestTerms(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range Groups() {
		if g.Name == "" || len(g.Terms) == 0 {
			t.Errorf("group %q has no name or no terms", g.Name)
		}
		for _, x := range g.Terms {
			key := strings.ToLower(x.Name)
			if key == "" || seen[key] {
				t.Errorf("%q: no name, or a second time", x.Name)
			}
			seen[key] = true
			first, _ := utf8.DecodeRuneInString(x.Text)
			if !unicode.IsUpper(first) || !strings.HasSuffix(x.Text, ".") || strings.Contains(x.Text, ". ") {
				t.Errorf("%s: %q is not one sentence", x.Name, x.Text)
			}
			if n := len(strings.Fields(x.Text)); n > 25 {
				t.Errorf("%s: %d words, at most 25 are allowed", x.Name, n)
			}
			if x.Doc == "" {
				t.Errorf("%s: no page of docs", x.Name)
			}
		}
	}
	if n := len(Terms()); n != len(seen) {
		t.Errorf("Terms returns %d terms, want %d", n, len(seen))
	}
}

// Every quantity has a term, or a meaning of its own that is complete; keys of terms that
// name a quantity have its unit.
func TestQuantities(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, x := range Terms() {
		for key := range strings.SplitSeq(x.Key, ", ") {
			keys[key] = true
			q, ok := profile.Lookup(key)
			if !ok || q.Derived() {
				continue
			}
			if q.Unit != "" && x.Unit != "" && strings.TrimPrefix(x.Unit, "1/") != strings.TrimPrefix(q.Unit, "/") {
				t.Errorf("%s has unit %q, the quantity %s %q", x.Name, x.Unit, key, q.Unit)
			}
		}
	}
	for _, q := range profile.Quantities() {
		if keys[q.Key] {
			continue
		}
		if len(strings.Fields(q.Doc)) < 4 || !strings.HasSuffix(q.Doc, ".") {
			t.Errorf("quantity %s has neither a term nor a complete meaning: %q", q.Key, q.Doc)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"Ridge Point", []string{"ridge point"}},
		{" mac ", []string{"MAC"}},
		{"sparsity", []string{"sparsity"}},
		{"-bound", []string{"compute-bound", "memory-bound", "overhead-bound"}},
		{"im2col", []string{"workspace"}},
		{"", nil},
		{"no such term", nil},
	} {
		var got []string
		for _, x := range Find(c.query) {
			got = append(got, x.Name)
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("Find(%q) = %q, want %q", c.query, got, c.want)
		}
	}
}
