package work

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What the description says of an option is what the server checks: a page refuses values by it.
func TestLimits(t *testing.T) {
	for i := range options {
		o := &options[i]
		l := &o.Limit
		var good, bad []string
		switch l.As {
		case "":
			if len(o.Choices) == 0 {
				t.Errorf("option %s has neither choices nor a limit", o.Name)
			}
			good, bad = o.Choices, []string{"", "other"}
		case "text":
			// Other groups have other meanings, or none, in JavaScript.
			if l.Pattern == "" || strings.Contains(l.Pattern, "(?") || strings.Contains(l.Pattern, `\p`) {
				t.Errorf("option %s has the pattern %q", o.Name, l.Pattern)
			}
			bad = []string{"", "../x", "a//b"}
		case "whole":
			good = []string{fmt.Sprint(int(l.Above) + 1), fmt.Sprint(int(l.Most))}
			bad = []string{fmt.Sprint(int(l.Above)), fmt.Sprint(int(l.Most) + 1), "1.5", "abc", ""}
		case "number":
			good = []string{fmt.Sprint(l.Above + 0.1), fmt.Sprint(l.Most)}
			bad = []string{fmt.Sprint(l.Above), fmt.Sprint(l.Most + 0.1), "abc", ""}
		case "time":
			most := time.Duration(l.Most * float64(time.Second))
			good, bad = []string{"1ms", most.String()}, []string{"0s", (most + time.Second).String(), "5", ""}
		default:
			t.Errorf("option %s is %q", o.Name, l.As)
		}
		for _, v := range good {
			if !o.check(v) {
				t.Errorf("option %s refuses %q", o.Name, v)
			}
		}
		for _, v := range bad {
			if o.check(v) {
				t.Errorf("option %s takes %q", o.Name, v)
			}
		}
		for _, n := range o.Names {
			if !o.check(n) || o.unknown(n) != "" || o.unknown(n+",none of these") == "" {
				t.Errorf("option %s and its name %q", o.Name, n)
			}
		}
	}
}
