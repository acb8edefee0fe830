package server

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/profile/compare"
)

// shareBody asks for a link that needs no token.
type shareBody struct {
	Runs   []string `json:"runs,omitempty" maxItems:"50" doc:"the run, or the runs of the comparison, whose page is shown"`
	Series string   `json:"series,omitempty" maxLength:"64" doc:"instead of runs: the series whose newest run has a badge"`
	Figure string   `json:"figure,omitempty" maxLength:"100" doc:"the figure on the badge"`
	Days   int      `json:"days,omitzero" minimum:"1" maximum:"3650" doc:"after how many days it expires"`
}

// shareView is a share with its link, once.
type shareView struct {
	store.Share
	Path string `json:"path" doc:"where it is on this server"`
}

func (s *Server) addShares(api huma.API) {
	add(api, "POST /shares", "add-share", store.Start, "Make a link to a page or a badge that needs no token; it is shown once", func(ctx context.Context, in *struct{ Body shareBody }) (*item[shareView], error) {
		var v shareView
		b := &in.Body
		if badge := b.Series != ""; badge == (len(b.Runs) > 0) || badge != (b.Figure != "") || len(b.Runs) > compare.MaxRuns {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("expected runs, at most %d, or series and figure", compare.MaxRuns))
		}
		err := s.db.Change(ctx, func(tx *store.Tx) error {
			share := store.Share{Series: b.Series, Figure: b.Figure, Runs: strings.Join(b.Runs, ",")}
			for _, id := range b.Runs {
				r, err := s.run(ctx, tx, id)
				if err != nil {
					return err
				}
				share.Project = r.Project
			}
			if b.Series != "" {
				of, err := s.series(ctx, tx, b.Series)
				if err != nil {
					return err
				}
				share.Project = of.Project
				points, err := tx.Trend(of.ID, b.Figure, 1)
				if err == nil && len(points) == 0 {
					err = huma.Error422UnprocessableEntity("the series has no figure " + strconv.Quote(b.Figure) + ": GET /runs/ID lists those of a run")
				}
				if err != nil {
					return err
				}
			}
			if b.Days > 0 {
				share.Expires = new(time.Now().AddDate(0, 0, b.Days).UnixMilli())
			}
			added, secret, err := tx.AddShare(share)
			if err != nil {
				return err
			}
			v = shareView{added, "/shared/" + secret}
			if b.Series != "" {
				v.Path += "/badge.svg"
			}
			return tx.Log(who(ctx).name, "add share", v.ID)
		})
		return &item[shareView]{v}, err
	}, func(o *huma.Operation) { o.DefaultStatus = 201; o.Errors = append(o.Errors, 422) })
	add(api, "GET /shares", "list-shares", store.Start, "List the valid links to a page or to badges of a series", func(ctx context.Context, in *struct {
		Runs   string `query:"runs" maxLength:"4000" doc:"ids with commas between"`
		Series string `query:"series" maxLength:"64"`
	},
	) (*item[listed[store.Share]], error) {
		var out []store.Share
		err := s.db.View(ctx, func(tx *store.Tx) error {
			all, err := tx.Shares(in.Runs, in.Series)
			for _, v := range all {
				if who(ctx).sees(v.Project) {
					out = append(out, v)
				}
			}
			return err
		})
		return &item[listed[store.Share]]{cut(out, len(out), nil)}, err
	})
	add(api, "DELETE /shares/{id}", "revoke-share", store.Start, "Revoke a link", func(ctx context.Context, in *Named) (*struct{}, error) {
		return nil, s.db.Change(ctx, func(tx *store.Tx) error {
			v, err := tx.Share(in.ID)
			if err == nil && !who(ctx).sees(v.Project) {
				err = store.Absent("shares")
			}
			if err != nil {
				return err
			}
			if err := tx.Revoke("shares", in.ID); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "revoke share", in.ID)
		})
	})
}

// series finds a series that the caller may see.
func (s *Server) series(ctx context.Context, tx *store.Tx, id string) (store.Series, error) {
	of, err := tx.SeriesByID(id)
	if err == nil && !who(ctx).sees(of.Project) {
		return store.Series{}, store.Absent("series")
	}
	return of, err
}

// noShare is the answer to a link that is unknown, expired or revoked, or whose run is deleted:
// which of them it is, is nobody's business.
const noShare = "this link leads nowhere: it is wrong, expired or revoked"

// showShared sends the page of a link. Nothing else is open to its visitor.
func (s *Server) showShared(w http.ResponseWriter, r *http.Request) {
	var views []runView
	err := s.db.View(r.Context(), func(tx *store.Tx) error {
		v, err := tx.ShareOf(r.PathValue("secret"))
		if err != nil {
			return err
		}
		var runs []store.Run
		for id := range strings.SplitSeq(v.Runs, ",") {
			run, err := tx.Run(id)
			if err == nil && run.Deleted != nil {
				err = store.Absent("shares")
			}
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		views, err = s.views(tx, runs)
		return err
	})
	if err != nil {
		s.unshared(w, err)
		return
	}
	w.Header().Set("X-Robots-Tag", "noindex")
	s.sendPage(w, r, views)
}

func (s *Server) unshared(w http.ResponseWriter, err error) {
	if errors.Is(err, store.ErrNotFound) {
		problem(w, http.StatusNotFound, noShare)
		return
	}
	s.failed(w, err)
}

// badgePoints is how many of the latest runs may be of other branches.
const badgePoints = 200

// showBadge sends the badge of a link.
func (s *Server) showBadge(w http.ResponseWriter, r *http.Request) {
	var label, value string
	err := s.db.View(r.Context(), func(tx *store.Tx) error {
		v, err := tx.ShareOf(r.PathValue("secret"))
		if err != nil {
			return err
		}
		of, err := tx.SeriesByID(v.Series)
		if err != nil {
			return err
		}
		points, err := trend(tx, &of, v.Figure, badgePoints)
		if err != nil {
			return err
		}
		points = counted(points)
		if len(points) == 0 {
			return store.ErrNotFound
		}
		q, _ := gate.Lookup(v.Figure)
		label, value = of.Model, gate.Amount(points[len(points)-1].Value, q.Unit)
		if v.Figure != gate.Latency {
			value = q.Name + " " + value
		}
		return nil
	})
	if err != nil {
		s.unshared(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write([]byte(badge(label, value)))
}

// badge draws a label and a value in the shape that badges have.
func badge(label, value string) string {
	const (
		letter   = 6.6 // width of a letter on average
		space    = 6   // on each side
		longest  = 40  // letters
		maxValue = 60
	)
	shorten := func(s string, n int) string {
		rs := []rune(text.Clean(s))
		if len(rs) > n {
			rs = append(rs[:n-1], '…')
		}
		return string(rs)
	}
	label, value = shorten(label, longest), shorten(value, maxValue)
	if label == "" {
		label = "model"
	}
	a, b := letter*float64(len([]rune(label))), letter*float64(len([]rune(value)))
	left := a + 2*space
	all := left + b + 2*space
	label, value = html.EscapeString(label), html.EscapeString(value)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="20" role="img" aria-label="%s: %s"><title>%[2]s: %[3]s</title>`+
		`<rect width="%.1f" height="20" rx="3" fill="#2563a8"/><path d="M3 0H%.1[5]fV20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>`+
		`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="%[6]d" y="14" textLength="%.0[7]f" lengthAdjust="spacingAndGlyphs">%[2]s</text>`+
		`<text x="%.1[8]f" y="14" textLength="%.0[9]f" lengthAdjust="spacingAndGlyphs">%[3]s</text></g></svg>`+"\n",
		all, label, value, all, left, space, a, left+space, b)
}
