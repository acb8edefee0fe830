package server

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/server/store"
)

// Several runs go to the bin and come back, all or none. Those that a rule would delete are pinned.
func TestSeveralRunsToBin(t *testing.T) {
	t.Parallel()
	c := start(t)
	ids := []string{c.finished("a").ID, c.finished("b").ID, c.finished("a", func(b *jobBody) { b.Tags = []string{"kept"} }).ID}
	those := func(query string) (out []string) {
		t.Helper()
		var l listed[runView]
		c.call(200, "GET", "/runs"+query, nil, &l)
		for _, r := range l.Items {
			out = append(out, r.ID)
		}
		slices.Sort(out)
		return out
	}
	slices.Sort(ids)
	c.call(404, "POST", "/delete-runs", several{IDs: append(slices.Clone(ids), "none")}, nil)
	if got := those(""); !slices.Equal(got, ids) {
		t.Errorf("after a request with an unknown id: %v, expected %v", got, ids)
	}
	c.call(204, "POST", "/delete-runs", several{IDs: ids}, nil)
	if got, bin := those(""), those("?deleted=true"); len(got) != 0 || !slices.Equal(bin, ids) {
		t.Errorf("left %v, in the bin %v", got, bin)
	}
	one := int64(1)
	c.call(204, "PUT", "/retention/p", store.Rule{Last: &one}, nil)
	c.call(204, "POST", "/restore-runs", several{IDs: ids}, nil)
	if got := those(""); !slices.Equal(got, ids) {
		t.Errorf("came back %v, expected %v", got, ids)
	}
	if got := those("?tag=" + store.Pinned); !slices.Equal(got, ids[:2]) {
		t.Errorf("pinned %v, expected all but the last of their series", got)
	}
	c.call(422, "POST", "/delete-runs", several{IDs: []string{}}, nil)
	c.call(422, "POST", "/delete-runs", several{IDs: make([]string, 501)}, nil)
}
