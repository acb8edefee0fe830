package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// journals bounds how many names of journals are tried: as many runs into one file
// were killed, or go on at once.
const journals = 1000

// kept profiles a model. Where files are to be written, a journal beside the first
// one keeps what was measured should the process be killed. Without a place for a
// journal the run goes on, and a line says so.
func (a *app) kept(ctx context.Context, m *opmeter.Model, o opmeter.Options, files []string) (*profile.Profile, error) {
	if len(files) == 0 {
		return opmeter.Profile(ctx, m, o)
	}
	for n := 1; ; n++ {
		o.Journal = journalName(files[0], n)
		p, err := opmeter.Profile(ctx, m, o)
		e, ok := errors.AsType[*opmeter.OptionError](err)
		switch {
		case !ok || e.Option != "Journal":
			return p, err
		case errors.Is(err, fs.ErrExist) && n < journals:
			continue
		}
		fmt.Fprintf(a.err, "no journal of this run is kept: %s\n", text.Clean(e.Text))
		o.Journal = ""
		return opmeter.Profile(ctx, m, o)
	}
}

// journalName is the n-th name, from 1, of a journal beside a file or folder.
func journalName(file string, n int) string {
	name := strings.TrimSuffix(filepath.Clean(file), profile.Extension)
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name + profile.JournalExtension
}
