// Package all lists the formats of records that opmeter reads, one line each, and
// finds the one that a file is of.
package all

import (
	"github.com/opmeter/opmeter/internal/ingest"
)

// Formats lists the formats in the order of their names.
func Formats() []*ingest.Format {
	return []*ingest.Format{}
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
