package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/store"
)

// caller is who made a request.
type caller struct {
	id      string // of the token, "" without one
	address string
	stale   bool // its cookie holds a token that is not valid
	name    string
	role    store.Role
	project string // the only one that it may see, "" for all
}

type callerKey struct{}

// who returns the caller of a request.
func who(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// may reports whether the caller has a role.
func (c caller) may(r store.Role) bool {
	return slices.Index(store.Roles, c.role) >= slices.Index(store.Roles, r)
}

// whole refuses callers that may see one project only.
func whole(ctx context.Context) error {
	if who(ctx).project != "" {
		return huma.Error403Forbidden("the token is for one project: this needs one for all")
	}
	return nil
}

// sees reports whether the caller may see a project.
func (c caller) sees(project string) bool { return c.project == "" || c.project == project }

// sessionCookie holds the token of a browser.
const sessionCookie = "opmeter"

// errToken refuses a token.
var errToken = huma.Error401Unauthorized("the token is unknown, expired or revoked")

// identify finds out who calls. Without a token that is nobody, unless only this computer can call.
func (s *Server) identify(r *http.Request) (caller, error) {
	secret, sent := "", false
	if h := r.Header.Get("Authorization"); h != "" {
		if secret, sent = strings.CutPrefix(h, "Bearer "); !sent {
			return caller{}, huma.Error401Unauthorized("header Authorization: expected Bearer and a token")
		}
	} else if c, err := r.Cookie(sessionCookie); err == nil {
		secret = c.Value
	}
	if secret != "" {
		var k store.Token
		err := s.db.View(r.Context(), func(tx *store.Tx) (err error) { k, err = tx.TokenOf(secret); return err })
		switch {
		case err == nil:
			return caller{id: k.ID, name: k.Name, role: k.Role, project: k.Project}, nil
		case !errors.Is(err, store.ErrNotFound):
			return caller{}, asProblem(err)
		case sent:
			return caller{}, errToken
		}
		// The browser keeps a cookie longer than its token is valid, and sends that of a server at
		// another port. Whoever has such a one must reach the page to sign in.
	}
	if s.open {
		return caller{name: "this computer", role: store.Admin}, nil
	}
	return caller{stale: secret != ""}, nil
}

// localName reports whether a loopback address is called by such a name. Others come from a page
// elsewhere whose name was made to lead here.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// policy is what pages of the server may load: nothing from elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"

// guarded checks each request before anything else looks at it.
func (s *Server) guarded(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusForbidden, "the request comes from a page of another site: send it from a page of this server, or without the header Origin")
	}))
	return origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.open && !localName(r.Host) {
			problem(w, http.StatusMisdirectedRequest, "the address is local, the name "+r.Host+" is not: use 127.0.0.1 or localhost")
			return
		}
		if s.o.Cert != "" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		address := network(r.RemoteAddr)
		if !s.open && !s.limits.allow(addressRequests, address) {
			addressRequests.refuse(w)
			return
		}
		var c caller
		var err error
		if !strings.HasPrefix(r.URL.Path, healthPrefix) { // which answers also while the database is away
			c, err = s.identify(r)
		}
		switch {
		case (errors.Is(err, errToken) || c.stale && strings.HasPrefix(r.URL.Path, prefix) && r.URL.Path != prefix+"/session") &&
			!s.open && !s.limits.allow(failedSignIns, address):
			failedSignIns.refuse(w)
			return
		case err != nil:
			s.failed(w, err)
			return
		case c.id != "" && !s.limits.allow(tokenRequests, c.id):
			tokenRequests.refuse(w)
			return
		}
		start := time.Now()
		recorder := &recorded{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			e := recover()
			if e == http.ErrAbortHandler { //nolint:errorlint // a value by which the library tells its own case
				panic(e)
			}
			if e != nil {
				s.o.Log.Error("defect of opmeter: please report it", "path", r.URL.Path, "panic", e, "stack", string(debug.Stack()))
				problem(recorder, http.StatusInternalServerError, "defect of opmeter, which the log describes: please report it")
			}
		}()
		c.address = address
		ctx := context.WithValue(r.Context(), callerKey{}, c)
		if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			ctx = store.From(ctx, at.Addr().Unmap().String())
		}
		next.ServeHTTP(recorder, r.WithContext(ctx))
		s.metrics.request(recorder.status, time.Since(start))
		s.o.Log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", recorder.status, "who", c.name)
	}))
}

// recorded remembers the status of an answer.
type recorded struct {
	http.ResponseWriter
	status int
}

func (r *recorded) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write gives each piece of an answer its time: whoever reads too slowly holds no file and no page.
func (r *recorded) Write(b []byte) (n int, err error) {
	control := http.NewResponseController(r.ResponseWriter)
	for len(b) > 0 && err == nil {
		_ = control.SetWriteDeadline(time.Now().Add(slowest)) // tests have no connection
		var k int
		k, err = r.ResponseWriter.Write(b[:min(len(b), piece)])
		n, b = n+k, b[k:]
	}
	_ = control.SetWriteDeadline(time.Time{}) // events wait for longer
	return n, err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (r *recorded) Unwrap() http.ResponseWriter { return r.ResponseWriter }
