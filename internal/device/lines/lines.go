// Package lines splits serial output into lines: received in pieces, with any line ending, with
// garbage bytes in between.
//
// It knows no protocol and imports the standard library only.
package lines

import "strings"

// Max bounds a line in bytes; a longer one is truncated and reported as dirty.
const Max = 4096

// Line is called for each line, without its line ending. dirty says that bytes are missing or
// were not text: the line began before the stream was joined, was truncated, or contained
// non-ASCII bytes, which are dropped.
type Line func(text string, dirty bool)

// Splitter splits a stream at LF, CR LF, or CR as long as no LF was seen. The zero value is ready
// to use and treats the first line as complete.
type Splitter struct {
	// Marks keeps non-ASCII bytes in a line that stays clean, for protocols whose texts may
	// contain names in other languages.
	Marks bool

	b        []byte
	dirty    bool
	lost     bool // the rest of the line under way is of one whose begin was lost
	cr       bool
	feeds    bool // a LF was seen
	escape   int
	anything bool
}

// Feed takes bytes.
func (s *Splitter) Feed(p []byte, each Line) {
	for _, c := range p {
		if s.cr && c != '\n' && c != '\r' {
			s.cr = false
			if !s.feeds {
				s.end(each)
			}
		}
		switch {
		case c == '\n':
			s.feeds, s.cr = true, false
			s.end(each)
		case c == '\r':
			s.cr = true
		case s.escape > 0 || c == 0x1b:
			s.colour(c)
		case c == 0 || c == 0xff && !s.anything:
			// A line that is powered on sends garbage bytes.
		case c == '\t' || c >= ' ' && c < 0x7f || c >= 0x80 && s.Marks:
			s.put(c)
		default:
			s.dirty = true
		}
	}
}

// colour skips ANSI colour sequences.
func (s *Splitter) colour(c byte) {
	switch {
	case c == 0x1b:
		s.escape = 1
	case s.escape == 1 && c == '[', s.escape > 1 && (c >= '0' && c <= '9' || c == ';'):
		s.escape++
		if s.escape > 32 {
			s.escape, s.dirty = 0, true
		}
	case s.escape > 1 && c >= '@' && c <= '~':
		s.escape = 0
	default:
		s.escape, s.dirty = 0, true
		if c >= ' ' && c < 0x7f {
			s.put(c)
		}
	}
}

func (s *Splitter) put(c byte) {
	s.anything = true
	if len(s.b) >= Max {
		s.dirty = true
		return
	}
	s.b = append(s.b, c)
}

// end reports the line. Text before the first line ending of a joined stream, or after a gap, may
// be incomplete.
func (s *Splitter) end(each Line) {
	text := string(s.b)
	if s.Marks {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	dirty := s.dirty || s.lost
	s.b, s.dirty, s.lost, s.escape = s.b[:0], false, false, 0
	each(text, dirty)
}

// Gap says that bytes were lost here: the current line is reported as dirty, and so will be the
// next one, whose beginning is missing.
func (s *Splitter) Gap(each Line) {
	if len(s.b) > 0 {
		s.dirty = true
		s.end(each)
	}
	s.lost, s.cr = true, false
}

// End reports the text after the last line ending as dirty: it may be truncated.
func (s *Splitter) End(each Line) {
	if len(s.b) > 0 {
		s.dirty = !s.cr
		s.end(each)
	}
}
