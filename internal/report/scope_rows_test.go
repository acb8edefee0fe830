package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
)

// scoped makes a profile with layers in scopes: 10 MACs and 100 parameters each, of which the
// second layer of a scope shares half.
func scoped(scopes ...string) *profile.Profile {
	p := &profile.Profile{}
	seen := map[string]bool{}
	for i, s := range scopes {
		l := profile.Layer{Index: int64(i), Op: "X", State: profile.Ran, Scope: s, MACs: new(int64(10 + i)), Params: new(int64(100))}
		if seen[s] {
			l.SharedParams = new(int64(50))
		}
		seen[s] = true
		p.Layers = append(p.Layers, l)
	}
	return p
}

// TestScopeRows: a scope includes the scopes inside it and stands before them; each level is
// sorted; a scope with the layers of its only inner scope has no row.
func TestScopeRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		o      Options
		scopes []string
		want   []string // path, layers and parameters
	}{
		{"levels", Options{}, []string{"m/a.0/q", "m/a.0/q", "m/a.0", "m/a.1/q", "m", ""}, []string{
			"m 5 450", "m/a.0 3 250", "m/a.0/q 2 150", "m/a.1/q 1 100", "(none) 1 100",
		}},
		{"sorted by level", Options{Sort: "macs"}, []string{"m/a", "m/b/c", "m/b/d", "m/b/d", "n"}, []string{
			"m 4 350", "m/b 3 250", "m/b/d 2 150", "m/b/c 1 100", "m/a 1 100", "n 1 100",
		}},
		{"the largest", Options{Sort: "macs", Top: 3}, []string{"m/a", "m/b/c", "m/b/d", "m/b/d", "n"}, []string{
			"m 4 350", "m/b 3 250", "m/b/d 2 150", "m/b/c 1 100", "m/a 1 100", "n 1 100",
		}},
		{"the largest of another branch", Options{Sort: "macs", Top: 2}, []string{"m/a", "m/b", "m/c", "n", "n", "n"}, []string{
			"n 3 200", "m 3 300", "m/c 1 100", "m/b 1 100", "m/a 1 100",
		}},
		{"chain", Options{}, []string{"a/b/c/d", "a/b/c/d"}, []string{"a/b/c/d 2 150"}},
		{"slashes", Options{}, []string{"/a/", "a", "//"}, []string{"a 2 200", "(none) 1 100"}},
		{"deep", Options{}, []string{strings.Repeat("a/", 1000) + "b"}, []string{strings.TrimSuffix(strings.Repeat("a/", maxScopeDepth), "/") + " 1 100"}},
	} {
		tt.o.By = "scope"
		rs, err := rows(scoped(tt.scopes...), tt.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		layers := 0
		for i := range rs {
			params, _ := rs[i].value("params")
			got = append(got, strings.Join([]string{rs[i].op(), PlainNumber(float64(len(rs[i].Layers))), PlainNumber(params)}, " "))
			if !rs[i].inner() {
				layers += len(rs[i].Layers)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if layers != len(tt.scopes) {
			t.Errorf("%s: the outermost scopes have %d layers, want %d", tt.name, layers, len(tt.scopes))
		}
	}
	if _, err := rows(scoped("a/b"), Options{By: "scope", Sort: "size"}); err == nil {
		t.Error("an unknown order is accepted")
	}
}

// TestScopesNoted: the table says that scopes include others, if they do.
func TestScopesNoted(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]bool{"m/a": true, "n": false} {
		var b bytes.Buffer
		if err := Write(&b, scoped("m", scope), "table", Options{By: "scope"}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), groupingOf("scope").note); got != want {
			t.Errorf("%q: the note is there: %v, want %v\n%s", scope, got, want, b.String())
		}
	}
}
