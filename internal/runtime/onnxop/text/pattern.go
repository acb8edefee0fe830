package text

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Bounds of patterns. A matcher keeps something for each instruction of a pattern's
// program, and its time is their number times the length of the text. RE2, whose syntax
// this is, bounds the program too.
const (
	maxPattern = 64 << 10 // bytes
	maxProgram = 50_000   // instructions
)

// pattern compiles a pattern to match whole texts.
func pattern(p string) (*regexp.Regexp, error) {
	tree, err := parsed(p)
	if err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + tree + `)\z`)
}

// parsed checks a pattern and takes its groups out: nobody asks what they matched, and a matcher
// would keep that for every group and instruction.
func parsed(p string) (string, error) {
	if len(p) > maxPattern {
		return "", fmt.Errorf("has %d bytes, at most %d are taken", len(p), maxPattern)
	}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return "", short(err)
	}
	tree = ungrouped(tree)
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return "", short(err)
	}
	if len(prog.Inst) > maxProgram {
		return "", fmt.Errorf("takes %d instructions, at most %d are taken", len(prog.Inst), maxProgram)
	}
	return tree.String(), nil
}

// short is a fault in a pattern with as much of it as people read.
func short(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) && len(e.Expr) > 60 {
		return fmt.Errorf("%v: `%.60s…`", e.Code, e.Expr)
	}
	return err
}

// ungrouped takes the groups out of a pattern; what they hold stays.
func ungrouped(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	for i, s := range re.Sub {
		re.Sub[i] = ungrouped(s)
	}
	return re
}
