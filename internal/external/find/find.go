// Package find searches for the libraries of external engines without opening a library or
// starting a program. It looks at an environment variable, Python environments, Node package
// folders and the system's library folders. It also parses --engine, and finds the program
// opmeter-engine.
//
// A candidate is judged by its first bytes only: whether it is a shared library, and for this
// machine. All reads are bounded, whatever the files hold.
package find

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/external"
)

// Where says where a library was found.
type Where string

// Places, in order of precedence.
const (
	Named    Where = "named"    // on the command line
	Variable Where = "variable" // by a variable of the environment
	Python   Where = "python"   // in a Python environment
	Node     Where = "node"     // in a folder of Node packages
	System   Where = "system"   // where the system keeps libraries
)

// Problem says why a candidate cannot be used.
type Problem string

// Problems.
const (
	Missing      Problem = "missing"       // the named path does not exist, or holds no library
	Unreadable   Problem = "unreadable"    // it may not be read
	NoLibrary    Problem = "not_library"   // the file is not a library
	OtherSystem  Problem = "other_system"  // a library of another operating system
	OtherMachine Problem = "other_machine" // a library for another processor
	// a package without the library, with a Python module only
	ModuleOnly Problem = "module_only"
)

// Found is an engine's library, or a candidate that cannot be used.
type Found struct {
	// Engine is the engine's name on the command line.
	Engine string `json:"engine"`
	// Version is the version by the package or the file name, "" if neither has one.
	Version string `json:"version,omitzero"`
	// Path is the library; the folder or file found instead of a library; or the program, "" if a
	// shell has to find it.
	Path string `json:"path"`
	// Command is the command line that starts a program, "" for libraries.
	Command string `json:"command,omitzero"`
	// Where it was found.
	Where Where `json:"where"`
	// Package is the package that contains it, such as "onnxruntime-gpu", "" if unknown.
	Package string `json:"package,omitzero"`
	// Problem is "" for a usable library. Otherwise Help says in one line what is wrong and what
	// to do.
	Problem Problem `json:"problem,omitzero"`
	Help    string  `json:"help,omitzero"`

	place int // number of the place: less is nearer
}

// All finds the libraries of the given engines, of all engines if none is given. They are sorted
// by place, then newest first; each file appears once.
func (e *Env) All(engines ...string) []Found {
	var out []Found
	for i := range Engines {
		if eng := &Engines[i]; len(engines) == 0 || slices.Contains(engines, eng.Name) {
			out = append(out, e.search(eng)...)
		}
	}
	return out
}

// Pick finds one usable library of an engine. want is "" for the newest in the first place that
// has one, a version prefix ("1.20" matches 1.20.1 and not 1.200), or the path of a library or of
// a folder that holds one. If the engine's variable is set, "" considers the variable only.
// Errors are an [external.Error] of one line that says how to get the engine.
func (e *Env) Pick(engine, want string) (Found, error) {
	eng := known(engine)
	if eng == nil {
		return Found{}, external.Errorf(external.NotFound, "%q is not an engine: use %s", engine, names())
	}
	if want != "" && (eng.Program || !isVersion(want)) {
		return e.named(eng, want)
	}
	list := e.search(eng)
	if want == "" && e.Getenv(eng.Variable) != "" {
		list = slices.DeleteFunc(list, func(f Found) bool { return f.Where != Variable })
	}
	var broken *Found
	var others []string
	for i := range list {
		f := &list[i]
		fits := want == "" || hasPrefix(f.Version, want)
		switch {
		case fits && f.Problem == "":
			return *f, nil
		case fits && broken == nil:
			broken = f
		case !fits && f.Problem == "" && f.Version != "" && !slices.Contains(others, f.Version):
			others = append(others, f.Version)
		}
	}
	if broken != nil {
		return Found{}, broken.err()
	}
	if want == "" {
		return Found{}, external.Errorf(external.NotFound, "%s", eng.Absent(e.OS))
	}
	there := ""
	if len(others) > 0 {
		there = ", there is " + strings.Join(others, ", ")
	}
	get := strings.Replace(eng.advice(e.OS), "pip install "+eng.pip, "pip install '"+eng.pip+"=="+want+".*'", 1)
	return Found{}, external.Errorf(external.NotFound, "no %s %s here%s: %s", eng.Title, want, there, get)
}

// err returns the problem of a candidate as an error.
func (f *Found) err() error {
	code := external.NotLibrary
	if f.Problem == Missing || f.Problem == ModuleOnly {
		code = external.NotFound
	}
	return external.Errorf(code, "%s", f.Help)
}

// named finds the library at a path, or the program of a command line.
func (e *Env) named(eng *Engine, path string) (Found, error) {
	if eng.Program {
		return e.command(eng, path)
	}
	s := searcher{e: e, eng: eng, seen: map[string]int{}}
	s.path(e.abs(path), Named)
	list := s.sorted()
	if list[0].Problem != "" {
		return Found{}, list[0].err()
	}
	return list[0], nil
}

// search finds all candidates of an engine.
func (e *Env) search(eng *Engine) []Found {
	if eng.Program {
		return nil
	}
	s := searcher{e: e, eng: eng, seen: map[string]int{}}
	if name := e.Getenv(eng.Variable); name != "" {
		s.variable = true
		s.path(e.abs(name), Variable)
		s.variable = false
	}
	s.pythons()
	s.nodes()
	s.system()
	return s.sorted()
}

// searcher collects the candidates of one engine.
type searcher struct {
	e        *Env
	eng      *Engine
	seen     map[string]int // real path to its place in found
	found    []Found
	place    int
	variable bool // the current path was named by the variable
}

// sorted returns the candidates by place; in each place usable ones come first, newest first.
func (s *searcher) sorted() []Found {
	sorting.Stable(s.found, func(a, b Found) int {
		if a.place != b.place {
			return a.place - b.place
		}
		if (a.Problem == "") != (b.Problem == "") {
			if a.Problem == "" {
				return -1
			}
			return 1
		}
		return -compare(a.Version, b.Version)
	})
	return s.found
}

// add keeps a library once, whatever path leads to it.
func (s *searcher) add(f Found) {
	real := s.e.Files.Real(f.Path)
	if i, ok := s.seen[real]; ok {
		// Another name of the same file may have a version.
		if s.found[i].Version == "" {
			s.found[i].Version = f.Version
		}
		return
	}
	if f.Version == "" {
		f.Version, _ = s.eng.library(s.e.OS, s.e.base(real))
	}
	f.Engine, f.place = s.eng.Name, s.place
	s.seen[real] = len(s.found)
	s.found = append(s.found, f)
}

// file judges a file and keeps it.
func (s *searcher) file(path string, where Where, p pack) {
	f := Found{Path: path, Where: where, Package: p.name}
	f.Version, _ = s.eng.library(s.e.OS, s.e.base(path))
	if p.version != "" && (f.Version == "" || hasPrefix(p.version, f.Version)) {
		f.Version = p.version
	}
	var what string
	if f.Problem, what = s.e.judge(path); f.Problem != "" {
		f.Help = path + " " + what + ": " + s.eng.advice(s.e.OS)
	}
	s.add(f)
}

// folder looks for the library in a folder, and reports whether it is there.
func (s *searcher) folder(dir string, where Where, p pack) (found bool) {
	for _, name := range s.e.Files.List(dir) {
		if _, ok := s.eng.library(s.e.OS, name); !ok {
			continue
		}
		path := s.e.join(dir, name)
		if k := s.e.Files.Kind(path); k == kindFolder || k == kindNone && where != Named && where != Variable {
			continue // packages leave dangling links behind
		}
		s.file(path, where, p)
		found = true
	}
	return found
}

// path keeps a path given by the user: a library, or a folder that contains one.
func (s *searcher) path(path string, where Where) {
	lead := path
	if s.variable {
		lead = s.eng.Variable + "=" + path
	}
	switch s.e.Files.Kind(path) {
	case kindNone:
		s.add(Found{Path: path, Where: where, Problem: Missing, Help: lead + ": no such file or folder: " + s.eng.advice(s.e.OS)})
	case kindFolder:
		before := len(s.found)
		s.searchFolder(path, where)
		if len(s.found) == before {
			s.add(Found{Path: path, Where: where, Problem: Missing, Help: lead + " has no " + s.eng.file(s.e.OS) + ": " + s.eng.advice(s.e.OS)})
		}
	default:
		s.file(path, where, s.owner(path))
	}
	s.place++
}

// searchFolder looks for the library in a folder of unknown kind: a library folder, an
// installation, a Python environment, its site-packages, one package, a Node package.
func (s *searcher) searchFolder(dir string, where Where) {
	s.folder(dir, where, pack{})
	for _, sub := range s.eng.inside(s.e) {
		for _, d := range s.e.glob(dir, sub) {
			s.folder(d, where, pack{})
		}
	}
	s.site(dir, where)
	s.environment(dir, where)
	for i := range s.eng.python {
		s.pythonPackage(dir, &s.eng.python[i], where, s.packages(s.e.dir(dir)))
	}
	for _, n := range s.eng.node {
		s.nodePackage(dir, n, where)
		s.nodePackage(s.e.join(dir, "package"), n, where) // as an archive of the registry has it
		s.modules(s.e.join(dir, "node_modules"), where)
	}
}

// owner finds the package that contains a library, by its parent folders.
func (s *searcher) owner(path string) pack {
	dir := s.e.dir(path)
	for range 3 {
		if p := s.packages(dir); p.name != "" {
			return p
		}
		up := s.e.dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return pack{}
}
