package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// A worker is online while it asks for jobs or works on one, then offline, then forgotten.
func TestWorkers(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	none := func(context.Context, string) ([]string, error) { return nil, nil }
	q, err := Open(t.Context(), Options{Dir: t.TempDir(), Silence: 30 * time.Second, Results: none, Now: func() time.Time { return time.UnixMilli(now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ask := func(name string, o Offers) { q.saw(t.Context(), name, &o) }
	ask("b", Offers{Targets: []string{"host"}, Engines: []string{"litert"}})
	ask("a", Offers{Targets: []string{"board"}, Boards: []string{"x"}})
	state := func(want ...Worker) {
		t.Helper()
		all := q.Workers()
		if len(all) != len(want) {
			t.Fatalf("%d workers, want %d: %+v", len(all), len(want), all)
		}
		for i, w := range want {
			if all[i].Name != w.Name || all[i].Online != w.Online || all[i].Job != w.Job {
				t.Errorf("worker %d is %+v, want %+v", i, all[i], w)
			}
		}
	}
	state(Worker{Name: "a", Online: true}, Worker{Name: "b", Online: true})
	add(t, q, "1", Needs{Target: "board"})
	l, err := q.Lease(t.Context(), "a", &Offers{Targets: []string{"board"}, Boards: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	now.Add(46_000)
	if err := q.Renew(t.Context(), l.Token, "measuring", nil); err != nil {
		t.Fatal(err)
	}
	state(Worker{Name: "a", Online: true, Job: "1"}, Worker{Name: "b"})
	if got := q.Lacks(Needs{Target: "host"}); got != `no worker has targets of the kind "host"` {
		t.Errorf("lacks %q", got)
	}
	// What it offers may change.
	ask("b", Offers{Targets: []string{"host"}, Engines: []string{"tvm"}})
	if got := q.Lacks(Needs{Target: "host", Engine: "tvm"}); got != "" {
		t.Errorf("lacks %q", got)
	}
	if got := q.Lacks(Needs{Board: "x", Engine: "tvm"}); got != `no worker has the board "x" together with the engine "tvm"` {
		t.Errorf("lacks %q", got)
	}
	now.Add(8 * 24 * 3600_000)
	state()
	if got := q.Lacks(Needs{}); got == "" {
		t.Error("nothing is lacking without workers")
	}
}
