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
	if write == "" {
		return nil
	}
	root, err := os.OpenRoot(write)
	if err != nil {
		return fmt.Errorf("--write %s: %w", write, cause(err))
	}
	p.write = root
	return nil
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
		return "", fmt.Errorf("%s: the name has %d bytes or a zero byte, expected at most %d: name a file", what, len(name), longestPath)
	}
	abs := name
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(p.given[0], name)
	}
	abs = filepath.Clean(abs)
	// Names are checked before the file: an error must not tell whether a file outside exists.
	if !inside(abs, p.given) && !inside(abs, p.real) {
		return "", p.outside(what, name)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
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
	case len(name) > longestPath || !filepath.IsLocal(name) || strings.ContainsRune(name, 0):
		return fmt.Errorf("save %q: expected a name inside of the folder of --write", clip(name))
	case !slices.Contains(saveEndings, strings.ToLower(filepath.Ext(name))):
		return fmt.Errorf("save %q: expected an ending of %s", clip(name), strings.Join(saveEndings, " "))
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
