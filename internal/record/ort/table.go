package ort

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// table is a file with one event a row, such as pandas writes of the JSON: the columns are the keys
// of events, and the arguments are one column or a column each.
type table struct {
	sure record.Sure
	sep  rune // 0 for a workbook
}

// tableOf recognises a table by its header, a workbook by its name; nil for other files.
func tableOf(f *record.File) *table {
	if bytes.HasPrefix(f.Head, []byte("PK\x03\x04")) && strings.HasSuffix(strings.ToLower(f.Name), ".xlsx") {
		return &table{sure: record.Maybe}
	}
	if !textscan.Any(f.Head, "op_name") || f.JSONHead("[{") != nil {
		return nil
	}
	lines := textscan.Head(f.Head, f.Whole)
	if len(lines) == 0 {
		return nil
	}
	for _, sep := range ",;\t" {
		if c := columnsOf(textscan.Fields(lines[0], byte(sep))); c.usable() {
			return &table{sure: record.Certain, sep: sep}
		}
	}
	return nil
}

// columns are the columns of a table: the keys of an event, and of its arguments.
type columns struct {
	keys []string // "" for a column that is not a key of an event
	args []string // "" for a column that is not an argument
}

// eventKeys are the keys of an event that are read.
var eventKeys = map[string]bool{"cat": true, "name": true, "ts": true, "dur": true, "tid": true, "args": true}

// skipped are columns that are not read: the index, and keys that are the same in all events.
var skipped = map[string]bool{"": true, "pid": true, "ph": true, "index": true, "unnamed: 0": true}

func columnsOf(header []string) columns {
	c := columns{make([]string, len(header)), make([]string, len(header))}
	for i, h := range header {
		h = strings.TrimSpace(strings.TrimPrefix(h, "\ufeff"))
		key := strings.ToLower(h)
		switch arg := strings.TrimPrefix(strings.TrimPrefix(h, "args."), "args_"); {
		case eventKeys[key]:
			c.keys[i] = key
		case !skipped[key]:
			c.args[i] = arg
		}
	}
	return c
}

// usable reports whether events can be read of these columns.
func (c *columns) usable() bool {
	has := map[string]bool{}
	for i := range c.keys {
		has[c.keys[i]], has[c.args[i]] = true, true
	}
	return has["name"] && has["dur"] && has["ts"] && (has["args"] || has["op_name"])
}

// errColumns is the error for a table without events.
var errColumns = errors.New("no table of ONNX Runtime's events: want the columns name, ts, dur, and args or op_name")

// read reads the rows of a table into the readers of sessions.
func (t *table) read(ctx context.Context, f *record.File, s *sessions) error {
	var c *columns
	row := func(fields []string) error {
		if c == nil {
			if c = new(columnsOf(fields)); !c.usable() {
				return errColumns
			}
			return ctx.Err()
		}
		// A header that comes again begins the table of another session.
		if again := columnsOf(fields); again.usable() {
			c = &again
			s.document()
			return nil
		}
		s.last().event(c.event(fields))
		return ctx.Err()
	}
	var err error
	if t.sep == 0 {
		err = readWorkbook(f, row)
	} else {
		err = readCSV(f, t.sep, row)
	}
	s.last().finish()
	return err
}

func readCSV(f *record.File, sep rune, row func([]string) error) error {
	return f.With(func(in io.Reader) error {
		r := csv.NewReader(in)
		r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = sep, true, -1, true
		for {
			fields, err := r.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = row(fields)
			}
			if err != nil {
				return err
			}
		}
	})
}

// maxWorkbook limits a workbook, packed and unpacked, in bytes.
const maxWorkbook = 512 << 20

// readWorkbook reads the first sheet with events.
func readWorkbook(f *record.File, row func([]string) error) error {
	b, err := f.Read(maxWorkbook / 8)
	if err != nil {
		return err
	}
	w, err := workbook.NewReader(b, maxWorkbook)
	if err != nil {
		return err
	}
	for _, sheet := range w.Sheets() {
		first := true
		for fields, err := range w.Rows(sheet) {
			if err == nil && first {
				if c := columnsOf(fields); !c.usable() {
					break // another sheet may have them
				}
			}
			first = false
			if err == nil {
				err = row(fields)
			}
			if err != nil {
				return fmt.Errorf("sheet %s: %w", sheet, err)
			}
		}
		if !first {
			return nil
		}
	}
	return errColumns
}

// event makes the JSON of an event of a row.
func (c *columns) event(fields []string) []byte {
	out := []byte(`{"ph":"X"`)
	put := func(key string, value []byte) {
		out = append(append(append(append(out, ',', '"'), key...), '"', ':'), value...)
	}
	text := func(s string) []byte {
		b, err := jsonx.Marshal(strings.ToValidUTF8(s, "\ufffd"))
		if err != nil {
			return []byte(`""`)
		}
		return b
	}
	cell := func(i int) string { return textscan.Cell(fields, i) }
	name, category := "", ""
	args := []byte{}
	for i, key := range c.keys {
		v := cell(i)
		switch key {
		case "":
			if a := c.args[i]; a != "" && v != "" && !strings.EqualFold(v, "nan") {
				args = append(append(append(args, ','), text(a)...), ':')
				args = append(args, argument(v, text)...)
			}
		case "name":
			name = v
			put(key, text(v))
		case "cat":
			category = v
		case "ts", "dur", "tid":
			if n, ok := textscan.Number(v); ok {
				put(key, []byte(fmt.Sprintf("%.0f", n)))
			}
		case "args":
			if inner := literal(v); len(inner) > 2 && inner[0] == '{' {
				args = append(append(args, ','), inner[1:len(inner)-1]...)
			}
		}
	}
	if category == "" { // some scripts leave it out
		category = "Session"
		if strings.HasSuffix(name, kernelTime) || strings.HasSuffix(name, fenceBefore) || strings.HasSuffix(name, fenceAfter) {
			category = "Node"
		}
	}
	put("cat", text(category))
	if len(args) > 0 {
		put("args", append(append([]byte{'{'}, args[1:]...), '}'))
	} else {
		put("args", []byte("{}"))
	}
	return append(out, '}')
}

// argument is the JSON of an argument: the runtime writes numbers as text, and shapes as lists.
func argument(v string, text func(string) []byte) []byte {
	if v[0] == '[' || v[0] == '{' {
		if b := literal(v); b != nil {
			return b
		}
	}
	if n, ok := textscan.Whole(v); ok && strings.HasSuffix(v, ".0") {
		v = fmt.Sprint(n) // a column with missing values has floats
	}
	return text(v)
}

// words are the literals of Python that JSON writes in another way.
var words = []struct{ python, json string }{{"True", "true"}, {"False", "false"}, {"None", "null"}, {"nan", "null"}, {"(", "["}, {")", "]"}}

// literal turns a literal of Python, as pandas writes objects, or JSON into JSON; nil for text with
// a string that does not end.
func literal(s string) []byte {
	var out []byte
	for i := 0; i < len(s); {
		if c := s[i]; c == '\'' || c == '"' {
			text, n := quoted(s[i:])
			if n == 0 {
				return nil
			}
			out = append(append(append(out, '"'), text...), '"')
			i += n
			continue
		}
		w := slices.IndexFunc(words, func(w struct{ python, json string }) bool { return strings.HasPrefix(s[i:], w.python) })
		if w >= 0 {
			out = append(out, words[w].json...)
			i += len(words[w].python)
			continue
		}
		out = append(out, s[i])
		i++
	}
	return out
}

// quoted returns the text of the string that s begins with, escaped for JSON, and the length of the
// literal, 0 if it does not end.
func quoted(s string) (text string, n int) {
	end := 1
	for end < len(s) && s[end] != s[0] {
		if s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s) {
		return "", 0
	}
	text = strings.ReplaceAll(s[1:end], `\'`, `'`)
	if s[0] == '\'' {
		text = strings.ReplaceAll(text, `"`, `\"`)
	}
	return text, end + 1
}
