package find

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
)

// Env is the computer to search.
type Env struct {
	// OS and Arch are GOOS and GOARCH.
	OS, Arch string
	// Dir is the current folder, Home the user's home, Program the file of the running program;
	// "" if unknown.
	Dir, Home, Program string
	// Getenv returns environment variables, "" if unset.
	Getenv func(name string) string
	// Files is the file system.
	Files Files
}

// Here returns this computer.
func Here() *Env {
	e := &Env{OS: runtime.GOOS, Arch: runtime.GOARCH, Getenv: os.Getenv, Files: disk{}}
	e.Dir, _ = os.Getwd()
	e.Home, _ = os.UserHomeDir()
	e.Program, _ = os.Executable()
	return e
}

// Files is the part of a file system that the search needs. Names are absolute paths.
type Files interface {
	// List returns the sorted entries of a folder, nil if it cannot be read.
	List(dir string) []string
	// Kind returns the kind of file that a name refers to, after links.
	Kind(name string) Kind
	// Real returns the path with links resolved, or the name itself if that fails.
	Real(name string) string
	// Open opens a regular file.
	Open(name string) (File, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
}

// Kind is the kind of file that a name refers to.
type Kind int

// Kinds of files. A program is an executable regular file.
const (
	kindNone Kind = iota
	kindFile
	kindProgram
	kindFolder
	kindOther
)

// most limits the number of folder entries that are read.
const most = 20_000

// disk is the file system of this computer.
type disk struct{}

func (disk) List(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.IsDir() {
		return nil
	}
	list, _ := f.Readdirnames(most)
	slices.Sort(list)
	return list
}

func (disk) Kind(name string) Kind {
	st, err := os.Stat(name)
	switch {
	case err != nil && errors.Is(err, fs.ErrPermission):
		return kindOther
	case err != nil:
		return kindNone
	case st.IsDir():
		return kindFolder
	case !st.Mode().IsRegular():
		return kindOther
	case runtime.GOOS == "windows" || st.Mode()&0o111 != 0:
		return kindProgram
	}
	return kindFile
}

func (disk) Real(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

func (disk) Open(name string) (File, error) {
	f, _, err := infile.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// text reads the beginning of a small text file, "" if it cannot be read.
func (e *Env) text(name string) string {
	if k := e.Files.Kind(name); k != kindFile && k != kindProgram {
		return ""
	}
	f, err := e.Files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, _ := f.ReadAt(b, 0)
	return string(b[:n])
}

// Paths use the conventions of the searched system, which in tests differs from this one.

func (e *Env) sep() string {
	if e.OS == "windows" {
		return `\`
	}
	return "/"
}

// clean returns the shortest equivalent path.
func (e *Env) clean(p string) string {
	if e.OS != "windows" {
		return path.Clean(p)
	}
	s := strings.ReplaceAll(p, `\`, "/")
	network := strings.HasPrefix(s, "//")
	s = path.Clean(s)
	if len(s) == 2 && s[1] == ':' {
		s += "/"
	}
	if network {
		s = "/" + s
	}
	return strings.ReplaceAll(s, "/", `\`)
}

func (e *Env) join(parts ...string) string { return e.clean(strings.Join(parts, e.sep())) }

func (e *Env) dir(p string) string {
	p = e.clean(p)
	i := strings.LastIndex(p, e.sep())
	switch {
	case i < 0:
		return p
	case i == 0 || e.OS == "windows" && i == 2 && p[1] == ':':
		return p[:i+1]
	}
	return p[:i]
}

func (e *Env) base(p string) string {
	p = e.clean(p)
	return p[strings.LastIndex(p, e.sep())+1:]
}

func (e *Env) isAbs(p string) bool {
	if e.OS != "windows" {
		return strings.HasPrefix(p, "/")
	}
	return len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`)
}

// abs makes a path absolute.
func (e *Env) abs(p string) string {
	if !e.isAbs(p) && e.Dir != "" {
		return e.join(e.Dir, p)
	}
	return e.clean(p)
}

// list splits a variable that holds a list of folders. Relative ones are skipped: their meaning
// depends on where the program is started.
func (e *Env) list(variable string) []string {
	sep := ":"
	if e.OS == "windows" {
		sep = ";"
	}
	var out []string
	for s := range strings.SplitSeq(e.Getenv(variable), sep) {
		if s = strings.Trim(s, `"`); e.isAbs(s) && len(out) < 1000 {
			out = append(out, e.clean(s))
		}
	}
	return out
}

// parents lists the current folder and its parents.
func (e *Env) parents() []string {
	var out []string
	for dir := e.Dir; dir != "" && len(out) < 64; {
		out = append(out, dir)
		up := e.dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return out
}

// glob lists the folders below dir that match a pattern of names separated by "/". Only "*" is
// special.
func (e *Env) glob(dir, pattern string) []string {
	dirs := []string{dir}
	for part := range strings.SplitSeq(pattern, "/") {
		var next []string
		for _, d := range dirs {
			if !strings.Contains(part, "*") {
				next = append(next, e.join(d, part))
				continue
			}
			for _, name := range e.Files.List(d) {
				if ok, _ := path.Match(part, name); ok && len(next) < 1000 {
					next = append(next, e.join(d, name))
				}
			}
		}
		dirs = next
	}
	return slices.DeleteFunc(dirs, func(d string) bool { return e.Files.Kind(d) != kindFolder })
}
