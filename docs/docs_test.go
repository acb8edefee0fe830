package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/target"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages returns the text of every page below docs, without fenced code.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		b, err := os.ReadFile(name)
		all[name] = fenced.ReplaceAllString(string(b), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// anchors returns the fragments of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		s := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(s, " ", "-")] = true
	}
	return all
}

// TestLinks follows the relative links of every page, with their fragments.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: no such file", name, m[1])
			} else if page, ok := all[to]; ok && fragment != "" && !anchors(page)[fragment] {
				t.Errorf("%s: link to %s: no such heading", name, m[1])
			}
		}
	}
}

// TestIndex checks that an index links to every page: the README.md of the page's folder if it has
// one, which README.md itself must link to, and README.md otherwise.
func TestIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for name := range all {
		if name == "README.md" {
			continue
		}
		index, to := "README.md", name
		if folder, page := path.Split(name); page != "README.md" && all[folder+"README.md"] != "" {
			index, to = folder+"README.md", page
		}
		if !strings.Contains(all[index], "]("+to+")") {
			t.Errorf("%s: no line for %s", index, name)
		}
	}
}

// Pages count the targets as the program does: fit estimates for all of them.
func TestTargetCount(t *testing.T) {
	set, err := target.Load("")
	if err != nil {
		t.Fatal(err)
	}
	count := regexp.MustCompile(`(\d+) (?:microcontroller )?targets`)
	for _, name := range []string{"../README.md", "why.md"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := count.FindSubmatch(b)
		if want := strconv.Itoa(len(set.List())); m == nil || string(m[1]) != want {
			t.Errorf("%s: count of targets %q, want %s", name, m, want)
		}
	}
}
