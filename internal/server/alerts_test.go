package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/server/store"
)

// alerts checks all series and lists the alerts.
func (c *client) alerts(query string) (l alertList) {
	c.t.Helper()
	if err := c.s.checkAll(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.call(200, "GET", "/alerts"+query, nil, &l)
	return l
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	c := start(t)
	if l := c.alerts(""); len(l.Items) != 0 || l.Open != 0 {
		t.Errorf("alerts of nothing: %+v", l)
	}
	runs := c.measured(nil, levels(12, 1e-3, 1.2e-3)...)
	l := c.alerts("?open=true")
	if len(l.Items) != 1 || l.Open != 1 {
		t.Fatalf("alerts %+v", l)
	}
	a := l.Items[0]
	if a.Run != runs[12].ID || a.Figure != "latency_s" || a.Before != 1e-3 || a.After != 1.2e-3 || a.Commit != "c12" || a.About.Model != "net" {
		t.Errorf("alert %+v", a)
	}
	// More runs find the same change again, and so does one that moved by a run.
	c.measured(nil, levels(10, 1.2e-3)...)
	if l := c.alerts(""); len(l.Items) != 1 {
		t.Errorf("after more runs: %+v", l)
	}
	for _, at := range []int{10, 12, 13, 16} {
		w := worse{changeView: changeView{Run: runs[at].ID, Before: 1, After: 2}, figure: "latency_s", measured: true}
		for _, r := range runs {
			w.points = append(w.points, pointView{Point: store.Point{Run: r.ID}})
		}
		err := c.s.db.Change(t.Context(), func(tx *store.Tx) error { return c.s.alert(tx, &a.About, &w) })
		if err != nil {
			t.Fatal(err)
		}
		l := c.alerts("")
		switch moved := l.Items[len(l.Items)-1]; {
		case at == 16: // another change
			if len(l.Items) != 2 {
				t.Errorf("a change at 16: %+v", l)
			}
		case len(l.Items) != 1 || moved.ID != a.ID || moved.Run != runs[at].ID || moved.After != 2:
			t.Errorf("a change at %d: %+v", at, l)
		}
	}
	var seen alertView
	c.call(200, "POST", "/alerts/"+a.ID+"/acknowledge", seenBody{Note: " wider layer "}, &seen)
	if seen.Acknowledged == nil || seen.AcknowledgedBy != "this computer" || seen.Note != "wider layer" {
		t.Errorf("acknowledged %+v", seen)
	}
	if text := c.call(409, "POST", "/alerts/"+a.ID+"/acknowledge", seenBody{}, nil); !strings.Contains(text, "this computer") {
		t.Errorf("acknowledged twice: %s", text)
	}
	if l := c.alerts("?open=true&project=p"); len(l.Items) != 1 || l.Open != 1 || l.Items[0].ID == a.ID {
		t.Errorf("open then: %+v", l)
	}
	var audit listed[store.Entry]
	c.call(200, "GET", "/audit", nil, &audit)
	if !slices.ContainsFunc(audit.Items, func(e store.Entry) bool { return e.What == "acknowledge alert" && e.Object == a.ID }) {
		t.Errorf("audit %+v", audit)
	}
	c.call(404, "POST", "/alerts/none/acknowledge", seenBody{}, nil)
}

// An exact figure alerts at the run in which it grows by more than opmeter gate allows.
func TestExactAlerts(t *testing.T) {
	t.Parallel()
	c := start(t)
	var last runView
	for i, text := range []string{"a", "bb", "c"} { // the stand-in counts the bytes as MACs
		last = c.finished(text, func(b *jobBody) { b.Labels.Branch, b.Labels.Commit = "main", fmt.Sprint("c", i) })
	}
	l := c.alerts("")
	if len(l.Items) != 1 || l.Items[0].Figure != "macs" || l.Items[0].Commit != "c1" || l.Items[0].After != l.Items[0].Before+1 {
		t.Errorf("alerts %+v", l)
	}
	c.call(204, "DELETE", "/runs/"+last.ID, nil, nil)
	if l := c.alerts(""); len(l.Items) != 1 {
		t.Errorf("after a deletion: %+v", l)
	}
}
