package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
	"github.com/opmeter/opmeter/profile"
)

// tokenBody asks for a token.
type tokenBody struct {
	Name    string     `json:"name" minLength:"1" maxLength:"200"`
	Role    store.Role `json:"role" enum:"read,run,admin"`
	Project string     `json:"project,omitempty" maxLength:"200" nullable:"true" doc:"id or name of the only project that it is for"`
	Days    int        `json:"days,omitzero" minimum:"1" maximum:"3650" nullable:"true" doc:"after how many days it expires"`
}

// tokenView is a token with its secret, once.
type tokenView struct {
	store.Token
	Secret string `json:"secret"`
}

// sessionBody signs a browser in.
type sessionBody struct {
	Token string `json:"token" maxLength:"200"`
}

// meView says who calls.
type meView struct {
	Name    string     `json:"name"`
	Role    store.Role `json:"role"`
	Project string     `json:"project,omitzero" doc:"id of the only project that the token is for"`
}

// systemView says what the server is.
type systemView struct {
	Version string `json:"version"`
	// Open says that no token is needed.
	Open       bool               `json:"open"`
	MaxFile    int64              `json:"max_file_bytes"`
	Options    []work.Option      `json:"options" doc:"options of jobs, in the order of the page"`
	Reports    []reportView       `json:"reports" doc:"formats of reports"`
	Quantities []profile.Quantity `json:"quantities"`
}

func (s *Server) addAdmin(api huma.API) {
	add(api, "POST /tokens", "add-token", store.Admin, "Add a token; its secret is shown once", func(ctx context.Context, in *struct{ Body tokenBody }) (*item[tokenView], error) {
		var v tokenView
		err := s.db.Change(ctx, func(tx *store.Tx) (err error) {
			k := store.Token{Name: in.Body.Name, Role: in.Body.Role}
			if in.Body.Project != "" {
				p, err := s.project(ctx, tx, in.Body.Project)
				if err != nil {
					return err
				}
				k.Project = p.ID
			}
			if c := who(ctx); c.project != "" && k.Project != c.project {
				return huma.Error403Forbidden("the token is for one project: name it")
			}
			if in.Body.Days > 0 {
				at := time.Now().AddDate(0, 0, in.Body.Days).UnixMilli()
				k.Expires = &at
			}
			if v.Token, v.Secret, err = tx.AddToken(k); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "add token", v.ID)
		})
		return &item[tokenView]{v}, err
	})
	add(api, "GET /tokens", "list-tokens", store.Admin, "List tokens", func(ctx context.Context, _ *struct{}) (*item[listed[store.Token]], error) {
		var out []store.Token
		err := s.db.View(ctx, func(tx *store.Tx) error {
			all, err := tx.Tokens()
			for _, k := range all {
				if c := who(ctx); c.project == "" || c.project == k.Project {
					out = append(out, k)
				}
			}
			return err
		})
		return &item[listed[store.Token]]{cut(out, len(out), nil)}, err
	})
	add(api, "DELETE /tokens/{id}", "revoke-token", store.Admin, "Revoke a token", func(ctx context.Context, in *Named) (*struct{}, error) {
		return nil, s.db.Change(ctx, func(tx *store.Tx) error {
			if err := whole(ctx); err != nil {
				return err
			}
			if err := tx.Revoke("tokens", in.ID); err != nil {
				return err
			}
			return tx.Log(who(ctx).name, "revoke token", in.ID)
		})
	})
	add(api, "GET /audit", "list-audit", store.Admin, "Who changed what", func(ctx context.Context, in *Paged) (*item[listed[store.Entry]], error) {
		if err := whole(ctx); err != nil {
			return nil, err
		}
		var out []store.Entry
		err := s.db.View(ctx, func(tx *store.Tx) (err error) { out, err = tx.Audit(in.Before, in.Limit+1); return err })
		return &item[listed[store.Entry]]{cut(out, in.Limit, func(e *store.Entry) string { return e.ID })}, err
	})
	add(api, "GET /me", "get-me", store.Read, "Who calls", func(ctx context.Context, _ *struct{}) (*item[meView], error) {
		c := who(ctx)
		return &item[meView]{meView{c.name, c.role, c.project}}, nil
	})
	add(api, "GET /system", "get-system", store.Read, "Version, quantities and what jobs take", func(ctx context.Context, _ *struct{}) (*item[systemView], error) {
		return &item[systemView]{systemView{buildinfo.Version(), s.open, s.o.MaxFile, work.Options(), reports, gate.Quantities()}}, nil
	})
	add(api, "GET /targets", "list-targets", store.Read, "Targets that jobs can estimate for", func(ctx context.Context, _ *struct{}) (*item[listed[work.Target]], error) {
		all, err := s.targets.get(ctx, &s.runner)
		return &item[listed[work.Target]]{cut(all, len(all), nil)}, err
	})
	type cookie struct {
		SetCookie http.Cookie `header:"Set-Cookie"`
	}
	signed := func(value string, age int) *cookie {
		return &cookie{http.Cookie{
			Name: sessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.o.Cert != "",
		}}
	}
	huma.Register(api, huma.Operation{
		OperationID: "sign-in", Method: "POST", Path: prefix + "/session", Summary: "Keep a token in a cookie of the browser",
		Metadata: map[string]any{roleKey: anyone}, MaxBodyBytes: 4096, Errors: append([]int{401, 403, 429}, bodyErrors...),
	}, func(ctx context.Context, in *struct{ Body sessionBody }) (*cookie, error) {
		err := s.db.Change(ctx, func(tx *store.Tx) error {
			k, err := tx.TokenOf(in.Body.Token)
			if err != nil {
				return err
			}
			return tx.Log(k.Name, "sign in", k.ID)
		})
		switch {
		case errors.Is(err, store.ErrNotFound) && !s.open && !s.limits.allow(failedSignIns, who(ctx).address):
			return nil, huma.Error429TooManyRequests("too many " + failedSignIns.what + ": wait a while")
		case errors.Is(err, store.ErrNotFound):
			return nil, errToken
		case err != nil:
			return nil, asProblem(err)
		}
		return signed(in.Body.Token, 30*24*3600), nil
	})
	add(api, "DELETE /session", "sign-out", store.Read, "Forget the token", func(ctx context.Context, _ *struct{}) (*cookie, error) {
		return signed("", -1), s.log(ctx, who(ctx).name, "sign out", who(ctx).id)
	})
}

// targets remembers what opmeter lists: a process for each request would be a way to tire the server.
type targets struct {
	mu  sync.Mutex
	all []work.Target
}

func (t *targets) get(ctx context.Context, r *work.Runner) (_ []work.Target, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all, err = r.Targets(ctx)
	}
	return t.all, err
}

// log adds a line to the audit log for a change outside the database.
func (s *Server) log(ctx context.Context, who, what, object string) error {
	return s.db.Change(ctx, func(tx *store.Tx) error { return tx.Log(who, what, object) })
}

// FirstToken makes a token for an administrator if there is none: somebody must be the first. It
// returns "" otherwise.
func (s *Server) FirstToken(ctx context.Context) (secret string, err error) {
	if s.open {
		return "", nil
	}
	err = s.db.Change(ctx, func(tx *store.Tx) error {
		all, err := tx.Tokens()
		if err != nil || len(all) > 0 {
			return err
		}
		_, secret, err = tx.AddToken(store.Token{Name: "first", Role: store.Admin})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("first token: %w", err)
	}
	return secret, nil
}
