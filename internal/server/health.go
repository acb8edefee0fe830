package server

import (
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/server/store"
)

// bounds are the limits of the histogram of response times in seconds.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}

// metrics counts what the server did.
type metrics struct {
	jobs      atomic.Int64    // that ended with a result
	requests  [6]atomic.Int64 // by the first digit of the status
	durations [11]atomic.Int64
	total     atomic.Int64 // nanoseconds
}

func (m *metrics) request(status int, d time.Duration) {
	m.requests[min(max(status/100, 0), 5)].Add(1)
	i := 0
	for i < len(bounds) && d.Seconds() > bounds[i] {
		i++
	}
	m.durations[i].Add(1)
	m.total.Add(int64(d))
}

// healthPrefix begins the paths that say whether the server works. They need no token.
const healthPrefix = "/health/"

func (s *Server) addHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET "+healthPrefix+"live", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+healthPrefix+"ready", func(w http.ResponseWriter, r *http.Request) {
		for name, check := range map[string]error{"database": s.db.Ping(r.Context()), "job queue": s.queue.Healthy(r.Context())} {
			if check != nil {
				s.o.Log.Warn("not ready", "what", name, "error", check)
				problem(w, http.StatusServiceUnavailable, "the "+name+" does not answer")
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /metrics", s.forRole(store.Read, func(w http.ResponseWriter, r *http.Request) {
		if err := whole(r.Context()); err != nil {
			s.failed(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		waiting, err := s.queue.Length(r.Context())
		if err == nil {
			fmt.Fprintf(w, "# HELP opmeter_jobs_open Jobs that wait or run.\n# TYPE opmeter_jobs_open gauge\nopmeter_jobs_open %d\n", waiting)
		}
		m := &s.metrics
		fmt.Fprintf(w, "# HELP opmeter_results_total Results recorded since the start.\n# TYPE opmeter_results_total counter\nopmeter_results_total %d\n", m.jobs.Load())
		fmt.Fprint(w, "# HELP opmeter_requests_total Requests since the start, by class of status.\n# TYPE opmeter_requests_total counter\n")
		for i := 1; i < len(m.requests); i++ {
			fmt.Fprintf(w, "opmeter_requests_total{status=\"%dxx\"} %d\n", i, m.requests[i].Load())
		}
		fmt.Fprint(w, "# HELP opmeter_request_seconds Time to answer a request.\n# TYPE opmeter_request_seconds histogram\n")
		sum := int64(0)
		for i, b := range bounds {
			sum += m.durations[i].Load()
			fmt.Fprintf(w, "opmeter_request_seconds_bucket{le=\"%g\"} %d\n", b, sum)
		}
		sum += m.durations[len(bounds)].Load()
		fmt.Fprintf(w, "opmeter_request_seconds_bucket{le=\"+Inf\"} %d\nopmeter_request_seconds_sum %g\nopmeter_request_seconds_count %d\n",
			sum, time.Duration(m.total.Load()).Seconds(), sum)
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		fmt.Fprintf(w, "# HELP opmeter_memory_bytes Memory from the system.\n# TYPE opmeter_memory_bytes gauge\nopmeter_memory_bytes %d\n", mem.Sys)
	}))
}
