// Package jsonscan reads recorded JSON: gigabytes of it, incrementally, with the errors that
// recorders leave behind. A document may be truncated, its lists may end in a comma or not at
// all, several documents may follow one another, and names may contain unescaped quotes. Valid
// parts are passed on, the rest is counted.
//
// It finds the boundaries of values, and decodes strings and numbers. Text written by people or
// saved by opmeter goes through package jsonx, which is strict. The package imports the standard
// library only.
package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Options configures how a document is read.
type Options struct {
	// Stream selects members of the outermost object whose lists are passed on element by
	// element; nil for none. A document that is a list always is.
	Stream func(key string) bool
	// MaxValue limits the size of one value that is passed on, in bytes; 0 means 16 MiB.
	MaxValue int
	// Line is called for a line that is not JSON, at a place where a value should begin. It
	// reports whether it recognised the line. May be nil.
	Line func(line []byte) bool
	// Whole is called for a line that begins a value, without the comma at its end, and reports
	// whether it was one value and was used. It speeds up files with one event a line: the text
	// is scanned once. May be nil.
	Whole func(line []byte) bool
	// Single stops before a document that follows a whole one, if the first one is an object with
	// a member that Stream selects, or Stream is nil. [Result].More then says that there is one.
	Single bool
	// Document is called where a document begins, the first one too. May be nil.
	Document func()
	// Object is called with a text that begins with an object, an element of a member's list or
	// of the outermost list (""). It returns the length of the object. 0 means that the object is
	// incomplete or invalid; it is then scanned the usual way. It speeds up readers that parse
	// objects themselves: the text is scanned once. May be nil.
	Object func(key string, text []byte) (n int)
}

// Keys returns an [Options].Stream that selects the members with these keys.
func Keys(keys ...string) func(key string) bool {
	return func(key string) bool { return slices.Contains(keys, key) }
}

// Result describes a document.
type Result struct {
	// Bytes is the number of bytes read.
	Bytes int64
	// Values is the number of values passed on.
	Values int64
	// Cut says that the text ended within a value, list or object.
	Cut bool
	// Unclosed says that it ended between the elements of a list, which some recorders never
	// close.
	Unclosed bool
	// More says that another document follows and was not read, see [Options].Single.
	More bool
	// Bad counts values that were invalid and skipped, Large values beyond the size limit.
	Bad, Large int64
	// At is the offset of the first error in the text, -1 for none.
	At int64
}

// ErrNone is returned if the text does not begin with a list or an object.
var ErrNone = errors.New("no JSON: want { or [")

// MaxDepth limits nesting: a deeper value is bad.
const MaxDepth = 256

// Each calls f with the members of the outermost object and their keys, and with the elements of
// outermost lists and of streamed members, with the key of the member or "". The text of a value
// belongs to the scanner and is valid until f returns. An error of f ends the scan. Errors of the
// reader other than io.EOF are returned; what was read before was passed on.
func Each(r io.Reader, o Options, f func(key string, value []byte) error) (Result, error) {
	if o.MaxValue == 0 {
		o.MaxValue = 16 << 20
	}
	s := &scanner{r: r, o: o, f: f, buf: make([]byte, 0, 256<<10)}
	s.res.At = -1
	s.skipMark()
	err := s.documents()
	s.res.Bytes = s.base + int64(len(s.buf))
	if err == nil && s.rerr != nil && !errors.Is(s.rerr, io.EOF) {
		err = s.rerr
	}
	return s.res, err
}

type scanner struct {
	r    io.Reader
	o    Options
	f    func(string, []byte) error
	buf  []byte
	pos  int   // of the next byte in buf
	base int64 // place of buf in the text
	rerr error
	res  Result
	// streamed says that a member was passed on element by element.
	streamed bool
}

// fill reads more and discards the text before keep. It reports whether there is more.
func (s *scanner) fill(keep int) bool {
	if s.rerr != nil {
		return false
	}
	if keep > 0 {
		n := copy(s.buf, s.buf[keep:])
		s.buf = s.buf[:n]
		s.pos -= keep
		s.base += int64(keep)
	}
	if len(s.buf) == cap(s.buf) {
		grown := make([]byte, len(s.buf), 2*cap(s.buf))
		copy(grown, s.buf)
		s.buf = grown
	}
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.rerr = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	s.rerr = io.ErrNoProgress
	return false
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\n', '\r':
				s.pos++
			default:
				return c
			}
		}
		if !s.fill(s.pos) {
			return 0
		}
	}
}

// skipMark skips a byte order mark.
func (s *scanner) skipMark() {
	for len(s.buf) < 3 && s.fill(0) {
	}
	if bytes.HasPrefix(s.buf, []byte("\xef\xbb\xbf")) {
		s.pos = 3
	}
}

func (s *scanner) fault() {
	if s.res.At < 0 {
		s.res.At = s.base + int64(s.pos)
	}
}

// documents reads one document after the other.
func (s *scanner) documents() error {
	for first := true; ; first = false {
		var err error
		c := s.peek()
		if c == '[' || c == '{' {
			if !first && s.o.Single && (s.streamed || s.o.Stream == nil) {
				s.res.More = true
				return nil
			}
			if s.o.Document != nil {
				s.o.Document()
			}
		}
		switch {
		case c == '[':
			s.pos++
			err = s.list("")
		case c == '{':
			s.pos++
			err = s.object()
		case c == 0 && s.pos >= len(s.buf):
			if first && errors.Is(s.rerr, io.EOF) {
				return ErrNone
			}
			return nil
		case first:
			return ErrNone
		case c == ',' || c == ']' || c == '}':
			s.pos++ // a surplus closing bracket of the previous document
		default:
			s.fault()
			s.res.Bad++
			if !s.skipLine() {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// list passes on the elements of a list whose opening bracket was read.
func (s *scanner) list(key string) error {
	for {
		switch c := s.peek(); c {
		case 0:
			if s.pos < len(s.buf) { // a byte that is 0
				s.bad()
				continue
			}
			s.fault()
			s.res.Cut, s.res.Unclosed = true, true
			return nil
		case ',':
			s.pos++
		case ']':
			s.pos++
			return nil
		default:
			if s.o.Whole != nil && c == '{' && s.wholeLine() {
				continue
			}
			if s.o.Object != nil && c == '{' {
				if n := s.o.Object(key, s.buf[s.pos:]); n > 0 {
					s.pos += n
					s.res.Values++
					continue
				}
			}
			if err := s.value(key); err != nil {
				return err
			}
		}
	}
}

// wholeLine passes on a line that is one value.
func (s *scanner) wholeLine() bool {
	i := bytes.IndexByte(s.buf[s.pos:], '\n')
	for i < 0 && len(s.buf)-s.pos < maxLine && s.fill(s.pos) {
		i = bytes.IndexByte(s.buf[s.pos:], '\n')
	}
	if i < 0 {
		return false
	}
	l := bytes.TrimRight(s.buf[s.pos:s.pos+i], ", \t\r")
	if !s.o.Whole(l) {
		return false
	}
	s.pos += i
	s.res.Values++
	return true
}

// maxLine is the maximum length of a line that is examined as a whole.
const maxLine = 1 << 20

// object passes on the members of the outermost object whose opening brace was read.
func (s *scanner) object() error {
	for {
		switch c := s.peek(); c {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		case '"':
			raw, ok := s.take()
			if !ok {
				return nil
			}
			key, _ := Unquote(raw)
			if s.peek() != ':' {
				s.fault()
				s.res.Bad++
				continue
			}
			s.pos++
			if s.peek() == '[' && s.o.Stream != nil && s.o.Stream(key) {
				s.pos++
				s.streamed = true
				if err := s.list(key); err != nil {
					return err
				}
				continue
			}
			if err := s.value(key); err != nil {
				return err
			}
		default:
			if c == 0 && s.pos >= len(s.buf) {
				s.fault()
				s.res.Cut = true
				return nil
			}
			s.bad()
		}
	}
}

// bad skips invalid text up to the end of its line.
func (s *scanner) bad() {
	s.fault()
	s.res.Bad++
	s.skipLine()
}

// skipLine advances to the beginning of the next line.
func (s *scanner) skipLine() bool {
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\n'); i >= 0 {
			s.pos += i + 1
			return true
		}
		s.pos = len(s.buf)
		if !s.fill(s.pos) {
			return false
		}
	}
}

// value passes on the value that begins here.
func (s *scanner) value(key string) error {
	v, ok := s.take()
	if !ok {
		return nil
	}
	s.res.Values++
	return s.f(key, v)
}

// take finds the end of the value that begins here; ok is false if it has none.
func (s *scanner) take() (v []byte, ok bool) {
	start := s.pos
	var w walker
	for {
		n, st := w.walk(s.buf[s.pos:])
		s.pos += n
		switch st {
		case done:
			return s.buf[start:s.pos], true
		case broken:
			return nil, s.line(start)
		}
		if s.pos-start > s.o.MaxValue {
			s.res.Large++
			s.fault()
			return nil, s.pass(&w)
		}
		s.pos -= start // remains correct when earlier text is discarded
		p := s.pos
		s.pos = start
		if !s.fill(start) {
			start = s.pos
			s.pos += p
			if w.bare() && p > 0 {
				return s.buf[start:s.pos], true // a number at the very end
			}
			s.fault()
			s.res.Cut = true
			if s.o.Line != nil && s.o.Line(s.buf[start:s.pos]) {
				s.res.Cut = false
			}
			return nil, false
		}
		start = s.pos
		s.pos += p
	}
}

// pass skips a value that is too large.
func (s *scanner) pass(w *walker) bool {
	for {
		n, st := w.walk(s.buf[s.pos:])
		s.pos += n
		if st == done {
			return false
		}
		if st == broken {
			s.skipLine()
			return false
		}
		if !s.fill(s.pos) {
			s.res.Cut = true
			return false
		}
	}
}

// line handles a value that is not JSON: its line is treated as one record.
func (s *scanner) line(start int) bool {
	s.pos = start
	for {
		if i := bytes.IndexByte(s.buf[start:], '\n'); i >= 0 {
			s.pos = start + i + 1
			break
		}
		if len(s.buf)-start > s.o.MaxValue {
			s.bad()
			return false
		}
		s.pos = start
		if !s.fill(start) {
			s.pos = len(s.buf)
			start = min(start, len(s.buf))
			break
		}
		start = s.pos
	}
	l := bytes.TrimSpace(s.buf[start:s.pos])
	if s.o.Line != nil && s.o.Line(bytes.TrimRight(l, ",")) {
		return false
	}
	at := s.pos
	s.pos = start
	s.fault()
	s.pos = at
	s.res.Bad++
	return false
}

type status int

const (
	more status = iota
	done
	broken
)

// walker finds the end of a value that arrives in parts.
type walker struct {
	depth           int
	begun           bool
	quoted, escaped bool
	word            bool // a number, true, false or null outside of anything
}

func (w *walker) bare() bool { return w.word }

// class of bytes outside of strings.
var class = func() (t [256]byte) {
	for c := range t {
		t[c] = 'x'
	}
	for c := range 0x20 {
		t[c] = 'b'
	}
	t[' '], t['\t'], t['\n'], t['\r'] = ' ', ' ', ' ', ' '
	t['"'], t['{'], t['['], t['}'], t[']'], t[','], t[':'] = '"', '{', '{', '}', '}', ',', ':'
	return t
}()

// stops are the bytes that matter within a string, within the bytes that do not matter in an
// object or list.
var stops, within = [256]bool{'"': true, '\\': true, '\n': true}, func() (t [256]bool) {
	for c := range t {
		t[c] = class[c] == 'x' || class[c] == ' ' || class[c] == ',' || class[c] == ':'
	}
	return t
}()

// walk continues with b and returns how many bytes belong to the value.
func (w *walker) walk(b []byte) (n int, st status) {
	i := 0
	for i < len(b) {
		if w.quoted {
			for i < len(b) {
				if w.escaped {
					w.escaped = false
					i++
					continue
				}
				for i < len(b) && !stops[b[i]] {
					i++
				}
				if i == len(b) {
					break
				}
				c := b[i]
				i++
				if c == '"' {
					w.quoted = false
					break
				}
				if c == '\\' {
					w.escaped = true
				} else {
					return i, broken
				}
			}
			if !w.quoted && w.depth == 0 {
				return i, done
			}
			continue
		}
		if w.depth > 0 {
			// Within an object or list most bytes cannot end it.
			for i < len(b) && within[b[i]] {
				i++
			}
			if i == len(b) {
				break
			}
		}
		c := b[i]
		switch class[c] {
		case 'x':
			if w.depth == 0 {
				w.word, w.begun = true, true
			}
			i++
		case '"':
			if w.word && w.depth == 0 {
				return i, broken
			}
			w.quoted, w.begun = true, true
			i++
		case '{':
			if w.word && w.depth == 0 {
				return i, broken
			}
			if w.depth++; w.depth > MaxDepth {
				return i, broken
			}
			w.begun = true
			i++
		case '}':
			if w.depth == 0 {
				return i, w.end()
			}
			w.depth--
			i++
			if w.depth == 0 {
				return i, done
			}
		case ',', ' ', ':':
			if w.depth == 0 && w.begun {
				return i, w.end()
			}
			i++
		default:
			return i, broken
		}
	}
	return i, more
}

// end returns the status of a bare word at its end.
func (w *walker) end() status {
	if w.begun {
		return done
	}
	return broken
}

// Walk calls f for each member of an object, or element of a list with key nil, until it returns
// false. The error gives the offset of invalid text.
func Walk(v []byte, f func(key, value []byte) bool) error {
	i := blank(v, 0)
	if i >= len(v) || v[i] != '{' && v[i] != '[' {
		return fmt.Errorf("byte %d: %w", i, ErrNone)
	}
	object := v[i] == '{'
	for i++; ; {
		i = blank(v, i)
		if i >= len(v) {
			return fmt.Errorf("byte %d: ends within a value", i)
		}
		switch v[i] {
		case ',':
			i++
			continue
		case '}', ']':
			return nil
		}
		var key []byte
		if object {
			n, ok := length(v[i:])
			if !ok || v[i] != '"' {
				return fmt.Errorf("byte %d: want a name", i)
			}
			key = v[i+1 : i+n-1]
			i = blank(v, i+n)
			if i >= len(v) || v[i] != ':' {
				return fmt.Errorf("byte %d: want a colon", i)
			}
			i = blank(v, i+1)
		}
		n, ok := length(v[i:])
		if !ok {
			return fmt.Errorf("byte %d: want a value", i)
		}
		if !f(key, v[i:i+n]) {
			return nil
		}
		i += n
		if j := blank(v, i); j < len(v) && v[j] != ',' && v[j] != '}' && v[j] != ']' {
			return fmt.Errorf("byte %d: want a comma", j)
		}
	}
}

// length returns the length of the value at the beginning of b.
func length(b []byte) (int, bool) {
	if len(b) > 0 {
		end := 0
		switch b[0] {
		case '"':
			end = quoted(b, 0)
		case '{', '[':
			end = nested(b, 0)
		}
		if end != 0 {
			return end, end > 0
		}
	}
	var w walker
	n, st := w.walk(b)
	if st == more && w.word && w.depth == 0 {
		st = done
	}
	return n, st == done && n > 0
}

func blank(v []byte, i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\t' || v[i] == '\n' || v[i] == '\r') {
		i++
	}
	return i
}
