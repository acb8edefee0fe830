// Package workbook writes and reads workbooks of Office Open XML (ECMA-376, .xlsx) as streams. It
// knows what reports need: cells with values, formulas and styles, filters, data bars and limits of
// cells. It keeps one row in memory, so that sheets with a million rows can be written and read.
package workbook

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// Limits of a sheet that the format sets.
const (
	MaxRows    = 1 << 20
	MaxColumns = 1 << 14
	MaxText    = 32767 // UTF-16 units of a cell
)

// CellName names a cell by column from 0 and row from 1: "B7".
func CellName(column, row int) string { return ColumnName(column) + strconv.Itoa(row) }

// ColumnName names a column, from 0.
func ColumnName(column int) string {
	s := ""
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		s = string(rune('A'+(n-1)%26)) + s
	}
	return s
}

// columnOf returns the column, from 0, of a cell such as "B7"; ok is false for other texts.
func columnOf(cell string) (column int, ok bool) {
	i := 0
	for ; i < len(cell) && i < 4 && cell[i]|0x20 >= 'a' && cell[i]|0x20 <= 'z'; i++ {
		column = column*26 + int(cell[i]|0x20-'a') + 1
	}
	return column - 1, column > 0 && column <= MaxColumns && i < len(cell) && cell[i] >= '1' && cell[i] <= '9'
}

// escape appends a text to an element or attribute. Characters that XML lacks become U+FFFD.
func escape(b *bytes.Buffer, s string) {
	_ = xml.EscapeText(b, []byte(s)) // a buffer takes everything
}

// cut shortens a text to what a cell may have.
func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	units := 0
	for i, r := range s {
		n := 1
		if r > 0xffff {
			n = 2
		}
		if units += n; units > MaxText {
			return s[:i]
		}
	}
	return s
}

// escaped finds _xHHHH_, which stands for a UTF-16 unit in texts of cells.
func escaped(s string, i int) (unit rune, ok bool) {
	if len(s)-i < 7 || s[i] != '_' || s[i+1] != 'x' || s[i+6] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[i+2:i+6], 16, 16)
	return rune(n), err == nil
}

// escapeUnits keeps a text as it is where a part of it looks like an escape.
func escapeUnits(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		if _, ok := escaped(s, i); ok {
			out.WriteString("_x005F")
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// unescapeUnits replaces the escapes of a text.
func unescapeUnits(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		if r, ok := escaped(s, i); ok {
			out.WriteRune(r)
			i += 7
			continue
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}
