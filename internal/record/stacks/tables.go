package stacks

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/protoread"
)

// Tables resolves the numbers by which samples of pprof and OpenTelemetry refer to locations,
// functions and strings.
//
// Messages of both formats have the same fields. Those of pprof begin with an identifier, those of
// OpenTelemetry are numbered by their position.
type Tables struct {
	Record
	// Strings are in the order of the file.
	Strings [][]byte

	// hasID is 1 if messages begin with an identifier, 0 otherwise. It is added to field numbers.
	hasID     int
	libraries map[int64]int64 // string number of each mapping
	main      int64           // that of the first mapping
	locations map[int64]location
	functions map[int64]function
	skipped   int64
	frames    []Frame
}

type location struct {
	mapping, address int64
	lines            []int64 // functions, the innermost first
}

type function struct{ name, system, file, line int64 }

// NewTables returns empty tables of a format whose messages have identifiers or not.
func NewTables(identifiers bool) *Tables {
	t := &Tables{libraries: map[int64]int64{}, locations: map[int64]location{}, functions: map[int64]function{}}
	if identifiers {
		t.hasID = 1
	}
	return t
}

// Text returns a string by its number, "" if it is absent.
func (t *Tables) Text(n int64) string {
	if n < 0 || n >= int64(len(t.Strings)) {
		return ""
	}
	return string(t.Strings[n])
}

// Full reports whether a table of n entries is full, and counts the entry that does not fit.
func (t *Tables) Full(n int) bool {
	if n >= maxEntries {
		t.skipped++
	}
	return n >= maxEntries
}

// AddString adds a string.
func (t *Tables) AddString(s []byte) {
	if !t.Full(len(t.Strings)) {
		t.Strings = append(t.Strings, s)
	}
}

// AddMapping adds a mapping of a library.
func (t *Tables) AddMapping(m protoread.Reader) {
	id, file := int64(len(t.libraries)), int64(0)
	_ = m.Scan(t.hasID, &id, 4+t.hasID, &file)
	if len(t.libraries) == 0 {
		t.main = file
	}
	if !t.Full(len(t.libraries)) {
		t.libraries[id] = file
	}
}

// Main returns the file name of the first mapping.
func (t *Tables) Main() string { return t.Text(t.main) }

// AddLocation adds a location: a place in a library with the functions that are inlined there.
func (t *Tables) AddLocation(m protoread.Reader) {
	id := int64(len(t.locations))
	var l location
	_ = m.Scan(t.hasID, &id, 1+t.hasID, &l.mapping, 2+t.hasID, &l.address, 3+t.hasID, func(line protoread.Reader) {
		var f int64
		if _ = line.Scan(1, &f); len(l.lines) < 1000 {
			l.lines = append(l.lines, f)
		}
	})
	if !t.Full(len(t.locations)) {
		t.locations[id] = l
	}
}

// AddFunction adds a function.
func (t *Tables) AddFunction(m protoread.Reader) {
	id := int64(len(t.functions))
	var f function
	_ = m.Scan(t.hasID, &id, 1+t.hasID, &f.name, 2+t.hasID, &f.system, 3+t.hasID, &f.file, 4+t.hasID, &f.line)
	if !t.Full(len(t.functions)) {
		t.functions[id] = f
	}
}

// AddSample adds a sample of a stack of locations, the innermost first, see [Record.Add].
func (t *Tables) AddSample(stack, values []int64, labels []Label) {
	t.frames = t.frames[:0]
	absent := int64(0)
	for _, id := range stack {
		if l, ok := t.locations[id]; !ok {
			absent++
		} else if len(t.frames) < MaxDepth {
			t.location(&l)
		}
	}
	t.Set.Dropped.Add("places of samples that are absent", absent)
	t.Add(t.frames, values, labels)
}

// location appends the functions of a location to the frames.
func (t *Tables) location(l *location) {
	library := ""
	if l.mapping != 0 {
		library = t.Text(t.libraries[l.mapping])
	}
	if len(l.lines) == 0 {
		t.frames = append(t.frames, Frame{Function: Function{Name: fmt.Sprintf("0x%x", uint64(l.address)), Library: library}})
		return
	}
	for _, id := range l.lines {
		f := t.functions[id]
		system := t.Text(f.system)
		x := Frame{Function: Function{Name: cmp.Or(t.Text(f.name), system), File: t.Text(f.file), Library: library, Line: max(0, f.line)}}
		if kind, rest, ok := strings.Cut(system, ":"); ok && rest == x.Name {
			x.Kind = kind
		}
		t.frames = append(t.frames, x)
	}
}

// Skipped counts the entries that did not fit into the tables. Call it once.
func (t *Tables) Skipped() {
	t.Set.Dropped.Add("entries of tables beyond the first 4,000,000", t.skipped)
}
