package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
)

// Reference writes all commands with their flags, and the topics of help, as Markdown
// without a title.
func Reference(w io.Writer) error {
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString("## Commands\n\n| command | purpose |\n| --- | --- |\n")
	var list []*cobra.Command
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			list = append(list, c)
			list = append(list, available(c)...)
		}
	}
	for _, c := range list {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), anchor(c.CommandPath()), text.TableCell(c.Short))
	}
	for _, c := range list {
		verb(&b, c)
	}
	b.WriteString("\n## Help topics\n\n`opmeter help TOPIC` explains flags that belong together.\n\n| topic | explains |\n| --- | --- |\n")
	for i := range topics {
		fmt.Fprintf(&b, "| `%s` | %s |\n", topics[i].name, text.TableCell(topics[i].short))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Flag is a flag of a command, for programs that make command lines.
type Flag struct {
	Name  string // without dashes
	Takes string // placeholder of the value, such as NAME=FILE; "" for a switch
	Many  bool   // may be given several times
	Bare  bool   // may be given without its value; true for a switch
}

// Flags returns the flags of a command, such as "compress perf", in alphabetical order.
func Flags(command string) ([]Flag, error) {
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	c, rest, err := root.Find(strings.Fields(command))
	if err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("%q is not a command", command)
	}
	var list []Flag
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		takes, _ := flagText(f)
		if f.Value.Type() == "bool" {
			takes = ""
		}
		name, many := strings.CutSuffix(takes, "…")
		list = append(list, Flag{f.Name, name, many && f.Value.Type() == "stringArray", f.NoOptDefVal != ""})
	})
	return list, nil
}

// Parse reports what is wrong with the command, the flags or the number of arguments of a command
// line, without running it. Documents are checked with it.
func Parse(args []string) error {
	root := newRoot(&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(implied(root, args))
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return badFlag(c, err)
	}
	return c.ValidateArgs(c.Flags().Args())
}

// available lists the commands below one.
func available(c *cobra.Command) (list []*cobra.Command) {
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			list = append(list, s)
			list = append(list, available(s)...)
		}
	}
	return list
}

// anchor is the anchor that Markdown gives to a heading of plain words.
func anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

// verb writes the section of a command: what it does, usage, examples, flags.
func verb(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	what := c.Long
	if what == "" {
		what = c.Short + "."
	}
	set := false
	for line := range strings.SplitSeq(fill(what, 100), "\n") {
		// Lines that are set in are text as it stands.
		if in := strings.HasPrefix(line, "  "); in != set {
			set = in
			b.WriteString("\n")
		}
		if set {
			line = "  " + line
		}
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(b, "\n    %s\n", c.UseLine())
	if c.Example != "" {
		b.WriteString("\nExamples:\n\n")
		for line := range strings.SplitSeq(c.Example, "\n") {
			b.WriteString("  " + line + "\n")
		}
	}
	var rows []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		takes, meaning := flagText(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", text.TableCell(strings.TrimSpace(name+" "+takes)), text.TableCell(meaning)))
	})
	if len(rows) > 0 {
		b.WriteString("\n| flag | meaning |\n| --- | --- |\n" + strings.Join(rows, ""))
	}
	var names []string
	for i := range topics {
		if slices.ContainsFunc(topics[i].flags, func(name string) bool {
			f := c.Flags().Lookup(name)
			return f != nil && !f.Hidden && topics[i].of(verbOf(c), name)
		}) {
			names = append(names, "`opmeter\u00a0help\u00a0"+topics[i].name+"`") // not broken between lines
		}
	}
	if len(names) > 0 {
		b.WriteString("\n" + strings.ReplaceAll(strings.Join(report.Wrap("See also: "+strings.Join(names, ", ")+".", 100), "\n"), "\u00a0", " ") + "\n")
	}
}
