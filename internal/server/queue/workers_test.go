package queue

import (
	"context"
	"errors"
	"runtime"
	"strings"
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
	// One that waits for a job is there, however long it waits.
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := q.Lease(ctx, "c", &Offers{Targets: []string{"host"}})
		done <- err
	}()
	for len(q.Workers()) < 3 {
		runtime.Gosched()
	}
	now.Add(3600_000)
	q.look()
	state(Worker{Name: "c", Online: true}, Worker{Name: "a"}, Worker{Name: "b"})
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	now.Add(8 * 24 * 3600_000)
	state()
	if got := q.Lacks(Needs{}); got == "" {
		t.Error("nothing is lacking without workers")
	}
}

// A NATS that is not there is an error that says what to do, without the password.
func TestNoNATS(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"nats://me:s3cret@127.0.0.1:1", "foo.invalid", "://"} {
		_, err := Open(t.Context(), Options{URL: url})
		if err == nil || !strings.Contains(err.Error(), "--nats ") || !strings.Contains(err.Error(), "expected the address") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
