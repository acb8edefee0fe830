// Package record is the contract of importers for profiles and traces of other tools. [Find]
// lists files, a [Format] recognises its own files by content and reads them into runs (package
// runlog).
//
// Each package below it reads one family of formats; package all lists them. None of them knows
// how a profile is shown or which model was profiled: internal/source/join finds the operators of
// the model.
package record

import (
	"context"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Sure is the confidence that a file belongs to a format, judged by its beginning and its name.
type Sure int

// Levels of confidence. A format that can judge only by the shape of the text answers Maybe. One
// that finds keys or magic numbers that no other format has answers Certain.
const (
	No Sure = iota
	Maybe
	Likely
	Certain
)

// Format is one kind of profile or trace.
type Format struct {
	// Name is a word for the command line and for [profile.Model].Format, in lower case.
	Name string
	// Title is the readable name of the tool and its output.
	Title string
	// Files describes the files and how to make them.
	Files string
	// Chips are the names that [Options].Arch may have, nil if the format has no use for it.
	Chips []string
	// Clocked says that the format uses [Options].Clocks.
	Clocked bool
	// Logged says that the tool prints its records as text, and that the reader skips the text of
	// other tools before and after them: a log may hold records of several such formats.
	Logged bool
	// Gives lists the content that such a file can have: keys of quantities, and words of
	// [Parts].
	Gives []string
	// Match returns the confidence that the file has this format. It reads only name and head.
	Match func(f *File) Sure
	// Folder returns the folder that stands for several folders with the files of one run. It is
	// nil if the tool uses one folder.
	Folder func(dir string) string
	// Read reads the files that were found to have this format. Files of one run become one run,
	// files of several runs become several. An unusable file is reported as a [FileError], joined
	// with the others; the runs that were read are returned as well.
	Read func(ctx context.Context, in *Input) ([]*runlog.Run, error)
	// Original writes the files that the tool itself makes of its data, with its figures, file
	// names and layouts; nil where opmeter cannot.
	Original func(ctx context.Context, in *Input) ([]Output, error)
	// Commands writes the recorded commands, one a line; nil where the format has none.
	Commands func(ctx context.Context, in *Input, w io.Writer) error
	// Check looks for errors in the commands and writes a line for each finding; nil where the
	// format cannot be checked.
	Check func(ctx context.Context, in *Input, w io.Writer) (found int, err error)
}

// Surest returns the format with the highest confidence for a file, the first of equal ones, or
// nil if no format matches.
func Surest(formats []*Format, f *File) *Format {
	var best *Format
	sure := No
	for _, x := range formats {
		if s := x.Match(f); s > sure {
			best, sure = x, s
		}
	}
	return best
}

// Matching returns the format that is surest of a file, and for a log that holds records of
// several tools the others that are likely.
func Matching(formats []*Format, f *File) []*Format {
	best := Surest(formats, f)
	if best == nil {
		return nil
	}
	out := []*Format{best}
	if !best.Logged || f.JSONHead("{") != nil {
		return out
	}
	for _, x := range formats {
		if x != best && x.Logged && x.Match(f) >= Likely {
			out = append(out, x)
		}
	}
	return out
}

// Output is a file that [Format].Original makes.
type Output struct {
	// Name of the file, without a folder.
	Name string
	Data []byte
}

// Parts are the words that [Format].Gives may hold besides keys of quantities.
var Parts = []string{"timeline", "memory", "shapes", "options", "samples", "phases", "machine"}

// Input is the input of [Format].Read: files and options.
type Input struct {
	// Files are the files of one folder or archive, sorted by name.
	Files []*File
	Options
}

// Options holds facts that the user knows and a file does not contain.
type Options struct {
	// Arch names the chip; if empty, it is taken from the data. Data that names another chip is an
	// error unless ForceArch is set.
	Arch      string
	ForceArch bool
	// Clocks holds frequencies in hertz by name of the unit; the key "" is the single clock that
	// ticks refer to.
	Clocks map[string]float64
}

// FileError is an error in a file: where it is and what was expected.
type FileError struct {
	// Path of the file, including the place inside an archive.
	Path string
	// Place in the file, such as "byte 12" or "line 3"; "" for the whole file.
	Place string
	Err   error
}

// Error names file, place and reason.
func (e *FileError) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("%s: %s: %v", e.Path, e.Place, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }
