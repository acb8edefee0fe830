package jsonscan

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a string; ok is false for other values. Invalid escapes are kept unchanged,
// invalid UTF-8 becomes U+FFFD.
func Unquote(v []byte) (s string, ok bool) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return "", false
	}
	return Decode(v[1 : len(v)-1]), true
}

// Decode decodes the text between the quotes of a string, such as a key from [Walk].
func Decode(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' || i+1 >= len(b) {
			r, n := utf8.DecodeRune(b[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		c := b[i+1]
		i += 2
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case '"', '\\', '/':
			out = append(out, c)
		case 'u':
			r, n := hex(b[i:])
			if n == 0 {
				out = append(out, '\\', 'u')
				break
			}
			i += n
			if utf16.IsSurrogate(r) && i+1 < len(b) && b[i] == '\\' && b[i+1] == 'u' {
				if low, n := hex(b[i+2:]); n > 0 {
					if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
						r = whole
						i += 2 + n
					}
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, '\\')
			i--
		}
	}
	return string(out)
}

func hex(b []byte) (rune, int) {
	if len(b) < 4 {
		return 0, 0
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0, 0
	}
	return rune(v), 4
}

// Int decodes an integer, also if it is quoted or has a zero fraction; ok is false for anything
// else.
func Int(v []byte) (n int64, ok bool) {
	if len(v) > 2 && v[0] == '"' && v[len(v)-1] == '"' {
		v = v[1 : len(v)-1]
	}
	// Most numbers in records are short and plain.
	digits := v
	if len(v) > 1 && v[0] == '-' {
		digits = v[1:]
	}
	if len(digits) > 0 && len(digits) <= 18 {
		most := byte(0)
		for _, c := range digits {
			d := c - '0' // above 9 for what is not a digit
			most = max(most, d)
			n = n*10 + int64(d)
		}
		if most <= 9 {
			if len(digits) < len(v) {
				n = -n
			}
			return n, true
		}
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, ok := Number(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Number decodes a finite number, also if it is quoted.
func Number(v []byte) (f float64, ok bool) {
	if len(v) > 2 && v[0] == '"' && v[len(v)-1] == '"' {
		v = v[1 : len(v)-1]
	}
	if len(v) == 0 || len(v) > 400 || v[0] != '-' && v[0] != '+' && v[0] != '.' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	return f, true
}
