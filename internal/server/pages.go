package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/profile/compare"
)

// pages keeps pages and other reports of results. Each is made once, by a child process.
type pages struct {
	dir    string
	making *sync.Map // key → *sync.Mutex
	slots  chan struct{}
}

const (
	// keptPages bounds the pages that are kept.
	keptPages = 500
	// makers bounds the pages that are made at the same time.
	makers = 2
)

func openPages(dir string) (pages, error) {
	p := pages{dir: dir, making: &sync.Map{}, slots: make(chan struct{}, makers)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, fmt.Errorf("folder for pages: %w", err)
	}
	return p, nil
}

// trim removes the pages that were not read for longest.
func (p *pages) trim() error {
	files, err := os.ReadDir(p.dir)
	if len(files) <= keptPages {
		return err
	}
	type old struct {
		name string
		at   time.Time
	}
	var all []old
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			all = append(all, old{f.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return b.at.Compare(a.at) })
	for _, o := range all[min(keptPages, len(all)):] {
		err = errors.Join(err, os.Remove(filepath.Join(p.dir, o.name)))
	}
	return err
}

// runNames are what the runs of a comparison are called: model and commit, or the time without one.
// Those that are alike have a number.
func runNames(runs []runView) []string {
	out, count := make([]string, len(runs)), map[string]int{}
	for i := range runs {
		r := &runs[i]
		at := r.Commit[:min(len(r.Commit), 10)]
		if at == "" {
			at = time.UnixMilli(r.Created).UTC().Format("2006-01-02 15:04")
		}
		out[i] = strings.TrimSpace(r.About.Model + " " + at)
		count[out[i]]++
	}
	for i, name := range out {
		if count[name] > 1 {
			out[i] = fmt.Sprintf("%s (%d)", name, i+1)
		}
	}
	return out
}

// page returns the file of the page of some results, or of another report with that ending.
func (s *Server) page(ctx context.Context, runs []runView, ending string) (string, error) {
	about, names := []string{buildinfo.Version()}, runNames(runs)
	for i := range runs {
		about = append(about, runs[i].Blob, names[i])
	}
	key := sha256.Sum256([]byte(strings.Join(about, "\x00")))
	name := hex.EncodeToString(key[:]) + ending
	file := filepath.Join(s.pages.dir, name)
	lock, _ := s.pages.making.LoadOrStore(name, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	defer s.pages.making.Delete(name)
	now := time.Now()
	if os.Chtimes(file, now, now) == nil {
		return file, nil
	}
	select {
	case s.pages.slots <- struct{}{}:
		defer func() { <-s.pages.slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	dir, err := os.MkdirTemp(s.pages.dir, "making")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	var inputs []string
	for i := range runs {
		// Programs go by the ending of a name, so the file gets one.
		link := filepath.Join(dir, fmt.Sprintf("%d%s", i+1, runs[i].ending()))
		if err := s.files.Link(runs[i].Blob, link); err != nil {
			return "", err
		}
		inputs = append(inputs, link)
	}
	to := filepath.Join(dir, "page"+ending)
	if err := s.runner.Report(ctx, inputs, names, to); err != nil {
		return "", err
	}
	return file, os.Rename(to, file)
}

// addPages adds what browsers show.
func (s *Server) addPages(mux *http.ServeMux) {
	mux.HandleFunc("GET /runs/{id}/page", s.forRole(store.Read, func(w http.ResponseWriter, r *http.Request) {
		s.showPage(w, r, []string{r.PathValue("id")})
	}))
	mux.HandleFunc("GET /compare/page", s.forRole(store.Read, func(w http.ResponseWriter, r *http.Request) {
		ids, err := compared(r.URL.Query().Get("runs"))
		if err != nil {
			s.failed(w, err)
			return
		}
		s.showPage(w, r, ids)
	}))
	mux.HandleFunc("GET /runs/{id}/profile", s.forRole(store.Read, func(w http.ResponseWriter, r *http.Request) {
		runs, err := s.runsOf(r.Context(), []string{r.PathValue("id")})
		if err != nil {
			s.failed(w, err)
			return
		}
		s.send(w, r, runs[0].Blob, runs[0].ID+runs[0].ending())
	}))
	mux.HandleFunc("GET /runs/{id}/report", s.forRole(store.Read, s.showReport))
	mux.HandleFunc("GET /runs/{id}/model", s.forRole(store.Read, func(w http.ResponseWriter, r *http.Request) {
		runs, err := s.runsOf(r.Context(), []string{r.PathValue("id")})
		if err == nil && runs[0].Output == "" {
			err = huma.Error404NotFound("the job of this run wrote no model")
		}
		if err != nil {
			s.failed(w, err)
			return
		}
		end := filepath.Ext(runs[0].ModelFile)
		s.send(w, r, runs[0].Output, strings.TrimSuffix(runs[0].ModelFile, end)+"-compressed"+end)
	}))
	mux.HandleFunc("GET /shared/{secret}", s.showShared)
	mux.HandleFunc("GET /shared/{secret}/badge.svg", s.showBadge)
	s.addFront(mux)
}

// compared reads the ids of the runs of a comparison.
func compared(ids string) ([]string, error) {
	out := strings.Split(ids, ",")
	if len(out) < 2 || len(out) > compare.MaxRuns {
		return nil, huma.Error400BadRequest(fmt.Sprintf("runs: expected 2 to %d ids with commas between", compare.MaxRuns))
	}
	return out, nil
}

// runsOf finds runs that the caller may see.
func (s *Server) runsOf(ctx context.Context, ids []string) (out []runView, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) (err error) {
		var runs []store.Run
		for _, id := range ids {
			r, err := s.run(ctx, tx, id)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		out, err = s.views(tx, runs)
		return err
	})
	return out, err
}

// pagePolicy is what a page of a profile may do: it holds its script in itself and loads nothing.
const pagePolicy = "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src 'unsafe-inline' blob:; " +
	"worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'self'"

// showPage sends the page of a run or of several.
func (s *Server) showPage(w http.ResponseWriter, r *http.Request, ids []string) {
	runs, err := s.runsOf(r.Context(), ids)
	if err != nil {
		s.failed(w, err)
		return
	}
	if len(runs) > 1 && slices.ContainsFunc(runs, func(v runView) bool { return v.study() }) {
		problem(w, http.StatusUnprocessableEntity, "a study does not compare with other runs: leave it out")
		return
	}
	s.sendPage(w, r, runs)
}

// sendPage sends the page of runs. It runs without an origin, so that nothing in a profile can call
// the API.
func (s *Server) sendPage(w http.ResponseWriter, r *http.Request, runs []runView) {
	file, err := s.page(r.Context(), runs, ".html")
	if err != nil {
		s.failed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "private, no-cache")
	http.ServeFile(w, r, file)
}
