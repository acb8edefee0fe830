package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/glossary"
)

// The topic lists the names of all terms, and words behind it choose the terms to define.
func TestGlossary(t *testing.T) {
	t.Parallel()
	help := func(args ...string) string {
		var out, errs bytes.Buffer
		if status := run(t.Context(), append([]string{"help", "glossary"}, args...), strings.NewReader(""), &out, &errs); status != 0 || errs.Len() > 0 {
			t.Errorf("help glossary %q: status %d: %s", args, status, errs.String())
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	index, all := help(), help("all")
	for _, x := range glossary.Terms() {
		if !strings.Contains(index, x.Name) {
			t.Errorf("the index lacks %s", x.Name)
		}
		if !strings.Contains(all, x.Text) {
			t.Errorf("the list of all terms lacks the definition of %s", x.Name)
		}
		if one := help(strings.Fields(x.Name)...); !strings.Contains(one, x.Text) {
			t.Errorf("help glossary %s does not define it: %s", x.Name, one)
		}
	}
	if got := help("gibberish"); !strings.Contains(got, `No term contains "gibberish"`) {
		t.Errorf("a term that is missing: %s", got)
	}
}
