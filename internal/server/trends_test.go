package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// measured adds runs of one series with these times, as jobs of a worker do. Commits are c0, c1 and
// so on.
func (c *client) measured(change func(i int, r *store.Run), times ...float64) (runs []store.Run) {
	c.t.Helper()
	for i, v := range times {
		r := store.Run{Branch: "main", Commit: fmt.Sprint("c", i)}
		if change != nil {
			change(i, &r)
		}
		err := c.s.db.Change(c.t.Context(), func(tx *store.Tx) error {
			p, err := tx.Project("p")
			if err != nil {
				if p, err = tx.AddProject("p", ""); err != nil {
					return err
				}
			}
			r.Project, r.Job, r.Blob = p.ID, store.NewID(time.Now()), "b"
			r, err = tx.AddRun(store.Series{Kind: work.Profile, Model: "net", Target: "host", Engine: "opmeter", Machine: "m1"}, r, []store.Figure{
				{Name: "latency_s", Value: v, Estimator: "median", Measured: true}, {Name: "macs", Value: 100},
			}, nil)
			return err
		})
		if err != nil {
			c.t.Fatal(err)
		}
		runs = append(runs, r)
	}
	return runs
}

// levels are times that vary by 0.2 % around each of the levels, n of each.
func levels(n int, of ...float64) (out []float64) {
	for _, v := range of {
		for i := range n {
			out = append(out, v*(1+0.001*float64(i*7%5-2)))
		}
	}
	return out
}

func TestTrendChanges(t *testing.T) {
	t.Parallel()
	c := start(t)
	runs := c.measured(nil, levels(15, 1e-3, 1.2e-3, 1e-3)...)
	// A pull request and another branch have no part in it.
	c.measured(func(i int, r *store.Run) {
		if r.Branch = "wide"; i < 15 {
			r.Pull = "7"
		}
	}, levels(15, 3e-3, 5e-3)...)
	get := func(figure string) (v trendView) {
		c.call(200, "GET", "/series/"+runs[0].Series+"/trend?figure="+figure, nil, &v)
		return v
	}
	v := get("latency_s")
	if len(v.Items) != 75 || len(v.Changes) != 2 {
		t.Fatalf("%d points, changes %+v", len(v.Items), v.Changes)
	}
	up, down := v.Changes[0], v.Changes[1]
	if up.Run != runs[15].ID || up.Commit != "c15" || !up.Worse || up.Better || up.P == nil || up.Before != 1e-3 || up.After != 1.2e-3 {
		t.Errorf("first change %+v", up)
	}
	if down.Run != runs[30].ID || down.Worse || !down.Better {
		t.Errorf("second change %+v", down)
	}
	if at := slices.IndexFunc(v.Items, func(p pointView) bool { return p.LeftOut != "" }); at != 45 || v.Items[45].LeftOut != pullRequest || v.Items[60].LeftOut != "other_branch" {
		t.Errorf("left out from %d: %+v", at, v.Items)
	}
	if v := get("macs"); len(v.Items) != 75 || len(v.Changes) != 0 {
		t.Errorf("MACs: %+v", v.Changes)
	}
	c.call(404, "GET", "/series/none/trend?figure=macs", nil, nil)
}
