// Package textscan reads the text of logs and tables: lines with any line ending or encoding,
// logger prefixes, table fields with or without quotes, and numbers with separators and signs.
//
// It is independent of formats and imports the standard library only.
package textscan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// MaxLine is the maximum length of a line in bytes; the excess of a longer line is skipped.
const MaxLine = 1 << 20

// Scanner reads line by line; its use is that of [bufio.Scanner].
type Scanner struct {
	r      *bufio.Reader
	line   string
	number int
	long   int64
	rest   []string // lines split from one at HTML breaks or carriage returns
	err    error
	lone   bool // lines end in a carriage return alone
}

// NewScanner reads lines from r that end in LF, CR LF, CR or an HTML break (<br>, <br />). It
// skips a byte order mark, converts UTF-16 that has one to UTF-8, and replaces invalid UTF-8 by
// U+FFFD.
func NewScanner(r io.Reader) *Scanner {
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = b.Discard(3)
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		_, _ = b.Discard(2)
		b = bufio.NewReader(&wide{r: b, order: binary.LittleEndian})
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		_, _ = b.Discard(2)
		b = bufio.NewReader(&wide{r: b, order: binary.BigEndian})
	}
	s := &Scanner{r: b}
	// A terminal log may have carriage returns only.
	look, _ := b.Peek(16 << 10)
	s.lone = bytes.IndexByte(look, '\r') >= 0 && bytes.IndexByte(look, '\n') < 0
	return s
}

// wide decodes UTF-16.
type wide struct {
	r     *bufio.Reader
	order binary.ByteOrder
	out   []byte
}

func (w *wide) Read(b []byte) (int, error) {
	for len(w.out) == 0 {
		unit, err := w.unit()
		if err != nil {
			return 0, err
		}
		r := rune(unit)
		if utf16.IsSurrogate(r) {
			low, err := w.unit()
			if err != nil {
				return 0, err
			}
			r = utf16.DecodeRune(r, rune(low))
		}
		w.out = append(w.out[:0], string(r)...)
	}
	n := copy(b, w.out)
	w.out = w.out[n:]
	return n, nil
}

func (w *wide) unit() (uint16, error) {
	var two [2]byte
	if _, err := io.ReadFull(w.r, two[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		return 0, err
	}
	return w.order.Uint16(two[:]), nil
}

// Scan advances to the next line and reports whether there is one.
func (s *Scanner) Scan() bool {
	if len(s.rest) > 0 {
		s.line, s.rest = s.rest[0], s.rest[1:]
		return true
	}
	if s.err != nil {
		return false
	}
	end := byte('\n')
	if s.lone {
		end = '\r'
	}
	var b []byte
	for {
		part, err := s.r.ReadSlice(end)
		if room := MaxLine - len(b); len(part) > room {
			s.long += int64(len(part) - max(room, 0))
			part = part[:max(room, 0)]
		}
		b = append(b, part...)
		if err == nil {
			break
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		s.err = err
		if len(b) == 0 {
			return false
		}
		break
	}
	s.number++
	text := strings.ToValidUTF8(strings.Trim(string(b), "\r\n"), "\ufffd")
	if strings.ContainsAny(text, "\x00\x1b") {
		// Serial lines may begin with NUL bytes; terminals add colour codes.
		text = strings.ReplaceAll(escapes.ReplaceAllString(text, ""), "\x00", "")
	}
	s.line = text
	if parts := breaks(text); parts != nil {
		s.line, s.rest = parts[0], parts[1:]
	}
	return true
}

// escapes matches codes of terminals: colours and movements, titles and links, character sets.
var escapes = lazyregexp.New(`\x1b(?:\[[0-9;:?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9])`)

// breaks splits a line at HTML breaks, and at carriage returns in a log that has both line
// endings.
func breaks(s string) []string {
	if !strings.Contains(s, "<br") && strings.IndexByte(s, '\r') < 0 {
		return nil
	}
	r := strings.NewReplacer("<br />", "\n", "<br/>", "\n", "<br>", "\n", "\r", "\n")
	parts := strings.Split(r.Replace(s), "\n")
	if n := len(parts); n > 1 && strings.TrimSpace(parts[n-1]) == "" {
		parts = parts[:n-1] // the break was the end of the line
	}
	return parts
}

// Text returns the line without its line ending.
func (s *Scanner) Text() string { return s.line }

// Number returns the line number in the file, from 1.
func (s *Scanner) Number() int { return s.number }

// Long returns the number of bytes skipped in lines longer than [MaxLine].
func (s *Scanner) Long() int64 { return s.long }

// Err returns the error that ended reading early, nil at the end of the file.
func (s *Scanner) Err() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// Head returns the lines at the beginning of a file, without the last one if it may be cut off.
// It returns nil for binary content; a log may have a few zero bytes.
func Head(head []byte, whole bool) []string {
	if bytes.Count(head, []byte{0}) > len(head)/50 && !bytes.HasPrefix(head, []byte{0xff, 0xfe}) && !bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return nil
	}
	s := NewScanner(bytes.NewReader(head))
	var out []string
	for s.Scan() {
		out = append(out, s.Text())
	}
	if n := len(out); !whole && n > 1 {
		out = out[:n-1]
	}
	return out
}

// Any reports whether the beginning of a file may contain one of the texts: a fast check before
// its lines are parsed. It is always true for UTF-16.
func Any(head []byte, texts ...string) bool {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return true
	}
	for _, t := range texts {
		if bytes.Contains(head, []byte(t)) {
			return true
		}
	}
	return false
}
