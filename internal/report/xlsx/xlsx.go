package xlsx

import (
	"fmt"
	"io"
	"time"

	"github.com/opmeter/opmeter/internal/base/workbook"
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

func write(w io.Writer, p *profile.Profile, cols []Column, sparse *whatif.Table) error {
	t, err := newTable(cols)
	if err != nil {
		return err
	}
	// Two rows above the layers, and the what-if's tables, take room, too.
	if n := max(t.n, len(sparse.Rows)+len(sparse.Shapes)) + 100; n > workbook.MaxRows {
		return fmt.Errorf("%d layers do not fit into the %d rows of a sheet: write a .csv", t.n, workbook.MaxRows)
	}
	b := &book{workbook.NewWriter(w, summarySheet, layersSheet, operatorSheet, sparseSheet, columnsSheet)}
	b.summary(p, t)
	b.layers(t)
	b.operators(t)
	b.sparse(sparse)
	b.columns(t)
	about := workbook.About{Creator: "opmeter", Title: text.Clean("Profile of " + p.Model.Name)}
	if _, err := time.Parse(time.RFC3339, p.Created); err == nil {
		about.Created = p.Created
	}
	return b.Close(about)
}
