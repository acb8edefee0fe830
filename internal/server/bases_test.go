package server

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/server/store"
)

func TestBase(t *testing.T) {
	t.Parallel()
	c := start(t)
	times := []float64{1, 1, 1, 1}
	main := c.measured(nil, times...) // commits c0 to c3
	topic := c.measured(func(_ int, r *store.Run) { r.Branch, r.Commit, r.Pull = "topic", "t1", "7" }, 1, 1)
	again := c.measured(func(_ int, r *store.Run) { r.Commit = "c1" }, 1)
	for _, x := range []struct {
		name, of, commits, want string
	}{
		{"the merge base", topic[0].ID, "c2,c1,c0", main[2].ID},
		{"the newest of a commit", topic[0].ID, "c1,c0", again[0].ID},
		{"an ancestor that has runs", topic[0].ID, "x,y,c0", main[0].ID},
		{"no commit is known: the main branch before it", topic[0].ID, "x,t1", main[3].ID},
		{"no commits", main[2].ID, "", main[1].ID},
		{"itself is no base", main[3].ID, "c3,c2", main[2].ID},
	} {
		var got runView
		if c.call(200, "GET", "/runs/"+x.of+"/base?commits="+x.commits, nil, &got); got.ID != x.want {
			t.Errorf("%s: %s of commit %s", x.name, got.ID, got.Commit)
		}
	}
	c.call(404, "GET", "/runs/"+main[0].ID+"/base", nil, nil)
	c.call(404, "GET", "/runs/none/base", nil, nil)
	// A run of another machine stands in; one of the same is better.
	var p store.Project
	err := c.s.db.Change(t.Context(), func(tx *store.Tx) (err error) {
		if p, err = tx.Project("p"); err != nil {
			return err
		}
		_, err = tx.AddRun(store.Series{Kind: "profile", Model: "net", Target: "host", Engine: "opmeter", Machine: "m2"},
			store.Run{Project: p.ID, Job: "far", Blob: "b", Branch: "topic", Commit: "f1"}, nil, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var far store.Run
	err = c.s.db.View(t.Context(), func(tx *store.Tx) (err error) { far, err = tx.RunOf("far"); return err })
	if err != nil {
		t.Fatal(err)
	}
	var got runView
	if c.call(200, "GET", "/runs/"+far.ID+"/base?commits=c2", nil, &got); got.ID != main[2].ID {
		t.Errorf("from another machine: %+v", got)
	}
	if c.call(200, "GET", "/runs/"+topic[0].ID+"/base?commits=f1,c0", nil, &got); got.ID != far.ID {
		t.Errorf("of another machine: %+v", got)
	}
}

// Comparisons call runs by model and commit, not by the names of files.
func TestComparisonNames(t *testing.T) {
	t.Parallel()
	c := start(t)
	first := c.finished("one", func(b *jobBody) { b.Labels.Commit = "0123456789abcdef" })
	second := c.finished("two", func(b *jobBody) { b.Labels.Commit = "fedcba" })
	again := c.finished("three", func(b *jobBody) { b.Labels.Commit = "fedcba" })
	var made struct {
		Args []string `json:"args"`
	}
	c.call(200, "GET", "/comparison?runs="+strings.Join([]string{first.ID, second.ID, again.ID}, ","), nil, &made)
	for _, want := range []string{"--name=net 0123456789", "--name=net fedcba (2)", "--name=net fedcba (3)", "--by=op"} {
		if !slices.Contains(made.Args, want) {
			t.Errorf("%q lacks %q", made.Args, want)
		}
	}
	if !slices.ContainsFunc(made.Args, func(a string) bool { return filepath.Base(a) == "3.opmeter" }) {
		t.Errorf("inputs %q", made.Args)
	}
	c.call(400, "GET", "/comparison?runs="+first.ID, nil, nil)
	c.call(404, "GET", "/comparison?runs="+first.ID+",none", nil, nil)
}
