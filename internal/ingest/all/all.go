// Package all lists the formats of records that opmeter reads, one line each.
package all

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/ingest"
	"github.com/opmeter/opmeter/internal/ingest/benchtext"
	"github.com/opmeter/opmeter/internal/ingest/chrome"
	"github.com/opmeter/opmeter/internal/ingest/collapsed"
	"github.com/opmeter/opmeter/internal/ingest/deepsparse"
	"github.com/opmeter/opmeter/internal/ingest/firefox"
	"github.com/opmeter/opmeter/internal/ingest/marks"
	"github.com/opmeter/opmeter/internal/ingest/mltk"
	"github.com/opmeter/opmeter/internal/ingest/modelexplorer"
	"github.com/opmeter/opmeter/internal/ingest/neuralengine"
	"github.com/opmeter/opmeter/internal/ingest/openvino"
	"github.com/opmeter/opmeter/internal/ingest/ort"
	"github.com/opmeter/opmeter/internal/ingest/otlp"
	"github.com/opmeter/opmeter/internal/ingest/perf"
	"github.com/opmeter/opmeter/internal/ingest/perfetto"
	"github.com/opmeter/opmeter/internal/ingest/pprof"
	"github.com/opmeter/opmeter/internal/ingest/pytorch"
	"github.com/opmeter/opmeter/internal/ingest/sensiml"
	"github.com/opmeter/opmeter/internal/ingest/speedscope"
	"github.com/opmeter/opmeter/internal/ingest/stedgeai"
	"github.com/opmeter/opmeter/internal/ingest/tensorrt"
	"github.com/opmeter/opmeter/internal/ingest/tflite"
	"github.com/opmeter/opmeter/internal/ingest/tflm"
	"github.com/opmeter/opmeter/internal/ingest/tpu"
	"github.com/opmeter/opmeter/internal/ingest/v8"
	"github.com/opmeter/opmeter/internal/ingest/vela"
)

// Formats lists the formats in the order of their names.
func Formats() []*ingest.Format {
	list := slices.Concat([]*ingest.Format{
		chrome.Format(),
		collapsed.Format(),
		deepsparse.Format(),
		firefox.Format(),
		marks.Format(),
		mltk.Format(),
		modelexplorer.Format(),
		neuralengine.Format(),
		openvino.Format(),
		ort.Format(),
		otlp.Format(),
		perf.Format(),
		perfetto.Format(),
		pprof.Format(),
		pytorch.Format(),
		sensiml.Format(),
		speedscope.Format(),
		stedgeai.Format(),
		tensorrt.Format(),
		tflite.Format(),
		tflm.Format(),
		tpu.Format(),
		v8.Format(),
		vela.Format(),
	}, benchtext.Formats())
	slices.SortFunc(list, func(a, b *ingest.Format) int { return strings.Compare(a.Name, b.Name) })
	return list
}
