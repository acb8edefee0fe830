package opmeter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/all"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// RecordFormat is a kind of record of another tool.
type RecordFormat struct {
	// Name is what [ImportOptions].Format takes, and [profile.Model].Format of what is
	// imported.
	Name string
	// Title names the tool and its record, Files says which files these are.
	Title, Files string
	// Gives lists what such a record can say: keys of quantities, and words such as
	// "timeline" or "shapes".
	Gives []string
}

// RecordFormats lists what [Import] reads, by name.
func RecordFormats() []RecordFormat {
	var out []RecordFormat
	for _, f := range all.Formats() {
		out = append(out, RecordFormat{f.Name, f.Title, f.Files, f.Gives})
	}
	return out
}

// ImportOptions says what the user knows about a record. The zero value takes
// everything from the record.
type ImportOptions struct {
	// Format is the only format to look for, "" for all.
	Format string
	// Arch names the chip of a record that does not tell, or tells wrong.
	Arch string
	// ClocksHz holds frequencies in hertz by the name of the unit, such as "tiu"; "" is
	// the one clock that the ticks of a record are of.
	ClocksHz map[string]float64
	// Model is the model that was recorded, nil for none. Its operators are found in
	// the record, which gets shapes, work and weights of them.
	Model *Model
	// Inputs says in which shapes the model ran, where the record does not.
	Inputs Inputs
	// Created is the time of the profiles; the zero value means now.
	Created time.Time
	// Progress is told how many bytes were read, each byte once, nil for nobody. One call
	// ends before the next begins.
	Progress func(bytes int64)
}

// RecordError tells what is wrong with a record.
type RecordError struct {
	// File is the file, with the place inside an archive behind a "!".
	File string
	// Place in it, such as "byte 12" or "line 3"; "" for the whole.
	Place string
	Err   error
}

// Error names file, place and reason.
func (e *RecordError) Error() string {
	return (&record.FileError{Path: e.File, Place: e.Place, Err: e.Err}).Error()
}

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }

// Imported is what was found at a path.
type Imported struct {
	// Profiles are the runs, in the order of their files.
	Profiles []*profile.Profile
	// Skipped lists files that are not records, of a folder or an archive.
	Skipped []string
}

// Import reads the profiles and traces of other tools at a path: a file, a folder with those below
// it, an archive. Packed files are unpacked as they are read, what a file is of is decided by its
// content. Several files of one run make one profile. Errors are joined [RecordError]s, or
// an [OptionError]; what was right comes beside them.
func Import(ctx context.Context, path string, o ImportOptions) (*Imported, error) {
	found, errs, err := o.find(path)
	if err != nil {
		return nil, err
	}
	out := &Imported{Skipped: found.skipped}
	// In the model's own shapes it is the same for every run.
	base := sync.OnceValues(func() (*profile.Profile, error) { return Count(o.Model, o.Inputs) })
	for _, k := range found.order {
		var runs []*runlog.Run
		err := guarded(found.groups[k], func() (err error) {
			runs, err = k.format.Read(ctx, o.input(found.groups[k]))
			return err
		})
		errs = append(errs, recordErrors(path, err)...)
		for _, r := range runs {
			p, err := o.collect(ctx, r, k.format, base)
			if err != nil {
				errs = append(errs, err)
			}
			if p != nil {
				out.Profiles = append(out.Profiles, p)
			}
		}
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
	}
	return out, errors.Join(errs...)
}

// RecordOutput is a file that the tool itself makes of its records.
type RecordOutput struct {
	// Folder is the records' folder, Name the file's name.
	Folder, Name string
	Data         []byte
}

// Original makes what the tool itself makes of the records at a path: the same files with
// its figures and layouts, for comparison. Errors are like those of [Import]; a format for which
// opmeter cannot do it is one.
func Original(ctx context.Context, path string, o ImportOptions) (out []RecordOutput, err error) {
	err = o.each(path, "writes no files of its tool", func(f *record.Format) bool { return f.Original != nil }, func(k groupKey, in *record.Input) error {
		files, err := k.format.Original(ctx, in)
		for _, f := range files {
			out = append(out, RecordOutput{Folder: k.dir, Name: f.Name, Data: f.Data})
		}
		return err
	})
	return out, err
}

// Commands lists the commands of hardware that the records at a path hold, a line each.
func Commands(ctx context.Context, path string, o ImportOptions, w io.Writer) error {
	return o.each(path, "holds no commands of hardware", func(f *record.Format) bool { return f.Commands != nil }, func(k groupKey, in *record.Input) error {
		return k.format.Commands(ctx, in, w)
	})
}

// CheckCommands looks for places of memory that these commands write and read at the same
// time. It writes a line for each, and returns how many there are.
func CheckCommands(ctx context.Context, path string, o ImportOptions, w io.Writer) (found int, err error) {
	err = o.each(path, "holds no commands of hardware", func(f *record.Format) bool { return f.Check != nil }, func(k groupKey, in *record.Input) error {
		n, err := k.format.Check(ctx, in, w)
		found += n
		return err
	})
	return found, err
}

// each does something with the records of each format that can.
func (o *ImportOptions) each(path, cannot string, can func(*record.Format) bool, do func(k groupKey, in *record.Input) error) error {
	found, errs, err := o.find(path)
	if err != nil {
		return err
	}
	for _, k := range found.order {
		files := found.groups[k]
		if !can(k.format) {
			errs = append(errs, &RecordError{File: files[0].Path, Err: fmt.Errorf("a record of %s %s", k.format.Name, cannot)})
			continue
		}
		errs = append(errs, recordErrors(path, guarded(files, func() error { return do(k, o.input(files)) }))...)
	}
	return errors.Join(errs...)
}

func (o *ImportOptions) input(files []*record.File) *record.Input {
	return &record.Input{Files: files, Options: record.Options{Arch: o.Arch, Clocks: o.ClocksHz}}
}

// records are the files at a path by format and folder.
type records struct {
	groups  map[groupKey][]*record.File
	order   []groupKey
	skipped []string
}

// find lists the records at a path. errs are faults of single files.
func (o *ImportOptions) find(path string) (r *records, errs []error, err error) {
	formats := all.Formats()
	if o.Format != "" {
		formats = slices.DeleteFunc(formats, func(f *record.Format) bool { return f.Name != o.Format })
		if len(formats) == 0 {
			return nil, nil, wrong("Format", "no format is called %q", o.Format)
		}
	}
	for unit, hz := range o.ClocksHz {
		if !(hz > 0 && hz < 1e15) {
			return nil, nil, wrong("ClocksHz", "use a frequency above 0 for %q, not %v Hz", unit, hz)
		}
	}
	files, faults, err := record.Find(path)
	if err != nil {
		return nil, nil, recordError(path, err)
	}
	for _, f := range faults {
		errs = append(errs, recordError(path, f))
	}
	if o.Progress != nil {
		var mu sync.Mutex // readers may tell of several files at once
		tell := func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			o.Progress(n)
		}
		for _, f := range files {
			f.Progress = tell
		}
	}
	r = &records{}
	r.groups, r.order = group(files, formats, o.Format != "")
	for _, f := range r.groups[groupKey{}] {
		r.skipped = append(r.skipped, f.Path)
	}
	if len(files) == 1 && len(r.skipped) == 1 {
		return nil, nil, errors.Join(append(errs, foreign(files[0]))...)
	}
	if len(r.order) == 0 && len(errs) == 0 {
		return nil, nil, &RecordError{File: path, Err: fmt.Errorf("none of %d files is a record that opmeter reads", len(files))}
	}
	return r, errs, nil
}

// guarded keeps a fault in a reader from ending the program: what other formats read of
// a folder stands.
func guarded(files []*record.File, do func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = &record.FileError{Path: files[0].Path, Err: &source.FaultError{Value: e}}
		}
	}()
	return do()
}

// groupKey is a format with a folder; the zero value is of files of no format.
type groupKey struct {
	format *record.Format
	dir    string
}

// group puts files together that one format reads in one folder.
func group(files []*record.File, formats []*record.Format, sure bool) (groups map[groupKey][]*record.File, order []groupKey) {
	groups = map[groupKey][]*record.File{}
	for _, f := range files {
		k := groupKey{}
		if format := match(f, formats, sure); format != nil {
			k = groupKey{format, f.Dir}
			if format.Folder != nil {
				k.dir = format.Folder(f.Dir)
			}
			if groups[k] == nil {
				order = append(order, k)
			}
		}
		groups[k] = append(groups[k], f)
	}
	return groups, order
}

// match is the format that is surest of a file. One that the user named takes what it
// does not know, too.
func match(f *record.File, formats []*record.Format, named bool) *record.Format {
	if named {
		return formats[0]
	}
	return record.Surest(formats, f)
}

// foreign says what is wrong with a file that no format knows.
func foreign(f *record.File) error {
	why := errors.New("is not a record that opmeter reads")
	head := string(f.Head[:min(len(f.Head), 16)])
	switch {
	case len(f.Head) == 0:
		why = errors.New("is empty: many tools write their record when they end, and nothing where they crash")
	case strings.HasPrefix(head, "\x89OPM"):
		why = errors.New("is a saved profile: opmeter report shows it")
	case len(head) >= 8 && head[4:8] == "TFL3":
		why = errors.New("is a model: opmeter profile measures it")
	}
	return &RecordError{File: f.Path, Err: why}
}

// collect makes the profile of a run.
func (o *ImportOptions) collect(ctx context.Context, r *runlog.Run, f *record.Format, base func() (*profile.Profile, error)) (*profile.Profile, error) {
	if r.Profile.Model.Format == "" {
		r.Profile.Model.Format = f.Name
	}
	if o.Model != nil {
		if err := o.join(r, base); err != nil {
			return nil, err
		}
	}
	p, err := source.Collect(ctx, r, source.Options{Version: buildinfo.Version(), Created: o.Created})
	if err != nil {
		return p, &RecordError{File: r.Profile.Model.Path, Err: err}
	}
	return p, nil
}

// join finds the model's operators in a run. Of is the described model.
func (o *ImportOptions) join(r *runlog.Run, of func() (*profile.Profile, error)) error {
	base, err := of()
	if err != nil {
		return err
	}
	if r.Attach != nil {
		if !r.Attach(r.Profile, base) {
			r.Found("marks.model", profile.Warning, "No stage of the record is said to run %s: its work is not attributed to any stage.", base.Model.Name)
		}
		return nil
	}
	ms := join.Find(base.Layers, r.Profile.Layers, r.Hints)
	// Dimensions that the file leaves open are those that the record saw.
	if shapes := join.Shapes(base, r.Profile.Layers, ms); len(shapes) > 0 && len(o.Inputs.Shapes) == 0 && len(o.Inputs.Dims) == 0 && o.Inputs.Batch == 0 {
		in := o.Inputs
		in.Shapes = shapes
		if again, err := Count(o.Model, in); err == nil {
			base = again
			ms = join.Find(base.Layers, r.Profile.Layers, r.Hints)
		}
	}
	join.Fill(r.Profile, base, ms)
	return nil
}

// recordErrors gives errors of a reader their public type.
func recordErrors(path string, err error) []error {
	list := leaves(err)
	for i, e := range list {
		list[i] = recordError(path, e)
	}
	return list
}

func recordError(path string, err error) error {
	if e, ok := errors.AsType[*record.FileError](err); ok {
		return &RecordError{File: e.Path, Place: e.Place, Err: e.Err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if e, ok := errors.AsType[*ModelError](modelError(path, err)); ok {
		return &RecordError{File: e.File, Err: e.Err}
	}
	return err
}
