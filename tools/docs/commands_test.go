package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// asProgram makes the test binary the program of a document's commands.
const asProgram = "OPMETER_DOCS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// block is a block of preformatted text.
type block struct {
	line  int // of its first line
	lines []string
	// spared is the reason in the comment before the block why it is not run, "" for none.
	spared string
}

// command is a command line of a block with the output that the document shows.
type command struct {
	line   int
	text   string
	output []string
}

var (
	fence  = regexp.MustCompile("^ *```")
	spare  = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	prompt = regexp.MustCompile(`^\$ (.+)$`)
	// plain begins a command line without a prompt.
	plain = regexp.MustCompile(`^(?:opmeter|go|sh|pip|curl|sed|git|docker|tar|cp|cat|make|west) \S`)
)

// blocksOf returns the blocks of a document: between fences, or indented by four spaces after an
// empty line.
func blocksOf(text string) (all []block) {
	var b *block
	fenced := false
	before := "" // the line before the block that is not empty
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		switch {
		case fence.MatchString(l):
			if fenced = !fenced; fenced {
				all = append(all, block{line: i + 2})
				b = &all[len(all)-1]
				if m := spare.FindStringSubmatch(before); m != nil {
					b.spared = m[1]
				}
			} else {
				b = nil
			}
		case fenced:
			b.lines = append(b.lines, l)
		case strings.HasPrefix(l, "    ") && (b != nil || i == 0 || lines[i-1] == "" || spare.MatchString(lines[i-1])):
			if b == nil {
				all = append(all, block{line: i + 1})
				b = &all[len(all)-1]
				if m := spare.FindStringSubmatch(before); m != nil {
					b.spared = m[1]
				}
			}
			b.lines = append(b.lines, l[4:])
		case l == "" && b != nil && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    "):
			b.lines = append(b.lines, "")
		default:
			b = nil
		}
		if l != "" && b == nil {
			before = l
		}
	}
	return all
}

// commands returns the command lines of a block with their output. Without a prompt, each line is
// one, and none has output. A backslash continues a line.
func (b *block) commands() (all []command) {
	prompted := slices.ContainsFunc(b.lines, prompt.MatchString)
	for i := 0; i < len(b.lines); i++ {
		l, at := b.lines[i], b.line+i
		m := prompt.FindStringSubmatch(l)
		switch {
		case prompted && m != nil:
			l = m[1]
		case !prompted && plain.MatchString(strings.TrimSpace(l)):
			l = strings.TrimSpace(l)
		case prompted && len(all) > 0:
			all[len(all)-1].output = append(all[len(all)-1].output, l)
			continue
		default:
			continue
		}
		for strings.HasSuffix(l, "\\") && i+1 < len(b.lines) {
			i++
			l = strings.TrimSuffix(l, "\\") + strings.TrimSpace(b.lines[i])
		}
		all = append(all, command{line: at, text: l})
	}
	return all
}

// split cuts a command line of a shell at its operators into simple commands, each as words.
// Variables stay as they are.
func split(line string) (all [][]string) {
	var words []string
	var word strings.Builder
	quote, in := rune(0), false
	end := func() {
		if in {
			words = append(words, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == '#' && !in:
			end()
			return append(all, words)
		case r == ' ':
			end()
		case strings.ContainsRune("|&;>()", r):
			end()
			all, words = append(all, words), nil
			if r == '>' {
				words = []string{">"}
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	end()
	return append(all, words)
}

// documents are the pages with their paths from the root of the repository. Decision records tell
// of their time, and generated pages are made from the program.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages, err := pagesBelow(filepath.Join(root, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range append(pages, "../README.md") {
		b, err := os.ReadFile(filepath.Join(root, "docs", filepath.FromSlash(p)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p, "decisions/") && !strings.HasPrefix(p, "internals/") {
			all[strings.TrimPrefix("docs/"+p, "docs/../")] = string(b)
		}
	}
	return all
}

// TestCommands parses every command of opmeter in the blocks of all documents: commands, flags,
// values and the number of arguments are those of the program.
func TestCommands(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range documents(t) {
		for _, b := range blocksOf(text) {
			for _, c := range b.commands() {
				for _, words := range split(c.text) {
					for len(words) > 0 && strings.Contains(words[0], "=") { // variables of the environment
						words = words[1:]
					}
					if len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == "./cmd/opmeter" {
						words = words[2:]
						words[0] = "opmeter"
					}
					if len(words) == 0 || words[0] != "opmeter" || slices.ContainsFunc(words, placeholder) {
						continue
					}
					n++
					if err := cli.Parse(words[1:]); err != nil {
						t.Errorf("%s:%d: %s: %v", name, c.line, c.text, err)
					}
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}

// placeholder reports whether a word stands for other words.
func placeholder(s string) bool { return s == "…" || s == "..." || strings.HasPrefix(s, "[") }

// TestRun runs the commands of the README, of the tutorials and of llm.md, each page in a folder of
// its own with the examples, and compares their output with the page: up to numbers, and to what
// the page leaves out with "…" or "...".
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("measures models")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range documents(t) {
		if name != "README.md" && name != "docs/llm.md" && !strings.HasPrefix(name, "docs/tutorials/") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(filepath.Join(material.Root(), "examples"), filepath.Join(dir, "examples")); err != nil {
				t.Fatal(err)
			}
			bin := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, self)
			if err := os.WriteFile(filepath.Join(bin, "opmeter"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "COLUMNS=100", "NO_COLOR=1", "CI=1", "GIT_CONFIG_GLOBAL="+filepath.Join(bin, "gitconfig"))
			if err := os.WriteFile(filepath.Join(bin, "gitconfig"), []byte("[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, b := range blocksOf(text) {
				if b.spared != "" {
					continue
				}
				for _, c := range b.commands() {
					if ofRepository(t, c.text) {
						continue
					}
					line := strings.Replace(c.text, "go run ./cmd/opmeter", "opmeter", 1)
					if rest, ok := strings.CutPrefix(line, "go run ./examples/"); ok {
						program, _, _ := strings.Cut(rest, " ")
						compile(t, filepath.Join(bin, program), "./examples/"+program)
						line = rest
					}
					got, status := shell(t.Context(), dir, env, line)
					if want := pattern(c.output); !want.MatchString(normal(got)) {
						t.Errorf("%s:%d: %s\nprints (exit status %d)\n%s\nwhich does not fit\n%s", name, c.line, c.text, status, got, strings.Join(c.output, "\n"))
					} else if status != 0 && !strings.Contains(text, fmt.Sprintf("status %d", status)) && !strings.Contains(text, fmt.Sprintf("status is %d", status)) {
						t.Errorf("%s:%d: %s ends with status %d, of which the page says nothing:\n%s", name, c.line, c.text, status, got)
					}
				}
			}
		})
	}
}

// ofRepository runs a command that installs, packs or tests the repository itself, and reports
// whether it is one. The tests of all packages take too long here, and include this one: CI has to
// run the same command. Programs go to a folder of the test. A release is made without the archives
// of six systems; the tests of tools/release make those.
func ofRepository(t *testing.T, line string) bool {
	t.Helper()
	dir := t.TempDir()
	switch {
	case strings.HasPrefix(line, "go test "):
		workflow, err := os.ReadFile(filepath.Join(material.Root(), ".github", "workflows", "ci.yml"))
		if err != nil || !strings.Contains(string(workflow), "run: "+line+"\n") {
			t.Errorf("%s: CI does not run it: %v", line, err)
		}
		return true
	case strings.HasPrefix(line, "go run ./tools/release "):
		line = strings.Replace(line, " -o dist", " -formula -o '"+dir+"'", 1)
	case !strings.HasPrefix(line, "go install ./"):
		return false
	}
	out, status := shell(t.Context(), material.Root(), append(os.Environ(), "GOBIN="+dir), line)
	if files, err := os.ReadDir(dir); status != 0 || err != nil || len(files) == 0 {
		t.Errorf("%s: exit status %d, %d files, %v:\n%s", line, status, len(files), err, out)
	}
	return true
}

// compile builds a program of the repository.
func compile(t *testing.T, to, what string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "build", "-o", to, what)
	c.Dir = material.Root()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", what, err, out)
	}
}

// shell runs a command line and returns what a terminal shows, without the progress of long steps.
func shell(ctx context.Context, dir string, env []string, line string) (string, int) {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir, c.Env = dir, env
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		return err.Error(), -1
	}
	return progress.ReplaceAllString(string(out), ""), c.ProcessState.ExitCode()
}

var (
	progress = regexp.MustCompile(`(?m)^opmeter: .*, \d+ % of this step.*\n`)
	hashes   = regexp.MustCompile(`\b[0-9a-f]{10,64}\b`)
	ellipsis = regexp.MustCompile(`…|\.\.\.`)
	bars     = regexp.MustCompile(`[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+`)
	figures  = regexp.MustCompile(`[+−-]?[0-9][0-9.,]*`)
	units    = regexp.MustCompile(`0 (?:[pnµmkMGT]|[KMGT]i)?(s|B|J|Hz|FLOP/s|B/s)\b`)
	prefixes = regexp.MustCompile(`0 [kMGT]\b`)
	ordinals = regexp.MustCompile(`0(?:st|nd|rd|th)\b`)
	verdicts = regexp.MustCompile(`0 [▲▼=?]`)
	isa      = regexp.MustCompile(`(0 threads?), [^()]*\)`) // instruction set of this computer
	wrapped  = regexp.MustCompile(`([^\n])\n {8,}(\S)`)
	blanks   = regexp.MustCompile(`[ \t]+`)
)

// normal replaces what differs from run to run: numbers, hashes, units, bars and the widths of
// columns. Empty lines are left out.
func normal(s string) string {
	var out strings.Builder
	// Where a line wraps depends on the figures.
	for l := range strings.Lines(wrapped.ReplaceAllString(s, "$1 $2")) {
		l = bars.ReplaceAllString(l, "")
		l = hashes.ReplaceAllString(l, "0")
		l = figures.ReplaceAllString(l, "0")
		l = units.ReplaceAllString(l, "0 $1")
		l = prefixes.ReplaceAllString(l, "0")
		l = ordinals.ReplaceAllString(l, "0th")
		l = verdicts.ReplaceAllString(l, "0")
		l = isa.ReplaceAllString(l, "$1)")
		if l = strings.TrimSpace(blanks.ReplaceAllString(l, " ")); l != "" {
			out.WriteString(l + "\n")
		}
	}
	return out.String()
}

// pattern fits the output that a document shows. A line of an ellipsis stands for any lines, one
// within a line for any text.
func pattern(output []string) *regexp.Regexp {
	if len(output) == 0 {
		return regexp.MustCompile(``)
	}
	var b strings.Builder
	b.WriteString(`\A`)
	for l := range strings.SplitSeq(wrapped.ReplaceAllString(strings.Join(output, "\n"), "$1 $2"), "\n") {
		if ellipsis.ReplaceAllString(strings.TrimSpace(l), "") == "" && strings.TrimSpace(l) != "" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := ellipsis.Split(l, -1)
		for i := range parts {
			n := normal(parts[i])
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(n))
		}
		if l = strings.Join(parts, ` ?.* ?`); l != "" {
			b.WriteString(l + `\n`)
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	const page = "# T\n\nText\n    no block\n\n    opmeter targets\n\n    x # opmeter\n\n```\n$ opmeter a \\\n    b\n1\n\n2\n$ c\n```\n\n<!-- not run: a board -->\n    $ opmeter d\n"
	var got []string
	for _, b := range blocksOf(page) {
		for _, c := range b.commands() {
			got = append(got, fmt.Sprintf("%d %q %q %q", c.line, c.text, c.output, b.spared))
		}
	}
	want := []string{`6 "opmeter targets" [] ""`, `11 "opmeter a b" ["1" "" "2"] ""`, `16 "c" [] ""`, `20 "opmeter d" [] "a board"`}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	got := fmt.Sprintf("%q", split(`A=1 opmeter a 'b c' "d" > e.txt | f && g h # no`))
	if want := `[["A=1" "opmeter" "a" "b c" "d"] [">" "e.txt"] ["f"] [] ["g" "h"]]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page, printed string
		fits          bool
	}{
		{"conv  3.2 µs  2 k ▊", "conv 14 ms  31.0 M\n", true},
		{"conv 3 µs", "pool 3 µs\n", false},
		{"a 1 s\nb", "a 1 s\n", false},
		{"a\nc", "a\nb\nc\n", false},
		{"a\n…\nc", "a\nb\nb\nc\n", true},
		{"a\n...", "a\n", true},
		{"Shares … 2 %, end", "Shares what ever 31 %, end\n", true},
		{"wrote a, 3 KiB", "wrote a, 117 B\n", true},
		{"1st or 2nd", "3rd or 4th\n", true},
		{"+480 ns 1.02 ?", "-3 µs 0.98 ▲\n", true},
		{"", "anything\n", false},
		{"Quality a\n           b …\nc", "Quality a b\n            d\nc\n", true},
	} {
		if got := pattern(strings.Split(c.page, "\n")).MatchString(normal(c.printed)); got != c.fits {
			t.Errorf("%q and %q: fits %v", c.page, c.printed, got)
		}
	}
}

// Commands that the program would refuse are found.
func TestWrongCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"profile m.onnx --nope":   "--nope",
		"nonsense":                "nonsense",
		"build a.yaml b.yaml":     "2 arguments",
		"profile m.onnx --top x":  "--top",
		"gate accept":             "",
		"m.onnx --by op":          "",
		"report p.opmeter --on a": "--on",
		"device tiny --nope":      "--nope",
	} {
		err := cli.Parse(strings.Fields(line))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("opmeter %s: %v, want %q", line, err, want)
		}
	}
}
