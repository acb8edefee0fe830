package chip_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// The example in the documentation is a target.
func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(material.Root(), "docs", "reference", "target-files.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "```yaml\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("no example")
	}
	if _, err := chip.Parse([]byte(text), "my-board.yaml"); err != nil {
		t.Error(err)
	}
}
