package server

import (
	"context"
	"os"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/store"
)

// maxCommits bounds the commits among which a base is sought.
const maxCommits = 200

// jsonFile is a file of JSON as an answer.
type jsonFile struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) addBases(api huma.API) {
	add(api, "GET /runs/{id}/base", "get-base", store.Read, "The run that a change compares with", func(ctx context.Context, in *struct {
		Named
		Commits string `query:"commits" maxLength:"16000" doc:"commits with commas between, the best first; else the main branch counts"`
	},
	) (*item[runView], error) {
		var commits []string
		for c := range strings.SplitSeq(in.Commits, ",") {
			if c = strings.TrimSpace(c); c != "" && len(commits) < maxCommits {
				commits = append(commits, c)
			}
		}
		var out []runView
		err := s.db.View(ctx, func(tx *store.Tx) error {
			r, err := s.run(ctx, tx, in.ID)
			if err != nil {
				return err
			}
			trunk, err := tx.Trunk(r.Project)
			if err != nil {
				return err
			}
			base, err := tx.Base(r, commits, trunk)
			if err != nil {
				return err
			}
			out, err = s.views(tx, []store.Run{base})
			return err
		})
		if err != nil {
			return nil, err
		}
		return &item[runView]{out[0]}, nil
	})
	add(api, "GET /comparison", "compare-runs", store.Read, "Compare runs as opmeter compare does, in its JSON", func(ctx context.Context, in *struct {
		Runs string `query:"runs" required:"true" maxLength:"4000" doc:"ids with commas between, the base first"`
	},
	) (*jsonFile, error) {
		ids, err := compared(in.Runs)
		if err != nil {
			return nil, err
		}
		runs, err := s.runsOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		file, err := s.page(ctx, runs, ".json")
		if err != nil {
			return nil, err
		}
		b, err := os.ReadFile(file)
		return &jsonFile{"application/json", b}, err
	}, func(o *huma.Operation) { o.Errors = append(o.Errors, 400, 422) })
}
