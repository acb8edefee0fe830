// Package find looks for the libraries of other engines where users have them, without
// opening any and without starting anything: a variable, Python environments, folders of
// Node packages, the places where systems keep libraries. It parses what --engine takes,
// and finds the program that opens libraries.
//
// What is found is judged by its first bytes only: whether it is a library at all, and one
// for this machine. Everything that is read is bounded, whatever the files hold.
package find

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/external"
)

// Where says where a library was found.
type Where string

// Places, the nearest first.
const (
	Named    Where = "named"    // on the command line
	Variable Where = "variable" // by a variable of the environment
	Python   Where = "python"   // in a Python environment
	Node     Where = "node"     // in a folder of Node packages
	System   Where = "system"   // where the system keeps libraries
)

// Problem says why something that was found is of no use.
type Problem string

// Problems.
const (
	Missing      Problem = "missing"       // what was named is not there, or holds no library
	Unreadable   Problem = "unreadable"    // it may not be read
	NoLibrary    Problem = "not_library"   // the file is no library
	OtherSystem  Problem = "other_system"  // a library of another operating system
	OtherMachine Problem = "other_machine" // a library for another processor
	ModuleOnly   Problem = "module_only"   // a package without the library, with a Python module only
)

// Found is an engine's library, or what is there instead of one.
type Found struct {
	// Engine is the engine's name on the command line.
	Engine string `json:"engine"`
	// Version as the package or the file's name tells it, "" where they do not.
	Version string `json:"version,omitzero"`
	// Path of the library; of the folder or file that is there where there is none; of the program, "" where a
	// shell has to find it.
	Path string `json:"path"`
	// Command is the command line that starts a program, "" for libraries.
	Command string `json:"command,omitzero"`
	// Where it was found.
	Where Where `json:"where"`
	// Package that it belongs to, such as "onnxruntime-gpu", "" where none is known.
	Package string `json:"package,omitzero"`
	// Problem is "" for a library that may be opened. Help then says what is wrong and what
	// to do, in one line.
	Problem Problem `json:"problem,omitzero"`
	Help    string  `json:"help,omitzero"`

	place int // number of the place: less is nearer
}

// All finds the libraries of some engines, of every one where none is named: those of the
// nearest place first, the newest of a place first, each file once.
func (e *Env) All(engines ...string) []Found {
	var out []Found
	for i := range Engines {
		if eng := &Engines[i]; len(engines) == 0 || slices.Contains(engines, eng.Name) {
			out = append(out, e.search(eng)...)
		}
	}
	return out
}

// Pick finds one library of an engine that may be opened. want is "" for the newest of the
// nearest place that has one, the beginning of a version ("1.20" is 1.20.1 and not 1.200), or a
// path of a library or of a folder that holds one. Where the engine's variable is set, it alone
// counts for "". Errors are a [guest.Error] of one line that says how to get the engine.
func (e *Env) Pick(engine, want string) (Found, error) {
	eng := known(engine)
	if eng == nil {
		return Found{}, external.Errorf(external.NotFound, "%q is no engine: use %s", engine, names())
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

// err is what is wrong with something that was found.
func (f *Found) err() error {
	code := external.NotLibrary
	if f.Problem == Missing || f.Problem == ModuleOnly {
		code = external.NotFound
	}
	return external.Errorf(code, "%s", f.Help)
}

// named finds the library that a path leads to, or the program of a command line.
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

// search finds everything of an engine.
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

// searcher gathers what is found of one engine.
type searcher struct {
	e        *Env
	eng      *Engine
	seen     map[string]int // real path to its place in found
	found    []Found
	place    int
	variable bool // what is looked at was named by the variable
}

// sorted returns what was found: places in their order, in each what is of use first and the
// newest of it first.
func (s *searcher) sorted() []Found {
	slices.SortStableFunc(s.found, func(a, b Found) int {
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

// add keeps a library once, whatever leads to it.
func (s *searcher) add(f Found) {
	real := s.e.Files.Real(f.Path)
	if i, ok := s.seen[real]; ok {
		// Another name of it may say more.
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

// folder looks for the library in a folder, and says whether it has one.
func (s *searcher) folder(dir string, where Where, p pack) (found bool) {
	for _, name := range s.e.Files.List(dir) {
		if _, ok := s.eng.library(s.e.OS, name); !ok {
			continue
		}
		path := s.e.join(dir, name)
		if k := s.e.Files.Kind(path); k == kindFolder || k == kindNone && where != Named && where != Variable {
			continue // a link to nothing is what packages leave behind
		}
		s.file(path, where, p)
		found = true
	}
	return found
}

// path keeps what a user named: a library, or a folder that has one somewhere.
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
		s.any(path, where)
		if len(s.found) == before {
			s.add(Found{Path: path, Where: where, Problem: Missing, Help: lead + " has no " + s.eng.file(s.e.OS) + ": " + s.eng.advice(s.e.OS)})
		}
	default:
		s.file(path, where, s.owner(path))
	}
	s.place++
}

// any looks for the library in a folder that may be anything: one of libraries, an
// installation, a Python environment, its packages, one of them, a Node package.
func (s *searcher) any(dir string, where Where) {
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

// owner finds the package that a library lies in, by the folders above it.
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
