// Command prose checks the texts of the repository.
//
//	go run ./tools/prose              # check; the folders in clean.txt must have no findings
//	go run ./tools/prose -all         # count the findings in all folders
//	go run ./tools/prose PATH...      # list the findings below the paths
//	go run ./tools/prose -commits A..B
//
// There are four checks of texts:
//
//   - dialect: words that have a standard term, in comments, string literals with a blank,
//     exported names, Markdown, and pages (dialect.go holds the table);
//   - sentence: sentences of more than 25 words in Markdown;
//   - width: lines of more than 100 columns in Markdown and in Go comments. A tab is one column;
//     tables, code blocks and link targets are excepted;
//   - commits: subjects read "package: lower case", with at most 72 characters and no full stop.
//
// Generated files and testdata are skipped. The file clean.txt lists path prefixes, one a line.
//
// A fifth check, display, covers all Go code outside internal/report and the tests: code must not
// search, cut or compare texts that are made for display. States and causes have codes for that.
// It knows these texts by the names of their fields, without types.
//
// The exit status is 1 when a check fails.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A finding is one place that breaks a rule.
type finding struct {
	file  string
	line  int
	check string
	what  string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.check, f.what)
}

func main() {
	all := flag.Bool("all", false, "count the findings in all folders")
	commits := flag.String("commits", "", "check the subjects of a range of commits")
	flag.Parse()
	failed, err := run(os.Stdout, ".", *all, *commits, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// run performs the checks and reports whether one failed.
func run(w io.Writer, root string, all bool, commits string, paths []string) (bool, error) {
	if commits != "" {
		list, err := checkCommits(root, commits)
		for _, s := range list {
			fmt.Fprintln(w, s)
		}
		return len(list) > 0, err
	}
	prefixes := paths
	for i := range prefixes {
		prefixes[i] = filepath.ToSlash(filepath.Clean(prefixes[i]))
	}
	if all {
		prefixes = []string{"."}
	} else if len(paths) == 0 {
		var err error
		if prefixes, err = cleanPaths(root); err != nil {
			return false, err
		}
	}
	found, err := check(root, prefixes)
	if err != nil {
		return false, err
	}
	if all {
		counts(w, found)
		return false, nil
	}
	failed := false
	for _, f := range found {
		if len(paths) == 0 || below(f.file, paths) {
			fmt.Fprintln(w, f)
			failed = true
		}
	}
	return failed, nil
}

// cleanPaths reads the list of paths that must have no findings.
func cleanPaths(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "tools/prose/clean.txt"))
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, line)); err != nil {
			return nil, fmt.Errorf("clean.txt: %w", err)
		}
		list = append(list, strings.TrimSuffix(line, "/"))
	}
	return list, nil
}

// below reports whether a path is one of the prefixes or within one; "." stands for everything.
func below(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return p == "." || name == p || strings.HasPrefix(name, p+"/")
	})
}

// check returns the findings below the prefixes, and those of the display check everywhere.
func check(root string, prefixes []string) ([]finding, error) {
	var found []finding
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			switch base := path.Base(rel); {
			case rel == ".":
			case strings.HasPrefix(base, "."), base == "node_modules", base == "testdata", base == "dist", rel == "bin", rel == "out":
				return filepath.SkipDir
			}
			return nil
		}
		texts := below(rel, prefixes)
		display := strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, "_test.go") &&
			!below(rel, []string{"web", "internal/report", "internal/testing"})
		if !d.Type().IsRegular() || !texts && !display {
			return nil
		}
		if rel == "tools/prose/dialect.go" || rel == "tools/prose/dialect_test.go" {
			texts = false // the table itself
		}
		kind := kindOf(rel)
		if kind == "" {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		list, err := checkFile(rel, kind, string(content), texts, display)
		found = append(found, list...)
		return err
	})
	return found, err
}

// kindOf returns how a file is read, "" for files without texts.
func kindOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".go", ".md", ".svelte":
		return ext[1:]
	case ".ts", ".js", ".mjs", ".c", ".h", ".cc", ".s", ".css":
		return "c"
	}
	return ""
}

func checkFile(name, kind, content string, texts, display bool) ([]finding, error) {
	switch kind {
	case "go":
		return checkGo(name, content, texts, display)
	case "md":
		return checkMarkdown(name, content), nil
	case "svelte":
		return dialect(name, svelteTexts(content)), nil
	}
	return dialect(name, cTexts(content, 1)), nil
}

// counts prints the number of findings by folder and check.
func counts(w io.Writer, found []finding) {
	checks := []string{"dialect", "sentence", "width", "display"}
	table := map[string]map[string]int{}
	total := map[string]int{}
	for _, f := range found {
		parts := strings.Split(path.Dir(f.file), "/")
		folder := strings.Join(parts[:min(2, len(parts))], "/")
		if table[folder] == nil {
			table[folder] = map[string]int{}
		}
		table[folder][f.check]++
		table[folder]["all"]++
		total[f.check]++
	}
	folders := make([]string, 0, len(table))
	for f := range table {
		folders = append(folders, f)
	}
	slices.SortFunc(folders, func(a, b string) int {
		return cmp.Or(table[b]["all"]-table[a]["all"], cmp.Compare(a, b))
	})
	row := func(name string, n map[string]int) {
		fmt.Fprintf(w, "%-32s", name)
		for _, c := range checks {
			fmt.Fprintf(w, " %9d", n[c])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-32s", "folder")
	for _, c := range checks {
		fmt.Fprintf(w, " %9s", c)
	}
	fmt.Fprintln(w)
	for _, f := range folders {
		row(f, table[f])
	}
	row("total", total)
}
