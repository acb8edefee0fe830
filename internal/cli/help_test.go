package cli

import (
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// pages are the texts of help of all verbs and topics by name.
func pages(t *testing.T) map[string]string {
	out := map[string]string{}
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	names := []string{""}
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	for _, name := range names {
		var b, errs bytes.Buffer
		if status := run(t.Context(), append([]string{"help"}, strings.Fields(name)...), strings.NewReader(""), &b, &errs); status != 0 {
			t.Errorf("help %s: status %d: %s", name, status, errs.String())
		}
		out[name] = b.String()
	}
	return out
}

// Help of a verb fits a screen of 40 lines and 80 columns, has examples, and every flag
// that anybody may use is explained there or on the page of a topic that it names.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	all := pages(t)
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	for name, text := range all {
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if len(lines) > 40 {
			t.Errorf("help %s has %d lines", name, len(lines))
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Errorf("help %s: %d columns: %q", name, n, l)
			}
		}
		if name != "engines" && name != "schema" && name != "status" && !strings.Contains(text, "\nExamples:\n  opmeter") {
			t.Errorf("help %s has no example", name)
		}
	}
	for _, c := range root.Commands() {
		text, ok := all[c.Name()]
		if !ok {
			continue // hidden
		}
		// named tells whether a text has a flag, whose value may be optional: --name[=VALUE].
		named := func(text, before, name string) bool {
			return strings.Contains(text, before+"--"+name+" ") || strings.Contains(text, before+"--"+name+"[=")
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			own := f.Name == "verbose" || slices.ContainsFunc(refused, func(r struct{ name, short, instead string }) bool { return r.name == f.Name })
			if own {
				return
			}
			if named(text, "\n      ", f.Name) || named(text, ", ", f.Name) {
				return
			}
			for _, topic := range topics {
				if slices.Contains(topic.flags, f.Name) && strings.Contains(text, "opmeter help "+topic.name) && named(all[topic.name], "", f.Name) {
					return
				}
			}
			t.Errorf("help %s does not describe --%s", c.Name(), f.Name)
		})
	}
}

// Every page of the manual names its command, explains all flags, and can be read by a
// formatter without a complaint, where there is one.
func TestManual(t *testing.T) {
	t.Parallel()
	list := Manual("1.2.3")
	byName := map[string]string{}
	for _, p := range list {
		byName[p.Name] = string(p.Text)
		for line := range strings.Lines(string(p.Text)) {
			if strings.HasPrefix(line, ".") && !slices.ContainsFunc([]string{".TH", ".SH", ".B", ".BR", ".TP", ".PP", ".nf", ".fi"}, func(r string) bool { return strings.HasPrefix(line, r) }) {
				t.Errorf("%s: %q would be obeyed", p.Name, line)
			}
		}
	}
	root := newRoot(&app{})
	for _, c := range root.Commands() {
		text, ok := byName["opmeter-"+c.Name()+".1"]
		if c.Hidden {
			continue
		}
		if !ok {
			t.Errorf("%s has no page", c.Name())
			continue
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name := strings.ReplaceAll("--"+f.Name, "-", `\-`); !f.Hidden && f.Name != "help" && !strings.Contains(text, name) {
				t.Errorf("opmeter-%s.1 lacks --%s", c.Name(), f.Name)
			}
		})
		if !strings.Contains(byName["opmeter.1"], `opmeter\-`+c.Name()) {
			t.Errorf("opmeter.1 does not lead to %s", c.Name())
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is absent: the pages are not formatted")
	}
	for _, p := range list {
		c := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-Tutf8", "-z")
		c.Stdin = bytes.NewReader(p.Text)
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", p.Name, err, out)
		}
	}
}

// Every shell that is named has a script, and none other.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var b bytes.Buffer
		if err := Completion(&b, shell); err != nil || !strings.Contains(b.String(), "opmeter") {
			t.Errorf("%s: %d bytes, %v", shell, b.Len(), err)
		}
	}
	if err := Completion(io.Discard, "tcsh"); err == nil {
		t.Error("tcsh: no error")
	}
}

// The flags of a verb of compress are explained there, and not as those of boards that have the
// same names.
func TestHelpCompressPlan(t *testing.T) {
	t.Parallel()
	var b, errs bytes.Buffer
	if status := run(t.Context(), []string{"help", "compress", "plan"}, strings.NewReader(""), &b, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	if got := b.String(); !strings.Contains(got, "--speed NAME    NAME of the performance profile") || strings.Contains(got, "help boards") {
		t.Error(got)
	}
}
