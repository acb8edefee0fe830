package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// Cursor iterates over the members of objects in one pass over their text, for high-volume
// records. The zero value with a text is ready to use:
//
//	for c := (Cursor{Text: v}); c.Next(); { use(c.Key, c.Value()) }
//
// A member whose value is an object may be entered instead: its members follow, then the
// remaining members of the outer object. An error in the text ends the iteration and shows in
// [Cursor.Whole].
type Cursor struct {
	// Text is one object.
	Text []byte
	// Key is the undecoded name of the member, without its quotes.
	Key []byte
	// Depth is the number of objects entered, 1 in the outermost.
	Depth int

	i      int
	at     bool // at a value that no one took
	broken bool
}

// Next advances to the next member. It returns false at the end of the outermost object.
func (c *Cursor) Next() bool {
	if c.at {
		c.Value()
	}
	if c.Depth == 0 {
		if c.i > 0 || c.broken {
			return false
		}
		c.i = blank(c.Text, 0)
		if c.i >= len(c.Text) || c.Text[c.i] != '{' {
			c.broken = true
			return false
		}
		c.i++
		c.Depth = 1
	}
	b := c.Text
	i := c.i
	if i+1 < len(b) && b[i] == ',' && b[i+1] == '"' { // the form that recorders write
		i++
	}
	for !c.broken && i < len(b) {
		switch b[i] {
		case ' ', ',', '\t', '\r', '\n':
			i++
			continue
		case '}':
			i++
			c.i = i
			if c.Depth--; c.Depth == 0 {
				return false
			}
			continue
		case '"':
		default:
			c.broken = true
			return false
		}
		end := quoted(b, i)
		if end < 0 {
			break
		}
		c.Key = b[i+1 : end-1]
		i = end
		if i+1 < len(b) && b[i] == ' ' && b[i+1] == ':' {
			i++
		} else if i < len(b) && b[i] != ':' {
			i = blank(b, i)
		}
		if i >= len(b) || b[i] != ':' {
			break
		}
		i++
		if i < len(b) && b[i] == ' ' {
			i++
		}
		if i < len(b) && b[i] <= ' ' {
			i = blank(b, i)
		}
		c.i, c.at = i, true
		return true
	}
	c.broken = true
	return false
}

// quoted returns the end of the string that begins at i, after its quote; -1 if it is
// unterminated. It examines eight bytes at a time: a byte of x is 0 where (x-ones) &^ x has its
// high bit set, and the lowest such bit is always right.
func quoted(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	s, n := b[i+1:], i+1
	for len(s) >= 8 {
		w := binary.LittleEndian.Uint64(s)
		q, e := w^(ones*'"'), w^(ones*'\\')
		m := ((q-ones)&^q | (e-ones)&^e) & highs
		if m == 0 {
			s, n = s[8:], n+8
			continue
		}
		k := bits.TrailingZeros64(m) / 8
		if s[k&7] == '"' {
			return n + k + 1
		}
		if k+2 > len(s) {
			return -1
		}
		s, n = s[k+2:], n+k+2
	}
	for k := 0; k < len(s); k++ {
		switch s[k] {
		case '"':
			return n + k + 1
		case '\\':
			k++
		}
	}
	return -1
}

// nested returns the end of the object or list that begins at i; -1 if it is unterminated.
func nested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			if i = quoted(b, i); i < 0 {
				return -1
			}
			continue
		case c|0x20 == '{': // and [
			if depth++; depth > MaxDepth {
				return -1
			}
		case c|0x20 == '}': // and ]
			if depth--; depth == 0 {
				return i + 1
			}
		case c < ' ' && !space(c):
			return -1
		}
		i++
	}
	return -1
}

// Value returns the member's value, nil if it is not JSON.
func (c *Cursor) Value() []byte {
	if !c.at {
		return nil
	}
	c.at = false
	b, i := c.Text, c.i
	if i >= len(b) {
		c.broken = true
		return nil
	}
	var end int
	switch b[i] {
	case '"':
		end = quoted(b, i)
	case '{', '[':
		end = nested(b, i)
	default:
		end = i
		for end < len(b) && class[b[end]] == 'x' {
			end++
		}
		if end == i {
			end = -1
		}
	}
	if end < 0 || end < len(b) && b[end] != ',' && b[end] != '}' && !space(b[end]) {
		c.broken = true
		return nil
	}
	c.i = end
	return b[i:end]
}

// Like consumes the member's value if its text equals that of an earlier value, and reports
// whether it does. Comparing is faster than searching for the end.
func (c *Cursor) Like(text []byte) bool {
	end := c.i + len(text)
	if !c.at || len(text) == 0 || end >= len(c.Text) || string(c.Text[c.i:end]) != string(text) {
		return false
	}
	if x := c.Text[end]; x != ',' && x != '}' && !space(x) {
		return false
	}
	c.at, c.i = false, end
	return true
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// Enter enters the member's value if it is an object, and reports whether it is one.
func (c *Cursor) Enter() bool {
	if !c.at || c.i >= len(c.Text) || c.Text[c.i] != '{' || c.Depth >= MaxDepth {
		return false
	}
	c.at = false
	c.i++
	c.Depth++
	return true
}

// Whole reports whether the text was exactly one object. Call it after the last member.
func (c *Cursor) Whole() bool { return c.Len() > 0 && blank(c.Text, c.i) >= len(c.Text) }

// Len returns the length of the object with the blanks before it, 0 if it is invalid or has no
// end. Call it after the last member.
func (c *Cursor) Len() int {
	if c.broken || c.Depth > 0 {
		return 0
	}
	return c.i
}
