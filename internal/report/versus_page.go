package report

import (
	"io"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/report/page"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile/compare"
)

// versusPage writes the comparison as a page.
func versusPage(w io.Writer, t *compare.Table, o VersusOptions) error {
	if _, _, err := versusRows(t, o); err != nil { // the page sorts by itself
		return err
	}
	c := page.Comparison{
		Table: t, Title: words.VersusModels(t), Answers: answers(t), Limits: versusNotes(t), Sort: o.Sort, Top: o.Top,
		Version: buildinfo.Version(),
	}
	return page.WriteComparison(w, c)
}
