package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
)

const (
	// firstSweep is how long after its start a server applies the rules and looks for unused files.
	firstSweep = 10 * time.Minute
	// sweepEvery is the time until it does so again.
	sweepEvery = 24 * time.Hour
	// keepUnused is how long files stay that nothing refers to: who uploads one starts its job later.
	keepUnused = 24 * time.Hour
	// sweepBatch is how many runs or files are handled at once, so that other requests come between.
	sweepBatch = 500
	// shownDue bounds the runs of a preview.
	shownDue = 50
)

// dueView is what a rule would delete.
type dueView struct {
	Total int       `json:"total"`
	Items []runView `json:"items" doc:"the oldest of them"`
}

// sweptView is what was removed.
type sweptView struct {
	Runs  int64 `json:"runs" doc:"runs that were moved to the bin"`
	Files int64 `json:"files" doc:"files that were removed for good"`
	Bytes int64 `json:"bytes" doc:"their size"`
}

func (s *Server) addRetention(api huma.API) {
	type rule struct {
		Named
		Body store.Rule
	}
	// change is a change of the rule of a project or of all others.
	change := func(ctx context.Context, id, what string, f func(tx *store.Tx, project string) error) error {
		return s.db.Change(ctx, func(tx *store.Tx) error {
			project, err := s.ruled(ctx, tx, id)
			if err != nil {
				return err
			}
			if err := f(tx, project); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, what+" retention", project)
		})
	}
	add(api, "GET /retention", "list-retention", store.Admin, "List the rules that say which runs are kept", func(ctx context.Context, _ *struct{}) (*item[listed[store.Rule]], error) {
		var out []store.Rule
		err := s.db.View(ctx, func(tx *store.Tx) (err error) { out, err = tx.Rules(); return err })
		out = slices.DeleteFunc(out, func(r store.Rule) bool { return r.Project != store.Others && !who(ctx).sees(r.Project) })
		return &item[listed[store.Rule]]{cut(out, len(out), nil)}, err
	})
	add(api, "PUT /retention/{id}", "set-retention", store.Admin, "Set the rule of a project, or of all others by the id *", func(ctx context.Context, in *rule) (*struct{}, error) {
		return nil, change(ctx, in.ID, "set", func(tx *store.Tx, project string) error {
			in.Body.Project = project
			return tx.SetRule(in.Body)
		})
	})
	add(api, "DELETE /retention/{id}", "remove-retention", store.Admin, "Remove a rule: that of all others holds again", func(ctx context.Context, in *Named) (*struct{}, error) {
		return nil, change(ctx, in.ID, "remove", (*store.Tx).RemoveRule)
	})
	add(api, "POST /retention/{id}/preview", "preview-retention", store.Admin, "List the runs that a rule would delete now", func(ctx context.Context, in *rule) (*item[dueView], error) {
		var v dueView
		err := s.db.View(ctx, func(tx *store.Tx) error {
			id, err := s.ruled(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			projects := []string{id}
			if id == store.Others {
				if projects, err = unruled(tx); err != nil {
					return err
				}
			}
			var due []store.Run
			for _, p := range projects {
				runs, err := tx.Due(p, in.Body, time.Now())
				if err != nil {
					return err
				}
				due = append(due, runs...)
			}
			v.Total = len(due)
			v.Items, err = s.views(tx, due[:min(len(due), shownDue)])
			return err
		})
		return &item[dueView]{v}, err
	})
	add(api, "POST /apply-retention", "apply-retention", store.Admin, "Apply all rules now, and remove files that nothing refers to for a day", func(ctx context.Context, _ *struct{}) (*item[sweptView], error) {
		if who(ctx).project != "" {
			return nil, huma.Error403Forbidden("the token is for one project: it cannot apply the rules of all")
		}
		v, err := s.sweep(ctx, time.Now(), who(ctx).name)
		return &item[sweptView]{v}, err
	})
}

// ruled returns the project of a rule that the caller may change.
func (s *Server) ruled(ctx context.Context, tx *store.Tx, id string) (string, error) {
	if id == store.Others {
		if who(ctx).project != "" {
			return "", huma.Error403Forbidden("the token is for one project: it cannot change the rule of others")
		}
		return id, nil
	}
	p, err := s.project(ctx, tx, id)
	return p.ID, err
}

// allProjects lists the ids of all projects, also of those in the bin.
func allProjects(tx *store.Tx) (ids []string, err error) {
	for _, deleted := range []bool{false, true} {
		all, err := tx.Projects(deleted)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

// unruled lists the projects without a rule of their own.
func unruled(tx *store.Tx) ([]string, error) {
	ids, err := allProjects(tx)
	if err != nil {
		return nil, err
	}
	rules, err := tx.Rules()
	for _, r := range rules {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == r.Project })
	}
	return ids, err
}

// sweep applies the rules and removes files that nothing refers to.
func (s *Server) sweep(ctx context.Context, now time.Time, by string) (v sweptView, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	v.Runs, err = s.retain(ctx, now, by)
	if err != nil {
		return v, fmt.Errorf("retention: %w", err)
	}
	v.Files, v.Bytes, err = s.collect(ctx, now)
	if err != nil {
		return v, fmt.Errorf("unused files: %w", err)
	}
	return v, nil
}

// retain moves the runs to the bin that no rule keeps.
func (s *Server) retain(ctx context.Context, now time.Time, by string) (total int64, err error) {
	var projects []string
	err = s.db.View(ctx, func(tx *store.Tx) (err error) { projects, err = allProjects(tx); return err })
	if err != nil {
		return 0, err
	}
	for _, p := range projects {
		var due []store.Run
		err := s.db.View(ctx, func(tx *store.Tx) error {
			r, err := tx.RuleOf(p)
			if err == nil {
				due, err = tx.Due(p, r, now)
			}
			return err
		})
		if err != nil {
			return total, err
		}
		for some := range slices.Chunk(due, sweepBatch) {
			err := s.db.Change(ctx, func(tx *store.Tx) error {
				n, err := tx.DeleteRuns(some, now)
				if err != nil || n == 0 {
					return err
				}
				total += n
				return tx.Log(by, fmt.Sprintf("delete %d runs by retention", n), p)
			})
			if err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

// collect removes the files that neither runs nor jobs refer to since keepUnused. It notes unused
// files first and removes them in a later call. Whoever uses a file removes its note (present), so
// no file vanishes that somebody was told is here.
func (s *Server) collect(ctx context.Context, now time.Time) (files, bytes int64, err error) {
	if err := s.queue.Up(ctx); err != nil {
		return 0, 0, err
	}
	inJobs := map[string]bool{}
	for _, j := range s.queue.Jobs(func(*queue.Job) bool { return true }) {
		for _, in := range j.Inputs {
			inJobs[in.Hash] = true
		}
	}
	var some []string
	note := func() error {
		defer func() { some = some[:0] }()
		var used map[string]bool
		err := s.db.View(ctx, func(tx *store.Tx) (err error) { used, err = tx.Used(some); return err })
		some = slices.DeleteFunc(some, func(h string) bool { return used[h] || inJobs[h] })
		if err != nil || len(some) == 0 {
			return err
		}
		return s.db.Change(ctx, func(tx *store.Tx) error {
			for _, h := range some {
				if err := tx.MarkUnused(h, now); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = s.files.All(func(hash string) error {
		if some = append(some, hash); len(some) < sweepBatch {
			return ctx.Err()
		}
		return note()
	})
	if err := errors.Join(err, note()); err != nil {
		return 0, 0, err
	}
	before := now.Add(-keepUnused)
	for last := ""; ; {
		var unused []store.Unused
		err := s.db.View(ctx, func(tx *store.Tx) (err error) { unused, err = tx.UnusedSince(before, last); return err })
		if err != nil || len(unused) == 0 {
			return files, bytes, err
		}
		for _, u := range unused {
			last = u.Hash
			n := int64(0)
			err := s.db.Change(ctx, func(tx *store.Tx) error {
				if err := tx.TakeUnused(u.Hash, before); err != nil {
					return err
				}
				used, err := tx.Used([]string{u.Hash})
				if err != nil || used[u.Hash] || inJobs[u.Hash] {
					return err
				}
				if n, err = s.files.Size(u.Hash); err != nil {
					return err
				}
				files++
				return s.files.Remove(u.Hash)
			})
			switch {
			case err == nil:
				bytes += n
			case errors.Is(err, blob.ErrNotFound): // removed by another server, or by this one before it ended
				err = s.db.Change(ctx, func(tx *store.Tx) error { return tx.Use(u.Hash) })
			case errors.Is(err, store.ErrNotFound): // used meanwhile
				err = nil
			}
			if err != nil {
				return files, bytes, err
			}
		}
	}
}

// present reports whether a file is here, ErrNotFound if not. If it is, it stays for keepUnused.
func (s *Server) present(ctx context.Context, hash string) error {
	if err := s.use(ctx, hash); err != nil {
		return err
	}
	_, err := s.files.Size(hash)
	return err
}

// use notes that somebody uses a file. That waits until it is removed, if it is removed now.
func (s *Server) use(ctx context.Context, hash string) error {
	marked := false
	err := s.db.View(ctx, func(tx *store.Tx) (err error) { marked, err = tx.MarkedUnused(hash); return err })
	if err != nil || !marked {
		return err
	}
	return s.db.Change(ctx, func(tx *store.Tx) error { return tx.Use(hash) })
}

// restore takes rows out of the bin. A run that its rule would delete again is pinned.
func (s *Server) restore(tx *store.Tx, table string, ids ...string) error {
	runs := map[string][]store.Run{} // by project
	if err := tx.Restore(table, ids...); err != nil || table != "runs" {
		return err
	}
	for _, id := range ids {
		r, err := tx.Run(id)
		if err != nil {
			return err
		}
		runs[r.Project] = append(runs[r.Project], r)
	}
	for project, back := range runs {
		rule, err := tx.RuleOf(project)
		if err != nil {
			return err
		}
		due, err := tx.Due(project, rule, time.Now())
		if err != nil {
			return err
		}
		goes := map[string]bool{}
		for _, d := range due {
			goes[d.ID] = true
		}
		back = slices.DeleteFunc(back, func(r store.Run) bool { return !goes[r.ID] })
		tags, err := tx.Tags(back)
		if err != nil {
			return err
		}
		for _, r := range back {
			if err := tx.Note(r.ID, r.Note, append(tags[r.ID], store.Pinned)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isHere answers whether a file is here that a request refers to.
func (s *Server) isHere(ctx context.Context, hash, otherwise string) error {
	err := s.usable(ctx, hash)
	if errors.Is(err, blob.ErrNotFound) {
		return huma.NewError(http.StatusUnprocessableEntity, otherwise)
	}
	return err
}
