// Package jsonx is the project's only door to a JSON library: strict (no
// duplicate names, no invalid UTF-8 in what it reads), deterministic, and with a bound on nesting.
//
// The standard library's second JSON package is not final yet; when it is, this
// file is all that changes. The package imports no other package of the project.
package jsonx

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth bounds the nesting of objects and arrays when reading.
const MaxDepth = 64

// Marshal encodes v on one line. Maps are written in the order of their keys.
// Names come from models and need not be UTF-8: bytes that are not become U+FFFD.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// MarshalIndent encodes v over many lines, two blanks a level, with a newline at
// the end. It is what people see on a terminal: characters that show nothing but
// steer how others show (control characters beyond ASCII, changes of direction)
// become escapes, so that the text means the same.
func MarshalIndent(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return append(visible(b), '\n'), nil
}

// visible writes characters that are not printable as escapes. All of JSON's own
// syntax is ASCII, so they can only stand in strings.
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

// MarshalWrite encodes v like [MarshalIndent] into w.
func MarshalWrite(w io.Writer, v any) error {
	b, err := MarshalIndent(v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// Unmarshal decodes one value. Members that v does not have are ignored, so that
// files of later versions can be read. Errors name the place in the text.
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

// depth refuses text that nests too deep before a decoder recurses into it.
func depth(b []byte) error {
	d, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if d++; d > MaxDepth {
				return fmt.Errorf("byte %d: values nest deeper than %d", i, MaxDepth)
			}
		case c == '}' || c == ']':
			d--
		}
	}
	return nil
}
