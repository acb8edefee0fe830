package record_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record"
)

// TestJSONHead checks which files begin with an object or a list, and the search for keys.
func TestJSONHead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]record.Sure{
		`{"a": 1, "b": 2}`:              record.Certain,
		"\xef\xbb\xbf \r\n{\"a\":\"b\"": record.Certain,
		`{"a": 1}`:                      record.No,
		`[{"a": 1, "b": 2}]`:            record.No,
		`x {"a": 1, "b": 2}`:            record.No,
		"":                              record.No,
	} {
		f := record.Bytes("f", []byte(text))
		if got := record.Certain.If(f.JSONHead("{").Has(`"a"`, `"b"`)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	h := record.Bytes("f", []byte("[1]")).JSONHead("{[")
	if !h.HasAny("2", "1") || h.HasAny("2", "3") {
		t.Errorf("search in %q", h)
	}
}

// TestLines checks that lines come in order, and that the members of a file do.
func TestLines(t *testing.T) {
	t.Parallel()
	var got []string
	if err := record.Bytes("f", []byte("a\r\nb\n\nc")).Lines(func(l string) { got = append(got, l) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "", "c"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	got = nil
	f := record.Bytes("f", []byte(`{"a": [1, 2], "b": [3`))
	res, err := f.ScanJSON(t.Context(), jsonscan.Options{Stream: jsonscan.Keys("a", "b")}, func(key string, v []byte) {
		got = append(got, key+string(v))
	})
	if want := []string{"a1", "a2", "b3"}; err != nil || !res.Cut || !slices.Equal(got, want) {
		t.Errorf("values %q, %+v, %v", got, res, err)
	}
	v, fault, err := f.ParseJSON(100)
	if err != nil || fault == nil || len(v.Get("a").List()) != 2 {
		t.Errorf("%v, %v, %v", v.Brief(), fault, err)
	}
	if _, ok := errors.AsType[*record.FileError](record.Fault(f, errors.New("x"))); !ok {
		t.Error("a fault does not name its file")
	}
}

// TestFindLine checks the first result for a line, and that files without the parts have none.
func TestFindLine(t *testing.T) {
	t.Parallel()
	find := func(l string) int { return len(l) / 3 }
	for text, want := range map[string]int{"a\nbcd\nefghij": 1, "a\nefghijd": 2, "a\nb": 0, "abc": 0} {
		if got := record.FindLine(record.Bytes("f", []byte(text)), find, "d", "\nb"); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestGroups checks that files with one name become one group, and that reading continues after an
// error.
func TestGroups(t *testing.T) {
	t.Parallel()
	type group struct{ name, text string }
	var files []*record.File
	for _, name := range []string{"a.1", "b.1", "a.2", "bad", "b.2"} {
		files = append(files, record.Bytes(name, []byte(name)))
	}
	name := func(f *record.File) string { return f.Name[:1] }
	groups, errs := record.Groups(t.Context(), files, name, func(f *record.File) *group { return &group{name: name(f)} }, func(g *group, f *record.File) error {
		if f.Name == "bad" {
			return errors.New("bad")
		}
		g.text += string(f.Head) + " "
		return nil
	})
	if len(groups) != 2 || *groups[0] != (group{"a", "a.1 a.2 "}) || *groups[1] != (group{"b", "b.1 b.2 "}) || len(errs) != 1 || errs[0].Error() != "bad: bad" {
		t.Errorf("%+v, %v", groups, errs)
	}
}
