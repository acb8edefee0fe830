package server

import (
	"testing"

	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/work"
)

// A job whose worker was not heard since the server started says so, until it is heard.
func TestSilentWorker(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	id := c.job("a").ID
	var l queue.Lease
	c.call(200, "POST", "/leases", leaseBody{Worker: "w", Offers: queue.Offers{Targets: []string{"host"}, CPUs: []string{}, Engines: []string{}, Boards: []string{}}}, &l)
	renew := func() {
		t.Helper()
		share := 0.43
		c.call(200, "PUT", "/leases", work.Renewal{Token: l.Token, Doing: "measuring", Share: &share}, nil)
	}
	silent := func() int64 {
		t.Helper()
		var j jobView
		c.call(200, "GET", "/jobs/"+id, nil, &j)
		var all listed[jobView]
		c.call(200, "GET", "/jobs", nil, &all)
		if j.State != queue.Running || len(all.Items) != 1 || all.Items[0].Silent != j.Silent {
			t.Errorf("job %+v, list %+v", j, all)
		}
		return j.Silent
	}
	renew()
	if got := silent(); got != 0 {
		t.Errorf("silent since %d", got)
	}
	o := c.s.o
	c.close()
	c.open(o)
	c.s.started += 2 // the last sign may be of the same millisecond
	if got := silent(); got == 0 || got >= c.s.started {
		t.Errorf("after a restart: silent since %d, the server started at %d", got, c.s.started)
	}
	c.s.started -= 2
	renew() // says what it said before
	if got := silent(); got != 0 {
		t.Errorf("heard again: silent since %d", got)
	}
	if n := len(c.s.signs.leases); n != 1 {
		t.Errorf("%d leases are kept", n)
	}
}

// Signs of leases that are over are forgotten.
func TestOldSigns(t *testing.T) {
	g := signs{leases: map[string]lease{}, jobs: map[string]int64{}}
	g.note("a", lease{"1", 1000}, queue.UsualSilence)
	g.note("a", lease{"1", 2000}, queue.UsualSilence)
	g.note("b", lease{"2", 3000}, queue.UsualSilence)
	g.note("c", lease{"2", 4000}, queue.UsualSilence) // the job went to another worker
	if len(g.leases) != 2 || g.jobs["1"] != 2000 || g.jobs["2"] != 4000 {
		t.Errorf("signs %+v", g.jobs)
	}
	g.note("d", lease{"3", 1_000_000}, queue.UsualSilence)
	if len(g.leases) != 1 || len(g.jobs) != 1 {
		t.Errorf("old signs %+v are kept", g.jobs)
	}
}
