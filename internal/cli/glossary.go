package cli

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/report/glossary"
)

// glossaryIndex lists the names of all terms by topic.
func glossaryIndex() string {
	var b strings.Builder
	b.WriteString("opmeter help glossary TERM defines a term, opmeter help glossary all every one.\n\n")
	for _, g := range glossary.Groups() {
		names := make([]string, len(g.Terms))
		for i, t := range g.Terms {
			names[i] = t.Name
		}
		lead := "  "
		for line := range strings.SplitSeq(fill(g.Name+": "+strings.Join(names, ", "), helpWidth-4), "\n") {
			b.WriteString(lead + line + "\n")
			lead = "    "
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// glossaryAll defines all terms by topic.
func glossaryAll() string {
	var b strings.Builder
	for i, g := range glossary.Groups() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n\n", g.Name)
		definitions(&b, g.Terms)
	}
	return strings.TrimRight(b.String(), "\n")
}

// glossaryTerms defines the terms that words mean.
func glossaryTerms(words string) string {
	if strings.EqualFold(words, "all") {
		return glossaryAll()
	}
	found := glossary.Find(words)
	if found == nil {
		return fmt.Sprintf("No term contains %q. opmeter help glossary lists all terms.", words)
	}
	var b strings.Builder
	definitions(&b, found)
	return strings.TrimRight(b.String(), "\n")
}

// definitions writes terms with their units and definitions, set in.
func definitions(b *strings.Builder, terms []glossary.Term) {
	for _, t := range terms {
		b.WriteString("  " + t.Name)
		switch t.Unit {
		case "":
		case "1":
			b.WriteString(" (fraction)")
		default:
			b.WriteString(" (" + t.Unit + ")")
		}
		b.WriteString("\n")
		for line := range strings.SplitSeq(fill(t.Text, helpWidth-6), "\n") {
			b.WriteString("      " + line + "\n")
		}
		if t.Key != "" {
			b.WriteString("      In files: " + t.Key + "\n")
		}
	}
}
