package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestNotes opens a page that does all that the page of a profile must not, so that
// the tests on that page are known to be able to fail.
func TestNotes(t *testing.T) {
	if _, err := Path(); err != nil {
		material.Skip(t, "Chromium is absent: "+err.Error())
	}
	b, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tab, err := b.Open(800, 600)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()

	file := filepath.Join(t.TempDir(), "a page.html")
	text := `<!doctype html><title>bad</title><img src="http://localhost:1/picture.png">
<script>
console.error("said", 1);
console.warn("careful");
console.log("harmless");
alert("hello");
Promise.reject(new Error("lost"));
window.done = true;
throw new Error("thrown");
</script>`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	address, err := FileURL(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []error{tab.Goto(address), tab.Wait("window.done"), tab.Settle()} {
		if step != nil {
			t.Fatal(step)
		}
	}
	problems := strings.Join(tab.Problems(), "\n")
	for _, want := range []string{`console.error: "said" 1`, "careful", "thrown", "lost", "Failed to load resource"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q was not noted in\n%s", want, problems)
		}
	}
	if strings.Contains(problems, "harmless") {
		t.Errorf("a plain message counts as a problem:\n%s", problems)
	}
	if got := tab.Requests(); !slices.Contains(got, "http://localhost:1/picture.png") || !slices.Contains(got, address) {
		t.Errorf("requests %q", got)
	}
	if got := tab.Dialogs(); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("dialogs %q", got)
	}
}
