// Package all lists the formats of records that opmeter reads, one line each.
package all

import (
	"github.com/opmeter/opmeter/internal/ingest"
	"github.com/opmeter/opmeter/internal/ingest/chrome"
	"github.com/opmeter/opmeter/internal/ingest/collapsed"
	"github.com/opmeter/opmeter/internal/ingest/firefox"
	"github.com/opmeter/opmeter/internal/ingest/ort"
	"github.com/opmeter/opmeter/internal/ingest/otlp"
	"github.com/opmeter/opmeter/internal/ingest/perf"
	"github.com/opmeter/opmeter/internal/ingest/perfetto"
	"github.com/opmeter/opmeter/internal/ingest/pprof"
	"github.com/opmeter/opmeter/internal/ingest/pytorch"
	"github.com/opmeter/opmeter/internal/ingest/speedscope"
	"github.com/opmeter/opmeter/internal/ingest/v8"
)

// Formats lists the formats in the order of their names.
func Formats() []*ingest.Format {
	return []*ingest.Format{
		chrome.Format(),
		collapsed.Format(),
		v8.Format(),
		firefox.Format(),
		ort.Format(),
		otlp.Format(),
		perf.Format(),
		perfetto.Format(),
		pprof.Format(),
		pytorch.Format(),
		speedscope.Format(),
	}
}
