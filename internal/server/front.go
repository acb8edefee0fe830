package server

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
)

// front holds the page of the server, built from web/.
//
//go:embed front
var front embed.FS

// addFront serves the page. Its views have paths of their own, which all give the same file.
func (s *Server) addFront(mux *http.ServeMux) {
	sub, err := fs.Sub(front, "front")
	if err != nil {
		panic(err) // the folder is embedded
	}
	files := http.FileServerFS(sub)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/"):
			problem(w, http.StatusNotFound, "no such operation: see /openapi.json")
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			wrongMethod(w, r.Method, []string{http.MethodGet, http.MethodHead})
			return
		}
		if f, err := fs.Stat(sub, strings.TrimPrefix(r.URL.Path, "/")); err != nil || f.IsDir() {
			w.Header().Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, sub, "index.html")
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}
