package count

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "counting.md"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), string(Markdown())); d != "" {
		t.Errorf("docs/reference/counting.md is not current; run go generate ./internal/model/count (-have +want):\n%s", d)
	}
}

func TestRulesAreComplete(t *testing.T) {
	t.Parallel()
	for _, r := range Rules() {
		if r.Group == "" || r.MACs == "" || r.Ops == "" || r.f == nil || len(r.Names) == 0 {
			t.Errorf("rule %v has gaps", r.Names)
		}
	}
}
