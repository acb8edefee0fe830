package textscan

import "github.com/opmeter/opmeter/internal/base/lazyregexp"

// Rule is a kind of line: its pattern, and the function that takes the submatches.
type Rule[T any] struct {
	pattern *lazyregexp.Regexp
	use     func(to T, m []string)
}

// On makes a [Rule]. The pattern must be a valid regular expression.
func On[T any](pattern string, use func(to T, m []string)) Rule[T] {
	return Rule[T]{lazyregexp.New(pattern), use}
}

// Rules are kinds of lines; earlier ones take precedence.
type Rules[T any] []Rule[T]

// Apply calls the function of the first rule that matches the line. It reports whether a rule
// does.
func (rs Rules[T]) Apply(to T, line string) bool {
	for _, r := range rs {
		if m := r.pattern.FindStringSubmatch(line); m != nil {
			r.use(to, m)
			return true
		}
	}
	return false
}
