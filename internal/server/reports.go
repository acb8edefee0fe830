package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/server/work"
)

// reportView is a format of reports.
type reportView struct {
	Ending string `json:"ending" doc:"of file names; it selects the format"`
	What   string `json:"what"`
	Study  bool   `json:"study" doc:"studies have it"`
	// Profile says that profiles have it.
	Profile bool `json:"profile"`
}

// reports are the formats of reports, as opmeter report and opmeter compress show write them.
var reports = []reportView{
	{".html", "page for the browser, one file", true, true},
	{".txt", "table for people", true, true},
	{".csv", "table for programs", true, true},
	{".json", "all figures", true, true},
	{".xlsx", "workbook", true, true},
	{".md", "Markdown", false, true},
	{".yaml", "all figures as YAML", false, true},
	{".mltk.txt", "text of the MLTK profiler", false, true},
	{".mltk.json", "JSON of the MLTK profiler", false, true},
	{".mltk.csv", "CSV of the MLTK profiler", false, true},
	{".trace.json", "Chrome trace", false, true},
	{".trace.json.gz", "Chrome trace, compressed", false, true},
	{".pftrace", "Perfetto trace", false, true},
	{".pb.gz", "pprof", false, true},
	{".firefox.json", "Firefox profiler", false, true},
	{".firefox.json.gz", "Firefox profiler, compressed", false, true},
	{".speedscope.json", "speedscope", false, true},
	{".bench.txt", "Go benchmark text, for benchstat", false, true},
	{".nodes.json", "Model Explorer", false, true},
	{".ne.csv", "table of Intel's Neural Engine profiler", false, true},
	{".ne.json", "trace of Intel's Neural Engine profiler", false, true},
}

// study reports whether a run is a study.
func (r *runView) study() bool { return r.About.Kind == work.KindStudy }

// ending is that of the file of a run.
func (r *runView) ending() string {
	if r.study() {
		return ".study"
	}
	return ".opmeter"
}

// showReport sends the report of a run in a format, as a file to store.
func (s *Server) showReport(w http.ResponseWriter, r *http.Request) {
	runs, err := s.runsOf(r.Context(), []string{r.PathValue("id")})
	if err != nil {
		s.failed(w, err)
		return
	}
	var known []string
	for _, f := range reports {
		if runs[0].study() && f.Study || !runs[0].study() && f.Profile {
			known = append(known, f.Ending)
		}
	}
	as := r.URL.Query().Get("as")
	if !slices.Contains(known, as) {
		problem(w, http.StatusBadRequest, "as: expected one of "+strings.Join(known, " "))
		return
	}
	file, err := s.page(r.Context(), runs, as)
	if err != nil {
		s.failed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+strings.Map(plainRune, strings.NewReplacer("/", "_", ":", "_").Replace(cmp.Or(runs[0].About.Model, "report")))+as+`"`)
	h.Set("Cache-Control", "private, no-cache")
	http.ServeFile(w, r, file)
}
