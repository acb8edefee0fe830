// Package lines makes lines of what a serial line brings: in pieces, with any end of line,
// with bytes of nothing in between.
//
// It knows no protocol and imports the standard library only.
package lines

import "strings"

// Max bounds a line in bytes; of a longer one the beginning is given, as dirty.
const Max = 4096

// Line is called for each line, without its end. dirty says that bytes of it are missing or were
// no text: it began before the stream was joined, is cut, too long, or had bytes beyond
// ASCII, which are left out.
type Line func(text string, dirty bool)

// Splitter parts a stream at LF, CR LF, or CR where no LF was seen yet. The zero
// value is ready and begins in the middle of nothing: the first line is taken as whole.
type Splitter struct {
	// Marks keeps bytes beyond ASCII in a line that stays clean, for protocols whose texts may
	// have names in other languages.
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
			// A line that is switched on sends bytes of nothing.
		case c == '\t' || c >= ' ' && c < 0x7f || c >= 0x80 && s.Marks:
			s.put(c)
		default:
			s.dirty = true
		}
	}
}

// colour passes over the sequences with which terminals are told to use colours.
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

// end gives the line. What precedes the first end of a stream that was joined, or follows a
// gap, may be a piece only.
func (s *Splitter) end(each Line) {
	text := string(s.b)
	if s.Marks {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	dirty := s.dirty || s.lost
	s.b, s.dirty, s.lost, s.escape = s.b[:0], false, false, 0
	each(text, dirty)
}

// Gap says that bytes were lost here: the line under way is given as dirty, and the next one,
// whose begin is missing, will be.
func (s *Splitter) Gap(each Line) {
	if len(s.b) > 0 {
		s.dirty = true
		s.end(each)
	}
	s.lost, s.cr = true, false
}

// End gives what stands after the last end of line, as dirty: it may have been cut.
func (s *Splitter) End(each Line) {
	if len(s.b) > 0 {
		s.dirty = !s.cr
		s.end(each)
	}
}
