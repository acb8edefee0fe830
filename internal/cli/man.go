package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Page is a page of the manual.
type Page struct {
	Name string // of the file, such as "opmeter-profile.1"
	Text []byte // roff
}

// Manual makes the pages of the manual from the commands themselves, one for the program,
// each command and each topic, for a version.
func Manual(version string) []Page {
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	pages := []Page{manual(root, nil, version)}
	for _, c := range root.Commands() {
		if t := topicOf(c); t != nil || c.IsAvailableCommand() {
			pages = append(pages, manual(c, t, version))
		}
	}
	sorting.Func(pages, func(a, b Page) int { return strings.Compare(a.Name, b.Name) })
	return pages
}

// topicOf is the topic that a command shows, nil for verbs.
func topicOf(c *cobra.Command) *topic {
	for i := range topics {
		if topics[i].name == c.Name() {
			return &topics[i]
		}
	}
	return nil
}

// manual makes the page of a verb or, with t, of a topic.
func manual(c *cobra.Command, t *topic, version string) Page {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	what, flags := c.Long, c.Flags()
	if what == "" {
		what = c.Short
	}
	if t != nil {
		what, flags = t.text(), t.set(c.Root())
		if t.name == "glossary" {
			what = glossaryAll()
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s \"opmeter\"\n", quoted(strings.ToUpper(name)), quoted("opmeter "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	if t == nil {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, what)
	if c.HasParent() || t != nil {
		options(&b, flags)
	}
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roff(c.Example) + "\n.fi\n")
	}
	if !c.HasParent() {
		b.WriteString(".SH COMMANDS\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() || topicOf(s) != nil {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(strings.ReplaceAll(s.CommandPath(), " ", "-")), roff(s.Short))
			}
		}
	}
	return Page{name + ".1", b.Bytes()}
}

// paragraphs writes text; lines that are set in stay lines.
func paragraphs(b *bytes.Buffer, text string) {
	set := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if in := strings.HasPrefix(line, " "); in != set {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[in])
			set = in
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if set {
		b.WriteString(".fi\n")
	}
}

// options writes the flags, those too that the help of a verb only names.
func options(b *bytes.Buffer, set *pflag.FlagSet) {
	if !set.HasFlags() {
		return
	}
	b.WriteString(".SH OPTIONS\n")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		takes, text := flagText(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimRight(name+" "+takes, " ")), roff(text))
	})
}

// roff has nothing that a formatter obeys.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "µ", `\(mc`, "×", `\(mu`, "−", `\-`).Replace(s)
	var b strings.Builder
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			b.WriteString(`\&`)
		}
		b.WriteString(line)
	}
	return b.String()
}

// quoted is one argument of a request.
func quoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }

// Completion writes the completion script for a shell: bash, zsh, fish or powershell.
func Completion(w io.Writer, shell string) error {
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return fmt.Errorf("no completion for %q", shell)
}
