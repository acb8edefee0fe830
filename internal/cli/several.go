package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
	"github.com/opmeter/opmeter/target"
)

// runner makes the profile of a model for one target.
type runner struct {
	target string // its id
	run    profiler
	turns  bool // is interleaved with the others that do
	phases bool // measures phases of language models
	// after is what follows when nobody is interleaved any more, nil for nothing. It gets the error
	// of run, and returns that of both.
	after func(ctx context.Context, m *opmeter.Model, p *profile.Profile, err error, b bounds) error
	// row puts the profile beside what the target has.
	row func(p *profile.Profile) report.TargetRow
}

// onHost is a runner for this computer.
func onHost(run profiler) runner {
	return runner{target: "host", run: run, row: func(p *profile.Profile) report.TargetRow { return report.TargetRow{Profile: p} }}
}

// whole runs it with what follows.
func (r *runner) whole(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error) {
	p, err := r.run(ctx, m, b)
	return p, r.follow(ctx, m, p, err, b)
}

func (r *runner) follow(ctx context.Context, m *opmeter.Model, p *profile.Profile, err error, b bounds) error {
	if r.after == nil {
		return err
	}
	return r.after(ctx, m, p, err, b)
}

// onTarget is a runner for a target that is absent.
func onTarget(t target.Target, o opmeter.EstimateOptions) runner {
	return runner{
		target: t.ID, run: func(_ context.Context, m *opmeter.Model, _ bounds) (*profile.Profile, error) { return t.Estimate(m, o) },
		row: func(p *profile.Profile) report.TargetRow {
			return report.TargetRow{Profile: p, RAM: t.RAMBytes, Flash: t.FlashBytes, ExternalFlash: t.ExternalFlashBytes}
		},
	}
}

// several is the way of many profiles to standard output and to files: a line each, and
// for each a file of its own where a format holds one profile.
type several struct {
	a *app
	o *outputFlags
	// models and targets say which of them a file's name has to tell apart.
	models, targets bool
	// engines says that all targets are engines here that were interleaved with one model, by these
	// names.
	engines bool
	called  []string
	table   *compare.Table   // their comparison, nil before the end and if absent
	apart   error            // why it is absent
	list    *report.List     // where lines are shown as they come, nil otherwise
	rows    []report.ListRow // all of them where something needs that
	used    map[string]bool  // names of files
	wrote   []string
	refused int
	faults  int // of them those of engines and other sources, not of models
	lacking int // profiles of which most did not run
	failed  error
}

// newSeveral prepares for models in files and targets by their ids.
func (a *app) newSeveral(o *outputFlags, files []string, rs []runner, timed bool) *several {
	s := &several{a: a, o: o, models: len(files) > 1, targets: len(rs) > 1, used: map[string]bool{}}
	s.engines = len(files) == 1 && len(rs) > 1 && !slices.ContainsFunc(rs, func(r runner) bool { return !r.turns })
	for _, r := range rs {
		s.called = append(s.called, r.target)
	}
	if len(rs) == 1 && rs[0].target == "host" && s.listed() {
		s.list = report.NewList(a.out, report.ListOptions{Format: o.format, Width: a.width, Measured: timed, Tokens: rs[0].phases, Files: files})
	}
	return s
}

// listed reports whether standard output gets a line for each profile.
func (s *several) listed() bool {
	return s.o.format == "" || slices.Contains(report.ListFormats, s.o.format)
}

// checkSeveral refuses what goes with one profile only.
func (f *outputFlags) checkSeveral() error {
	if f.format != "" && !slices.Contains(report.Streamed, f.format) {
		return useError("--format %s holds one profile: write files with -o, one for each profile, or use one of %s", f.format, strings.Join(report.Streamed, ", "))
	}
	shows := func(path string) bool {
		name, err := report.FormatOf(path)
		return err == nil && (name == "table" || name == "markdown")
	}
	if f.memory && f.format != "json" && f.format != "yaml" && !slices.ContainsFunc(f.files, shows) {
		return useError("several profiles print a line each, without --memory: add -o with .txt or .md, or leave it out")
	}
	return nil
}

// together reports whether a file of -o holds all profiles.
func together(path string) bool { return inFormat(path, report.Together) }

// inFormat reports whether the name of a file ends as one of these formats does.
func inFormat(path string, formats []string) bool {
	name, err := report.FormatOf(path)
	return !isFolder(path) && err == nil && slices.Contains(formats, name)
}

// names are the files of a single profile: those of -o with the model's name
// and the target before the ending, as far as there are several. Engines that are compared get one
// of each, beside the comparison.
func (s *several) names(model, target string) []string {
	var parts []string
	if s.models {
		parts = append(parts, fileName(baseName(model)))
	}
	if s.targets {
		parts = append(parts, fileName(target))
	}
	tail := strings.Join(parts, "-")
	for n := 2; s.used[tail]; n++ { // models of one name in several folders
		tail = strings.Join(parts, "-") + "-" + strconv.Itoa(n)
	}
	s.used[tail] = true
	var out []string
	for _, path := range s.o.files {
		switch end := report.Ending(path); {
		case !s.engines && together(path):
		case isFolder(path):
			out = append(out, filepath.Join(path, tail)+string(filepath.Separator))
		default:
			stem := path[:len(path)-len(end)]
			if base := filepath.Base(path); base != end {
				stem += "-"
			}
			out = append(out, stem+tail+end)
		}
	}
	return out
}

// baseName is the name of a model's file without its ending.
func baseName(path string) string {
	base := filepath.Base(path)
	for _, e := range append(slices.Clone(modelfile.Endings), ".yaml", ".yml") {
		if n := len(base) - len(e); n > 0 && strings.EqualFold(base[n:], e) {
			return base[:n]
		}
	}
	return base
}

// fileName has nothing that means something in the name of a file.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("._-", r), r > 0x7f && !text.Hidden(r):
			return r
		}
		return '_'
	}, s)
}

// add shows and writes a profile, or says why it is absent.
func (s *several) add(r report.ListRow, files []string) error {
	defer s.a.writing()()
	if r.Err != nil {
		s.refused++
		if e, ok := errors.AsType[*statusError](r.Err); ok && e.status == statusSource {
			s.faults++
		}
		// lists have a line for it
		if s.list == nil && (s.engines || s.o.format != "csv" && s.o.format != "markdown") {
			fmt.Fprintf(s.a.err, "opmeter: %s\n", oneLine(r.Err.Error()))
		}
	}
	if s.usable(&r) {
		for _, path := range files {
			wrote, err := s.a.writeTo(path, r.Profile, s.o)
			s.wrote = append(s.wrote, wrote...)
			s.failed = errors.Join(s.failed, withStatus(statusUse, err))
		}
	}
	if r.Err == nil && unrun(r.Profile) != nil {
		s.lacking++
	}
	s.a.settle(r.Profile, files, r.Err != nil && (r.Profile == nil || !costs(r.Profile)) || s.failed == nil)
	if s.list == nil || slices.ContainsFunc(s.o.files, together) {
		s.rows = append(s.rows, r)
	}
	if s.list != nil {
		return s.list.Add(r)
	}
	return nil
}

// usable reports whether a row has a profile to show and write: a whole one, or what an engine
// had measured before it failed.
func (s *several) usable(r *report.ListRow) bool {
	return r.Err == nil || s.engines && r.Profile != nil && costs(r.Profile)
}

// end writes what holds all profiles, shows them and says what was written.
func (s *several) end() error {
	var err error
	switch {
	case s.list != nil:
		err = s.list.Close()
	case s.shows() && s.compared() != nil:
		err = s.show()
	case s.listed():
		format := s.o.format
		if format == "" {
			format = "table"
		}
		rows := s.rows
		if s.engines { // those that failed were named
			rows = slices.DeleteFunc(slices.Clone(rows), func(r report.ListRow) bool { return !s.usable(&r) })
		}
		err = report.WriteList(s.a.out, rows, format, s.a.width)
	default:
		err = report.WriteAll(s.a.out, s.rows, s.o.format, s.o.options(s.a))
	}
	return errors.Join(err, s.files())
}

// files writes the files that hold all profiles and says which there are.
func (s *several) files() error {
	var own []string
	for _, path := range s.o.files {
		if !s.holds(path) {
			continue
		}
		var err error
		switch {
		case !s.engines:
			err = report.FileAll(path, s.rows, s.o.options(s.a))
		case s.compared() == nil:
			continue // it is told why
		default:
			err = report.VersusFile(path, s.table, s.versusOptions())
		}
		if err != nil {
			s.failed = errors.Join(s.failed, withStatus(statusUse, err))
			continue
		}
		own = append(own, path)
	}
	if s.engines {
		s.wrote = append(own, s.wrote...) // the comparison is what is opened
	} else {
		s.wrote = append(s.wrote, own...)
	}
	s.a.sayWrote(s.wrote, s.o.format == "")
	if s.o.open && s.failed == nil {
		s.a.open(s.wrote)
	}
	return s.failed
}

// Bounds for each model of a list, where nobody looked at the models before.
const (
	listTime = time.Minute
	listMACs = 50e9 // about a minute of one inference on a slow computer
)

// all profiles every model for every target.
func (a *app) all(ctx context.Context, files []string, o *outputFlags, rs []runner, timed bool) error {
	if err := o.checkSeveral(); err != nil {
		return err
	}
	s := a.newSeveral(o, files, rs, timed)
	whole := slices.DeleteFunc(slices.Clone(o.files), func(p string) bool { return !s.holds(p) })
	if err := ready(whole, files...); err != nil {
		return err
	}
	for _, f := range files {
		for _, r := range rs {
			if err := ready(s.names(f, r.target), files...); err != nil {
				return err
			}
		}
	}
	clear(s.used) // the same names again, when there is something to write
	var stopped error
	for i, f := range files {
		if err := a.forAll(ctx, f, s, rs); err != nil {
			return err
		}
		if ctx.Err() != nil {
			stopped = withStatus(statusStopped, fmt.Errorf("stopped at %s, model %d of %d", text.Clean(f), i+1, len(files)))
			break
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	if stopped != nil {
		return stopped
	}
	what := "model"
	if len(rs) > 1 {
		what = "profile"
	}
	n := len(files) * len(rs)
	switch {
	case s.refused > 0:
		err := s.refusal(n, what)
		if s.refused == n {
			return err
		}
		return errors.Join(err, s.apart)
	case s.lacking > 0:
		return errors.Join(withStatus(statusSource, fmt.Errorf("most of the work did not run in %d of %s", s.lacking, plural(n, what))), s.apart)
	}
	return withStatus(statusSource, s.apart)
}

// refusal is the error for models that were refused and engines that failed, of n of what.
func (s *several) refusal(n int, what string) error {
	verb, status := "refused", statusInput
	if s.faults == s.refused {
		verb, status = "failed", statusSource
	}
	if s.engines {
		what = "engine"
	}
	return withStatus(status, fmt.Errorf("%d of %s %s", s.refused, plural(n, what), verb))
}

// forAll profiles a model for every target.
func (a *app) forAll(ctx context.Context, path string, s *several, rs []runner) error {
	m, err := a.openModel(path)
	if err != nil {
		if !s.models {
			return told(err)
		}
		s.refused += len(rs) - 1
		return s.add(report.ListRow{Path: path, Err: told(err)}, nil)
	}
	defer m.Close()
	files := make([][]string, len(rs))
	for i, r := range rs {
		files[i] = s.names(path, r.target)
	}
	for from := 0; from < len(rs); {
		if ctx.Err() != nil {
			return nil
		}
		to := from + 1
		for to < len(rs) && rs[from].turns && rs[to].turns {
			to++
		}
		for i, got := range a.inTurns(ctx, m, rs[from:to], files[from:to], s.models) {
			i += from
			p, err := got.p, got.err
			if ctx.Err() != nil && p == nil {
				return nil // stopped: nothing is known about this one
			}
			if err != nil && !s.models && to == from+1 && (p == nil || !costs(p)) {
				a.settle(p, files[i], true)
				return err // of the only model: nobody wants the same for every target
			}
			row := report.ListRow{Path: path, Err: err}
			if p != nil {
				row.TargetRow = rs[i].row(p)
			}
			if err := s.add(row, files[i]); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// result is a profile, or why it is absent; both where a run ended early.
type result struct {
	p   *profile.Profile
	err error
}

// inTurns profiles a model for targets that are interleaved, or for one.
func (a *app) inTurns(ctx context.Context, m *opmeter.Model, rs []runner, files [][]string, many bool) []result {
	out := make([]result, len(rs))
	if len(rs) == 1 {
		out[0].p, out[0].err = a.bounded(ctx, m, rs[0].whole, bounds{files: files[0]}, many)
		return out
	}
	var turns opmeter.Interleaver
	var wait sync.WaitGroup
	show, stop := a.progress()
	defer stop()
	parts := newParts(len(rs), show)
	for i, r := range rs {
		b := bounds{files: files[i], turns: &turns, progress: parts.of(i)}
		wait.Go(func() { out[i].p, out[i].err = a.bounded(ctx, m, r.run, b, many) })
	}
	wait.Wait()
	for i := range rs { // one after the other: what one does would disturb another
		x := &out[i]
		x.err = told(rs[i].follow(ctx, m, x.p, x.err, bounds{files: files[i], progress: parts.of(i)}))
	}
	return out
}

// bounded profiles a model; one of many is bounded in time and work, and the memory goes
// back before the next.
func (a *app) bounded(ctx context.Context, m *opmeter.Model, run profiler, b bounds, many bool) (*profile.Profile, error) {
	if many {
		b.macs = listMACs
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, listTime, fmt.Errorf("stopped after %v", listTime))
		defer cancel()
		defer debug.FreeOSMemory()
	}
	if b.turns == nil {
		show, stop := a.progress()
		defer stop()
		b.progress = show
	}
	p, err := run(ctx, m, b)
	return p, told(err)
}
