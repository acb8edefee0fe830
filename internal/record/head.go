package record

import (
	"bytes"

	"github.com/opmeter/opmeter/internal/record/textscan"
)

// If returns s if ok, and [No] otherwise.
func (s Sure) If(ok bool) Sure {
	if ok {
		return s
	}
	return No
}

// Head is the beginning of a text file, without a byte order mark and leading blanks.
type Head []byte

// JSONHead returns the beginning of a file whose first character is one of those in open ("{",
// "{[" or "["), nil for other files.
func (f *File) JSONHead(open string) Head {
	h := bytes.TrimSpace(bytes.TrimPrefix(f.Head, []byte("\xef\xbb\xbf")))
	if len(h) == 0 || bytes.IndexByte([]byte(open), h[0]) < 0 {
		return nil
	}
	return h
}

// Has reports whether the head contains all texts.
func (h Head) Has(texts ...string) bool {
	for _, t := range texts {
		if !bytes.Contains(h, []byte(t)) {
			return false
		}
	}
	return true
}

// HasAny reports whether the head contains one of the texts.
func (h Head) HasAny(texts ...string) bool {
	for _, t := range texts {
		if bytes.Contains(h, []byte(t)) {
			return true
		}
	}
	return false
}

// FindLine returns the first result of find, other than the zero value, for the lines at the
// beginning of a text file. A file without any of parts is not split into lines.
func FindLine[T comparable](f *File, find func(line string) T, parts ...string) (found T) {
	var zero T
	if !textscan.Any(f.Head, parts...) {
		return zero
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		if found = find(l); found != zero {
			return found
		}
	}
	return zero
}
