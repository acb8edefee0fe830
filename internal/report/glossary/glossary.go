// Package glossary defines the terms that opmeter shows to its users.
//
// It is the only source of docs/glossary.md, of opmeter help glossary and of the tooltips
// of the HTML page (web/src/glossary.ts).
package glossary

import (
	"cmp"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Term is a term with its definition.
type Term struct {
	// Name is the term as texts write it, in lower case but for names and abbreviations.
	Name string
	// Text is the definition: one sentence.
	Text string
	// Unit is the unit of a figure, "" for terms that have none. A fraction has "1".
	Unit string
	// Key is the key of the figure in JSON and CSV files: that of a quantity of package
	// profile, or a path such as "trust.verdict". "" if absent.
	Key string
	// Doc is the page that says how it is measured or used: its file name in docs without
	// the ending, whatever folder it is in.
	Doc string
	// Page marks terms that the HTML page explains in tooltips.
	Page bool
}

// Group is a list of related terms.
type Group struct {
	Name  string
	Terms []Term
}

// Groups returns all terms by topic.
func Groups() []Group { return groups }

// Terms returns all terms in alphabetical order, without regard to case.
func Terms() []Term {
	var all []Term
	for _, g := range groups {
		all = append(all, g.Terms...)
	}
	sorting.Func(all, func(a, b Term) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Find returns the terms that a query means: the one of that name, else all whose names
// contain it, else all whose definitions do. Case does not matter.
func Find(query string) []Term {
	query = strings.ToLower(strings.TrimSpace(query))
	if query == "" {
		return nil
	}
	tests := []func(t *Term) bool{
		func(t *Term) bool { return strings.ToLower(t.Name) == query },
		func(t *Term) bool { return strings.Contains(strings.ToLower(t.Name), query) },
		func(t *Term) bool { return strings.Contains(strings.ToLower(t.Text), query) },
	}
	all := Terms()
	for _, test := range tests {
		var found []Term
		for _, t := range all {
			if test(&t) {
				found = append(found, t)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}
