package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// longestPath bounds the bytes of a path.
const longestPath = 4096

// mostEntries bounds the entries of a folder that is imported.
const mostEntries = 10_000

// systemFolders hold files that are no data, whatever the allowed folders are.
var systemFolders = []string{"/proc", "/sys", "/dev"}

// saveEndings are the endings of files that tools write.
var saveEndings = []string{".opmeter", ".html", ".json", ".csv", ".md", ".txt"}

// paths decides which files tools read and write.
type paths struct {
	given []string // allowed folders, absolute
	real  []string // the same without symbolic links
	write *os.Root // nil: nothing is written
	here  string   // the folder that names are relative to first
}

// open prepares the folders.
func (p *paths) open(allow []string, write string) error {
	if len(allow) == 0 {
		allow = []string{"."}
	}
	for _, dir := range allow {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("--allow %s: %w", dir, err)
		}
		real, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return fmt.Errorf("--allow %s: %w", dir, cause(err))
		}
		if st, err := os.Stat(real); err != nil || !st.IsDir() {
			return fmt.Errorf("--allow %s: is no folder", dir)
		}
		if inside(real, systemFolders) {
			return fmt.Errorf("--allow %s: is a folder of the system: name one with models", dir)
		}
		p.given, p.real = append(p.given, abs), append(p.real, real)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("working folder: %w", err)
	}
	p.here = here
	if write == "" {
		return nil
	}
	root, err := os.OpenRoot(write)
	if err != nil {
		return fmt.Errorf("--write %s: %w", write, cause(err))
	}
	p.write = root
	// What a tool saved can be read again.
	abs, err := filepath.Abs(write)
	if err != nil {
		return fmt.Errorf("--write %s: %w", write, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return fmt.Errorf("--write %s: %w", write, cause(err))
	}
	if !inside(real, systemFolders) {
		p.given, p.real = append(p.given, abs), append(p.real, real)
	}
	return nil
}

// locate returns where an argument may lie: names are relative to the working folder, then to each
// allowed folder. The first that exists counts. Names that lead outside are left out, so that an
// error does not tell whether a file outside exists.
func (p *paths) locate(name string) (abs string, ok bool) {
	bases := append([]string{p.here}, p.given...)
	if filepath.IsAbs(name) {
		bases = []string{""}
	}
	for _, base := range bases {
		at := filepath.Join(base, name)
		if !inside(at, p.given) && !inside(at, p.real) {
			continue
		}
		if !ok {
			abs, ok = at, true
		}
		if _, err := os.Lstat(at); err == nil {
			return at, true
		}
	}
	return abs, ok
}

func (p *paths) close() {
	if p.write != nil {
		_ = p.write.Close()
	}
}

// read returns the file of an argument without symbolic links. folder allows a folder, too.
func (p *paths) read(what, name string, folder bool) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf("%s: name a file", what)
	case len(name) > longestPath || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%s: %s: name a file", what, badName(name))
	}
	abs, ok := p.locate(name)
	if !ok {
		return "", p.outside(what, name)
	}
	real, err := filepath.EvalSymlinks(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(name):
		return "", fmt.Errorf("%s %q: %w in %s: name a file of these folders", what, name, cause(err), strings.Join(p.given, ", "))
	case err != nil:
		return "", fmt.Errorf("%s %q: %w", what, name, cause(err))
	}
	if !inside(real, p.real) || inside(real, systemFolders) {
		return "", p.outside(what, name)
	}
	st, err := os.Stat(real)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s %q: %w", what, name, cause(err))
	case st.IsDir() && folder:
		return real, p.entries(what, name, real)
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s %q: is no regular file", what, name)
	}
	return real, nil
}

// badName says what is wrong with a name that no file has.
func badName(name string) string {
	if strings.ContainsRune(name, 0) {
		return fmt.Sprintf("the name %q has a zero byte", clip(name))
	}
	return fmt.Sprintf("the name has %d bytes, expected at most %d", len(name), longestPath)
}

func (p *paths) outside(what, name string) error {
	return fmt.Errorf("%s %q: is outside of the folders that this server may read (%s): move it there, or start opmeter mcp with --allow DIR", what, name, strings.Join(p.given, ", "))
}

// entries refuses a folder with links that lead outside, pipes or devices: an import reads all files.
func (p *paths) entries(what, name, dir string) error {
	n := 0
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if n++; n > mostEntries {
			return fmt.Errorf("%s %q: has more than %d entries: name a file or a smaller folder", what, name, mostEntries)
		}
		if err != nil {
			return fmt.Errorf("%s %q: %w", what, name, cause(err))
		}
		switch t := d.Type(); {
		case t.IsRegular(), t.IsDir():
			return nil
		case t&fs.ModeSymlink != 0:
			if real, err := filepath.EvalSymlinks(path); err == nil && inside(real, p.real) {
				if st, err := os.Stat(real); err == nil && st.Mode().IsRegular() {
					return nil
				}
			}
		}
		return fmt.Errorf("%s %q: %s in it is no regular file of an allowed folder: name a file instead", what, name, d.Name())
	})
}

// checkSave refuses a name that a result cannot be saved under.
func (p *paths) checkSave(name string) error {
	switch {
	case name == "":
		return nil
	case p.write == nil:
		return fmt.Errorf("save %q: this server writes no files: start opmeter mcp with --write DIR", clip(name))
	case len(name) > longestPath || strings.ContainsRune(name, 0):
		return fmt.Errorf("save: %s: choose another name", badName(name))
	case !filepath.IsLocal(name):
		return fmt.Errorf("save %q: expected a name inside of the folder of --write", clip(name))
	case !slices.Contains(saveEndings, strings.ToLower(filepath.Ext(name))):
		return fmt.Errorf("save %q: expected an ending of %s", clip(name), strings.Join(saveEndings, " "))
	}
	if dir := filepath.Dir(name); dir != "." {
		if st, err := p.write.Stat(dir); err != nil || !st.IsDir() {
			return fmt.Errorf("save %q: the folder of --write has no folder %q: use a name without a folder", clip(name), clip(dir))
		}
	}
	if _, err := p.write.Lstat(name); err == nil {
		return fmt.Errorf("save %q: the file exists: choose another name", name)
	}
	return nil
}

// save copies a file into the folder of --write.
func (p *paths) save(from, name string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("save %q: %w", name, cause(err))
	}
	// The root follows no link that leads outside of the folder.
	f, err := p.write.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("save %q: %w", name, cause(err))
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = p.write.Remove(name)
		return fmt.Errorf("save %q: %w", name, cause(err))
	}
	return nil
}

// inside reports whether a clean absolute path is one of some folders or below it.
func inside(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// cause is an error of the file system without the path, which is that of a link's target.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
