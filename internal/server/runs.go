package server

import (
	"context"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/store"
)

// projectBody is what a project is made of.
type projectBody struct {
	Name        string `json:"name" minLength:"1" maxLength:"200"`
	Description string `json:"description,omitempty" maxLength:"4000" nullable:"true"`
}

func (s *Server) addProjects(api huma.API) {
	add(api, "GET /projects", "list-projects", store.Read, "List projects", func(ctx context.Context, in *struct {
		Deleted bool `query:"deleted" doc:"list the bin"`
	},
	) (*item[listed[store.Project]], error) {
		var out []store.Project
		err := s.db.View(ctx, func(tx *store.Tx) error {
			all, err := tx.Projects(in.Deleted)
			for _, p := range all {
				if who(ctx).sees(p.ID) {
					out = append(out, p)
				}
			}
			return err
		})
		return &item[listed[store.Project]]{cut(out, len(out), nil)}, err
	})
	add(api, "POST /projects", "add-project", store.Start, "Add a project", func(ctx context.Context, in *struct{ Body projectBody }) (*item[store.Project], error) {
		if err := whole(ctx); err != nil {
			return nil, err
		}
		name, err := plainName("project", in.Body.Name)
		if err != nil {
			return nil, err
		}
		var p store.Project
		err = s.db.Change(ctx, func(tx *store.Tx) (err error) {
			if p, err = tx.AddProject(name, in.Body.Description); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "add project", p.ID)
		})
		return &item[store.Project]{p}, err
	})
	add(api, "PUT /projects/{id}", "change-project", store.Start, "Rename or describe a project", func(ctx context.Context, in *struct {
		Named
		Body projectBody
	},
	) (*item[store.Project], error) {
		name, err := plainName("project", in.Body.Name)
		if err != nil {
			return nil, err
		}
		var p store.Project
		err = s.db.Change(ctx, func(tx *store.Tx) (err error) {
			if p, err = s.project(ctx, tx, in.ID); err != nil {
				return err
			}
			if err = tx.ChangeProject(p.ID, name, in.Body.Description); err != nil {
				return err
			}
			if p, err = tx.Project(p.ID); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "change project", p.ID)
		})
		return &item[store.Project]{p}, err
	})
	s.addBin(api, "projects", "project", func(ctx context.Context, tx *store.Tx, id string) error {
		_, err := s.project(ctx, tx, id)
		return err
	})
	add(api, "GET /projects/{id}/series", "list-series", store.Read, "List what a project measures, each with its latest run", func(ctx context.Context, in *Named) (*item[listed[seriesView]], error) {
		var out []seriesView
		err := s.db.View(ctx, func(tx *store.Tx) error {
			p, err := s.project(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			latest, err := tx.Latest(p.ID)
			if err != nil {
				return err
			}
			views, err := s.views(tx, latest)
			for _, v := range views {
				out = append(out, seriesView{v.About, v})
			}
			return err
		})
		return &item[listed[seriesView]]{cut(out, len(out), nil)}, err
	})
}

// seriesView is a series with its latest run.
type seriesView struct {
	store.Series
	Latest runView `json:"latest"`
}

// several names things.
type several struct {
	IDs []string `json:"ids" minItems:"1" maxItems:"500" maxLength:"64" doc:"all of them are changed, or none"`
}

// addBin adds deletion and its undo, of one thing and of several.
func (s *Server) addBin(api huma.API, table, one string, find func(context.Context, *store.Tx, string) error) {
	mark := func(ctx context.Context, verb string, f func(tx *store.Tx, table string, ids ...string) error, ids ...string) error {
		return s.db.Change(ctx, func(tx *store.Tx) error {
			for _, id := range ids {
				if err := find(ctx, tx, id); err != nil {
					return err
				}
			}
			if err := f(tx, table, ids...); err != nil {
				return err
			}
			for _, id := range ids {
				if err := tx.Log(who(ctx).name, verb+" "+one, id); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, m := range []struct {
		verb, single, where string
		f                   func(tx *store.Tx, table string, ids ...string) error
	}{
		{"delete", "DELETE /" + table + "/{id}", "to the bin", (*store.Tx).Delete},
		{"restore", "POST /" + table + "/{id}/restore", "out of the bin", s.restore},
	} {
		add(api, m.single, m.verb+"-"+one, store.Start, "Move a "+one+" "+m.where, func(ctx context.Context, in *Named) (*struct{}, error) {
			return nil, mark(ctx, m.verb, m.f, in.ID)
		})
		if table == "runs" {
			add(api, "POST /"+m.verb+"-"+table, m.verb+"-"+table, store.Start, "Move several "+table+" "+m.where, func(ctx context.Context, in *struct{ Body several }) (*struct{}, error) {
				slices.Sort(in.Body.IDs)
				return nil, mark(ctx, m.verb, m.f, slices.Compact(in.Body.IDs)...)
			})
		}
	}
}

// runView is a run with what it is of and its figures.
type runView struct {
	store.Run
	About   store.Series   `json:"about"`
	Figures []store.Figure `json:"figures"`
	Tags    []string       `json:"tags"`
}

// views completes runs.
func (s *Server) views(tx *store.Tx, runs []store.Run) ([]runView, error) {
	series, err := tx.SeriesOf(runs)
	if err != nil {
		return nil, err
	}
	figures, err := tx.Figures(runs)
	if err != nil {
		return nil, err
	}
	tags, err := tx.Tags(runs)
	if err != nil {
		return nil, err
	}
	out := make([]runView, len(runs))
	for i, r := range runs {
		out[i] = runView{r, series[r.Series], append([]store.Figure{}, figures[r.ID]...), append([]string{}, tags[r.ID]...)}
	}
	return out, nil
}

// noteBody is what people add to a run.
type noteBody struct {
	Note string   `json:"note" maxLength:"4000"`
	Tags []string `json:"tags" maxItems:"50"`
}

func (s *Server) addRuns(api huma.API) {
	add(api, "GET /runs", "list-runs", store.Read, "List or search runs, the latest first", func(ctx context.Context, in *struct {
		Paged
		Project string `query:"project" maxLength:"200" doc:"id or name of a project"`
		Series  string `query:"series" maxLength:"64"`
		Tag     string `query:"tag" maxLength:"200"`
		Commit  string `query:"commit" maxLength:"200"`
		Search  string `query:"search" maxLength:"200" doc:"words that begin words of the run"`
		Deleted bool   `query:"deleted" doc:"list the bin"`
	},
	) (*item[listed[runView]], error) {
		var out []runView
		err := s.db.View(ctx, func(tx *store.Tx) error {
			f := store.Filter{
				Project: who(ctx).project, Series: in.Series, Tag: in.Tag, Commit: in.Commit, Search: in.Search,
				Deleted: in.Deleted, Before: in.Before, Limit: in.Limit + 1,
			}
			if in.Project != "" {
				p, err := s.project(ctx, tx, in.Project)
				if err != nil {
					return err
				}
				f.Project = p.ID
			}
			runs, err := tx.Runs(f)
			if err != nil {
				return err
			}
			out, err = s.views(tx, runs)
			return err
		})
		return &item[listed[runView]]{cut(out, in.Limit, func(r *runView) string { return r.ID })}, err
	})
	add(api, "GET /runs/{id}", "get-run", store.Read, "A run with its figures", func(ctx context.Context, in *Named) (*item[runView], error) {
		var out []runView
		err := s.db.View(ctx, func(tx *store.Tx) error {
			r, err := s.run(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			out, err = s.views(tx, []store.Run{r})
			return err
		})
		if err != nil {
			return nil, err
		}
		return &item[runView]{out[0]}, nil
	})
	add(api, "PUT /runs/{id}/note", "note-run", store.Start, "Set note and tags of a run", func(ctx context.Context, in *struct {
		Named
		Body noteBody
	},
	) (*struct{}, error) {
		tags, err := plainTags(in.Body.Tags)
		if err != nil {
			return nil, err
		}
		return nil, s.db.Change(ctx, func(tx *store.Tx) error {
			if _, err := s.run(ctx, tx, in.ID); err != nil {
				return err
			}
			if err := tx.Note(in.ID, in.Body.Note, tags); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "note run", in.ID)
		})
	})
	s.addBin(api, "runs", "run", func(ctx context.Context, tx *store.Tx, id string) error {
		_, err := s.run(ctx, tx, id)
		return err
	})
}
