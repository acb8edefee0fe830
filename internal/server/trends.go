package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/gate/history"
	"github.com/opmeter/opmeter/internal/server/store"
)

// pullRequest says that a point is of a change that is not merged. Other points that are left out
// are [gate.OtherBranch].
const pullRequest = "pull_request"

// pointView is a point of a trend.
type pointView struct {
	store.Point
	LeftOut string `json:"left_out,omitzero" doc:"why the point has no part in changes: pull_request or other_branch"`
}

// changeView is a change of the level of a trend.
type changeView struct {
	Run     string   `json:"run" doc:"the first run of the new level"`
	Commit  string   `json:"commit,omitzero"`
	Created int64    `json:"created_ms"`
	Before  float64  `json:"before" doc:"median of the level before"`
	After   float64  `json:"after" doc:"median of the level after"`
	P       *float64 `json:"p,omitzero" doc:"significance of the change, absent for exact figures"`
	Worse   bool     `json:"worse"`
	Better  bool     `json:"better"`
}

// trendView is a figure of a series over time.
type trendView struct {
	Items   []pointView  `json:"items"`
	Changes []changeView `json:"changes"`
}

// maxTrend bounds the points that are read to find those of the main branch.
const maxTrend = 2000

// tested bounds the points in which changes are sought: the latest ones. The time grows with its
// square.
const tested = 200

func (s *Server) addTrends(api huma.API) {
	add(api, "GET /series/{id}/trend", "get-trend", store.Read, "A figure of a series over time, with its changes", func(ctx context.Context, in *struct {
		Named
		Figure string `query:"figure" required:"true" minLength:"1" maxLength:"100"`
		Limit  int    `query:"limit" minimum:"1" maximum:"2000" default:"500"`
	},
	) (*item[trendView], error) {
		v := trendView{Items: []pointView{}, Changes: []changeView{}}
		err := s.db.View(ctx, func(tx *store.Tx) error {
			of, err := s.series(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			v.Items, err = trend(tx, &of, in.Figure, in.Limit)
			return err
		})
		if err != nil {
			return nil, err
		}
		v.Changes = append(v.Changes, changes(v.Items, in.Figure)...)
		return &item[trendView]{v}, nil
	})
}

// trend reads the latest points of a figure.
func trend(tx *store.Tx, of *store.Series, figure string, limit int) ([]pointView, error) {
	trunk, err := tx.Trunk(of.Project)
	if err != nil {
		return nil, err
	}
	points, err := tx.Trend(of.ID, figure, limit)
	out := make([]pointView, len(points))
	for i, p := range points {
		out[i].Point = p
		switch {
		case p.Pull != "":
			out[i].LeftOut = pullRequest
		case p.Branch != "" && trunk != "" && p.Branch != trunk:
			out[i].LeftOut = gate.OtherBranch
		}
	}
	return out, err
}

// counted are the points that have a part in changes.
func counted(points []pointView) (out []pointView) {
	for i := range points {
		if points[i].LeftOut == "" {
			out = append(out, points[i])
		}
	}
	return out[max(0, len(out)-tested):]
}

// changes finds the changes of a trend as opmeter history does.
func changes(points []pointView, figure string) (out []changeView) {
	points = counted(points)
	values, measured := make([]float64, len(points)), false
	for i := range points {
		values[i], measured = points[i].Value, measured || points[i].Measured
	}
	for _, c := range history.Changes(values, measured) {
		p, gain := &points[c.At], (c.After-c.Before)*way(figure)
		out = append(out, changeView{p.Run, p.Commit, p.Created, c.Before, c.After, c.P, gain < 0, gain > 0})
	}
	return out
}
