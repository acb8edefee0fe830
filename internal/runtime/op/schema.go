package op

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// ErrMalformed is wrapped where a node breaks a rule of its format that holds for any input:
// element types, required inputs, attributes. No runtime accepts such a model.
var ErrMalformed = errors.New("malformed")

// MalformedError describes the rule that a node breaks.
type MalformedError struct{ Detail string }

// Error returns the detail.
func (e *MalformedError) Error() string { return e.Detail }

// Unwrap returns [ErrMalformed].
func (e *MalformedError) Unwrap() error { return ErrMalformed }

// Malformed makes an error that wraps [ErrMalformed].
func Malformed(format string, args ...any) error {
	return &MalformedError{fmt.Sprintf(format, args...)}
}

// Schemas is a table of a format's operator signatures: element types of inputs and outputs,
// which of them must be equal, which are optional, and attributes.
type Schemas struct {
	// Elem returns the type that the number in an attribute "to" stands for; may be nil.
	Elem func(int64) tensor.Type
	// refuse makes the error for a node that does not match.
	refuse func(format string, args ...any) error
	holds  func(domain string) bool // reports whether the table has a domain; nil: any
	text   string

	once     sync.Once // guards splitText
	sets     []tableLine
	lines    []tableLine
	sections []section

	mu     sync.Mutex
	parsed map[schemaKey]*schema // schemas that were looked up
}

// tableLine is a line of a table with its number, counted from 1.
type tableLine struct {
	at   int
	text string
}

// section is a range of lines, from first up to the first line of the next section.
type section struct {
	domain string
	first  int
}

// schemaLine is a form of an operator: its version and the text after the colon.
type schemaLine struct {
	since int
	text  string
}

type schemaKey struct {
	domain, name string
	version      int
}

// schema is the signature of one operator since one version: a node must match any of its forms.
type schema struct {
	forms []form
	attrs map[string]attrRule
	names []string // of attrs, sorted
	// listed says that the table lists the attributes.
	listed bool
}

type form struct{ in, out []param }

// param is an input or output, or a variadic list of them.
type param struct {
	name  string
	types typeSet
	// variable is the number, from 1, of the type variable that this parameter shares with
	// others, 0 for none.
	variable int
	optional bool
	// variadic parameters stand for any number of entries.
	variadic bool
	mixed    bool // variadic: entries may have different types
}

// variable is a type variable of a form: its number, from 1, and its types.
type variable struct {
	at    int
	types typeSet
}

type attrRule struct {
	kind     byte
	required bool
}

// typeSet has a bit for each [tensor.Type].
type typeSet uint64

func (s typeSet) has(t tensor.Type) bool { return s>>t&1 != 0 }

// String lists the types, at most eight of them.
func (s typeSet) String() string {
	var names []string
	n := bits.OnesCount64(uint64(s))
	for t := tensor.Type(1); t < 64 && len(names) < 8; t++ {
		if s.has(t) {
			names = append(names, t.String())
		}
	}
	if n > len(names) {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), n-len(names))
	}
	if n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

// ParseSchemas parses a table. refuse makes the error for a node that does not match it:
// [Malformed] where the format itself has the rules, [Unsupported] where the runtime's kernels
// have them. Lines are comments (#), sets of types
//
//	@real = float32|float64
//
// domains in brackets, which hold for the lines after them, and forms of operators with the
// version since which they are valid:
//
//	Conv 11: X:T, W:T, B:T? -> Y:T; T = real # group:i kernel_shape:I axis:i!
//
// A set consists of types and of sets defined above it. A parameter has an optional name, a
// colon, and a set, types joined by bars, or a variable that stands for the same type everywhere
// in the form. A suffix says that it is optional (?) or stands for any number (*) or at least one
// (+) of entries, which may have different types with ~ after the suffix. Each attribute has a
// kind, followed by ! if it is required. Lines of the same operator and version are alternative
// forms; any one of them must match.
func ParseSchemas(text string, refuse func(format string, args ...any) error) (*Schemas, error) {
	s := &Schemas{refuse: refuse, text: text}
	if err := s.checkTable(); err != nil {
		return nil, err
	}
	return s, nil
}

// LazySchemas is ParseSchemas for a table of the program itself. A line is parsed when its
// operator is first looked up. holds reports the domains that the table has. Only
// [Schemas.Validate] detects errors in the table.
func LazySchemas(text string, holds func(domain string) bool, refuse func(format string, args ...any) error) *Schemas {
	return &Schemas{refuse: refuse, text: text, holds: holds}
}

// splitText splits the text into lines and sections.
func (s *Schemas) splitText() {
	s.once.Do(func() {
		at := 0
		for line := range strings.Lines(s.text) {
			at++
			line = strings.TrimSpace(line)
			switch {
			case line == "" || line[0] == '#':
			case line[0] == '[':
				s.sections = append(s.sections, section{strings.Trim(line, "[]"), len(s.lines)})
			case line[0] == '@':
				s.sets = append(s.sets, tableLine{at, line[1:]})
			default:
				if s.sections == nil {
					s.sections = []section{{}}
				}
				s.lines = append(s.lines, tableLine{at, line})
			}
		}
		s.parsed = map[schemaKey]*schema{}
	})
}

// linesOf returns the lines of a section.
func (s *Schemas) linesOf(section int) []tableLine {
	end := len(s.lines)
	if section+1 < len(s.sections) {
		end = s.sections[section+1].first
	}
	return s.lines[s.sections[section].first:end]
}

// form splits a line into name, version and body.
func (l tableLine) form() (name string, f schemaLine, err error) {
	head, body, _ := strings.Cut(l.text, ":")
	name, since, _ := strings.Cut(head, " ")
	v, err := strconv.Atoi(since)
	if err != nil {
		return "", schemaLine{}, fmt.Errorf("line %d: %q is not a version", l.at, since)
	}
	return name, schemaLine{v, body}, nil
}

// parseSet parses types joined by bars. It resolves names among the first known sets.
func (s *Schemas) parseSet(text string, known int) (typeSet, error) {
	var set typeSet
	for name := range strings.SplitSeq(text, "|") {
		more, found, err := s.findSet(name, known)
		if err != nil {
			return 0, err
		}
		if !found {
			t, ok := tensor.ParseType(name)
			if !ok {
				return 0, fmt.Errorf("%q is not a type", name)
			}
			more = 1 << t
		}
		set |= more
	}
	return set, nil
}

// findSet parses a set by name, among the first known ones.
func (s *Schemas) findSet(name string, known int) (set typeSet, found bool, err error) {
	for i := known - 1; i >= 0; i-- {
		if n, types, _ := strings.Cut(s.sets[i].text, "="); strings.TrimSpace(n) == name {
			set, err = s.parseSet(strings.TrimSpace(types), i)
			return set, true, err
		}
	}
	return 0, false, nil
}

// checkTable parses every set and the version of every line.
func (s *Schemas) checkTable() error {
	s.splitText()
	for i, l := range s.sets {
		_, types, _ := strings.Cut(l.text, "=")
		if _, err := s.parseSet(strings.TrimSpace(types), i); err != nil {
			return fmt.Errorf("line %d: %w", l.at, err)
		}
	}
	for _, l := range s.lines {
		if _, _, err := l.form(); err != nil {
			return err
		}
	}
	return nil
}

// Validate parses every line.
func (s *Schemas) Validate() error {
	if err := s.checkTable(); err != nil {
		return err
	}
	for i, section := range s.sections {
		for _, l := range s.linesOf(i) {
			name, f, _ := l.form()
			if s.holds != nil && !s.holds(section.domain) {
				return fmt.Errorf("%s %s: nobody asks for the domain here", section.domain, name)
			}
			if _, err := s.parse([]schemaLine{f}, f.since); err != nil {
				return fmt.Errorf("%s %s %d: %w", section.domain, name, f.since, err)
			}
		}
	}
	return nil
}

// Has reports whether the table knows an operator at a version.
func (s *Schemas) Has(domain, name string, version int) bool {
	return s.find(domain, name, version) != nil
}

// find returns the schema that is valid for an operator at a version, nil if the table does not
// have it. Some files use an operator at versions before its first one: they get the first.
func (s *Schemas) find(domain, name string, version int) *schema {
	if s.holds != nil && !s.holds(domain) {
		return nil
	}
	s.splitText()
	k := schemaKey{domain, name, version}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.parsed[k]; ok {
		return x
	}
	var forms []schemaLine
	for i, section := range s.sections {
		if section.domain != domain {
			continue
		}
		for _, l := range s.linesOf(i) {
			if rest, ok := strings.CutPrefix(l.text, name); !ok || rest == "" || rest[0] != ' ' && rest[0] != ':' {
				continue
			}
			if _, f, err := l.form(); err == nil { // tests check the table, see Validate
				forms = append(forms, f)
			}
		}
	}
	var x *schema
	if len(forms) > 0 {
		since := forms[0].since
		for _, f := range forms {
			if f.since <= version {
				since = max(since, f.since)
			}
		}
		x, _ = s.parse(forms, since)
	}
	s.parsed[k] = x
	return x
}

func (s *Schemas) parse(lines []schemaLine, since int) (*schema, error) {
	x := &schema{attrs: map[string]attrRule{}}
	for _, l := range lines {
		if l.since != since {
			continue
		}
		text, attrs, listed := strings.Cut(l.text, "#")
		parts := strings.Split(text, ";")
		if len(parts) > maxVariables {
			return nil, fmt.Errorf("%d variables in %q, %d is the most", len(parts)-1, l.text, maxVariables-1)
		}
		vars := map[string]variable{}
		for i, p := range parts[1:] {
			name, types, _ := strings.Cut(p, "=")
			set, err := s.parseSet(strings.TrimSpace(types), len(s.sets))
			if err != nil {
				return nil, err
			}
			vars[strings.TrimSpace(name)] = variable{i + 1, set}
		}
		in, out, ok := strings.Cut(parts[0], "->")
		if !ok {
			return nil, fmt.Errorf("no outputs in %q", parts[0])
		}
		var f form
		var err error
		if f.in, err = s.parseParams(in, vars); err != nil {
			return nil, err
		}
		if f.out, err = s.parseParams(out, vars); err != nil {
			return nil, err
		}
		x.forms = append(x.forms, f)
		for a := range strings.FieldsSeq(attrs) {
			name, kind, _ := strings.Cut(a, ":")
			if kind == "" {
				return nil, fmt.Errorf("attribute %q has no kind", name)
			}
			x.attrs[name] = attrRule{kind[0], strings.HasSuffix(kind, "!")}
		}
		x.listed = x.listed || listed
	}
	x.names = sortedNames(x.attrs)
	return x, nil
}

func (s *Schemas) parseParams(text string, vars map[string]variable) ([]param, error) {
	var out []param
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		var p param
		if name, rest, ok := strings.Cut(one, ":"); ok {
			p.name, one = name, rest
		}
		one, p.mixed = strings.CutSuffix(one, "~")
		switch one[len(one)-1] {
		case '?':
			p.optional = true
		case '*':
			p.variadic, p.optional = true, true
		case '+':
			p.variadic = true
		}
		one = strings.TrimRight(one, "?*+")
		if v, ok := vars[one]; ok {
			p.types, p.variable = v.types, v.at
		} else {
			set, err := s.parseSet(one, len(s.sets))
			if err != nil {
				return nil, err
			}
			p.types = set
		}
		out = append(out, p)
	}
	for i, p := range out {
		if p.variadic && i != len(out)-1 {
			return nil, fmt.Errorf("%q: only the last one may stand for many", text)
		}
	}
	return out, nil
}

// Check validates a node's inputs, outputs and attributes regardless of element values. It
// returns nil when they match or when the table does not know the operator. Absent entries are
// nil; one without a type matches any.
func (s *Schemas) Check(n *graph.Node, in, out []*tensor.Tensor) error {
	x := s.find(n.Domain, n.Op, n.Version)
	if x == nil {
		return nil
	}
	var first error
	fits := false
	for i := range x.forms {
		err := x.forms[i].check(in, out)
		if err == nil {
			fits = true
			break
		}
		if first == nil {
			first = err
		}
	}
	if !fits && len(x.forms) == 1 {
		return s.refuse("%v", first)
	}
	if !fits {
		return s.refuse("%s -> %s", listTypes(in), listTypes(out))
	}
	return s.checkAttributes(x, n)
}

func (s *Schemas) checkAttributes(x *schema, n *graph.Node) error {
	for _, name := range x.names {
		rule := x.attrs[name]
		a, ok := n.Attrs[name]
		switch {
		case !ok && rule.required:
			return s.refuse("attribute %q is missing", name)
		case ok && !rule.fits(a):
			return s.refuse("attribute %q is not %s", name, attrKinds[rule.kind])
		}
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// optionalOutput reports whether output i may be absent in every form of an operator.
func (s *Schemas) optionalOutput(n *graph.Node, i int) bool {
	x := s.find(n.Domain, n.Op, n.Version)
	return x != nil && !slices.ContainsFunc(x.forms, func(f form) bool {
		return i >= len(f.out) || !f.out[i].optional || f.out[i].variadic
	})
}

// Unknown lists attributes that the table does not have for the operator.
func (s *Schemas) Unknown(n *graph.Node) []string {
	x := s.find(n.Domain, n.Op, n.Version)
	if x == nil || !x.listed {
		return nil
	}
	var out []string
	for _, name := range sortedNames(n.Attrs) {
		if _, ok := x.attrs[name]; !ok && name != graph.RoundsRows {
			out = append(out, name)
		}
	}
	return out
}

var attrKinds = map[byte]string{
	'f': "a number", 'i': "an integer", 's': "a string", 't': "a tensor", 'g': "a graph", 'p': "a type",
	'F': "a list of numbers", 'I': "a list of integers", 'S': "a list of strings", 'T': "a list of tensors", 'G': "a list of graphs", 'P': "a list of types",
}

func (r attrRule) fits(a any) bool {
	ok := true
	switch r.kind {
	case 'f':
		_, ok = a.(float32)
	case 'i':
		if _, ok = a.(int64); !ok {
			_, ok = a.(bool)
		}
	case 's':
		if _, ok = a.(string); !ok {
			_, ok = a.([]byte)
		}
	case 't':
		_, ok = a.(*tensor.Tensor)
	case 'g':
		_, ok = a.(graph.GraphRef)
	case 'F':
		_, ok = a.([]float32)
	case 'I':
		_, ok = a.([]int64)
	case 'S':
		_, ok = a.([]string)
	case 'T':
		_, ok = a.([]*tensor.Tensor)
	case 'G':
		_, ok = a.([]graph.GraphRef)
	}
	return ok
}

// listTypes formats types as "(float32, int8)".
func listTypes(ts []*tensor.Tensor) string {
	var names []string
	for i, t := range ts {
		switch {
		case i == 8:
			names = append(names, fmt.Sprintf("and %d more", len(ts)-i))
			return "(" + strings.Join(names, ", ") + ")"
		case t == nil:
			names = append(names, "none")
		case t.Type == tensor.Invalid:
			names = append(names, "any")
		default:
			names = append(names, t.Type.String())
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// Outputs returns the types of a node's outputs as far as they follow from the types of its
// inputs, regardless of shapes; Invalid where they do not follow.
func (s *Schemas) Outputs(n *graph.Node, in []*tensor.Tensor) []tensor.Type {
	out := make([]tensor.Type, len(n.Outputs))
	x := s.find(n.Domain, n.Op, n.Version)
	if x == nil || len(x.forms) != 1 {
		return out
	}
	f, vars := &x.forms[0], bindings{}
	if match("input", f.in, in, &vars) != nil {
		return out
	}
	for k := range out {
		if k >= len(f.out) || f.out[k].variadic && f.out[k].mixed {
			break
		}
		p := &f.out[k]
		b := vars[p.variable]
		to, given := n.Attrs["to"].(int64)
		switch {
		case bits.OnesCount64(uint64(p.types)) == 1:
			out[k] = tensor.Type(bits.TrailingZeros64(uint64(p.types)))
		case b.t != tensor.Invalid:
			out[k] = b.t
		case p.variable > 0 && given && s.Elem != nil:
			out[k] = s.Elem(to)
		}
	}
	return out
}

// binding is the type bound to a variable and the operand that bound it; no type while unbound.
type binding struct {
	t   tensor.Type
	who operand
}

// maxVariables is one more than the number of variables that a form may have: param.variable
// counts from 1.
const maxVariables = 9

type bindings [maxVariables]binding

// operand is an input or an output of a node: its kind, position and name.
type operand struct {
	what string
	i    int
	name string
}

// String formats the operand for error messages.
func (o operand) String() string {
	if o.name == "" {
		return fmt.Sprintf("%s %d", o.what, o.i)
	}
	return fmt.Sprintf("%s %d (%s)", o.what, o.i, o.name)
}

func (f *form) check(in, out []*tensor.Tensor) error {
	var vars bindings
	if err := match("input", f.in, in, &vars); err != nil {
		return err
	}
	return match("output", f.out, out, &vars)
}

func match(what string, ps []param, ts []*tensor.Tensor, vars *bindings) error {
	for i, t := range ts {
		var p *param
		switch {
		case i < len(ps):
			p = &ps[i]
		case len(ps) > 0 && ps[len(ps)-1].variadic:
			p = &ps[len(ps)-1]
		case t == nil:
			continue
		default:
			return fmt.Errorf("%d %ss are given, %d is the most that it has", len(ts), what, len(ps))
		}
		if err := p.match(operand{what, i, p.name}, t, vars); err != nil {
			return err
		}
	}
	for i := len(ts); i < len(ps); i++ {
		if !ps[i].optional {
			return fmt.Errorf("%s is missing", operand{what, i, ps[i].name})
		}
	}
	return nil
}

// typeMismatch says that an operand has a type that a form does not allow. It formats its text
// lazily because another form may match.
type typeMismatch struct {
	who  operand
	got  tensor.Type
	want typeSet
}

// Error states the type and the expected ones.
func (e *typeMismatch) Error() string {
	return fmt.Sprintf("%v is %v where %v is expected", e.who, e.got, e.want)
}

func (p *param) match(who operand, t *tensor.Tensor, vars *bindings) error {
	switch {
	case t == nil && (p.optional || p.variadic && who.i > 0):
		return nil
	case t == nil:
		return fmt.Errorf("%v is missing", who)
	case t.Type == tensor.Invalid:
		return nil
	case !p.types.has(t.Type) && !(p.types.has(tensor.Optional) && t.Type == tensor.Sequence):
		// A sequence is accepted as an optional that holds it.
		return &typeMismatch{who, t.Type, p.types}
	case p.variable == 0 || p.mixed:
		return nil
	}
	b := &vars[p.variable]
	if b.t != tensor.Invalid && b.t != t.Type {
		return fmt.Errorf("%v is %v and %v is %v where both must have one type", b.who, b.t, who, t.Type)
	}
	*b = binding{t.Type, who}
	return nil
}
