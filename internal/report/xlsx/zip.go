package xlsx

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
)

// The library writes bars without their least length, which is then a tenth of the
// cell: a layer without any time to speak of would show a bar.
var (
	barTag     = []byte("<dataBar ")
	fullBarTag = []byte(`<dataBar minLength="0" maxLength="100" `)
)

// archive is a zip file in which bars begin at nothing and sheets stand in their
// order. The library writes sheets in the order of a map, another one each time, so
// that the same profile would never give the same bytes; they wait, compressed,
// until all are there.
type archive struct {
	*zip.Writer
	sheets []*part
}

func newArchive(w io.Writer) excelize.ZipWriter { return &archive{Writer: zip.NewWriter(w)} }

// Create begins a file of the archive.
func (a *archive) Create(name string) (io.Writer, error) {
	if !strings.HasPrefix(name, "xl/worksheets/") {
		return a.Writer.Create(name)
	}
	s := &part{name: name}
	var err error
	if s.flate, err = flate.NewWriter(&s.data, flate.DefaultCompression); err != nil {
		return nil, err
	}
	a.sheets = append(a.sheets, s)
	return &replacer{w: s}, nil
}

// Close writes the sheets and ends the archive.
func (a *archive) Close() error {
	slices.SortFunc(a.sheets, func(x, y *part) int { return strings.Compare(x.name, y.name) })
	for _, s := range a.sheets {
		if err := s.flate.Close(); err != nil {
			return err
		}
		w, err := a.CreateRaw(&zip.FileHeader{
			Name: s.name, Method: zip.Deflate, CRC32: s.sum,
			CompressedSize64: uint64(s.data.Len()), UncompressedSize64: s.size,
		})
		if err != nil {
			return err
		}
		if _, err := s.data.WriteTo(w); err != nil {
			return err
		}
	}
	return a.Writer.Close()
}

// part is a file that waits for its place.
type part struct {
	name  string
	flate *flate.Writer
	data  bytes.Buffer // what flate wrote
	size  uint64
	sum   uint32
}

// Write adds p to the file.
func (s *part) Write(p []byte) (int, error) {
	s.size += uint64(len(p))
	s.sum = crc32.Update(s.sum, crc32.IEEETable, p)
	return s.flate.Write(p)
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
