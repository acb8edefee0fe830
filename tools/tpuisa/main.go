// Command tpuisa makes the command tables of internal/record/tpu/command from register
// tables:
//
//	go run ./tools/tpuisa FOLDER OUT
//
// FOLDER holds a JSON file for each chip (bm1684.json, bm1684x.json, …): an object with a
// list "ops" of objects with engine, name, short (true, false, or null for either), opcode,
// sub (names of sub-functions by number), bits and fields ([name, first bit, width] each).
// OUT gets a text file for each chip:
//
//	run A NAME[:WIDTH] ...           a sequence of fields that several commands share
//	op ENGINE FORM TYPE BITS NAME    a command; FORM is long, short or any; TYPE is - where
//	                                 every command of the engine has the same layout
//	fn NUMBER NAME ...               the sub-functions of the op above; none: any
//	at NAME[:WIDTH] ... @A           its fields from bit 0 upwards; -:N is a gap
//
// A width of 1 is left out; ~ in a name is a blank.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tpuisa FOLDER OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "tpuisa:", err)
		os.Exit(1)
	}
}

var chips = []string{"bm1684", "bm1684x", "bm1688", "cv184x", "bm1690"}

// corrections names the chip whose layout holds where a table is known to be wrong: the
// short LIN of BM1690 is stated with 288 bits and a field across a word, that of its sibling
// has 256.
var corrections = map[[3]string]string{{"bm1690", "tiu", "sLIN"}: "cv184x"}

// op is a command of the register tables.
type op struct {
	Engine string            `json:"engine"`
	Name   string            `json:"name"`
	Short  *bool             `json:"short"`
	Opcode int               `json:"opcode"`
	Sub    map[string]string `json:"sub"`
	Bits   int               `json:"bits"`
	Fields []field           `json:"fields"`
}

type field struct {
	name         string
	first, width int
}

// UnmarshalJSON reads [name, first bit, width].
func (f *field) UnmarshalJSON(b []byte) error {
	list := []any{&f.name, &f.first, &f.width}
	return json.Unmarshal(b, &list)
}

func run(folder, out string) error {
	tables := map[string][]op{}
	for _, c := range chips {
		b, err := os.ReadFile(filepath.Join(folder, c+".json"))
		if err != nil {
			return err
		}
		var t struct {
			Ops []op `json:"ops"`
		}
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		tables[c] = t.Ops
	}
	for key, other := range corrections {
		for i := range tables[key[0]] {
			o := &tables[key[0]][i]
			if o.Engine != key[1] || o.Name != key[2] {
				continue
			}
			same := slices.IndexFunc(tables[other], func(x op) bool { return x.Engine == o.Engine && x.Name == o.Name })
			if same < 0 {
				return fmt.Errorf("%s has no %s", other, o.Name)
			}
			o.Bits, o.Fields = tables[other][same].Bits, tables[other][same].Fields
		}
	}
	for _, c := range chips {
		text, err := table(c, tables[c])
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		if err := os.WriteFile(filepath.Join(out, c+".isa"), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// table is the text of a chip.
func table(chip string, ops []op) (string, error) {
	lists := make([][]string, len(ops))
	for i := range ops {
		l, err := tokens(&ops[i])
		if err != nil {
			return "", err
		}
		lists[i] = l
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands of %s. Made by tools/tpuisa; not to be edited.\n", strings.ToUpper(chip))
	for i, r := range share(lists) {
		fmt.Fprintf(&b, "run %c %s\n", 'A'+i, strings.Join(r, " "))
	}
	for i := range ops {
		o := &ops[i]
		form, kind := "any", "-"
		if o.Short != nil {
			form = map[bool]string{true: "short", false: "long"}[*o.Short]
		}
		if o.Opcode >= 0 {
			kind = strconv.Itoa(o.Opcode)
		}
		fmt.Fprintf(&b, "op %s %s %s %d %q\n", o.Engine, form, kind, o.Bits, o.Name)
		if len(o.Sub) > 0 {
			numbers := slices.SortedFunc(maps.Keys(o.Sub), func(a, b string) int {
				x, _ := strconv.Atoi(a) // keys are numbers
				y, _ := strconv.Atoi(b)
				return x - y
			})
			b.WriteString("fn")
			for _, n := range numbers {
				name := o.Sub[n]
				if name == "" {
					name = "-"
				}
				b.WriteString(" " + n + " " + name)
			}
			b.WriteByte('\n')
		}
		b.WriteString("at " + strings.Join(lists[i], " ") + "\n")
	}
	return b.String(), nil
}

// tokens are an op's fields from bit 0 upwards.
func tokens(o *op) (out []string, err error) {
	at := 0
	for _, f := range o.Fields {
		switch {
		case f.first > at:
			out = append(out, fmt.Sprintf("-:%d", f.first-at))
		case f.first < at:
			return nil, errors.New(o.Name + ": field " + f.name + " overlaps")
		}
		name := strings.ReplaceAll(f.name, " ", "~")
		if o.Opcode < 0 {
			name = strings.ToLower(name)
		}
		if f.width != 1 {
			name += ":" + strconv.Itoa(f.width)
		}
		out = append(out, name)
		at = f.first + f.width
	}
	if at < o.Bits {
		out = append(out, fmt.Sprintf("-:%d", o.Bits-at))
	}
	return out, nil
}

// share replaces the sequences of fields that save most by names, until little is saved.
func share(lists [][]string) (runs [][]string) {
	const most, least, shortest = 26, 400, 4
	for len(runs) < most {
		counts := map[string]int{}
		seen := map[string]bool{}
		for _, l := range lists {
			if whole := strings.Join(l, " "); seen[whole] {
				continue
			} else {
				seen[whole] = true
			}
			for i := range l {
				for j := i + shortest; j <= len(l); j++ {
					counts[strings.Join(l[i:j], " ")]++
				}
			}
		}
		best, gain := "", least
		for _, s := range slices.Sorted(maps.Keys(counts)) {
			if g := (counts[s] - 1) * len(s); g > gain {
				best, gain = s, g
			}
		}
		if best == "" {
			break
		}
		run := strings.Split(best, " ")
		name := "@" + string(rune('A'+len(runs)))
		runs = append(runs, run)
		for k, l := range lists {
			for i := 0; i+len(run) <= len(l); i++ {
				if slices.Equal(l[i:i+len(run)], run) {
					l = slices.Concat(l[:i], []string{name}, l[i+len(run):])
				}
			}
			lists[k] = l
		}
	}
	return runs
}
