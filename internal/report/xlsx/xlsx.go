package xlsx

import (
	"fmt"
	"io"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/profile"
)

// Column is a column of the sheet "Layers".
type Column struct {
	// Key is the machine name with the base unit at its end, as in the
	// comma-separated file.
	Key string
	// Text says that the cells are text; else they are numbers in decimal.
	Text bool
	// Cells holds one text a layer, empty where not known.
	Cells []string
	// Quantity is what the column shows, nil for texts and what is not a quantity.
	Quantity *profile.Quantity
}

// names of the sheets, as formulas need them.
const (
	summarySheet  = "Summary"
	layersSheet   = "Layers"
	operatorSheet = "By operator"
	sparseSheet   = "Sparse what-if"
	columnsSheet  = "Columns"
)

// Write writes p as a workbook. cols are the columns of "Layers", which must
// include "op" and "latency_s".
func Write(w io.Writer, p *profile.Profile, cols []Column) error {
	return write(w, p, cols, whatif.Plain(p))
}

func write(w io.Writer, p *profile.Profile, cols []Column, sparse *whatif.Table) (err error) {
	t, err := newTable(cols)
	if err != nil {
		return err
	}
	// Two rows above the layers, and the what-if's tables, take room, too.
	if n := max(t.n, len(sparse.Rows)+len(sparse.Shapes)) + 100; n > maxRows {
		return fmt.Errorf("%d layers do not fit into the %d rows of a sheet: write a .csv", t.n, maxRows)
	}
	f := excelize.NewFile().SetZipWriter(newArchive)
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	b := &book{f: f, styles: map[style]int{}}
	for _, part := range []func() error{
		func() error { return b.summary(p, t) },
		func() error { return b.layers(t) },
		func() error { return b.operators(t) },
		func() error { return b.sparse(sparse) },
		func() error { return b.columns(t) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	about := &excelize.DocProperties{Creator: "opmeter", LastModifiedBy: "opmeter", Title: text.Clean("Profile of " + p.Model.Name)}
	if _, err := time.Parse(time.RFC3339, p.Created); err == nil {
		about.Created, about.Modified = p.Created, p.Created
	}
	if err := f.SetDocProps(about); err != nil {
		return err
	}
	// The first sheet is the active one. Nothing may ask for a sheet from here on: it
	// would be read back into memory as a whole.
	return f.Write(w)
}
