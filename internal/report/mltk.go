package report

import (
	"io"

	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// mltkOptions are the options for an output in which text has to be made safe.
func mltkOptions(o Options, safe func(string) string) mltk.Options {
	m := o.MLTK
	m.Text = safe
	return m
}

func writeMLTK(w io.Writer, p *profile.Profile, o Options) error {
	return mltk.Text(w, p, mltkOptions(o, text.Clean))
}

func writeMLTKJSON(w io.Writer, p *profile.Profile, o Options) error {
	return mltk.JSON(w, p, mltkOptions(o, nil))
}

func writeMLTKCSV(w io.Writer, p *profile.Profile, o Options) error {
	return mltk.CSV(w, p, mltkOptions(o, text.Cell))
}

// Folder writes the two report files of the MLTK profiler into a folder, which it
// makes if absent, and returns their names.
func Folder(dir string, p *profile.Profile, o Options) ([]string, error) {
	return mltk.Folder(dir, p, mltkOptions(o, text.Clean))
}
