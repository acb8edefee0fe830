package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// longPoll is how long a worker waits for a job in one request.
const longPoll = 25 * time.Second

// leaseBody asks for a job.
type leaseBody struct {
	Worker string       `json:"worker" minLength:"1" maxLength:"200"`
	Offers queue.Offers `json:"offers"`
}

// renewed answers a sign of life.
type renewed struct {
	Stop bool `json:"stop" doc:"the job was cancelled: end it"`
}

func (s *Server) addWorkers(api huma.API) {
	add(api, "POST /leases", "lease-job", store.Start, "Wait for a job that a worker can do", func(ctx context.Context, in *struct{ Body leaseBody }) (*struct {
		Status int
		Body   *queue.Lease
	}, error,
	) {
		out := &struct {
			Status int
			Body   *queue.Lease
		}{Status: http.StatusOK}
		if err := whole(ctx); err != nil {
			return nil, err
		}
		wait, cancel := context.WithTimeout(ctx, s.longPoll)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		l, err := s.queue.Lease(wait, in.Body.Worker, &in.Body.Offers)
		if err != nil && wait.Err() != nil {
			out.Status, err = http.StatusNoContent, nil
		}
		out.Body = l
		return out, err
	}, func(o *huma.Operation) {
		o.Responses = map[string]*huma.Response{"204": {Description: "No job came: ask again"}}
	})
	add(api, "GET /workers", "list-workers", store.Read, "List workers: what they have, and what they do", func(ctx context.Context, _ *struct{}) (*item[listed[queue.Worker]], error) {
		if err := s.queue.Up(ctx); err != nil {
			return nil, err
		}
		all := s.queue.Workers()
		for i := range all {
			if all[i].Job == "" {
				continue
			}
			if _, err := s.job(ctx, all[i].Job); err != nil {
				all[i].Job = "" // of a project that the caller may not see
			}
		}
		return &item[listed[queue.Worker]]{cut(all, len(all), nil)}, nil
	})
	add(api, "PUT /leases", "renew-lease", store.Start, "Tell that a worker is alive and what it does", func(ctx context.Context, in *struct{ Body work.Renewal }) (*item[renewed], error) {
		if err := whole(ctx); err != nil {
			return nil, err
		}
		err := s.renew(ctx, in.Body)
		if errors.Is(err, queue.ErrStop) {
			return &item[renewed]{renewed{Stop: true}}, nil
		}
		return &item[renewed]{}, err
	})
	add(api, "POST /leases/end", "end-lease", store.Start, "End a job", func(ctx context.Context, in *struct{ Body work.End }) (*item[queue.Job], error) {
		if err := whole(ctx); err != nil {
			return nil, err
		}
		j, err := s.end(ctx, &in.Body)
		return &item[queue.Job]{j}, err
	})
}

// end records the end of a job. The result reaches the database before the queue forgets the job,
// so that it is lost at no moment; and only once, by the id of the job.
func (s *Server) end(ctx context.Context, b *work.End) (queue.Job, error) {
	j, err := s.queue.Holder(ctx, b.Token)
	if err != nil {
		return j, err
	}
	caller := cmp.Or(who(ctx).name, j.Worker) // the worker of this process is no caller
	switch {
	case b.Release:
		if err := s.queue.Release(ctx, b.Token, b.Problem); err != nil {
			return j, err
		}
		return j, s.log(ctx, caller, "release job", j.ID)
	case b.Result == nil:
		if j, err = s.queue.Fail(ctx, b.Token, b.Cause, b.Problem); err != nil {
			return j, err
		}
		return j, s.log(ctx, caller, "end job", j.ID)
	}
	res := b.Result
	if err := res.Check(); err != nil {
		return j, huma.Error422UnprocessableEntity(err.Error())
	}
	if err := s.isHere(ctx, res.Hash, "the file of the result is not here: upload it first"); err != nil {
		return j, err
	}
	if res.Output != "" {
		if _, err := s.files.Size(res.Output); err != nil {
			return j, huma.Error422UnprocessableEntity("the model of the result is not here: upload it first")
		}
	}
	r := store.Run{
		Project: j.Project, Job: j.ID, ModelHash: res.Model, Blob: res.Hash, Output: res.Output,
		Branch: j.Labels["branch"], Commit: j.Labels["commit"], Pull: j.Labels["pull"], Note: strings.TrimSpace(j.Labels["note"] + "\n" + res.Damage),
	}
	if m, ok := work.Model(&j); ok {
		r.ModelHash, r.ModelFile = m.Hash, m.Name
	}
	if res.Series.Kind != work.KindStudy {
		res.Series.Kind = work.Profile // however it came: a saved one compares with a measured one
	}
	err = s.db.Change(ctx, func(tx *store.Tx) (err error) {
		if r, err = tx.AddRun(res.Series, r, res.Figures, j.Tags); err != nil {
			return err
		}
		if err := tx.Log(caller, "end job", j.ID); err != nil {
			return err
		}
		return s.emitRun(tx, &r)
	})
	if err != nil {
		return j, err
	}
	s.metrics.jobs.Add(1)
	s.added()
	s.posted()
	return s.queue.Finish(ctx, b.Token, []string{r.ID}, "")
}

// here is the server for a worker in the same process.
type here struct{ s *Server }

func (h here) Lease(ctx context.Context, worker string, o *queue.Offers) (*queue.Lease, error) {
	return h.s.queue.Lease(ctx, worker, o)
}

func (h here) Renew(ctx context.Context, r work.Renewal) error {
	return h.s.renew(ctx, r)
}

func (h here) End(ctx context.Context, e work.End) error {
	_, err := h.s.end(ctx, &e)
	return err
}

func (h here) Fetch(_ context.Context, hash, to string) error {
	from, err := h.s.files.Open(hash)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

func (h here) Store(ctx context.Context, hash, from string) error {
	if err := h.s.use(ctx, hash); err != nil {
		return err
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	_, _, err = h.s.files.Put(f)
	return errors.Join(err, f.Close())
}

// startWorker starts the worker of this process.
func (s *Server) startWorker() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	w := &work.Worker{Server: here{s}, Runner: s.runner, Name: name, Log: s.o.Log.With("worker", name), Offers: work.Offered(s.ctx, &s.runner)}
	s.tasks.Go(func() { _ = w.Work(s.ctx) }) // this process refuses nobody
	return nil
}
