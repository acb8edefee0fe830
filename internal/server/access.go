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
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/opmeter/opmeter/internal/server/store"
)

// caller is who made a request.
type caller struct {
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

// sees reports whether the caller may see a project.
func (c caller) sees(project string) bool { return c.project == "" || c.project == project }

// sessionCookie holds the token of a browser.
const sessionCookie = "opmeter"

// identify finds out who calls. Without a token that is nobody, unless only this computer can call.
func (s *Server) identify(r *http.Request) (caller, error) {
	secret, sent := "", false
	if h := r.Header.Get("Authorization"); h != "" {
		if secret, sent = strings.CutPrefix(h, "Bearer "); !sent {
			return caller{}, errors.New("header Authorization: expected Bearer and a token")
		}
	} else if c, err := r.Cookie(sessionCookie); err == nil {
		secret = c.Value
	}
	if secret != "" {
		var k store.Token
		err := s.db.View(r.Context(), func(tx *store.Tx) (err error) { k, err = tx.TokenOf(secret); return err })
		switch {
		case err == nil:
			return caller{name: k.Name, role: k.Role, project: k.Project}, nil
		case !errors.Is(err, store.ErrNotFound):
			return caller{}, err
		case sent:
			return caller{}, errors.New("the token is unknown, expired or revoked")
		}
		// The browser keeps a cookie longer than its token is valid, and sends that of a server at
		// another port. Whoever has such a one must reach the page to sign in.
	}
	if s.open {
		return caller{name: "this computer", role: store.Admin}, nil
	}
	return caller{}, nil
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
	limits := &limits{of: map[netip.Addr]*rate.Limiter{}}
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
		if !s.open && !limits.allow(r.RemoteAddr) {
			h.Set("Retry-After", "1")
			problem(w, http.StatusTooManyRequests, "too many requests from this address: wait a second")
			return
		}
		c, err := s.identify(r)
		if err != nil {
			problem(w, http.StatusUnauthorized, err.Error())
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
		next.ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
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

// Unwrap lets [http.ResponseController] reach the connection.
func (r *recorded) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// limits bounds the requests of each address.
type limits struct {
	mu sync.Mutex
	of map[netip.Addr]*rate.Limiter
}

const (
	perSecond = 50  // requests of an address in the long run
	burst     = 500 // and at once
	maxKnown  = 10000
)

func (l *limits) allow(address string) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) > maxKnown {
		clear(l.of)
	}
	r := l.of[at.Addr()]
	if r == nil {
		r = rate.NewLimiter(perSecond, burst)
		l.of[at.Addr()] = r
	}
	return r.Allow()
}
