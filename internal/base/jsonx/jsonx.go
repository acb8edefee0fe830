// Package jsonx is the project's only access to a JSON library. It is strict (no duplicate names,
// no invalid UTF-8 in its input), deterministic, and limits nesting.
//
// The standard library's second JSON package is not final yet; when it is, only this file
// changes. The package imports no other package of the project.
package jsonx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth limits the nesting of objects and arrays when reading.
const MaxDepth = 64

// Objects may become structures of hundreds of bytes however short their text is: their number is
// limited by the length of the text.
const (
	freeObjects = 10_000
	objectBytes = 20 // of text for each one beyond those, on average
)

// Marshal encodes v on one line. Maps are written in key order. Names come from models and need
// not be valid UTF-8: invalid bytes become U+FFFD.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// MarshalIndent encodes v on several lines, with two spaces per level and a final newline. It is
// for terminals: invisible characters that affect how others are displayed (control characters
// beyond ASCII, bidirectional controls) are escaped, so that the text keeps its meaning.
func MarshalIndent(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return append(visible(b), '\n'), nil
}

// visible escapes characters that are not printable. JSON syntax is ASCII, so they occur in
// strings only.
func visible(b []byte) []byte {
	done, out := 0, []byte(nil)
	for i := 0; i < len(b); {
		if b[i] < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if !unicode.IsPrint(r) {
			out = append(out, b[done:i]...)
			for _, u := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// MarshalWrite encodes v like [MarshalIndent] into w incrementally: the text is never held as a
// whole.
func MarshalWrite(w io.Writer, v any) error {
	out := &shown{w: w}
	if err := json.MarshalWrite(out, v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  ")); err != nil {
		if out.failed != nil {
			return out.failed // without the encoder's words
		}
		return err
	}
	_, err := out.Write([]byte("\n"))
	return err
}

// shown writes JSON text through [visible]. A character split by the end of a write waits for the
// rest.
type shown struct {
	w    io.Writer
	rest []byte
	// failed is the error of w.
	failed error
}

func (s *shown) Write(p []byte) (int, error) {
	b := p
	if len(s.rest) > 0 {
		b = append(s.rest, p...)
	}
	keep := 0
	for keep < min(len(b), utf8.UTFMax-1) && b[len(b)-1-keep] >= utf8.RuneSelf {
		keep++
		if utf8.RuneStart(b[len(b)-keep]) {
			break
		}
	}
	if keep > 0 && utf8.FullRune(b[len(b)-keep:]) {
		keep = 0
	}
	if _, err := s.w.Write(visible(b[:len(b)-keep])); err != nil {
		s.failed = err
		return 0, err
	}
	s.rest = append([]byte(nil), b[len(b)-keep:]...)
	return len(p), nil
}

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error tells of bytes that were replaced
	return b
}

// UnmarshalRead is [Unmarshal] for text that is read incrementally: only the decoded value is
// held.
func UnmarshalRead(r io.Reader, v any) error { return json.UnmarshalRead(&shallow{r: r}, v) }

// FirstString returns the name and the value of an object's first member if the beginning of its
// text contains it completely and it is a string.
func FirstString(b []byte) (name, value string, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return "", "", false
	}
	n, err := d.ReadToken()
	if err != nil || n.Kind() != '"' {
		return "", "", false
	}
	name = n.String()
	t, err := d.ReadToken()
	if err != nil || t.Kind() != '"' {
		return "", "", false
	}
	return name, t.String(), true
}

// IsSyntax reports whether an error means that the text is invalid or truncated JSON, rather than
// JSON of another form than expected.
func IsSyntax(err error) bool {
	var se *jsontext.SyntacticError
	return errors.As(err, &se) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errDeep) || errors.Is(err, errMany)
}

// Unmarshal decodes one value. Unknown members are ignored, so that files of later versions can
// be read. Errors give the position in the text.
func Unmarshal(b []byte, v any) error {
	if err := depth(b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// UnmarshalStrict is [Unmarshal] with unknown members treated as errors.
func UnmarshalStrict(b []byte, v any) error {
	if err := depth(b); err != nil {
		return err
	}
	return json.Unmarshal(b, v, json.RejectUnknownMembers(true))
}

// depth rejects text that nests too deep before a decoder recurses into it.
func depth(b []byte) error {
	var n nesting
	return n.add(b)
}

var errMany = fmt.Errorf("objects are too many for the length of the text: more than one in %d bytes", objectBytes)

var errDeep = fmt.Errorf("values nest deeper than %d", MaxDepth)

// nesting tracks the depth and number of objects of JSON text that arrives in parts.
type nesting struct {
	depth           int
	quoted, escaped bool
	at              int64
	objects         int64
}

// structural marks the bytes that affect nesting. Most bytes do not.
var structural = [256]bool{'"': true, '\\': true, '{': true, '}': true, '[': true, ']': true}

func (n *nesting) add(b []byte) error {
	for i, c := range b {
		if !structural[c] && !n.escaped {
			continue
		}
		switch {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = c == '\\', c != '"'
		case c == '"':
			n.quoted = true
		case c == '{' || c == '[':
			if n.depth++; n.depth > MaxDepth {
				return fmt.Errorf("byte %d: %w", n.at+int64(i), errDeep)
			}
			if c == '[' {
				break
			}
			if n.objects++; n.objects > freeObjects+(n.at+int64(i))/objectBytes {
				return fmt.Errorf("byte %d: %w", n.at+int64(i), errMany)
			}
		case c == '}' || c == ']':
			n.depth--
		}
	}
	n.at += int64(len(b))
	return nil
}

// shallow is a reader that fails on text that nests too deep.
type shallow struct {
	r io.Reader
	n nesting
}

func (s *shallow) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if e := s.n.add(b[:n]); e != nil {
		return 0, e
	}
	return n, err
}
