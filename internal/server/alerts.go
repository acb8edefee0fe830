package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/server/store"
)

// alertView is an alert with what it is about.
type alertView struct {
	store.Alert
	About  store.Series `json:"about"`
	Commit string       `json:"commit,omitzero"`
}

// alertList is a part of the alerts.
type alertList struct {
	Items []alertView `json:"items"`
	Next  string      `json:"next,omitempty"`
	Open  int         `json:"open" doc:"how many alerts nobody acknowledged"`
}

// seenBody is what a person says of an alert.
type seenBody struct {
	Note string `json:"note,omitempty" maxLength:"4000"`
}

func (s *Server) addAlerts(api huma.API) {
	add(api, "GET /alerts", "list-alerts", store.Read, "List changes for the worse, the latest first", func(ctx context.Context, in *struct {
		Paged
		Project string `query:"project" maxLength:"200" doc:"id or name of a project"`
		Open    bool   `query:"open" doc:"only those that nobody acknowledged"`
	},
	) (*item[alertList], error) {
		var out alertList
		err := s.db.View(ctx, func(tx *store.Tx) error {
			project := who(ctx).project
			if in.Project != "" {
				p, err := s.project(ctx, tx, in.Project)
				if err != nil {
					return err
				}
				project = p.ID
			}
			all, err := tx.Alerts(project, in.Open, in.Before, in.Limit+1)
			if err != nil {
				return err
			}
			views, err := alertViews(tx, all)
			if err != nil {
				return err
			}
			part := cut(views, in.Limit, func(a *alertView) string { return a.ID })
			out.Items, out.Next = part.Items, part.Next
			out.Open, err = tx.OpenAlerts(project)
			return err
		})
		return &item[alertList]{out}, err
	})
	add(api, "POST /alerts/{id}/acknowledge", "acknowledge-alert", store.Start, "Mark an alert as seen", func(ctx context.Context, in *struct {
		Named
		Body seenBody
	},
	) (*item[alertView], error) {
		var out []alertView
		err := s.db.Change(ctx, func(tx *store.Tx) error {
			a, err := tx.Alert(in.ID)
			switch {
			case err != nil:
				return err
			case !who(ctx).sees(a.Project):
				return store.Absent("alerts")
			case a.Acknowledged != nil:
				return huma.Error409Conflict("the alert was acknowledged by " + a.AcknowledgedBy)
			}
			if err := tx.Acknowledge(a.ID, who(ctx).name, strings.TrimSpace(in.Body.Note)); err != nil {
				return err
			}
			if a, err = tx.Alert(a.ID); err != nil {
				return err
			}
			if out, err = alertViews(tx, []store.Alert{a}); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "acknowledge alert", a.ID)
		})
		if err != nil {
			return nil, err
		}
		return &item[alertView]{out[0]}, nil
	})
}

// alertViews completes alerts.
func alertViews(tx *store.Tx, all []store.Alert) ([]alertView, error) {
	out := make([]alertView, 0, len(all))
	for _, a := range all {
		of, err := tx.SeriesByID(a.Series)
		if err != nil {
			return nil, err
		}
		r, err := tx.Run(a.Run)
		if err != nil {
			return nil, err
		}
		out = append(out, alertView{a, of, r.Commit})
	}
	return out, nil
}

// added says that there may be series with new runs.
func (s *Server) added() { tell(s.news) }

// watch seeks changes in series with new runs, also those that an earlier process left.
func (s *Server) watch() {
	const pause = time.Minute // after an error
	for {
		var again <-chan time.Time
		if err := s.checkAll(s.ctx); err != nil && s.ctx.Err() == nil {
			s.o.Log.Warn("seeking changes failed", "error", err)
			again = time.After(pause)
		}
		select {
		case <-s.news:
		case <-again:
		case <-s.ctx.Done():
			return
		}
	}
}

// checkAll seeks changes in all series with new runs.
func (s *Server) checkAll(ctx context.Context) error {
	for {
		var all []store.Series
		err := s.db.View(ctx, func(tx *store.Tx) (err error) { all, err = tx.Unchecked(20); return err })
		if err != nil || len(all) == 0 {
			return err
		}
		for i := range all {
			if err := s.check(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
}

// worse is a change for the worse of a figure.
type worse struct {
	changeView
	figure   string
	measured bool
	points   []pointView
}

// check makes alerts of the new changes for the worse of a series.
func (s *Server) check(ctx context.Context, of *store.Series) error {
	points := map[string][]pointView{}
	err := s.db.View(ctx, func(tx *store.Tx) error {
		figures, err := tx.Figures([]store.Run{{ID: of.Newest}})
		for _, f := range figures[of.Newest] {
			if err == nil && alerting(f.Name) {
				points[f.Name], err = trend(tx, of, f.Name, maxTrend)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var found []worse
	for figure, all := range points {
		all = counted(all)
		measured := slices.ContainsFunc(all, func(p pointView) bool { return p.Measured })
		for _, c := range changes(all, figure) {
			if c.Worse && (measured || forbidden(figure, c.Before, c.After)) {
				found = append(found, worse{c, figure, measured, all})
			}
		}
	}
	err = s.db.Change(ctx, func(tx *store.Tx) error {
		if err := tx.Checked(of); err != nil {
			return err
		}
		for i := range found {
			if err := s.alert(tx, of, &found[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // another server did it
	}
	s.posted()
	return err
}

// policyRules holds the rules of opmeter gate by figure.
var policyRules = sync.OnceValue(func() map[string]gate.Rule {
	out := map[string]gate.Rule{}
	for _, r := range gate.Default().Rules {
		out[r.Figure] = r
	}
	return out
})

// way is 1 where more of a figure is better, -1 where less is, 0 where neither holds.
func way(figure string) float64 {
	switch r, ok := policyRules()[figure]; {
	case ok && r.Better == gate.Lower:
		return -1
	case ok && r.Better == gate.Higher:
		return 1
	}
	q, _ := gate.Lookup(figure)
	return float64(q.Better)
}

// alerting reports whether a figure makes alerts: those that decide a gate, and what else people
// measure a model for. The others explain them.
func alerting(figure string) bool {
	return policyRules()[figure].Required || figure == "energy_j" || figure == "inferences_per_s"
}

// forbidden reports whether the rules of opmeter gate refuse a change for the worse of an exact
// figure.
func forbidden(figure string, before, after float64) bool {
	r, ok := policyRules()[figure]
	return ok && r.Required && max(after-before, before-after) > r.Allowance(before)
}

// moves is by how many runs more data may move a change point. An alert that nobody acknowledged
// follows it.
const moves = 2

// alert adds an alert, unless the change has one.
func (s *Server) alert(tx *store.Tx, of *store.Series, w *worse) error {
	slack := 0
	if w.measured {
		slack = moves
	}
	place := func(run string) int { // ids are in the order of time
		at, _ := slices.BinarySearchFunc(w.points, run, func(p pointView, run string) int { return strings.Compare(p.Run, run) })
		return at
	}
	old, err := tx.AlertsOf(of.ID, w.figure)
	if err != nil {
		return err
	}
	for i := range old {
		d := place(old[i].Run) - place(w.Run)
		if d < -slack || d > slack {
			continue
		}
		taken := slices.ContainsFunc(old, func(o store.Alert) bool { return o.Run == w.Run })
		if d == 0 || taken || old[i].Acknowledged != nil {
			return nil
		}
		return tx.Move(old[i].ID, w.Run, w.Before, w.After)
	}
	a, err := tx.AddAlert(store.Alert{Project: of.Project, Series: of.ID, Run: w.Run, Figure: w.figure, Before: w.Before, After: w.After})
	if err != nil {
		return err
	}
	return emitAlert(tx, &a)
}
