package server

import (
	"context"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/work"
)

// jobView is a job with what its state does not say.
type jobView struct {
	queue.Job
	Silent int64 `json:"silent_ms,omitzero" doc:"when the worker of a job that runs was last heard, absent while it is heard: what it did is old"`
}

// signs are the signs of life of workers that this process got.
type signs struct {
	mu     sync.Mutex
	leases map[string]lease // by token
	jobs   map[string]int64 // when a job's worker was last heard, in milliseconds
}

type lease struct {
	job  string
	seen int64
}

// renew takes a sign of life.
func (s *Server) renew(ctx context.Context, r work.Renewal) error {
	if err := s.queue.Renew(ctx, r.Token, r.Doing, r.Share); err != nil {
		return err
	}
	s.signs.mu.Lock()
	l := s.signs.leases[r.Token]
	s.signs.mu.Unlock()
	if l.job == "" {
		j, err := s.queue.Holder(ctx, r.Token)
		if err != nil {
			return err
		}
		l.job = j.ID
	}
	l.seen = time.Now().UnixMilli()
	s.signs.note(r.Token, l, s.o.Silence)
	return nil
}

// note keeps a sign, and forgets those of leases that are over.
func (g *signs) note(token string, l lease, silence time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.leases[token]; !ok {
		for t, old := range g.leases {
			if old.job == l.job || l.seen-old.seen > 10*silence.Milliseconds() {
				delete(g.leases, t)
				delete(g.jobs, old.job)
			}
		}
	}
	g.leases[token], g.jobs[l.job] = l, l.seen
}

// silent returns when the worker of a job that runs was last heard, 0 while it is heard. A job that
// ran before this process started is silent until its worker is heard again.
func (s *Server) silent(j *queue.Job) int64 {
	if j.State != queue.Running {
		return 0
	}
	s.signs.mu.Lock()
	heard := s.signs.jobs[j.ID]
	s.signs.mu.Unlock()
	last := max(heard, j.Changed)
	if last >= s.started && time.Now().UnixMilli()-last < s.o.Silence.Milliseconds()*2/3 {
		return 0
	}
	if s.o.NATS != "" { // another server may hear it
		for _, w := range s.queue.Workers() {
			if w.Name == j.Worker && w.Online {
				return 0
			}
		}
	}
	return last
}

// view completes a job: what no worker has that it waits for, and whether its worker is silent.
func (s *Server) view(j queue.Job) jobView {
	if j.State == queue.Waiting {
		j.Lacks = s.queue.Lacks(j.Needs)
	}
	return jobView{j, s.silent(&j)}
}
