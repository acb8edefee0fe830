package sensiml

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What the vendor's parser takes for JSON is what Python's does: numbers of any size, NaN and
// Infinity, the last of several members with one name.

// pyValue is nil, bool, *big.Int, float64, string, []pyValue or map[string]pyValue.
type pyValue any

var errPython = errors.New("no JSON")

type pyReader struct {
	b     []byte
	at    int
	depth int
}

// pyParse reads one document, with nothing but spaces around it.
func pyParse(line []byte) (pyValue, error) {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(line) {
		return nil, errPython
	}
	r := &pyReader{b: line}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.peek() != 0 || r.at < len(r.b) {
		return nil, errPython
	}
	return v, nil
}

// peek is the next byte that is not space, 0 at the end.
func (r *pyReader) peek() byte {
	for r.at < len(r.b) && strings.IndexByte(" \t\n\r", r.b[r.at]) >= 0 {
		r.at++
	}
	if r.at < len(r.b) {
		return r.b[r.at]
	}
	return 0
}

func (r *pyReader) value() (pyValue, error) {
	// Python gives up in its own recursion.
	if r.depth++; r.depth > 900 {
		return nil, errPython
	}
	defer func() { r.depth-- }()
	switch r.peek() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		return r.text()
	}
	for word, v := range map[string]pyValue{"null": nil, "true": true, "false": false, "NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)} {
		if bytes.HasPrefix(r.b[r.at:], []byte(word)) {
			r.at += len(word)
			return v, nil
		}
	}
	return r.number()
}

func (r *pyReader) object() (pyValue, error) {
	out := map[string]pyValue{}
	r.at++
	if r.peek() == '}' {
		r.at++
		return out, nil
	}
	for {
		if r.peek() != '"' {
			return nil, errPython
		}
		key, err := r.text()
		if err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, errPython
		}
		r.at++
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		out[key.(string)] = v
		switch c := r.peek(); c {
		case ',', '}':
			if r.at++; c == '}' {
				return out, nil
			}
		default:
			return nil, errPython
		}
	}
}

func (r *pyReader) list() (pyValue, error) {
	out := []pyValue{}
	r.at++
	if r.peek() == ']' {
		r.at++
		return out, nil
	}
	for {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		switch c := r.peek(); c {
		case ',', ']':
			if r.at++; c == ']' {
				return out, nil
			}
		default:
			return nil, errPython
		}
	}
}

func (r *pyReader) text() (pyValue, error) {
	var out []rune
	for r.at++; r.at < len(r.b); {
		c, n := utf8.DecodeRune(r.b[r.at:])
		r.at += n
		switch {
		case c == '"':
			return string(out), nil
		case c < ' ':
			return nil, errPython
		case c != '\\':
			out = append(out, c)
			continue
		}
		if r.at >= len(r.b) {
			break
		}
		e := r.b[r.at]
		r.at++
		if i := strings.IndexByte(`"\/bfnrt`, e); i >= 0 {
			out = append(out, rune("\"\\/\b\f\n\r\t"[i]))
			continue
		}
		if e != 'u' || r.at+4 > len(r.b) {
			return nil, errPython
		}
		u, err := strconv.ParseUint(string(r.b[r.at:r.at+4]), 16, 16)
		if err != nil {
			return nil, errPython
		}
		r.at += 4
		if n := len(out); n > 0 && utf16.IsSurrogate(out[n-1]) && utf16.DecodeRune(out[n-1], rune(u)) != utf8.RuneError {
			out[n-1] = utf16.DecodeRune(out[n-1], rune(u))
		} else {
			out = append(out, rune(u))
		}
	}
	return nil, errPython
}

func (r *pyReader) number() (pyValue, error) {
	from := r.at
	digits := func() int {
		n := r.at
		for r.at < len(r.b) && r.b[r.at] >= '0' && r.b[r.at] <= '9' {
			r.at++
		}
		return r.at - n
	}
	is := func(set string) bool { return r.at < len(r.b) && strings.IndexByte(set, r.b[r.at]) >= 0 }
	if is("-") {
		r.at++
	}
	if is("0") {
		r.at++
	} else if digits() == 0 {
		return nil, errPython
	}
	end := r.at
	whole := true
	if is(".") {
		if r.at++; digits() > 0 {
			end, whole = r.at, false
		}
		r.at = end
	}
	if is("eE") {
		if r.at++; is("+-") {
			r.at++
		}
		if digits() > 0 {
			end, whole = r.at, false
		}
		r.at = end
	}
	text := string(r.b[from:end])
	if whole {
		// Python refuses to make numbers of more digits.
		if len(text) > 4300 {
			return nil, errPython
		}
		v, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return nil, errPython
		}
		return v, nil
	}
	// What is too large is infinite, as in Python.
	v, _ := strconv.ParseFloat(text, 64)
	return v, nil
}

// pyNumbers is a list of numbers as a mean is made of; broken says that one is none.
type pyNumbers struct {
	n      int
	ints   big.Int
	floats float64
	float  bool
	broken bool
}

func (s *pyNumbers) add(v pyValue) {
	s.n++
	switch x := v.(type) {
	case *big.Int:
		s.ints.Add(&s.ints, x)
		f, _ := new(big.Float).SetInt(x).Float64()
		s.floats += f
	case float64:
		s.float = true
		s.floats += x
	case bool:
		if x {
			s.ints.Add(&s.ints, big.NewInt(1))
			s.floats++
		}
	default:
		s.broken = true
	}
}

// mean is sum divided by number; ok is false where Python would raise an exception.
func (s *pyNumbers) mean() (float64, bool) {
	if s.n == 0 || s.broken {
		return 0, false
	}
	if s.float {
		return s.floats / float64(s.n), true
	}
	f, _ := new(big.Rat).SetFrac(&s.ints, big.NewInt(int64(s.n))).Float64()
	return f, !math.IsInf(f, 0)
}

// pyRound is round() of a number: to the even one of two that are as near.
func pyRound(v float64) (string, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", false
	}
	s := strconv.FormatFloat(math.RoundToEven(v), 'f', 0, 64)
	if s == "-0" {
		s = "0"
	}
	return s, true
}

// pyMod is the % of Python, whose result has the sign of the divisor.
func pyMod(a, b float64) float64 {
	m := math.Mod(a, b)
	if m != 0 && m < 0 != (b < 0) {
		m += b
	}
	return m
}

// pyTime is how the vendor's parser writes seconds: twice the part below one.
func pyTime(t float64) (string, bool) {
	if math.IsNaN(t) || math.IsInf(t, 0) {
		return "", false
	}
	return strconv.FormatFloat(pyMod(t*1e6, 1e6)/1e6+pyMod(t*1e9, 1e9)/1e9, 'f', 9, 64), true
}

// pyJSONText writes a text as json.dumps does: everything beyond ASCII escaped.
func pyJSONText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	hex := func(u uint16) { b.WriteString(`\u` + strings.ToLower(strconv.FormatUint(0x10000|uint64(u), 16)[1:])) }
	for _, c := range s {
		switch i := strings.IndexRune("\"\\\b\f\n\r\t", c); {
		case i >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\bfnrt`[i])
		case c < ' ' || c > '~' && c <= 0xffff:
			hex(uint16(c))
		case c > 0xffff:
			hi, lo := utf16.EncodeRune(c)
			hex(uint16(hi))
			hex(uint16(lo))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
