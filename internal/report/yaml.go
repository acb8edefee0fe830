package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// writeYAML writes the same data as JSON, in the same order. It is written by
// hand, value by value: the nodes that a library builds first take more memory
// than a profile with millions of samples may.
func writeYAML(w io.Writer, p *profile.Profile, o Options) error {
	p = o.grouped(p)
	if err := p.Validate(); err != nil {
		return err
	}
	y := &yamlWriter{w: bufio.NewWriterSize(w, 1<<16)}
	y.value(reflect.ValueOf(p).Elem(), "\n", 0)
	return y.w.Flush()
}

type yamlWriter struct {
	w   *bufio.Writer // keeps the first error
	tmp []byte
}

func (y *yamlWriter) text(s string) { _, _ = y.w.WriteString(s) }

func (y *yamlWriter) indent(n int) {
	for range n {
		y.text("  ")
	}
}

// member is a field of an object as JSON has it.
type member struct {
	name string
	v    reflect.Value
}

// members lists the fields that are written: names and rules stand in the json tags.
func members(v reflect.Value) []member {
	var out []member
	if v.Kind() == reflect.Map {
		for _, k := range slices.Sorted(maps.Keys(stringKeys(v))) {
			out = append(out, member{k, v.MapIndex(reflect.ValueOf(k))})
		}
		return out
	}
	for i := range v.NumField() {
		name, rule, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if rule == "omitzero" && f.IsZero() || rule == "omitempty" && (f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0) {
			continue
		}
		out = append(out, member{name, f})
	}
	return out
}

func stringKeys(v reflect.Value) map[string]bool {
	keys := map[string]bool{}
	for _, k := range v.MapKeys() {
		keys[k.String()] = true
	}
	return keys
}

// value writes what stands after a key. lead is put before the first member of
// an object: a line break after a key, nothing after the dash of a list.
func (y *yamlWriter) value(v reflect.Value, lead string, depth int) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map:
		ms := members(v)
		if len(ms) == 0 {
			y.text(" {}\n")
			return
		}
		if depth > 0 {
			y.text(lead)
		}
		for i, m := range ms {
			if depth > 0 && (i > 0 || lead == "\n") {
				y.indent(depth)
			}
			y.scalar(reflect.ValueOf(m.name), false)
			y.text(":")
			y.value(m.v, "\n", depth+1)
		}
	case reflect.Slice, reflect.Array:
		y.list(v, depth)
	default:
		y.text(" ")
		y.scalar(v, false)
		y.text("\n")
	}
}

// list writes plain values on one line and objects below each other.
func (y *yamlWriter) list(v reflect.Value, depth int) {
	switch v.Type().Elem().Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		if v.Len() == 0 {
			break
		}
		y.text("\n")
		for i := range v.Len() {
			y.indent(depth)
			y.text("-")
			y.value(v.Index(i), " ", depth+1)
		}
		return
	}
	y.text(" [")
	switch s := v.Interface().(type) {
	case []float64: // these may be long
		for i, x := range s {
			y.comma(i)
			y.float(x)
		}
	case []int32:
		for i, x := range s {
			y.comma(i)
			y.int(int64(x))
		}
	default:
		for i := range v.Len() {
			y.comma(i)
			y.scalar(v.Index(i), true)
		}
	}
	y.text("]\n")
}

func (y *yamlWriter) comma(i int) {
	if i > 0 {
		y.text(", ")
	}
}

func (y *yamlWriter) int(v int64) {
	y.tmp = strconv.AppendInt(y.tmp[:0], v, 10)
	_, _ = y.w.Write(y.tmp)
}

// float writes a number as JSON does.
func (y *yamlWriter) float(v float64) {
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	y.tmp = strconv.AppendFloat(y.tmp[:0], v, format, -1, 64)
	_, _ = y.w.Write(y.tmp)
}

func (y *yamlWriter) scalar(v reflect.Value, inList bool) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); plainYAML(s, inList) {
			y.text(s)
		} else {
			y.quoted(s)
		}
	case reflect.Float64:
		y.float(v.Float())
	case reflect.Int64, reflect.Int32:
		y.int(v.Int())
	case reflect.Bool, reflect.Uint64:
		y.text(fmt.Sprint(v.Interface()))
	default:
		y.text("null")
	}
}

// quoted writes a JSON string, which YAML takes, with the escapes that YAML asks
// for besides (control characters above ASCII, line separators, the byte order mark and
// what is not a character) and those that keep a reader from being deceived: what shows
// nothing of its own or turns the direction of what follows.
func (y *yamlWriter) quoted(s string) {
	y.tmp = jsonx.AppendString(y.tmp[:0], s)
	for _, r := range string(y.tmp) {
		switch {
		case r >= 0x7f && r <= 0xffff && text.Hidden(r):
			fmt.Fprintf(y.w, `\u%04x`, r)
		case text.Hidden(r):
			fmt.Fprintf(y.w, `\U%08x`, r)
		default:
			_, _ = y.w.WriteRune(r)
		}
	}
}

// plainYAML reports whether a text needs no quotes: it begins with a letter, holds
// printable ASCII only, and is no other type's word.
func plainYAML(s string, inList bool) bool {
	if s == "" || len(s) > 256 || s[len(s)-1] == ' ' || s[len(s)-1] == ':' || strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return false
	}
	if c := s[0] | 0x20; c < 'a' || c > 'z' {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || inList && strings.IndexByte(",[]{}", s[i]) >= 0 {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "nan", "inf":
		return false
	}
	return true
}
