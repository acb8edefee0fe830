package workbook

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strconv"
	"strings"
)

// Limits of what a reader takes.
const (
	maxCells = 1 << 26 // of a sheet, empty ones within rows included
	maxDepth = 64      // of elements
)

// Reader reads the values of a workbook.
type Reader struct {
	files  map[string]*zip.File
	sheets []string
	parts  map[string]string // of the sheets
	shared []string
	left   int64 // bytes that may still be unpacked
}

// NewReader opens a workbook that unpacks to at most limit bytes.
func NewReader(data []byte, limit int64) (*Reader, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("not a workbook: %w", err)
	}
	r := &Reader{files: map[string]*zip.File{}, parts: map[string]string{}, left: limit}
	for _, f := range z.File {
		r.files[strings.ToLower(strings.ReplaceAll(f.Name, `\`, "/"))] = f
	}
	main := "xl/workbook.xml"
	targets := map[string]string{}
	err = r.walk("_rels/.rels", func(_ *xml.Decoder, e *xml.StartElement) (bool, error) {
		if strings.HasSuffix(attribute(e, "Type"), "/officeDocument") {
			main = resolve("", attribute(e, "Target"))
		}
		return false, nil
	})
	if err != nil && !errors.Is(err, errNoPart) {
		return nil, err
	}
	err = r.walk(path.Join(path.Dir(main), "_rels", path.Base(main)+".rels"), func(_ *xml.Decoder, e *xml.StartElement) (bool, error) {
		if e.Name.Local == "Relationship" {
			targets[attribute(e, "Id")] = attribute(e, "Target")
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("not a workbook: %w", err)
	}
	err = r.walk(main, func(_ *xml.Decoder, e *xml.StartElement) (bool, error) {
		if e.Name.Local != "sheet" {
			return false, nil
		}
		name, target := attribute(e, "name"), targets[attribute(e, "id")]
		if target != "" && r.parts[name] == "" {
			r.sheets = append(r.sheets, name)
			r.parts[name] = resolve(path.Dir(main), target)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.readShared(path.Join(path.Dir(main), "sharedstrings.xml")); err != nil && !errors.Is(err, errNoPart) {
		return nil, err
	}
	return r, nil
}

// Sheets returns the names of the sheets, in order.
func (r *Reader) Sheets() []string { return r.sheets }

// resolve is a target of a relationship as a name in the archive.
func resolve(dir, target string) string {
	if strings.HasPrefix(target, "/") {
		return target[1:]
	}
	return path.Join(dir, target)
}

// attribute ignores name spaces, as programs choose their prefixes.
func attribute(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

var errNoPart = errors.New("part is missing")

// open returns a part; reading more than is left of the limit is an error.
func (r *Reader) open(part string) (io.ReadCloser, error) {
	f := r.files[strings.ToLower(part)]
	if f == nil {
		return nil, fmt.Errorf("%s: %w", part, errNoPart)
	}
	in, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	return &limited{in, r}, nil
}

type limited struct {
	io.ReadCloser
	r *Reader
}

func (l *limited) Read(p []byte) (int, error) {
	if l.r.left <= 0 {
		return 0, errors.New("workbook unpacks to too many bytes")
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.r.left)])
	l.r.left -= int64(n)
	return n, err
}

// walk calls do for every element of a part. do returns true if it read the element to its end.
func (r *Reader) walk(part string, do func(*xml.Decoder, *xml.StartElement) (bool, error)) error {
	in, err := r.open(part)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	d := xml.NewDecoder(in)
	d.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding %q, expected UTF-8", charset)
	}
	for depth := 0; ; {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%s: %w", part, err)
		}
		switch e := t.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return fmt.Errorf("%s: elements are nested more than %d deep", part, maxDepth)
			}
			ended, err := do(d, &e)
			if err != nil {
				return fmt.Errorf("%s: %w", part, err)
			}
			if ended {
				depth--
			}
		}
	}
}

// text reads an element to its end and joins its texts, without those of phonetic hints. value
// receives those of the element "v" apart, if it is not nil.
func text(d *xml.Decoder, value *string) (string, error) {
	var out strings.Builder
	var stack []string
	for {
		t, err := d.RawToken()
		if err != nil {
			return "", err
		}
		switch e := t.(type) {
		case xml.StartElement:
			if stack = append(stack, e.Name.Local); len(stack) > maxDepth {
				return "", fmt.Errorf("elements are nested more than %d deep", maxDepth)
			}
		case xml.EndElement:
			if len(stack) == 0 {
				return unescapeUnits(out.String()), nil
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) == 0 {
				continue
			}
			switch top := stack[len(stack)-1]; {
			case top == "v" && value != nil:
				*value += string(e)
			case top == "t" && !(len(stack) > 1 && stack[len(stack)-2] == "rPh"):
				out.Write(e)
			}
		}
	}
}

func (r *Reader) readShared(part string) error {
	return r.walk(part, func(d *xml.Decoder, e *xml.StartElement) (bool, error) {
		if e.Name.Local != "si" {
			return false, nil
		}
		s, err := text(d, nil)
		r.shared = append(r.shared, s)
		return true, err
	})
}

// Rows returns the rows of a sheet as they are stored: numbers as the file writes them, true as 1.
// Rows that the file leaves out are empty. The fields are valid until the next row.
func (r *Reader) Rows(sheet string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		part, ok := r.parts[sheet]
		if !ok {
			yield(nil, fmt.Errorf("workbook has no sheet %q", sheet))
			return
		}
		stop := errors.New("stop")
		var fields []string
		row, cells := 0, 0
		flush := func() error {
			if row > 0 && !yield(fields, nil) {
				return stop
			}
			return nil
		}
		err := r.walk(part, func(d *xml.Decoder, e *xml.StartElement) (bool, error) {
			switch e.Name.Local {
			case "row":
				if err := flush(); err != nil {
					return false, err
				}
				next := row + 1
				if s := attribute(e, "r"); s != "" {
					n, err := strconv.Atoi(s)
					if err != nil || n < next || n > MaxRows {
						return false, fmt.Errorf("row %q after row %d", s, row)
					}
					next = n
				}
				fields = fields[:0]
				for row++; row < next; row++ {
					if !yield(nil, nil) {
						return false, stop
					}
				}
			case "c":
				if row == 0 {
					return false, errors.New("a cell stands outside of rows")
				}
				column := len(fields)
				if s := attribute(e, "r"); s != "" {
					n, ok := columnOf(s)
					if !ok || n < column {
						return false, fmt.Errorf("row %d: cell %q after column %s", row, s, ColumnName(column-1))
					}
					column = n
				}
				if cells += column + 1 - len(fields); cells > maxCells || column >= MaxColumns {
					return false, fmt.Errorf("row %d: more than %d cells, or %d columns", row, maxCells, MaxColumns)
				}
				v, err := r.value(d, attribute(e, "t"))
				if err != nil {
					return false, fmt.Errorf("row %d: %w", row, err)
				}
				for len(fields) < column {
					fields = append(fields, "")
				}
				fields = append(fields, v)
				return true, nil
			}
			return false, nil
		})
		if err == nil {
			err = flush()
		}
		if err != nil && !errors.Is(err, stop) {
			yield(nil, err)
		}
	}
}

// value reads a cell of a type.
func (r *Reader) value(d *xml.Decoder, kind string) (string, error) {
	stored := ""
	inline, err := text(d, &stored)
	switch {
	case err != nil:
		return "", err
	case kind == "inlineStr":
		return inline, nil
	case kind == "s":
		n, err := strconv.Atoi(strings.TrimSpace(stored))
		if err != nil || n < 0 || n >= len(r.shared) {
			return "", fmt.Errorf("text %q of %d shared ones", stored, len(r.shared))
		}
		return r.shared[n], nil
	}
	return stored, nil
}
