package chip

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/editdistance"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Set is a list of targets, ordered by id. Shipped targets are read on demand.
type Set struct {
	own    map[string]*Target // from the user's folder
	faulty map[string]error   // of ids whose files there cannot be used
}

// Load returns the targets of the binary and of the folder dir; a file there, whatever its name,
// replaces a shipped target with the same id. Dir "" adds none. The set omits faulty files, and the
// error names them all. A shipped target does not replace a faulty file with its id or name.
func Load(dir string) (*Set, error) {
	s := &Set{own: map[string]*Target{}, faulty: map[string]error{}}
	if dir == "" {
		return s, nil
	}
	info, err := os.Stat(dir)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &FileError{File: dir, Text: e.Err.Error(), Err: e.Err}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &FileError{File: dir, Text: "is not a folder of target files"}
	}
	return s, s.readAll(dir)
}

// maxFile bounds a target file, in bytes: real ones have a few kilobytes.
const maxFile = 4 << 20

// readAll adds the targets of a folder.
func (s *Set) readAll(dir string) error {
	b, err := openFolder(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range b.names {
		t, err := b.read(name)
		if err == nil {
			if first := s.own[t.ID]; first != nil {
				err = &FileError{File: t.File, Line: 1, Key: "id", Text: fmt.Sprintf("is %q, which %s has already; expected one file for each id", t.ID, first.File)}
			}
		}
		if err != nil {
			errs = append(errs, err)
			s.faulty[cmp.Or(b.ids[name], strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name))))] = err
			continue
		}
		s.own[t.ID] = t
	}
	for id := range s.faulty {
		delete(s.own, id) // two files with one id: use neither
	}
	return errors.Join(errs...)
}

// bases reads target files of a folder that may inherit from each other, and from shipped
// targets.
type bases struct {
	dir   string
	names []string          // the target files, in order
	ids   map[string]string // what each states as its id, "" for none
	open  map[string]bool   // files that are being read
}

// openFolder lists the target files of a folder.
func openFolder(dir string) (*bases, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b := &bases{dir: dir, ids: map[string]string{}, open: map[string]bool{}}
	for _, e := range entries {
		if e.IsDir() || !isFile(e.Name()) {
			continue
		}
		b.names = append(b.names, e.Name())
		if text, err := infile.Read(filepath.Join(dir, e.Name()), maxFile); err == nil {
			b.ids[e.Name()] = statedID(text)
		}
	}
	return b, nil
}

// isFile reports whether a name is that of a target file and not an id.
func isFile(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// statedID finds the id that a file states, also in a file that cannot be read otherwise.
func statedID(text []byte) string {
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("id:")); ok {
			v, _, _ = bytes.Cut(v, []byte("#"))
			return strings.Trim(strings.TrimSpace(string(v)), `"'`)
		}
	}
	return ""
}

func (b *bases) read(name string) (*Target, error) {
	file := filepath.Join(b.dir, name)
	text, err := infile.Read(file, maxFile)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &FileError{File: file, Text: e.Err.Error(), Err: e.Err}
	}
	if err != nil {
		return nil, err
	}
	b.open[name] = true
	defer delete(b.open, name)
	return parse(text, file, func(id string) (*Target, error) { return b.find(id, name) })
}

// find returns the target with an id, preferring the folder to the binary. If a file has the id
// that it inherits from, the shipped target is meant.
func (b *bases) find(id, asking string) (*Target, error) {
	for _, name := range b.names {
		if name == asking || b.ids[name] != id {
			continue
		}
		if b.open[name] {
			return nil, fmt.Errorf("%s inherits from itself", id)
		}
		return b.read(name)
	}
	return shippedTarget(id)
}

// ids lists all targets in order.
func (s *Set) ids() []string {
	ids := slices.Collect(maps.Keys(s.own))
	ids = slices.AppendSeq(ids, maps.Keys(shipped()))
	ids = slices.DeleteFunc(ids, func(id string) bool { return s.faulty[id] != nil })
	slices.Sort(ids)
	return slices.Compact(ids)
}

// get finds one target.
func (s *Set) get(id string) (*Target, error) {
	if t := s.own[id]; t != nil {
		return t, nil
	}
	return shipped()[id]()
}

// List returns all targets, ordered by id.
func (s *Set) List() []*Target {
	var list []*Target
	for _, id := range s.ids() {
		// Shipped targets can be read: a test reads them all.
		if t, err := s.get(id); err == nil {
			list = append(list, t)
		}
	}
	return list
}

// UnknownError is the error for an id that no target has.
type UnknownError struct {
	ID      string
	Nearest []string // similar ids, best first
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("no target %q", e.ID)
	if len(e.Nearest) > 0 {
		s += "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	}
	return s
}

// Find returns the target with an id, ignoring case, or that of a target file by its path. If the
// file with that id is faulty, it returns the file's error, otherwise an [UnknownError].
func (s *Set) Find(id string) (*Target, error) {
	if isFile(id) {
		return s.open(id)
	}
	// Arm writes Cortex-M0+; a plus sign is unusual in file names.
	id = strings.ReplaceAll(strings.ToLower(id), "+", "plus")
	if err := s.faulty[id]; err != nil {
		return nil, err
	}
	ids := s.ids()
	if slices.Contains(ids, id) {
		return s.get(id)
	}
	type near struct {
		id   string
		cost int
	}
	var list []near
	for _, other := range ids {
		if id == "" {
			break // looks like everything
		}
		c := editdistance.Of(id, other)
		if strings.HasPrefix(other, id) || strings.Contains(other, id) && len(id) >= 3 {
			c = 0
		}
		if c <= max(2, len(id)/3) {
			list = append(list, near{other, c})
		}
	}
	sorting.Stable(list, func(a, b near) int { return a.cost - b.cost })
	err := &UnknownError{ID: id}
	for _, n := range list[:min(len(list), 3)] {
		err.Nearest = append(err.Nearest, n.id)
	}
	return nil, err
}

// open reads the target file at a path. It may inherit from the files beside it.
func (s *Set) open(path string) (*Target, error) {
	if _, err := os.Stat(path); err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return nil, &FileError{File: path, Text: err.Error(), Err: err}
	}
	b, err := openFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return b.read(filepath.Base(path))
}
