package board

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/units"
)

// Kinds of numbers in a description.
type (
	// Address is 32 bits: an address, an offset, register bits.
	Address uint32
	// Size is a non-negative integer, optionally with KiB or MiB.
	Size int64
	// Hertz is an integer frequency, optionally with kHz or MHz.
	Hertz int64
	// Ratio is a number above 0.
	Ratio float64
	// Width is the width of a register: 8, 16 or 32 bits.
	Width int
)

// FileError is an error in a description.
type FileError struct {
	File string
	Line int    // from 1, 0 when the whole file is meant
	Key  string // path such as "memories[1].size"
	Text string // what is wrong and what was expected
}

func (e *FileError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		s += ": " + e.Key
	}
	return s + ": " + e.Text
}

// Parse reads a description. Errors are [FileError]s, joined.
func Parse(data []byte, file string) (*Board, error) {
	name := filepath.Base(file)
	if len(data) > maxFile {
		return nil, &FileError{File: name, Text: fmt.Sprintf("is %d bytes long; a description of a board has at most %d", len(data), maxFile)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, &FileError{File: name, Text: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 {
		return nil, &FileError{File: name, Text: "is empty; expected a board (name, cpu, memories, uart, counter)"}
	}
	d := &decoder{file: name, lines: map[string]int{}}
	b := &Board{}
	d.value(doc.Content[0], reflect.ValueOf(b).Elem(), "")
	if len(d.errs) == 0 {
		b.defaults()
		d.check(b)
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return b, nil
}

// decoder fills a Board and records the line of each key.
type decoder struct {
	file  string
	lines map[string]int
	errs  []error
}

// fail records an error of a key, at its line or its parent's.
func (d *decoder) fail(key, format string, args ...any) {
	const most = 20
	if len(d.errs) >= most {
		return
	}
	line, at := 0, key
	for line == 0 && at != "" {
		line = d.lines[at]
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	d.errs = append(d.errs, &FileError{File: d.file, Line: line, Key: key, Text: fmt.Sprintf(format, args...)})
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// value decodes a node into a field of a board.
func (d *decoder) value(n *yaml.Node, v reflect.Value, key string) {
	if d.lines[key] == 0 {
		d.lines[key] = n.Line // an element of a list; a key has its own
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, key)
	case reflect.Slice:
		const most = 256
		if n.Kind != yaml.SequenceNode || len(n.Content) > most {
			d.fail(key, "expected a list of at most %d", most)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, e := range n.Content {
			d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", key, i))
		}
	default:
		if n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null" {
			d.fail(key, "expected %s", scalar(v))
			return
		}
		if !set(v, n.Value) {
			d.fail(key, "is %q; expected %s", n.Value, scalar(v))
		}
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.MappingNode {
		d.fail(key, "expected keys and values")
		return
	}
	var known []string
	fields := map[string]reflect.Value{}
	for f, fv := range v.Fields() {
		name := f.Tag.Get("yaml")
		known = append(known, name)
		fields[name] = fv
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := join(key, n.Content[i].Value)
		f, ok := fields[n.Content[i].Value]
		_, twice := d.lines[k]
		d.lines[k] = n.Content[i].Line
		if twice {
			d.fail(k, "appears twice")
			continue
		}
		if !ok {
			d.fail(k, "is not a key here; expected one of %s", strings.Join(known, ", "))
			continue
		}
		d.value(n.Content[i+1], f, k)
	}
}

// scalar describes the values of a field.
func scalar(v reflect.Value) string {
	switch v.Interface().(type) {
	case Address:
		return "a 32-bit number such as 0x40004000"
	case Size:
		return "an integer such as 262144 or 256KiB"
	case Hertz:
		return "a frequency such as 25000000 or 25MHz"
	case Ratio:
		return "a number above 0"
	case Width:
		return "8, 16 or 32"
	case bool:
		return "true or false"
	}
	return "a text"
}

// set parses a text into a field, and reports whether it is valid.
func set(v reflect.Value, s string) bool {
	switch v.Interface().(type) {
	case Address:
		u, err := strconv.ParseUint(s, 0, 32)
		v.SetUint(u)
		return err == nil
	case Size:
		return setWhole(v, s, units.Bytes)
	case Hertz:
		return setWhole(v, s, units.Hertz)
	case Ratio:
		f, err := strconv.ParseFloat(s, 64)
		v.SetFloat(f)
		return err == nil && f > 0 && f < 1e6
	case Width:
		i, err := strconv.Atoi(s)
		v.SetInt(int64(i))
		return err == nil && (i == 8 || i == 16 || i == 32)
	case bool:
		v.SetBool(s == "true")
		return s == "true" || s == "false"
	}
	v.SetString(s)
	return len(s) <= 200
}

// setWhole parses an integer of at most 40 bits, with a unit.
func setWhole(v reflect.Value, s string, among []units.Unit) bool {
	number, factor, _ := units.Cut(s, among)
	f, err := strconv.ParseFloat(number, 64)
	f *= factor
	if err != nil || !(f >= 0 && f < 1<<40) || f != math.Trunc(f) {
		return false
	}
	v.SetInt(int64(f))
	return true
}
