package all_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
)

// TestEveryTrace: each file of traces and of profiles of programs belongs to one format by its
// content, and makes a run, but for the empty one, which belongs to none.
func TestEveryTrace(t *testing.T) {
	t.Parallel()
	other := map[string]string{
		"firefox/fixture_chrome-tracing.json.gz":               "chrome",
		"firefox/fixture_hello.cjs-20231120T211435.cpuprofile": "cpuprofile",
		"firefox/fixture_simple-perf.txt.gz":                   "perf",
		"speedscope/linux_perf_forks.txt":                      "perf",
		"speedscope/stackcollapse_perf_vertx.txt":              "collapsed",
		"pprof/empty": "",
	}
	n := 0
	for dir, usual := range map[string]string{
		"chrome": "chrome", "pytorch": "pytorch", "perfetto": "perfetto", "firefox": "firefox", "speedscope": "speedscope", "pprof": "pprof", "otel": "otlp",
	} {
		for _, f := range records.Files(t, material.Path(t, "raw", "traces", dir)) {
			n++
			name := filepath.ToSlash(f.Path)
			name = name[strings.Index(name, "/traces/")+len("/traces/"):]
			want, ok := other[name]
			if !ok {
				want = usual
			}
			format, tie := of(f)
			got := ""
			if format != nil {
				got = format.Name
			}
			if got != want || tie {
				t.Errorf("%s: recognised as %q (tie %v), want %q", name, got, tie, want)
			}
			// Packages of the formats compare the figures; large ones are read there only.
			if format == nil || dir == "pytorch" {
				continue
			}
			runs, err := format.Read(context.Background(), &record.Input{Files: []*record.File{f}})
			if err != nil || len(runs) == 0 {
				t.Errorf("%s: %d runs, %v", name, len(runs), err)
			}
			for _, r := range runs {
				records.Collect(t, r)
			}
		}
	}
	if n < 60 {
		t.Errorf("%d files", n)
	}
}
