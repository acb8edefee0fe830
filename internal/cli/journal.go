package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// journals bounds how many names of journals are tried: as many runs into one file
// were killed, or go on at once.
const journals = 1000

// kept measures. Where files are to be written, a journal beside the first
// one keeps what was measured should the process be killed. Without a place for a
// journal the run goes on, and a line says so. deliver removes the journal.
func (a *app) kept(files []string, run func(journal string) (*profile.Profile, error)) (*profile.Profile, error) {
	if len(files) == 0 {
		return run("")
	}
	for n := 1; ; n++ {
		journal := journalName(files[0], n)
		// the journal of another run is not a place for this one's figures
		if _, err := os.Lstat(journal); err != nil {
			a.setJournal(files[0], journal)
		}
		p, err := run(journal)
		if p == nil {
			a.setJournal(files[0], "")
		}
		e, ok := errors.AsType[*opmeter.OptionError](err)
		switch {
		case !ok || e.Option != "Journal":
			return p, err
		case errors.Is(err, fs.ErrExist) && n < journals:
			continue
		}
		fmt.Fprintf(a.err, "no journal of this run is kept: %s\n", text.Clean(e.Text))
		return run("")
	}
}

// settle removes the journal of a run that is safe: in its files, or without figures.
// One that has figures which no file has stays, and a line says where, also where the disk
// was too full for all of it.
func (a *app) settle(p *profile.Profile, files []string, safe bool) {
	journal := a.journalOf(files)
	if journal == "" {
		return
	}
	short := slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == profile.JournalShort })
	var unread error
	if short && !safe {
		_, unread = profile.Read(journal)
	}
	switch {
	case safe:
		_ = os.Remove(journal) // one too many loses nothing
	case unread != nil:
		_ = os.Remove(journal)
		fmt.Fprintln(a.err, "the figures are in no file: the disk had no room for a journal either")
	case short:
		fmt.Fprintf(a.err, "the disk had room for a part of the figures, which are in %s: opmeter report opens it\n", text.Clean(journal))
	default:
		fmt.Fprintf(a.err, "the figures are in %s: opmeter report opens it\n", text.Clean(journal))
	}
	a.setJournal(files[0], "")
}

// journalName is the n-th name, from 1, of a journal beside a file or folder.
func journalName(file string, n int) string {
	name := strings.TrimSuffix(filepath.Clean(file), profile.Extension)
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name + profile.JournalExtension
}
