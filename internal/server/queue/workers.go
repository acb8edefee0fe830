package queue

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

const (
	workersName = "opmeter-offers"
	// keepWorkers is how long a worker that fell silent is listed.
	keepWorkers = 7 * 24 * time.Hour
	// longestWorker bounds the name of a worker in bytes.
	longestWorker = 200
)

// Worker is a worker as it was last seen.
type Worker struct {
	Name   string `json:"name"`
	Offers Offers `json:"offers"`
	Seen   int64  `json:"seen_ms"`
	// Online says that it asked for a job or worked on one lately.
	Online bool `json:"online"`
	// Job is what it works on, "" for nothing.
	Job string `json:"job,omitzero"`
}

// prepareWorkers makes the bucket of workers. It is in files: one in memory has no leader any more
// after most nodes of a cluster restarted.
func (q *Queue) prepareWorkers(ctx context.Context) error {
	err := q.replicate(ctx, func(ctx context.Context) (err error) {
		q.workers, err = q.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: workersName, Storage: jetstream.FileStorage, Replicas: q.replicas, TTL: keepWorkers,
		})
		return err
	})
	if err != nil {
		return err
	}
	return q.keepWatching(ctx, q.workers, func(updates <-chan jetstream.KeyValueEntry) {
		for e := range updates {
			var w Worker
			if e == nil || jsonx.Unmarshal(e.Value(), &w) != nil {
				continue
			}
			q.mu.Lock()
			if w.Seen > q.known[w.Name].Seen {
				q.known[w.Name] = w
			}
			q.mu.Unlock()
		}
	})
}

// saw notes that a worker is there. Offers are nil where they are those of before.
func (q *Queue) saw(ctx context.Context, name string, o *Offers) {
	q.mu.Lock()
	w, ok := q.known[name]
	fresh := ok && q.millis()-w.Seen < q.o.Silence.Milliseconds()/2 && (o == nil || w.Offers.equal(o))
	q.mu.Unlock()
	if fresh || name == "" || len(name) > longestWorker || !ok && o == nil {
		return
	}
	if o != nil {
		w = Worker{Name: name, Offers: *o}
	}
	w.Seen = q.millis()
	body, err := jsonx.Marshal(&w)
	if err != nil {
		return
	}
	// A list that misses a worker for a while is no reason to keep jobs from it.
	if _, err := q.workers.Put(ctx, hex.EncodeToString([]byte(name)), body); err == nil {
		q.mu.Lock()
		q.known[name] = w
		q.mu.Unlock()
	}
}

func (o *Offers) equal(p *Offers) bool {
	return slices.Equal(o.Targets, p.Targets) && slices.Equal(o.CPUs, p.CPUs) && slices.Equal(o.Engines, p.Engines) && slices.Equal(o.Boards, p.Boards)
}

// Workers lists the workers, those that are online first.
func (q *Queue) Workers() (out []Worker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := map[string]string{}
	for _, j := range q.jobs {
		if j.State == Running {
			busy[j.Worker] = j.ID
		}
	}
	now := q.millis()
	for name, w := range q.known {
		if now-w.Seen > keepWorkers.Milliseconds() {
			delete(q.known, name)
			continue
		}
		w.Online = now-w.Seen < q.o.Silence.Milliseconds()*3/2
		if w.Online {
			w.Job = busy[name]
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Worker) int {
		if a.Online != b.Online {
			if a.Online {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

// Lacks says what no worker that is online has of the needs of a job, "" if one can do it.
func (q *Queue) Lacks(n Needs) string {
	online := slices.DeleteFunc(q.Workers(), func(w Worker) bool { return !w.Online })
	if len(online) == 0 {
		return "no worker is online: start one with opmeter worker --server URL"
	}
	can := func(n Needs) bool {
		return slices.ContainsFunc(online, func(w Worker) bool { return w.Offers.can(n) })
	}
	if can(n) {
		return ""
	}
	var all, absent []string
	for _, x := range []struct {
		what string
		only Needs
	}{
		{fmt.Sprintf("the board %q", n.Board), Needs{Board: n.Board}},
		{fmt.Sprintf("the engine %q", n.Engine), Needs{Engine: n.Engine}},
		{fmt.Sprintf("a processor %q", n.CPU), Needs{CPU: n.CPU}},
		{fmt.Sprintf("targets of the kind %q", n.Target), Needs{Target: n.Target}},
	} {
		if x.only == (Needs{}) {
			continue
		}
		all = append(all, x.what)
		if !can(x.only) {
			absent = append(absent, x.what)
		}
	}
	if len(absent) == 0 {
		absent = []string{strings.Join(all, " together with ")}
	}
	return "no worker has " + strings.Join(absent, " or ")
}
