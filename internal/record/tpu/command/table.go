package command

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed isa/*.isa
var files embed.FS

// Field is one field of a command's layout.
type Field struct {
	Name         string
	First, Width int
}

// Form is the form of a layout.
type Form uint8

// The forms. Any is the form of commands with one layout.
const (
	Long Form = iota
	Short
	Any
)

// Op is one layout: a kind of command in one form.
type Op struct {
	// Name is the layout's name in the chip's tables.
	Name   string
	Engine Engine
	Form   Form
	Type   int     // the command's type, -1 if all commands of the engine have one layout
	Bits   int     // the command's length
	Fields []Field // in order of their first bit
	// funcs are names of sub-functions, nil if any sub-function has this layout.
	funcs map[int]string
	// subs has a bit for each of them, all bits if any sub-function has this layout.
	subs  uint32
	roles [NoRole + 1]place
}

type place struct{ first, width uint16 }

// Function returns the name of a sub-function, "" without a name.
func (o *Op) Function(sub int) string { return o.funcs[sub] }

// System reports whether the command orders the engine itself and computes or moves nothing.
func (o *Op) System() bool {
	return o.Type == SystemType(o.Engine) || o.Engine == TIU && o.Type == typeTable
}

// SystemType returns the type of an engine's system commands.
func SystemType(e Engine) int {
	return [...]int{TIU: typeSys, GDMA: dmaSys, SDMA: dmaSys, CDMA: cdmaSys}[e]
}

// The types of commands with special rules in the decoder or the arithmetic.
const (
	typeConv, typePool, typeMM, typeAR, typeRQDQ, typeTrans = 0, 1, 2, 3, 4, 5
	typeSG, typeLAR, typeSFU, typeLin                       = 6, 7, 9, 10
	typeTable, typeCmp, typeVC, typeSys                     = 12, 13, 14, 15
	dmaSys, cdmaSys                                         = 6, 7
)

type table struct {
	file   string
	once   sync.Once
	ops    [3][]*Op        // tiu, dma, cdma
	byType [3][2][32][]*Op // possible layouts by engine, form and type
}

// side returns the index of an engine's commands: tiu, dma, cdma.
func side(e Engine) int { return [...]int{TIU: 0, GDMA: 1, SDMA: 1, CDMA: 2}[e] }

func (t *table) load() *table {
	t.once.Do(func() {
		text, err := files.ReadFile(t.file)
		if err == nil {
			err = t.parse(string(text))
		}
		if err != nil {
			panic("command: " + t.file + ": " + err.Error()) // part of the program
		}
	})
	return t
}

// Ops returns the layouts of an engine's commands in the order of the chip's tables.
func (c *Chip) Ops(e Engine) []*Op { return c.isa.load().ops[side(e)] }

// find returns the layout of a command, nil if the tables have none.
func (t *table) find(e Engine, kind int, short bool, sub int) *Op {
	s := side(e)
	if len(t.ops[s]) > 0 && t.ops[s][0].Type < 0 {
		return t.ops[s][0]
	}
	form := Long
	if short {
		form = Short
	}
	for _, o := range t.byType[s][form][kind&31] {
		if o.subs>>(sub&31)&1 == 1 {
			return o
		}
	}
	return nil
}

func (t *table) parse(text string) error {
	runs := map[string][]string{}
	var op *Op
	for n, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "", "#":
		case "run":
			name, fields, _ := strings.Cut(rest, " ")
			runs["@"+name] = strings.Fields(fields)
		case "op":
			op, err = newOp(rest)
		case "fn":
			err = op.parseFuncs(strings.Fields(rest))
		case "at":
			if err = op.parseFields(strings.Fields(rest), runs); err == nil {
				t.add(op)
			}
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return nil
}

func (t *table) add(o *Op) {
	s := side(o.Engine)
	t.ops[s] = append(t.ops[s], o)
	if o.funcs == nil || !o.Has(TaskSub) {
		o.subs = 1<<32 - 1
	}
	if !o.Has(CmdShort) {
		o.Form = Any // the bit of the form has another meaning in this layout
	}
	if o.Type < 0 {
		return
	}
	for form := range t.byType[s] {
		if o.Form == Any || o.Form == Form(form) {
			t.byType[s][form][o.Type] = append(t.byType[s][form][o.Type], o)
		}
	}
}

func newOp(line string) (*Op, error) {
	w := strings.SplitN(line, " ", 5)
	if len(w) != 5 {
		return nil, fmt.Errorf("want 5 words, have %d", len(w))
	}
	o := &Op{Type: -1}
	var err error
	if o.Name, err = strconv.Unquote(w[4]); err != nil {
		return nil, err
	}
	o.Engine = map[string]Engine{"dma": GDMA, "cdma": CDMA}[w[0]]
	o.Form = map[string]Form{"short": Short, "any": Any}[w[1]]
	if w[2] != "-" {
		if o.Type, err = strconv.Atoi(w[2]); err != nil || o.Type < 0 || o.Type > 31 {
			return nil, fmt.Errorf("bad type %q", w[2])
		}
	}
	o.Bits, err = strconv.Atoi(w[3])
	return o, err
}

func (o *Op) parseFuncs(w []string) error {
	o.funcs = make(map[int]string, len(w)/2)
	for ; len(w) > 1; w = w[2:] {
		n, err := strconv.Atoi(w[0])
		if err != nil {
			return err
		}
		if n < 0 || n > 31 {
			return fmt.Errorf("bad sub-function %d", n)
		}
		o.subs |= 1 << n
		o.funcs[n] = ""
		if w[1] != "-" {
			o.funcs[n] = w[1]
		}
	}
	return nil
}

func (o *Op) parseFields(words []string, runs map[string][]string) error {
	at := 0
	var walk func(words []string, depth int) error
	walk = func(words []string, depth int) error {
		for _, w := range words {
			if run, ok := runs[w]; ok && depth < 8 {
				if err := walk(run, depth+1); err != nil {
					return err
				}
				continue
			}
			name, width := w, 1
			if i := strings.LastIndexByte(w, ':'); i >= 0 {
				n, err := strconv.Atoi(w[i+1:])
				if err != nil {
					return err
				}
				name, width = w[:i], n
			}
			if name != "-" {
				o.Fields = append(o.Fields, Field{unbreak(name), at, width})
				if r, ok := roleOf(o.Engine, name); ok && o.roles[r].width == 0 {
					o.roles[r] = place{uint16(at), uint16(width)}
				}
			}
			at += width
		}
		return nil
	}
	if err := walk(words, 0); err != nil {
		return err
	}
	if at < o.Bits {
		return fmt.Errorf("%s: fields have %d bits of %d", o.Name, at, o.Bits)
	}
	return nil
}
