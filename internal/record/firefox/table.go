package firefox

import (
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
)

// table holds a table by columns. Processed profiles have columns, those of Firefox have rows
// with a schema.
type table struct {
	numbers map[string][]float64 // NaN for null
	raw     map[string][][]byte
	n       int
	unit    string // type of weights
}

// readTable reads a table. Columns named in raw are not decoded.
func readTable(v []byte, raw ...string) table {
	t := table{numbers: map[string][]float64{}, raw: map[string][][]byte{}}
	var schema map[string]int
	var rows []byte
	traceevent.Members(v, func(k, v []byte) {
		switch {
		case string(k) == "schema":
			schema = map[string]int{}
			traceevent.Members(v, func(k, v []byte) {
				if n, ok := jsonscan.Int(v); ok && n >= 0 && n < 100 {
					schema[string(k)] = int(n)
				}
			})
		case string(k) == "weightType":
			t.unit = string(traceevent.Text(v))
		case string(k) == "data" && schema != nil:
			rows = v
		case len(v) > 0 && v[0] == '[' && slices.Contains(raw, string(k)):
			var column [][]byte
			traceevent.Elements(v, func(v []byte) { column = append(column, v) })
			t.raw[string(k)] = column
			t.n = max(t.n, len(column))
		case len(v) > 0 && v[0] == '[':
			column := numbers(v)
			t.numbers[string(k)] = column
			t.n = max(t.n, len(column))
		}
	})
	if schema == nil {
		return t
	}
	names := make([]string, 100)
	for name, i := range schema {
		names[i] = name
	}
	traceevent.Elements(rows, func(row []byte) {
		i := 0
		traceevent.Elements(row, func(v []byte) {
			switch {
			case i >= len(names) || names[i] == "":
			case slices.Contains(raw, names[i]):
				c := t.raw[names[i]]
				t.raw[names[i]] = append(append(c, make([][]byte, t.n-len(c))...), v)
			default:
				c := t.numbers[names[i]]
				t.numbers[names[i]] = append(append(c, slices.Repeat([]float64{math.NaN()}, t.n-len(c))...), number(v))
			}
			i++
		})
		t.n++
	})
	return t
}

func numbers(v []byte) (out []float64) {
	traceevent.Elements(v, func(v []byte) { out = append(out, number(v)) })
	return out
}

func number(v []byte) float64 {
	if f, ok := jsonscan.Number(v); ok && v[0] != '"' {
		return f
	}
	return math.NaN()
}

// at returns a number of a column, NaN without one.
func (t *table) at(column string, i int) float64 {
	if c := t.numbers[column]; i >= 0 && i < len(c) {
		return c[i]
	}
	return math.NaN()
}

// index returns an index of another table, -1 without one.
func (t *table) index(column string, i int) int {
	f := t.at(column, i)
	if !(f >= 0 && f < math.MaxInt32) {
		return -1
	}
	return int(f)
}

// times returns the times of rows in milliseconds, NaN for those without one.
func (t *table) times(shift float64) []float64 {
	out := make([]float64, t.n)
	_, deltas := t.numbers["timeDeltas"]
	at := shift
	for i := range out {
		if d := t.at("timeDeltas", i); !math.IsNaN(d) {
			at += d
		} else if !deltas {
			at = t.at("time", i) + shift
		}
		out[i] = at
	}
	return out
}

// tables holds the tables that describe functions.
type tables struct {
	stack, frame, function, resource, source table
	strings                                  []string
	any                                      bool

	places []int32 // of stacks in the set
}

// readTables reads the tables of a thread, or those that threads share.
func readTables(v []byte) *tables {
	t := &tables{}
	traceevent.Members(v, func(k, v []byte) {
		switch string(k) {
		case "stackTable":
			t.stack, t.any = readTable(v), true
		case "frameTable":
			t.frame = readTable(v)
		case "funcTable":
			t.function = readTable(v)
		case "resourceTable":
			t.resource = readTable(v)
		case "sources":
			t.source = readTable(v)
		case "stringArray", "stringTable":
			traceevent.Elements(v, func(v []byte) { t.strings = append(t.strings, string(traceevent.Text(v))) })
		}
	})
	return t
}

func (t *tables) text(i int) string {
	if i < 0 || i >= len(t.strings) {
		return ""
	}
	return t.strings[i]
}

// resolve adds all stacks. The prefix of a stack precedes it.
func (t *tables) resolve(b *reader) {
	if t.places != nil {
		return
	}
	t.places = make([]int32, t.stack.n)
	functions := slices.Repeat([]int32{-1}, t.frame.n)
	lost := int64(0)
	for i := range t.places {
		t.places[i] = stacks.Root
		prefix := t.stack.index("prefix", i)
		// Newer versions have the distance to the prefix, 0 without one.
		if back := t.stack.index("prefixOffset", i); back > 0 {
			prefix = i - back
		}
		at := stacks.Root
		if prefix >= i || prefix < -1 {
			lost++
		} else if prefix >= 0 {
			at = t.places[prefix]
		}
		f := t.stack.index("frame", i)
		if f < 0 || f >= len(functions) {
			lost++
			t.places[i] = at
			continue
		}
		if functions[f] < 0 {
			functions[f] = b.set.Function(t.functionOf(b, f))
		}
		t.places[i] = b.set.Call(at, functions[f])
	}
	b.set.Dropped.Add("stacks that refer to a missing entry", lost)
}

// functionOf returns the function of a frame.
func (t *tables) functionOf(b *reader, frame int) (f stacks.Function) {
	if c := t.frame.index("category", frame); c >= 0 && c < len(b.categories) {
		f.Category = b.categories[c]
	}
	if l := t.frame.index("location", frame); l >= 0 {
		f.Name, f.File, f.Line = location(t.text(l))
		if f.Name == "" {
			f.Name = "(anonymous)"
		}
		return f
	}
	i := t.frame.index("func", frame)
	f.Name = t.text(t.function.index("name", i))
	f.File = t.text(t.function.index("fileName", i))
	if s := t.function.index("source", i); f.File == "" && s >= 0 {
		f.File = t.text(t.source.index("filename", s))
	}
	if n := t.function.at("lineNumber", i); n > 0 && n < 1<<31 {
		f.Line = int64(n)
	}
	if r := t.function.index("resource", i); r >= 0 {
		f.Library = t.text(t.resource.index("name", r))
	}
	if f.Library == f.File {
		f.Library = ""
	}
	if f.Name == "" {
		f.Name = "(anonymous)"
	}
	return f
}

// location parses a frame of Firefox: "name (file:line:column)", or a name alone.
func location(s string) (name, file string, line int64) {
	if len(s) == 0 || s[len(s)-1] != ')' {
		return s, "", 0
	}
	open := strings.LastIndex(s, " (")
	if open < 0 {
		return s, "", 0
	}
	name, file = s[:open], s[open+2:len(s)-1]
	// One or two numbers follow the file: the first one is the line.
	var found []int64
	for range 2 {
		i := len(file) - 1
		for i >= 0 && file[i] >= '0' && file[i] <= '9' {
			i--
		}
		if i < 1 || i == len(file)-1 || file[i] != ':' {
			break
		}
		n, _ := jsonscan.Int([]byte(file[i+1:]))
		found, file = append(found, n), file[:i]
	}
	if len(found) == 0 {
		return s, "", 0
	}
	if line = found[len(found)-1]; line > math.MaxInt32 {
		line = 0
	}
	return name, file, line
}
