package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/all"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// Format is a kind of record of another tool.
type Format struct {
	// Name is the value for [Options].Format, and [profile.Model].Format of imported profiles.
	Name string
	// Title names the tool and its record, Files says which files these are.
	Title, Files string
	// Gives lists what such a record can hold: keys of quantities, and words such as "timeline" or
	// "shapes".
	Gives []string
}

// Formats lists the formats that [Import] reads, by name.
func Formats() []Format {
	var out []Format
	for _, f := range all.Formats() {
		out = append(out, Format{f.Name, f.Title, f.Files, f.Gives})
	}
	return out
}

// Options complete or correct what a record says. The zero value takes everything from the record.
type Options struct {
	// Format is the only format to look for, "" for all.
	Format string
	// Arch names the chip if the record does not. If a file of the record names another chip, the
	// import is an error, unless ForceArch is set. It is an [opmeter.OptionError] for records of
	// formats that know no chips.
	Arch      string
	ForceArch bool
	// ClocksHz holds frequencies in hertz by the name of the unit, such as "tiu"; "" is the single
	// clock that counts the ticks of a record. It is an [opmeter.OptionError] for records of formats
	// without ticks.
	ClocksHz map[string]float64
	// Model is the recorded model, nil if unknown. Its operators are matched with those of the
	// record, which get shapes, work and weights from it.
	Model *opmeter.Model
	// Inputs sets the shapes in which the model ran, if the record does not hold them.
	Inputs opmeter.Inputs
	// Created is the time of the profiles; the zero value means now.
	Created time.Time
	// Progress is called with the number of bytes read since the last call, may be nil. Calls do
	// not overlap.
	Progress func(bytes int64)
}

// Error reports a fault of a record.
type Error struct {
	// File is the file, with the place inside an archive behind a "!".
	File string
	// Place in it, such as "byte 12" or "line 3"; "" for the whole.
	Place string
	Err   error
}

// Error names file, place and reason.
func (e *Error) Error() string {
	return (&record.FileError{Path: e.File, Place: e.Place, Err: e.Err}).Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Imported is what [Import] found at a path.
type Imported struct {
	// Profiles are the runs, in the order of their files.
	Profiles []*profile.Profile
	// Skipped lists files of a folder or an archive that are not records.
	Skipped []string
}

// Import reads the profiles and traces of other tools at a path: a file, a folder with those below
// it, or an archive. Compressed files are decompressed. The content of a file decides its format.
// Several files of one run make one profile. The error joins an [Error] for each fault, or is an
// [opmeter.OptionError]; the profiles of the other files come beside it.
func Import(ctx context.Context, path string, o Options) (*Imported, error) {
	found, errs, err := o.find(ctx, path)
	if err != nil {
		return nil, err
	}
	out := &Imported{Skipped: found.skipped}
	// All runs share the model in its own shapes.
	base := sync.OnceValues(func() (*profile.Profile, error) { return bridge.Joined(o.Model, o.Inputs) })
	for _, k := range found.order {
		var runs []*runlog.Run
		err := guarded(found.groups[k], func() (err error) {
			runs, err = k.format.Read(ctx, o.input(found.groups[k]))
			return err
		})
		errs = append(errs, publicErrors(path, err)...)
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

// File is a file in the layout of the vendor's own tool.
type File struct {
	// Folder is the records' folder, Name the file's name.
	Folder, Name string
	Data         []byte
}

// VendorFiles makes the files that the vendor's own tool makes of the records at a path, with the
// same figures and layout, for comparison. Errors are like those of [Import]; a format without
// such files is one.
func VendorFiles(ctx context.Context, path string, o Options) (out []File, err error) {
	err = o.each(ctx, path, "writes no files of its tool", func(f *record.Format) bool { return f.Original != nil }, func(k groupKey, in *record.Input) error {
		files, err := k.format.Original(ctx, in)
		for _, f := range files {
			out = append(out, File{Folder: k.dir, Name: f.Name, Data: f.Data})
		}
		return err
	})
	return out, err
}

// WriteCommands writes the hardware commands that the records at a path hold, one a line. Errors
// are like those of [Import]; a format without commands is one.
func WriteCommands(ctx context.Context, path string, o Options, w io.Writer) error {
	return o.each(ctx, path, "holds no commands of hardware", func(f *record.Format) bool { return f.Commands != nil }, func(k groupKey, in *record.Input) error {
		return k.format.Commands(ctx, in, w)
	})
}

// CheckCommands looks for memory that these commands write and read at the same time. It writes a
// line for each conflict and returns their number. Errors are those of [WriteCommands].
func CheckCommands(ctx context.Context, path string, o Options, w io.Writer) (found int, err error) {
	err = o.each(ctx, path, "holds no commands of hardware", func(f *record.Format) bool { return f.Check != nil }, func(k groupKey, in *record.Input) error {
		n, err := k.format.Check(ctx, in, w)
		found += n
		return err
	})
	return found, err
}

// each calls do with the records of each format for which can is true. cannot completes the error
// for the other formats.
func (o *Options) each(ctx context.Context, path, cannot string, can func(*record.Format) bool, do func(k groupKey, in *record.Input) error) error {
	found, errs, err := o.find(ctx, path)
	if err != nil {
		return err
	}
	for _, k := range found.order {
		files := found.groups[k]
		if !can(k.format) {
			errs = append(errs, &Error{File: files[0].Path, Err: fmt.Errorf("a record of %s %s", k.format.Name, cannot)})
			continue
		}
		errs = append(errs, publicErrors(path, guarded(files, func() error { return do(k, o.input(files)) }))...)
	}
	return errors.Join(errs...)
}

// input returns the files as a reader takes them.
func (o *Options) input(files []*record.File) *record.Input {
	return &record.Input{Files: files, Options: record.Options{Arch: o.Arch, ForceArch: o.ForceArch, Clocks: o.ClocksHz}}
}

// records are the files at a path by format and folder.
type records struct {
	groups  map[groupKey][]*record.File
	order   []groupKey
	skipped []string
}

// find lists the records at a path. errs holds the faults of single files.
func (o *Options) find(ctx context.Context, path string) (r *records, errs []error, err error) {
	formats := all.Formats()
	if o.Format != "" {
		formats = slices.DeleteFunc(formats, func(f *record.Format) bool { return f.Name != o.Format })
		if len(formats) == 0 {
			return nil, nil, &opmeter.OptionError{Option: "Format", Text: fmt.Sprintf("no format is called %q", o.Format)}
		}
	}
	for unit, hz := range o.ClocksHz {
		if !(hz > 0 && hz < 1e15) {
			text := fmt.Sprintf("use a frequency above 0 for %q, not %v Hz", unit, hz)
			return nil, nil, &opmeter.OptionError{Option: "ClocksHz", Text: text}
		}
	}
	files, faults, err := record.Find(path)
	if err != nil {
		return nil, nil, publicError(path, err)
	}
	for _, f := range faults {
		errs = append(errs, publicError(path, f))
	}
	if o.Progress != nil {
		var mu sync.Mutex // readers may read several files concurrently
		tell := func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			o.Progress(n)
		}
		for _, f := range files {
			f.Progress = tell
		}
	}
	for i, f := range files {
		// A reader that panics does so again where this is an error.
		_ = guarded(files[i:], func() error {
			files[i] = record.WithoutPrefix(ctx, formats, f, o.input(nil).Options)
			return nil
		})
	}
	r = &records{}
	r.groups, r.order = group(files, formats, o.Format != "")
	for _, f := range r.groups[groupKey{}] {
		r.skipped = append(r.skipped, f.Path)
	}
	if len(files) == 1 && len(r.skipped) == 1 {
		return nil, nil, errors.Join(append(errs, foreign(files[0]))...)
	}
	if err := o.useful(r.order); err != nil {
		return nil, nil, err
	}
	if len(r.order) == 0 && len(errs) == 0 {
		why := fmt.Errorf("none of %d files is a record that opmeter reads", len(files))
		if n := len(slices.DeleteFunc(slices.Clone(files), func(f *record.File) bool { return !saved(f) })); n > 0 {
			why = fmt.Errorf("is a folder in which %d of %d files are saved profiles: name the files, or read all with opmeter history", n, len(files))
		}
		return nil, nil, &Error{File: path, Err: why}
	}
	return r, errs, nil
}

// useful returns an error for options that none of the formats that were found uses.
func (o *Options) useful(found []groupKey) error {
	if len(found) == 0 {
		return nil
	}
	if len(o.ClocksHz) > 0 && !slices.ContainsFunc(found, func(k groupKey) bool { return k.format.Clocked }) {
		text := fmt.Sprintf("a record of %s has times and not ticks: leave out the clock", found[0].format.Name)
		return &opmeter.OptionError{Option: "ClocksHz", Text: text}
	}
	if o.Arch == "" {
		return nil
	}
	var chips []string
	for _, k := range found {
		chips = append(chips, k.format.Chips...)
	}
	switch {
	case len(chips) == 0:
		text := fmt.Sprintf("a record of %s is not read by chip: leave out %q", found[0].format.Name, o.Arch)
		return &opmeter.OptionError{Option: "Arch", Text: text}
	case !slices.ContainsFunc(chips, func(c string) bool { return strings.EqualFold(c, o.Arch) }):
		text := fmt.Sprintf("no chip is called %q: name one of %s", o.Arch, strings.Join(chips, ", "))
		return &opmeter.OptionError{Option: "Arch", Text: text}
	}
	return nil
}

// guarded turns a panic of a reader into an error, so that the records of other formats in a folder
// are still read.
func guarded(files []*record.File, do func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = &record.FileError{Path: files[0].Path, Err: &source.FaultError{Value: e}}
		}
	}()
	return do()
}

// groupKey is a format with a folder; the zero value stands for files of unknown format.
type groupKey struct {
	format *record.Format
	dir    string
}

// group groups files by the format that reads them and the folder.
func group(files []*record.File, formats []*record.Format, sure bool) (groups map[groupKey][]*record.File, order []groupKey) {
	groups = map[groupKey][]*record.File{}
	for _, f := range files {
		matching := match(f, formats, sure)
		if len(matching) == 0 {
			groups[groupKey{}] = append(groups[groupKey{}], f)
		}
		for _, format := range matching {
			k := groupKey{format, f.Dir}
			if format.Folder != nil {
				k.dir = format.Folder(f.Dir)
			}
			if groups[k] == nil {
				order = append(order, k)
			}
			groups[k] = append(groups[k], f)
		}
	}
	return groups, order
}

// match returns the formats that read a file, nil for none. A format that the user named reads
// every file.
func match(f *record.File, formats []*record.Format, named bool) []*record.Format {
	if named {
		return formats[:1]
	}
	return record.Matching(formats, f)
}

// foreign returns the error for a file of unknown format.
func foreign(f *record.File) error {
	why := errors.New("not a profile or trace of a known format: opmeter import --list shows them, --from NAME skips the detection")
	head := string(f.Head[:min(len(f.Head), 16)])
	switch {
	case len(f.Head) == 0:
		why = errors.New("is empty: many tools write their record when they end, and nothing where they crash")
	case saved(f):
		why = errors.New("is a saved profile: opmeter report shows it")
	case len(head) >= 8 && head[4:8] == "TFL3":
		why = errors.New("is a model: opmeter profile measures it")
	}
	return &Error{File: f.Path, Err: why}
}

// saved reports whether a file is a saved profile.
func saved(f *record.File) bool {
	return bytes.HasPrefix(f.Head, []byte("\x89OPM")) || bytes.Contains(f.Head[:min(len(f.Head), 400)], []byte(`"`+profile.SchemaV1+`"`))
}

// collect makes the profile of a run. base returns the profile of the model.
func (o *Options) collect(ctx context.Context, r *runlog.Run, f *record.Format, base func() (*profile.Profile, error)) (*profile.Profile, error) {
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
		return p, &Error{File: r.Profile.Model.Path, Err: err}
	}
	return p, nil
}

// join matches the operators of a run with those of the model, which of describes.
func (o *Options) join(r *runlog.Run, of func() (*profile.Profile, error)) error {
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
	// The record has the dimensions that the model leaves open.
	if shapes := join.Shapes(base, r.Profile.Layers, ms); len(shapes) > 0 && len(o.Inputs.Shapes) == 0 && len(o.Inputs.Dims) == 0 && o.Inputs.Batch == 0 {
		in := o.Inputs
		in.Shapes = shapes
		if again, err := bridge.Joined(o.Model, in); err == nil {
			base = again
			ms = join.Find(base.Layers, r.Profile.Layers, r.Hints)
		}
	}
	join.Fill(r.Profile, base, ms)
	return nil
}

// publicErrors gives errors of a reader their public type.
func publicErrors(path string, err error) []error {
	list := bridge.Leaves(err)
	for i, e := range list {
		list[i] = publicError(path, e)
	}
	return list
}

func publicError(path string, err error) error {
	if e, ok := errors.AsType[*record.FileError](err); ok {
		return &Error{File: e.Path, Place: e.Place, Err: e.Err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if e, ok := errors.AsType[*opmeter.ModelError](bridge.Failed(path, err)); ok {
		return &Error{File: e.File, Err: e.Err}
	}
	return err
}
