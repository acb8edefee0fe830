package server

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/program"
	"github.com/opmeter/opmeter/internal/server/store"
)

// serving opens a server that does no jobs.
func serving(t *testing.T, o Options) *Server {
	t.Helper()
	o.Data, o.MaxFile, o.Log = t.TempDir(), 1<<20, slog.New(slog.DiscardHandler)
	certify(t, &o)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// answer is the status and the body of the answer to a request.
func (s *Server) answer(t *testing.T, method, path string, header http.Header) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestFrontViews: each view has an address that gives the page, and the page loads only what is here.
func TestFrontViews(t *testing.T) {
	t.Parallel()
	s := serving(t, Options{Listen: "127.0.0.1:0"})
	for _, path := range []string{"/", "/runs", "/runs/1a", "/jobs/1a", "/compare", "/projects", "/projects/1a", "/settings"} {
		if status, body := s.answer(t, "GET", path, nil); status != 200 || !strings.Contains(body, `src="/server.js"`) {
			t.Errorf("%s: status %d, body %.80q", path, status, body)
		}
	}
	for _, path := range []string{"/server.js", "/server.css"} {
		if status, body := s.answer(t, "GET", path, nil); status != 200 || strings.HasPrefix(body, "<") {
			t.Errorf("%s: status %d, body %.80q", path, status, body)
		}
	}
}

// TestOldCookie: a cookie whose token is unknown is like none, so that the page can ask for another.
// A program that sends such a token is told.
func TestOldCookie(t *testing.T) {
	t.Parallel()
	old := http.Header{"Cookie": {sessionCookie + "=opm_old"}}
	for _, c := range []struct {
		listen, cert string
		me           int
	}{{"127.0.0.1:0", "", 200}, {"127.0.0.1:0", "unused", 401}, {"0.0.0.0:0", "unused", 401}} {
		s := serving(t, Options{Listen: c.listen, Cert: c.cert})
		for path, want := range map[string]int{"/": 200, prefix + "/me": c.me} {
			if status, body := s.answer(t, "GET", path, old); status != want {
				t.Errorf("%s at %s: status %d, want %d: %.200s", path, c.listen, status, want, body)
			}
		}
		if status, _ := s.answer(t, "GET", prefix+"/me", http.Header{"Authorization": {"Bearer opm_old"}}); status != 401 {
			t.Errorf("a program at %s: status %d, want 401", c.listen, status)
		}
	}
}

// TestUnableStatus: what opmeter cannot do with a file is no defect of the server.
func TestUnableStatus(t *testing.T) {
	t.Parallel()
	var e huma.StatusError
	if err := asProblem(&program.Problem{Text: "no layers to compare"}); !errors.As(err, &e) || e.GetStatus() != 422 {
		t.Errorf("%v, want status 422", err)
	}
}

// TestProjectBin: deleted projects have a list of their own.
func TestProjectBin(t *testing.T) {
	t.Parallel()
	s := serving(t, Options{Listen: "127.0.0.1:0"})
	err := s.db.Change(t.Context(), func(tx *store.Tx) error {
		for _, name := range []string{"kept", "gone"} {
			p, err := tx.AddProject(name, "")
			if err != nil {
				return err
			}
			if name == "gone" {
				return tx.Delete("projects", p.ID)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"": "kept", "?deleted=true": "gone"} {
		_, body := s.answer(t, "GET", prefix+"/projects"+query, nil)
		if strings.Count(body, `"name"`) != 1 || !strings.Contains(body, want) {
			t.Errorf("%q: %s, want %s", query, body, want)
		}
	}
}
