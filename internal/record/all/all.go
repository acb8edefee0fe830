// Package all lists the formats of records that opmeter reads, one line each.
package all

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/benchtext"
	"github.com/opmeter/opmeter/internal/record/chrome"
	"github.com/opmeter/opmeter/internal/record/collapsed"
	"github.com/opmeter/opmeter/internal/record/deepsparse"
	"github.com/opmeter/opmeter/internal/record/firefox"
	"github.com/opmeter/opmeter/internal/record/llmbench"
	"github.com/opmeter/opmeter/internal/record/marks"
	"github.com/opmeter/opmeter/internal/record/mltk"
	"github.com/opmeter/opmeter/internal/record/modelexplorer"
	"github.com/opmeter/opmeter/internal/record/neuralengine"
	"github.com/opmeter/opmeter/internal/record/openvino"
	"github.com/opmeter/opmeter/internal/record/ort"
	"github.com/opmeter/opmeter/internal/record/otlp"
	"github.com/opmeter/opmeter/internal/record/perf"
	"github.com/opmeter/opmeter/internal/record/perfetto"
	"github.com/opmeter/opmeter/internal/record/pprof"
	"github.com/opmeter/opmeter/internal/record/pytorch"
	"github.com/opmeter/opmeter/internal/record/sensiml"
	"github.com/opmeter/opmeter/internal/record/speedscope"
	"github.com/opmeter/opmeter/internal/record/stedgeai"
	"github.com/opmeter/opmeter/internal/record/tensorrt"
	"github.com/opmeter/opmeter/internal/record/tflite"
	"github.com/opmeter/opmeter/internal/record/tflm"
	"github.com/opmeter/opmeter/internal/record/tpu"
	"github.com/opmeter/opmeter/internal/record/v8"
	"github.com/opmeter/opmeter/internal/record/vela"
)

// Formats lists the formats in the order of their names.
func Formats() []*record.Format {
	list := slices.Concat([]*record.Format{
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
	}, benchtext.Formats(), llmbench.Formats())
	sorting.Func(list, func(a, b *record.Format) int { return strings.Compare(a.Name, b.Name) })
	return list
}
