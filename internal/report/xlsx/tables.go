package xlsx

import (
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/internal/report/text"
)

// Table is a sheet of rows below a heading each.
type Table struct {
	// Name is that of the sheet.
	Name string
	// Heads are the names of the columns, with the base unit at the end.
	Heads []string
	// Rows hold a string, bool, int64, float64 or nil for each column.
	Rows [][]any
}

// WriteTables writes tables as a workbook of a sheet each. What is not known is an empty cell.
func WriteTables(w io.Writer, title string, tables []Table) error {
	names := make([]string, len(tables))
	for i, t := range tables {
		if len(t.Rows) >= workbook.MaxRows {
			return fmt.Errorf("%d rows of %q do not fit into the %d of a sheet: write a .csv", len(t.Rows), t.Name, workbook.MaxRows)
		}
		names[i] = t.Name
	}
	b := &book{workbook.NewWriter(w, names...)}
	for i := range tables {
		b.table(&tables[i])
	}
	return b.Close(workbook.About{Creator: "opmeter", Title: text.Clean(title)})
}

func (b *book) table(t *Table) {
	s := b.sheet()
	const narrow, wide = 10, 40
	widths := make([]float64, len(t.Heads))
	heads := make([]cell, len(t.Heads))
	for i, h := range t.Heads {
		widths[i] = max(narrow, float64(len(h))+2)
		for _, r := range t.Rows[:min(len(t.Rows), 1000)] {
			if x, ok := r[i].(string); ok {
				widths[i] = min(wide, max(widths[i], float64(len(x))+2))
			}
		}
		heads[i] = label(h, style{head: true})
	}
	s.widths(widths...)
	s.Freeze(1, 0)
	s.add(0, heads...)
	for _, r := range t.Rows {
		cells := make([]cell, len(r))
		for i, v := range r {
			cells[i] = cell{v: v}
		}
		s.add(0, cells...)
	}
}
