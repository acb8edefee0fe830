// Package all lists the formats of records that opmeter reads, one line each.
package all

import (
	"github.com/opmeter/opmeter/internal/ingest"
	"github.com/opmeter/opmeter/internal/ingest/ort"
	"github.com/opmeter/opmeter/internal/ingest/tpu"
)

// Formats lists the formats in the order of their names.
func Formats() []*ingest.Format {
	return []*ingest.Format{
		ort.Format(),
		tpu.Format(),
	}
}
