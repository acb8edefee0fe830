// Package all lists the formats of records that opmeter reads, one line each, and
// finds the one that a file is of.
package all

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/ingest"
	"github.com/opmeter/opmeter/internal/ingest/benchtext"
	"github.com/opmeter/opmeter/internal/ingest/deepsparse"
	"github.com/opmeter/opmeter/internal/ingest/mltk"
	"github.com/opmeter/opmeter/internal/ingest/modelexplorer"
	"github.com/opmeter/opmeter/internal/ingest/neuralengine"
	"github.com/opmeter/opmeter/internal/ingest/openvino"
	"github.com/opmeter/opmeter/internal/ingest/stedgeai"
	"github.com/opmeter/opmeter/internal/ingest/tensorrt"
	"github.com/opmeter/opmeter/internal/ingest/tflite"
	"github.com/opmeter/opmeter/internal/ingest/tflm"
	"github.com/opmeter/opmeter/internal/ingest/vela"
)

// Formats lists the formats in the order of their names.
func Formats() []*ingest.Format {
	list := []*ingest.Format{
		deepsparse.Format(),
		mltk.Format(),
		modelexplorer.Format(),
		neuralengine.Format(),
		openvino.Format(),
		stedgeai.Format(),
		tensorrt.Format(),
		tflite.Format(),
		tflm.Format(),
		vela.Format(),
	}
	list = append(list, benchtext.Formats()...)
	slices.SortFunc(list, func(a, b *ingest.Format) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Of returns the format that a file is of, nil for none. Where several are as sure of
// it the first one has it.
func Of(f *ingest.File) *ingest.Format {
	var best *ingest.Format
	sure := ingest.No
	for _, x := range Formats() {
		if s := x.Match(f); s > sure {
			best, sure = x, s
		}
	}
	return best
}
