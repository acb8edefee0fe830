package chip

import (
	_ "embed" // the table of shipped targets
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// table holds the shipped targets as written by [Table]: parsing YAML at each start took longer
// than most estimates. Strings of a target point into it.
//
//go:embed chips.bin
var table string

// tableHead begins a table and changes with its format.
const tableHead = "opmeter targets 1\n"

// Table encodes targets for the binary: a list of ids and sizes, followed by the targets, each
// readable without the others. Equal targets give equal bytes. Fields are in struct order,
// without names: only the version of the program that wrote a table reads it.
func Table(targets []*Target) []byte {
	targets = slices.SortedFunc(slices.Values(targets), func(a, b *Target) int { return strings.Compare(a.ID, b.ID) })
	b := []byte(tableHead)
	b = binary.AppendUvarint(b, uint64(len(targets)))
	var bodies []byte
	for _, t := range targets {
		body := appendValue(nil, reflect.ValueOf(t).Elem())
		b = appendText(b, t.ID)
		b = binary.AppendUvarint(b, uint64(len(body)))
		bodies = append(bodies, body...)
	}
	return append(b, bodies...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendValue encodes a value. Sizes are stored plus one, so that nil differs from empty.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			b = appendValue(b, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return appendValue(append(b, 1), v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		keys := v.MapKeys()
		sorting.Func(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for _, k := range keys {
			b = appendValue(appendText(b, k.String()), v.MapIndex(k))
		}
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Float64:
		// Zeros and short fractions have trailing zero bits, which come first after the reversal.
		return binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(v.Float())))
	}
	return b
}

// errTable is for a table written by another version.
var errTable = errors.New("the targets of this program cannot be read: it was built with the table of another version; go generate ./internal/estimate/chip makes it")

// tableReader reads values from a table.
type tableReader struct {
	s   string
	bad bool
}

func (r *tableReader) uvarint() uint64 {
	var b [binary.MaxVarintLen64]byte
	v, n := binary.Uvarint(b[:copy(b[:], r.s)])
	if n <= 0 {
		r.bad, r.s = true, ""
		return 0
	}
	r.s = r.s[n:]
	return v
}

// size reads a number of items that take at least a byte each.
func (r *tableReader) size() int {
	n := r.uvarint()
	if n > uint64(len(r.s))+1 {
		r.bad, r.s = true, ""
		return 0
	}
	return int(n)
}

func (r *tableReader) text() string {
	n := r.size()
	if n > len(r.s) {
		r.bad = true
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func (r *tableReader) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			r.value(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			r.value(v.Index(i))
		}
	case reflect.Pointer:
		if r.size() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			r.value(v.Elem())
		}
	case reflect.Slice:
		if n := r.size() - 1; n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.value(v.Index(i))
			}
		}
	case reflect.Map:
		if n := r.size() - 1; n >= 0 {
			v.Set(reflect.MakeMapWithSize(v.Type(), n))
			for range n {
				k, e := r.text(), reflect.New(v.Type().Elem()).Elem()
				r.value(e)
				v.SetMapIndex(reflect.ValueOf(k), e)
			}
		}
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.size() == 1)
	case reflect.Int64:
		u := r.uvarint()
		v.SetInt(int64(u>>1) ^ -int64(u&1)) // the sign is in the last bit
	case reflect.Float64:
		v.SetFloat(math.Float64frombits(bits.ReverseBytes64(r.uvarint())))
	}
}

// shipped reads each target of the binary at most once, by id.
var shipped = sync.OnceValue(func() map[string]func() (*Target, error) { return readTable(table) })

// readTable lists the targets of a table; each is read on demand.
func readTable(table string) map[string]func() (*Target, error) {
	rest, ok := strings.CutPrefix(table, tableHead)
	if !ok {
		return nil
	}
	r := &tableReader{s: rest}
	n := r.size()
	m := make(map[string]func() (*Target, error), n)
	type entry struct {
		id   string
		size int
	}
	list := make([]entry, n)
	for i := range list {
		list[i] = entry{r.text(), r.size()}
	}
	for _, e := range list {
		if r.bad || e.size > len(r.s) {
			break
		}
		body := r.s[:e.size]
		r.s = r.s[e.size:]
		m[e.id] = sync.OnceValues(func() (*Target, error) {
			t, b := &Target{}, &tableReader{s: body}
			b.value(reflect.ValueOf(t).Elem())
			if b.bad || b.s != "" || t.ID != e.id {
				return nil, errTable
			}
			return t, nil
		})
	}
	return m
}
