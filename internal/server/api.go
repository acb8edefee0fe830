package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/program"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// prefix begins the paths of the API.
const prefix = "/api/v1"

// routes makes the handler of all requests.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	c := huma.DefaultConfig("opmeter", buildinfo.Version())
	c.Info.Description = "Profiles of neural-network models: upload a file, start a job, read its run."
	c.DocsPath, c.SchemasPath = "", ""
	c.CreateHooks = nil // no links to schemas in each answer
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	api := humago.New(mux, c)
	api.UseMiddleware(s.allowed(api), filled(api))
	s.addProjects(api)
	s.addRuns(api)
	s.addTrends(api)
	s.addAlerts(api)
	s.addHooks(api)
	s.addShares(api)
	s.addBases(api)
	s.addJobs(api)
	s.addAdmin(api)
	s.addRetention(api)
	s.addWorkers(api)
	s.addFiles(mux, api)
	s.addPages(mux)
	s.addHealth(mux)
	for path, item := range api.OpenAPI().Paths {
		var methods []string
		for method, o := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodHead: item.Head, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
		} {
			if o != nil {
				methods = append(methods, method)
			}
		}
		slices.Sort(methods)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { wrongMethod(w, r.Method, methods) })
	}
	return s.guarded(once(mux))
}

// wrongMethod answers a request whose path knows other methods.
func wrongMethod(w http.ResponseWriter, method string, known []string) {
	w.Header().Set("Allow", strings.Join(known, ", "))
	problem(w, http.StatusMethodNotAllowed, "the method "+method+" is not for this path: expected "+strings.Join(known, " or "))
}

// once refuses parameters of the API that are given twice: only one of them would count.
func once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, prefix) {
			for name, values := range r.URL.Query() {
				if len(values) > 1 {
					problem(w, http.StatusUnprocessableEntity, fmt.Sprintf("parameter %.60q is given %d times: expected once", name, len(values)))
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// filled refuses parameters without a value that are no texts: they would count as absent.
func filled(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		url := ctx.URL()
		given := url.Query()
		for _, p := range ctx.Operation().Parameters {
			if p.In == "query" && given.Has(p.Name) && given.Get(p.Name) == "" && p.Schema != nil && p.Schema.Type != huma.TypeString {
				_ = huma.WriteErr(api, ctx, http.StatusUnprocessableEntity, "parameter "+p.Name+" is empty: expected "+p.Schema.Type)
				return
			}
		}
		next(ctx)
	}
}

// roleKey holds the role of an operation.
const roleKey = "role"

// anyone is the role of operations that need no token.
const anyone store.Role = "anyone"

// allowed refuses callers without the role of an operation.
func (s *Server) allowed(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		c := who(ctx.Context())
		need, ok := ctx.Operation().Metadata[roleKey].(store.Role)
		switch {
		case ok && need == anyone:
			next(ctx)
		case c.role == "":
			_ = huma.WriteErr(api, ctx, http.StatusUnauthorized, "this server needs a token: send Authorization: Bearer TOKEN")
		case !c.may(need):
			_ = huma.WriteErr(api, ctx, http.StatusForbidden, fmt.Sprintf("the token has the role %s, this needs %s", c.role, need))
		default:
			next(ctx)
		}
	}
}

// bodyErrors are answers to a body that cannot be read.
var bodyErrors = []int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}

// add registers an operation: "GET /runs/{id}" with the role that it needs and what it does.
func add[In, Out any](api huma.API, route, id string, role store.Role, summary string, f func(context.Context, *In) (*Out, error), change ...func(*huma.Operation)) {
	method, path, _ := strings.Cut(route, " ")
	o := huma.Operation{
		Method: method, Path: prefix + path, OperationID: id, Summary: summary, Metadata: map[string]any{roleKey: role},
		Security: []map[string][]string{{"token": {}}}, MaxBodyBytes: 1 << 20,
		Errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable},
	}
	if method != http.MethodGet {
		o.Errors = append(o.Errors, http.StatusConflict)
		o.Errors = append(o.Errors, bodyErrors...)
	}
	for _, c := range change {
		c(&o)
	}
	huma.Register(api, o, func(ctx context.Context, in *In) (*Out, error) {
		out, err := f(ctx, in)
		return out, asProblem(err)
	})
}

// asProblem gives an error its status.
func asProblem(err error) error {
	var known huma.StatusError
	var unable *program.Problem // opmeter cannot do with a file what was asked
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, store.ErrAway):
		return huma.Error503ServiceUnavailable(store.ErrAway.Error())
	case errors.Is(err, queue.ErrAway):
		return huma.Error503ServiceUnavailable(queue.ErrAway.Error())
	case errors.Is(err, store.ErrNotFound), errors.Is(err, blob.ErrNotFound), errors.Is(err, queue.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, store.ErrExists), errors.Is(err, queue.ErrEnded), errors.Is(err, queue.ErrLate), errors.Is(err, queue.ErrStop), errors.Is(err, blob.ErrOffset):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, blob.ErrTooLarge):
		return huma.NewError(http.StatusRequestEntityTooLarge, err.Error())
	case errors.As(err, &unable), errors.Is(err, blob.ErrHash):
		return huma.Error422UnprocessableEntity(err.Error())
	case errors.Is(err, program.ErrLimit), errors.Is(err, program.ErrMemory), errors.Is(err, program.ErrDisk):
		return huma.Error422UnprocessableEntity("the profile is too large for its page: it exceeded the " + err.Error() + " of a child process")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return huma.Error503ServiceUnavailable("the request ended before its answer")
	}
	return huma.Error500InternalServerError(err.Error())
}

// problem writes an error of a request outside the API in the form of those of the API.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set(work.ProblemHeader, url.PathEscape(detail)) // for HEAD, whose answers have no body
	w.WriteHeader(status)
	_ = jsonx.MarshalWrite(w, &huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail})
}

// item is an answer with a body.
type item[T any] struct{ Body T }

// page is a part of a list.
type listed[T any] struct {
	Items []T `json:"items"`
	// Next continues the list: send it as "before". Absent at the end.
	Next string `json:"next,omitempty"`
}

// Paged is what lists take.
type Paged struct {
	Before string `query:"before" maxLength:"64" doc:"the field next of the part before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"how many at most"`
}

// cut makes a part of a list from one item more than the limit.
func cut[T any](all []T, limit int, id func(*T) string) listed[T] {
	l := listed[T]{Items: all}
	if len(all) > limit {
		l.Items = all[:limit]
		l.Next = id(&l.Items[limit-1])
	}
	if l.Items == nil {
		l.Items = []T{}
	}
	return l
}

// Named is the path of one thing.
type Named struct {
	ID string `path:"id" maxLength:"64"`
}

// project finds a project that the caller may see.
func (s *Server) project(ctx context.Context, tx *store.Tx, idOrName string) (store.Project, error) {
	p, err := tx.Project(idOrName)
	if err == nil && !who(ctx).sees(p.ID) {
		return store.Project{}, store.Absent("projects")
	}
	return p, err
}

// run finds a run that the caller may see.
func (s *Server) run(ctx context.Context, tx *store.Tx, id string) (store.Run, error) {
	r, err := tx.Run(id)
	if err == nil && !who(ctx).sees(r.Project) {
		return store.Run{}, store.Absent("runs")
	}
	return r, err
}
