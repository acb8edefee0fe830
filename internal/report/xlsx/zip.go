package xlsx

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"
)

// The library writes bars without their least length, which is then a tenth of the
// cell: a layer without any time to speak of would show a bar.
var (
	barTag     = []byte("<dataBar ")
	fullBarTag = []byte(`<dataBar minLength="0" maxLength="100" `)
)

// archive is a zip file in which bars begin at nothing.
type archive struct{ *zip.Writer }

func newArchive(w io.Writer) excelize.ZipWriter { return archive{zip.NewWriter(w)} }

// Create begins a file of the archive.
func (a archive) Create(name string) (io.Writer, error) {
	w, err := a.Writer.Create(name)
	if err == nil && strings.HasPrefix(name, "xl/worksheets/") {
		w = &replacer{w: w}
	}
	return w, err
}

// replacer gives every bar its full lengths.
type replacer struct {
	w    io.Writer
	rest []byte // the beginning of a tag at the end of the last write
}

// Write writes p with its tags replaced. What may be the first half of one waits
// for the rest; sheets end with another tag, so that nothing is left over.
func (r *replacer) Write(p []byte) (int, error) {
	n := len(p)
	if len(r.rest) > 0 {
		p = append(r.rest, p...)
		r.rest = nil
	}
	if i := bytes.LastIndexByte(p, '<'); i >= 0 && len(p)-i < len(barTag) && bytes.HasPrefix(barTag, p[i:]) {
		r.rest = bytes.Clone(p[i:])
		p = p[:i]
	}
	if bytes.Contains(p, barTag) {
		p = bytes.ReplaceAll(p, barTag, fullBarTag)
	}
	if _, err := r.w.Write(p); err != nil {
		return 0, err
	}
	return n, nil
}
