package chip

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/editdistance"
	"github.com/opmeter/opmeter/internal/base/units"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// FileError is an error in a target file.
type FileError struct {
	File string
	Line int    // from 1, 0 when the whole file is meant
	Key  string // path such as "memories[1].size"
	Text string // what was expected
	Err  error  // the cause, nil for none
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

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

// Parse reads one target file. All errors found are joined. A file with inherits takes missing
// parts from a shipped target.
func Parse(data []byte, file string) (*Target, error) { return parse(data, file, shippedTarget) }

// shippedTarget finds a target embedded in the binary.
func shippedTarget(id string) (*Target, error) { return (&Set{}).Find(id) }

// parse reads a target file; find returns the target that it inherits from.
func parse(data []byte, file string, find func(id string) (*Target, error)) (*Target, error) {
	const most = 1 << 20
	if len(data) > most {
		return nil, &FileError{File: file, Text: fmt.Sprintf("is %d bytes long; a target file has at most %d", len(data), most)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, &FileError{File: file, Text: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 {
		return nil, &FileError{File: file, Text: "is empty; expected a target (id, name, core, clock, runtimes, …)"}
	}
	d := &decoder{file: file}
	sum := sha256.Sum256(data)
	t := &Target{}
	if from := at(doc.Content[0], "inherits"); doc.Content[0].Kind == yaml.MappingNode && from != doc.Content[0] {
		base, err := find(from.Value)
		if err != nil {
			d.fail(from, "inherits", "%v", err)
			return nil, errors.Join(d.errs...)
		}
		own := *base
		t, d.heir = &own, true
		t.Runtimes, t.Memories = slices.Clone(base.Runtimes), slices.Clone(base.Memories)
		sum = sha256.Sum256(append([]byte(base.SHA256), data...))
	}
	t.File, t.SHA256 = file, hex.EncodeToString(sum[:])
	d.value(doc.Content[0], reflect.ValueOf(t).Elem(), "", "")
	if len(d.errs) == 0 {
		d.check(t, doc.Content[0])
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	if t.Core.Cores == 0 {
		t.Core.Cores = 1
	}
	return t, nil
}

type decoder struct {
	file string
	heir bool // what is left out comes from another target
	errs []error
}

func (d *decoder) fail(n *yaml.Node, key, format string, args ...any) {
	const most = 20
	if len(d.errs) < most {
		d.errs = append(d.errs, &FileError{File: d.file, Line: n.Line, Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return strconv.Quote(n.Value)
	}
	return "an alias"
}

// value decodes n into v. The tags of its field may add constraints: enum lists the values of a
// string, keys names the list of keys of a table, need is the last of the required terms.
func (d *decoder) value(n *yaml.Node, v reflect.Value, key string, tag reflect.StructTag) {
	if n.Kind == yaml.AliasNode {
		d.fail(n, key, "aliases are not supported")
		return
	}
	if v.Kind() == reflect.Pointer {
		old := v
		v = reflect.New(v.Type().Elem())
		if d.heir && !old.IsNil() && !strings.Contains(key, "[") {
			v.Elem().Set(old.Elem()) // a part that is given adds to what is inherited
		}
		old.Set(v)
		v = v.Elem()
	}
	switch v.Type() {
	case reflect.TypeFor[Bytes]():
		d.scaled(n, v, key, "a size such as 262144 or 256KiB", units.Bytes)
		return
	case reflect.TypeFor[Hertz]():
		d.scaled(n, v, key, "a frequency such as 78000000 or 78MHz", units.Hertz)
		return
	case reflect.TypeFor[Terms]():
		d.terms(n, v.Addr().Interface().(*Terms), key, tag.Get("need"))
		return
	}
	enum := tag.Get("enum")
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, key)
	case reflect.Slice, reflect.Array:
		d.list(n, v, key)
	case reflect.Map:
		d.table(n, v, key, tables[tag.Get("keys")])
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
			d.fail(n, key, "expected true or false, found %s", kindOf(n))
			return
		}
		v.SetBool(n.Value == "true")
	case reflect.String:
		if n.Kind != yaml.ScalarNode {
			d.fail(n, key, "expected text, found %s", kindOf(n))
			return
		}
		if enum != "" && !slices.Contains(strings.Split(enum, ","), n.Value) {
			d.fail(n, key, "is %q; expected one of %s", n.Value, strings.ReplaceAll(enum, ",", ", "))
			return
		}
		v.SetString(n.Value)
	case reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if n.Kind != yaml.ScalarNode || err != nil || i < 0 {
			d.fail(n, key, "expected an integer that is not negative, found %s", kindOf(n))
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		if f, ok := d.number(n, key); ok {
			v.SetFloat(f)
		}
	}
}

func (d *decoder) number(n *yaml.Node, key string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		d.fail(n, key, "expected a number, found %s", kindOf(n))
		return 0, false
	}
	return f, true
}

// terms decodes a table of figures by kind of work; all terms up to need are required.
func (d *decoder) terms(n *yaml.Node, t *Terms, key, need string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "expected a mapping of kinds of work to figures, found %s", kindOf(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := slices.Index(TermNames[:], k.Value)
		switch {
		case at < 0:
			d.unknown(k, join(key, k.Value), TermNames[:])
			continue
		case seen[k.Value]:
			d.fail(k, join(key, k.Value), "appears twice")
			continue
		}
		seen[k.Value] = true
		f, ok := d.number(n.Content[i+1], join(key, k.Value))
		if ok && f < 0 {
			d.fail(n.Content[i+1], join(key, k.Value), "is %v; a cost cannot be negative", f)
		}
		t[at] = f
	}
	for _, name := range TermNames[:slices.Index(TermNames[:], need)+1] {
		if !seen[name] && name != youngest {
			d.fail(n, join(key, name), "is missing")
		}
	}
}

// youngest is a kind of work that older files omit: they charge it to the other kinds.
const youngest = "conv_window"

// unknown reports a key that is not allowed here.
func (d *decoder) unknown(k *yaml.Node, key string, known []string) {
	if s := editdistance.Nearest(k.Value, known); s != "" {
		d.fail(k, key, "is not a key here; did you mean %q?", s)
		return
	}
	d.fail(k, key, "is not a key here; expected one of %s", strings.Join(known, ", "))
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "expected a mapping of keys to values, found %s", kindOf(n))
		return
	}
	fields := map[string]reflect.StructField{}
	required := map[string]bool{}
	for f := range v.Type().Fields() {
		name, opt, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" {
			continue
		}
		fields[name] = f
		required[name] = opt == "required"
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		f, ok := fields[k.Value]
		switch {
		case !ok:
			d.unknown(k, join(key, k.Value), slices.Sorted(maps.Keys(fields)))
			continue
		case seen[k.Value]:
			d.fail(k, join(key, k.Value), "appears twice")
			continue
		}
		seen[k.Value] = true
		if val.Tag == "!!null" {
			d.fail(val, join(key, k.Value), "has no value")
			continue
		}
		d.value(val, v.FieldByIndex(f.Index), join(key, k.Value), f.Tag)
	}
	for _, name := range slices.Sorted(maps.Keys(required)) {
		if required[name] && !seen[name] && !(d.heir && !strings.Contains(key, "[")) {
			d.fail(n, join(key, name), "is missing")
		}
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, key, "expected a list, found %s", kindOf(n))
		return
	}
	if v.Kind() == reflect.Array {
		if len(n.Content) != v.Len() {
			d.fail(n, key, "expected a list of %d, found one of %d", v.Len(), len(n.Content))
			return
		}
	} else {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	}
	for i, e := range n.Content {
		d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", key, i), "")
	}
}

func (d *decoder) table(n *yaml.Node, v reflect.Value, key string, known []string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "expected a mapping of names to values, found %s", kindOf(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		e := reflect.New(v.Type().Elem()).Elem()
		if v.MapIndex(reflect.ValueOf(k.Value)).IsValid() {
			d.fail(k, join(key, k.Value), "appears twice")
		}
		if known != nil && !slices.Contains(known, k.Value) {
			d.unknown(k, join(key, k.Value), known)
			continue
		}
		d.value(n.Content[i+1], e, join(key, k.Value), "")
		v.SetMapIndex(reflect.ValueOf(k.Value), e)
	}
}

// scaled decodes a number with an optional unit.
func (d *decoder) scaled(n *yaml.Node, v reflect.Value, key, want string, among []units.Unit) {
	f, ok := parseScaled(n.Value, among)
	if n.Kind != yaml.ScalarNode || !ok {
		d.fail(n, key, "expected %s, found %s", want, kindOf(n))
		return
	}
	if v.Kind() == reflect.Float64 {
		v.SetFloat(f)
		return
	}
	v.SetInt(int64(math.Round(f)))
}

func parseScaled(s string, among []units.Unit) (float64, bool) {
	s, factor, _ := units.Cut(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), among)
	f, err := strconv.ParseFloat(s, 64)
	f *= factor
	return f, err == nil && f >= 0 && f < 1e15
}

// at finds the node of a top-level key, for line numbers.
func at(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return n
}

// check validates what types alone do not.
func (d *decoder) check(t *Target, n *yaml.Node) {
	if !validID(t.ID) {
		d.fail(at(n, "id"), "id", "is %q; expected lower-case letters, digits and single dashes", t.ID)
	} else if t.ID == "host" {
		d.fail(at(n, "id"), "id", "is %q, which stands for this computer; expected another id", t.ID)
	}
	c := at(n, "clock")
	switch {
	case t.Clock.Default <= 0 || t.Clock.Max <= 0:
		d.fail(c, "clock", "default and max must be above 0")
	case t.Clock.Default > t.Clock.Max || t.Clock.Default < t.Clock.Min:
		d.fail(c, "clock.default", "is %.0f Hz, outside min %.0f and max %.0f", float64(t.Clock.Default), float64(t.Clock.Min), float64(t.Clock.Max))
	}
	for i, m := range t.Memories {
		if m.Size <= 0 {
			d.fail(at(n, "memories"), fmt.Sprintf("memories[%d].size", i), "must be above 0")
		}
	}
	if len(t.Runtimes) == 0 {
		d.fail(at(n, "runtimes"), "runtimes", "is empty; expected at least one runtime family")
	}
	names := map[string]bool{}
	for i := range t.Runtimes {
		own := n // of the target that is inherited from
		if list := at(n, "runtimes"); list != n {
			own = list.Content[i]
		}
		d.runtime(&t.Runtimes[i], own, fmt.Sprintf("runtimes[%d]", i), names)
	}
	if t.Energy != nil {
		d.band(at(n, "energy"), "energy.band", t.Energy.Band)
		if t.Energy.Watts < 0 || t.Energy.ElapsedCycle < 0 || t.Energy.CPUCycle < 0 || t.Energy.MAC < 0 {
			d.fail(at(n, "energy"), "energy", "figures must not be negative")
		}
	}
}

func (d *decoder) runtime(r *Runtime, n *yaml.Node, key string, names map[string]bool) {
	if names[r.Name] {
		d.fail(at(n, "name"), key+".name", "%q appears twice", r.Name)
	}
	names[r.Name] = true
	if (r.Cortexm == nil) == (r.MVP == nil) {
		d.fail(n, key, "expected the figures of one cycle model: cortexm or mvp")
	}
	if c := r.Code; c != nil && c[0] > c[1] {
		d.fail(at(n, "code"), key+".code", "is [%d, %d] bytes; expected the least and the most", c[0], c[1])
	}
	if r.Calibration != nil {
		d.band(at(at(n, "calibration"), "band"), key+".calibration.band", r.Calibration.Band)
	}
	if s := r.Cortexm; s != nil {
		type width struct {
			of, key string
			v       float64
		}
		i := s.Integer
		widths := []width{{"integer", "band_near", i.Near}, {"integer", "band_far", i.Far}, {"integer", "band_layer", i.Layer}, {"integer", "band_overhead", i.Overhead}}
		for of, f := range map[string]*Typed{"int16": s.Int16, "float": s.Float} {
			if f != nil {
				widths = append(widths, width{of, "band_near", f.Near}, width{of, "band_far", f.Far}, width{of, "band_overhead", f.Overhead})
			}
		}
		for _, b := range widths {
			if b.v < 0 {
				d.fail(at(at(at(n, "cortexm"), b.of), b.key), key+".cortexm."+b.of+"."+b.key, "is %v; a half-width cannot be negative", b.v)
			}
		}
		return
	}
	if r.MVP == nil {
		return
	}
	for op, types := range r.MVP.Operators {
		for typ := range types {
			if _, ok := tensor.ParseType(typ); !ok && typ != AnyType {
				d.fail(at(at(at(at(n, "mvp"), "operators"), op), typ), key+".mvp.operators."+op+"."+typ, "is not an element type; expected one such as int8 or float32, or %s", AnyType)
			}
		}
	}
}

func (d *decoder) band(n *yaml.Node, key string, b *[2]float64) {
	if b != nil && !(0 <= b[0] && b[0] <= 1 && b[1] >= 1) {
		d.fail(n, key, "is [%v, %v]; expected factors around 1, such as [0.9, 1.1]", b[0], b[1])
	}
}

func validID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i, r := range s {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
		case r == '-' && i > 0 && i < len(s)-1 && s[i-1] != '-':
		default:
			return false
		}
	}
	return true
}
