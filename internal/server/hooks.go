package server

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/server/hook"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
)

// hookBody asks for a webhook.
type hookBody struct {
	URL string `json:"url" minLength:"1" maxLength:"2000" doc:"address that events are posted to"`
}

// hookView is a webhook with its secret, once.
type hookView struct {
	store.Hook
	Secret string `json:"secret,omitzero"`
}

// maxHooks bounds the webhooks of a project.
const maxHooks = 10

func (s *Server) addHooks(api huma.API) {
	add(api, "GET /projects/{id}/hooks", "list-hooks", store.Admin, "List the webhooks of a project", func(ctx context.Context, in *Named) (*item[listed[store.Hook]], error) {
		var all []store.Hook
		err := s.db.View(ctx, func(tx *store.Tx) error {
			p, err := s.project(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			all, err = tx.Hooks(p.ID)
			return err
		})
		return &item[listed[store.Hook]]{cut(all, len(all), nil)}, err
	})
	add(api, "POST /projects/{id}/hooks", "add-hook", store.Admin, "Add a webhook; its secret is shown once", func(ctx context.Context, in *struct {
		Named
		Body hookBody
	},
	) (*item[hookView], error) {
		if err := s.hooks.Check(in.Body.URL); err != nil {
			return nil, huma.Error422UnprocessableEntity(err.Error())
		}
		var v hookView
		err := s.db.Change(ctx, func(tx *store.Tx) error {
			p, err := s.project(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			old, err := tx.Hooks(p.ID)
			if err != nil {
				return err
			}
			if len(old) >= maxHooks {
				return huma.Error409Conflict(fmt.Sprintf("the project has %d webhooks: remove one first", maxHooks))
			}
			if v.Hook, err = tx.AddHook(p.ID, in.Body.URL); err != nil {
				return err
			}
			v.Secret = v.Hook.Secret
			return tx.Log(who(ctx).name, "add webhook", v.ID)
		})
		return &item[hookView]{v}, err
	}, func(o *huma.Operation) { o.DefaultStatus = 201; o.Errors = append(o.Errors, 422) })
	add(api, "DELETE /hooks/{id}", "remove-hook", store.Admin, "Remove a webhook", func(ctx context.Context, in *Named) (*struct{}, error) {
		return nil, s.db.Change(ctx, func(tx *store.Tx) error {
			if _, err := s.hook(ctx, tx, in.ID); err != nil {
				return err
			}
			if err := tx.RemoveHook(in.ID); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "remove webhook", in.ID)
		})
	})
	add(api, "GET /hooks/{id}/deliveries", "list-deliveries", store.Admin, "List what was sent to a webhook, the latest first", func(ctx context.Context, in *struct {
		Named
		Paged
	},
	) (*item[listed[store.Delivery]], error) {
		var all []store.Delivery
		err := s.db.View(ctx, func(tx *store.Tx) error {
			h, err := s.hook(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			all, err = tx.Deliveries(h.ID, in.Before, in.Limit+1)
			return err
		})
		return &item[listed[store.Delivery]]{cut(all, in.Limit, func(d *store.Delivery) string { return d.ID })}, err
	})
	add(api, "POST /hooks/{id}/test", "test-hook", store.Admin, "Send a test event once, and tell what came of it", func(ctx context.Context, in *Named) (*item[store.Delivery], error) {
		var d store.Delivery
		err := s.db.Change(ctx, func(tx *store.Tx) error {
			h, err := s.hook(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			body, err := event(tx, h.Project, hook.Test, map[string]any{})
			if err != nil {
				return err
			}
			d, err = tx.Emit(h.ID, hook.Test, store.NewID(time.Now()), body)
			if err == nil && d.Next == nil {
				err = huma.Error409Conflict(fmt.Sprintf("%d events wait for this webhook already", store.MaxPending))
			}
			if err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "test webhook", h.ID)
		})
		if err == nil {
			err = s.hooks.Attempt(ctx, &d)
		}
		return &item[store.Delivery]{d}, err
	})
}

// hook finds a webhook that the caller may see.
func (s *Server) hook(ctx context.Context, tx *store.Tx, id string) (store.Hook, error) {
	h, err := tx.Hook(id)
	if err == nil && !who(ctx).sees(h.Project) {
		return store.Hook{}, store.Absent("hooks")
	}
	return h, err
}

// event writes the body of an event of a project.
func event(tx *store.Tx, project, kind string, data map[string]any) (string, error) {
	p, err := tx.Project(project)
	if err != nil {
		return "", err
	}
	data["project"] = map[string]string{"id": p.ID, "name": p.Name}
	b, err := jsonx.Marshal(map[string]any{"type": kind, "timestamp": time.Now().UTC().Format(time.RFC3339), "data": data})
	return string(b), err
}

// emit queues an event for the webhooks of a project. make makes its data.
func emit(tx *store.Tx, project, kind, object string, make func() (map[string]any, error)) error {
	all, err := tx.Hooks(project)
	if err != nil || len(all) == 0 {
		return err
	}
	data, err := make()
	if err != nil {
		return err
	}
	body, err := event(tx, project, kind, data)
	for _, h := range all {
		if err == nil {
			_, err = tx.Emit(h.ID, kind, object, body)
		}
	}
	return err
}

// emitRun queues the event that a run is there.
func (s *Server) emitRun(tx *store.Tx, r *store.Run) error {
	return emit(tx, r.Project, hook.RunFinished, r.ID, func() (map[string]any, error) {
		views, err := s.views(tx, []store.Run{*r})
		if err != nil {
			return nil, err
		}
		return map[string]any{"run": views[0], "path": "/runs/" + r.ID}, nil
	})
}

// emitAlert queues the event that an alert is there.
func emitAlert(tx *store.Tx, a *store.Alert) error {
	return emit(tx, a.Project, hook.AlertRaised, a.ID, func() (map[string]any, error) {
		views, err := alertViews(tx, []store.Alert{*a})
		if err != nil {
			return nil, err
		}
		query := url.Values{"figure": {a.Figure}, "series": {a.Series}}
		return map[string]any{"alert": views[0], "path": "/projects/" + a.Project + "?" + query.Encode()}, nil
	})
}

// failedJob queues the event that a job failed.
func (s *Server) failedJob(ctx context.Context, j *queue.Job) error {
	err := s.db.Change(ctx, func(tx *store.Tx) error {
		return emit(tx, j.Project, hook.JobFailed, j.ID, func() (map[string]any, error) {
			names := make([]string, len(j.Inputs))
			for i := range j.Inputs {
				names[i] = j.Inputs[i].Name
			}
			about := map[string]any{"id": j.ID, "kind": j.Kind, "inputs": names, "error": j.Error}
			return map[string]any{"job": about, "path": "/jobs/" + j.ID}, nil
		})
	})
	s.posted()
	return err
}

// posted says that there may be events to send.
func (s *Server) posted() { tell(s.mail) }

// tell says that something is new, if that is not said already.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// post sends events to webhooks, also those that an earlier process left.
func (s *Server) post() {
	for {
		var timer <-chan time.Time
		next, err := s.hooks.Deliver(s.ctx)
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			s.o.Log.Warn("sending to webhooks failed", "error", err)
			timer = time.After(time.Minute)
		case !next.IsZero():
			timer = time.After(time.Until(next))
		}
		select {
		case <-s.mail:
		case <-timer:
		case <-s.ctx.Done():
			return
		}
	}
}
