package textscan

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Number parses a finite number that may have surrounding blanks, a sign, thousands separators
// (commas) or a trailing "%". A percent sign does not divide by 100.
func Number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	s = strings.TrimSpace(strings.TrimSuffix(s, "%"))
	if s == "" || len(s) > 400 {
		return 0, false
	}
	if strings.IndexByte(s, ',') > 0 {
		if !thousands.MatchString(s) {
			return 0, false
		}
		s = strings.ReplaceAll(s, ",", "")
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') || strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// Decimal is [Number] for programs that print no thousands separators: a comma is the decimal sign
// of the user's language. "1,500" may be both, and is refused.
func Decimal(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if whole, part, ok := strings.Cut(s, ","); ok && !strings.ContainsAny(part, ",.") && part != "" {
		if strings.TrimLeft(whole, "+-0") != "" && thousands.MatchString(s) {
			return 0, false
		}
		s = whole + "." + part
	}
	return Number(s)
}

// NotFinite reports whether a text is a number that is infinite, not a number, or beyond the range
// of 64 bits. [Number] refuses it.
func NotFinite(s string) bool {
	s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "%"))
	if s == "" || len(s) > 400 {
		return false
	}
	v, err := strconv.ParseFloat(s, 64)
	return errors.Is(err, strconv.ErrRange) || err == nil && (math.IsNaN(v) || math.IsInf(v, 0))
}

var thousands = lazyregexp.New(`^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$`)

// Whole parses an integer, see [Number].
func Whole(s string) (int64, bool) {
	v, ok := Number(s)
	if !ok || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, false
	}
	return int64(v), true
}

// Fields splits a line at a separator. A field that begins with a quote ends at the next quote
// that is not doubled; both are removed.
func Fields(line string, sep byte) []string {
	var out []string
	for {
		var field string
		rest, more := "", false
		if strings.HasPrefix(line, `"`) {
			field, rest, more = quoted(line, sep)
		} else if i := strings.IndexByte(line, sep); i >= 0 {
			field, rest, more = line[:i], line[i+1:], true
		} else {
			field = line
		}
		out = append(out, field)
		if !more {
			return out
		}
		line = rest
	}
}

// quoted reads a quoted field; a quote that is never closed is kept as text.
func quoted(line string, sep byte) (field, rest string, more bool) {
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		if line[i] != '"' {
			b.WriteByte(line[i])
			continue
		}
		if i+1 < len(line) && line[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		tail := line[i+1:]
		if j := strings.IndexByte(tail, sep); j >= 0 {
			return b.String() + tail[:j], tail[j+1:], true
		}
		return b.String() + tail, "", false
	}
	if j := strings.IndexByte(line, sep); j >= 0 {
		return line[:j], line[j+1:], true
	}
	return line, "", false
}

// Columns finds columns by name.
type Columns struct {
	names []string
}

// NewColumns takes the names of a header row in order, trimmed of blanks.
func NewColumns(names []string) Columns {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.TrimSpace(n)
	}
	return Columns{out}
}

// Names returns the column names.
func (c Columns) Names() []string { return c.names }

// At returns the index of the first column with one of the names, ignoring case, or -1 if absent.
// The order of names takes precedence over the order of columns.
func (c Columns) At(names ...string) int { return c.After(-1, names...) }

// After is At restricted to columns after index at.
func (c Columns) After(at int, names ...string) int {
	for _, want := range names {
		for i := at + 1; i < len(c.names); i++ {
			if strings.EqualFold(c.names[i], want) {
				return i
			}
		}
	}
	return -1
}

// Cell returns the trimmed field of a row at an index, "" out of range.
func Cell(row []string, at int) string {
	if at < 0 || at >= len(row) {
		return ""
	}
	return strings.TrimSpace(row[at])
}

// Text returns the trimmed cell of a row in the first column with one of the names, "" if absent.
func (c Columns) Text(row []string, names ...string) string { return Cell(row, c.At(names...)) }

// Number parses the cell that [Columns.Text] returns.
func (c Columns) Number(row []string, names ...string) (float64, bool) {
	return Number(c.Text(row, names...))
}

// Boxed splits a row of a table drawn with vertical bars. ok is false for other lines; rules
// between rows have no fields.
func Boxed(line string) (row []string, ok bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil, strings.HasPrefix(line, "+-")
	}
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	row = strings.Split(line, "|")
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	return row, true
}

// Scaled parses a number followed by a decimal prefix, such as "35.5m" or "2.8M".
func Scaled(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	scale := 1.0
	if n := len(s); n > 1 {
		if f, ok := map[byte]float64{'T': 1e12, 'G': 1e9, 'M': 1e6, 'k': 1e3, 'K': 1e3, 'm': 1e-3, 'u': 1e-6, 'n': 1e-9, 'p': 1e-12}[s[n-1]]; ok {
			scale, s = f, strings.TrimSpace(s[:n-1])
		}
	}
	v, ok := Number(s)
	if !ok {
		return 0, false
	}
	if scale < 1 {
		v /= math.Round(1 / scale) // exact for short numbers
	} else {
		v *= scale
	}
	return v, !math.IsInf(v, 0)
}
