package neuralengine

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// evaluator computes the formulas of a sheet: arithmetic, comparison, IF, SUM, SUMIF and VALUE. The
// profiler writes these, and users edit them.
type evaluator struct {
	sheet [][]string
	done  map[[2]int]result
	steps int
}

type result struct {
	v      float64
	ok     bool
	active bool // in computation: a formula that depends on itself has no value
}

// Limits of the work on one sheet, the length of a formula, and the depth of references and
// parentheses.
const (
	maxSteps   = 20_000_000
	maxFormula = 64 << 10
	maxDepth   = 200
)

// value returns the number in a cell. ok is false for texts, empty cells and formulas without a
// value.
func (e *evaluator) value(row, col int) (float64, bool) { return e.cell(row, col, 0) }

func (e *evaluator) cell(row, col, depth int) (float64, bool) {
	if row < 0 || row >= len(e.sheet) || col < 0 || col >= len(e.sheet[row]) || depth > maxDepth {
		return 0, false
	}
	if e.steps++; e.steps > maxSteps {
		return 0, false
	}
	text := strings.TrimSpace(e.sheet[row][col])
	if !strings.HasPrefix(text, "=") {
		return literal(text)
	}
	at := [2]int{row, col}
	if r, ok := e.done[at]; ok {
		return r.v, r.ok && !r.active
	}
	if e.done == nil {
		e.done = map[[2]int]result{}
	}
	e.done[at] = result{active: true}
	var r result
	if len(text) <= maxFormula {
		p := &formula{e: e, s: text[1:], depth: depth + 1}
		r.v, r.ok = p.binary(0)
		p.blank()
		r.ok = r.ok && !p.failed && p.i == len(p.s) && !math.IsNaN(r.v) && !math.IsInf(r.v, 0)
	}
	e.done[at] = r
	return r.v, r.ok
}

// literal parses a number; a percent sign divides by 100, as in spreadsheets.
func literal(s string) (float64, bool) {
	scale := 1.0
	if t, ok := strings.CutSuffix(s, "%"); ok {
		s, scale = strings.TrimSpace(t), 100
	}
	if s == "" || len(s) > 60 || s[0] != '-' && s[0] != '.' && (s[0] < '0' || s[0] > '9') || strings.ContainsAny(s, "xX_pP") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, false
	}
	return v / scale, true
}

// formula is a parser of a formula.
type formula struct {
	e     *evaluator
	s     string
	i     int
	depth int
	level int
	// failed means that the text is not a formula: parsing ends.
	failed bool
}

func (p *formula) fail() (float64, bool) {
	p.failed, p.i = true, len(p.s)
	return 0, false
}

func (p *formula) blank() {
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
}

func (p *formula) take(s string) bool {
	p.blank()
	if strings.HasPrefix(p.s[p.i:], s) {
		p.i += len(s)
		return true
	}
	return false
}

// near compares as spreadsheets do: percentages are not exact binary fractions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(math.Abs(a), math.Abs(b)) }

// operators are the binary operators by rising precedence.
var operators = [][]string{{"<=", ">=", "<>", "=", "<", ">"}, {"+", "-"}, {"*", "/"}}

// binary parses operands and operators of a precedence and those above it.
func (p *formula) binary(level int) (float64, bool) {
	if level == len(operators) {
		return p.atom()
	}
	a, ok := p.binary(level + 1)
	for {
		i := slices.IndexFunc(operators[level], p.take)
		if i < 0 {
			return a, ok
		}
		b, also := p.binary(level + 1)
		a, ok = apply(operators[level][i], a, b, ok && also)
	}
}

// apply computes an operation; both means that both operands are numbers. A cell without a number
// is equal to no number.
func apply(operator string, a, b float64, both bool) (float64, bool) {
	same := both && near(a, b)
	var truth bool
	switch operator {
	case "+":
		return a + b, both
	case "-":
		return a - b, both
	case "*":
		return a * b, both
	case "/":
		return a / b, both && b != 0
	case "=":
		truth = same
	case "<>":
		truth = !same
	case "<=":
		truth = same || a < b
	case ">=":
		truth = same || a > b
	case "<":
		truth = !same && a < b
	case ">":
		truth = !same && a > b
	}
	if truth {
		return 1, true
	}
	return 0, true
}

// atom parses a number, a reference, a function or an expression in parentheses.
func (p *formula) atom() (float64, bool) {
	if p.level++; p.level > maxDepth || p.failed {
		return p.fail()
	}
	defer func() { p.level-- }()
	p.blank()
	switch {
	case p.take("-"):
		v, ok := p.atom()
		return -v, ok
	case p.take("("):
		v, ok := p.binary(0)
		return v, p.close() && ok
	}
	rest := strings.ToUpper(p.s[p.i:min(len(p.s), p.i+6)])
	begins := func(word string) bool {
		ok := strings.HasPrefix(rest, word)
		if ok {
			p.i += len(word)
		}
		return ok
	}
	switch {
	case begins("IF("):
		return p.choice()
	case begins("SUM("):
		return p.total()
	case begins("SUMIF("):
		return p.sumIf()
	case begins("VALUE("):
		v, ok := p.binary(0)
		return v, p.close() && ok
	case begins("TRUE"):
		return 1, true
	case begins("FALSE"):
		return 0, true
	}
	if row, col, ok := p.reference(); ok {
		return p.e.cell(row, col, p.depth)
	}
	return p.number()
}

func (p *formula) close() bool { return !p.failed && p.take(")") }

func (p *formula) number() (float64, bool) {
	from := p.i
	for p.i < len(p.s) && (p.s[p.i] >= '0' && p.s[p.i] <= '9' || p.s[p.i] == '.') {
		p.i++
	}
	if p.i == from {
		return p.fail()
	}
	text := p.s[from:p.i]
	if p.i < len(p.s) && p.s[p.i] == '%' {
		p.i++
		text += "%"
	}
	return literal(text)
}

// reference parses a cell such as M12; row and col count from 0.
func (p *formula) reference() (row, col int, ok bool) {
	i := p.i
	take := func() byte {
		if i < len(p.s) {
			return p.s[i]
		}
		return 0
	}
	if take() == '$' {
		i++
	}
	for n := 0; n < 3 && (take() >= 'A' && take() <= 'Z' || take() >= 'a' && take() <= 'z'); n++ {
		col = col*26 + int(take()&^0x20-'A') + 1
		i++
	}
	if take() == '$' {
		i++
	}
	from := i
	for i-from < 8 && take() >= '0' && take() <= '9' {
		row = row*10 + int(take()-'0')
		i++
	}
	if col == 0 || i == from || row == 0 {
		return 0, 0, false
	}
	p.i = i
	return row - 1, col - 1, true
}

// choice parses the rest of IF(.
func (p *formula) choice() (float64, bool) {
	c, ok := p.binary(0)
	if !p.take(",") {
		return 0, false
	}
	a, aok := p.binary(0)
	b, bok := 0.0, true
	if p.take(",") {
		b, bok = p.binary(0)
	}
	if !p.close() || !ok {
		return 0, false
	}
	if c != 0 {
		return a, aok
	}
	return b, bok
}

// span parses a range such as P3:P9, or one cell.
func (p *formula) span() (r0, c0, r1, c1 int, ok bool) {
	p.blank()
	if r0, c0, ok = p.reference(); !ok {
		return
	}
	r1, c1 = r0, c0
	if p.take(":") {
		p.blank()
		r1, c1, ok = p.reference()
	}
	return min(r0, r1), min(c0, c1), max(r0, r1), max(c0, c1), ok
}

// total parses the rest of SUM(: cells without a number count as 0.
func (p *formula) total() (float64, bool) {
	sum := 0.0
	for {
		r0, c0, r1, c1, ok := p.span()
		if !ok {
			return 0, false
		}
		for r := r0; r <= min(r1, len(p.e.sheet)-1); r++ {
			for c := c0; c <= min(c1, c0+64); c++ {
				if v, ok := p.e.cell(r, c, p.depth); ok {
					sum += v
				}
			}
		}
		if !p.take(",") {
			return sum, p.close()
		}
	}
}

// sumIf parses the rest of SUMIF(: the sum of cells of one range if those of another are TRUE,
// or have any text where the criterion is "<>".
func (p *formula) sumIf() (float64, bool) {
	r0, c0, r1, _, ok := p.span()
	if !ok || !p.take(",") {
		return 0, false
	}
	filled := p.take(`"<>"`)
	if !filled && !p.take("TRUE") || !p.take(",") {
		return 0, false
	}
	s0, d0, _, _, ok := p.span()
	if !ok {
		return 0, false
	}
	sum := 0.0
	for r := r0; r <= min(r1, len(p.e.sheet)-1); r++ {
		if c := p.e.sheet[r]; c0 >= len(c) || c[c0] == "" || !filled && !strings.EqualFold(strings.TrimSpace(c[c0]), "true") {
			continue
		}
		if v, ok := p.e.cell(s0+r-r0, d0, p.depth); ok {
			sum += v
		}
	}
	return sum, p.close()
}
