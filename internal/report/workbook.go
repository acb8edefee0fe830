package report

import (
	"io"

	"github.com/opmeter/opmeter/internal/report/xlsx"
	"github.com/opmeter/opmeter/profile"
)

// writeXLSX writes a workbook. Its layers are those of the comma-separated file,
// in the order asked for; groups have a sheet of their own.
func writeXLSX(w io.Writer, p *profile.Profile, o Options) error {
	o.All, o.By = true, ""
	rs, err := rows(p, o)
	if err != nil {
		return err
	}
	var cols []xlsx.Column
	for _, c := range columnsFor(p, o) {
		if c.key == "" {
			continue
		}
		x := xlsx.Column{Key: c.key, Text: c.left, Quantity: c.quantity, Cells: make([]string, len(rs))}
		for i := range rs {
			x.Cells[i] = c.raw(&rs[i])
		}
		cols = append(cols, x)
	}
	return xlsx.Write(w, p, cols)
}
