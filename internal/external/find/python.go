package find

import (
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// pack is an installed package.
type pack struct{ name, version string }

// pythons searches Python environments, the active one first. No interpreter is started.
func (s *searcher) pythons() {
	e := s.e
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := e.Getenv(v); dir != "" && e.isAbs(dir) {
			s.environment(e.clean(dir), Python)
			s.place++
		}
	}
	for _, dir := range e.parents() {
		for _, name := range []string{".venv", "venv"} {
			s.environment(e.join(dir, name), Python)
			s.place++
		}
	}
	for _, dir := range e.list("PYTHONPATH") {
		s.site(dir, Python)
		s.place++
	}
	for _, dir := range s.interpreters() {
		s.environment(dir, Python)
		s.place++
	}
	for _, dir := range e.userSites() {
		s.site(dir, Python)
		s.place++
	}
}

// interpreters lists the environments whose interpreters are in PATH, and those of pyenv.
func (s *searcher) interpreters() []string {
	e := s.e
	var out []string
	keep := func(dir string) {
		if !slices.Contains(out, dir) && e.Files.Kind(dir) == kindFolder {
			out = append(out, dir)
		}
	}
	for _, dir := range e.list("PATH") {
		shims := e.base(dir) == "shims"
		if shims {
			for _, d := range e.pyenv() {
				keep(d)
			}
			continue
		}
		for _, name := range e.Files.List(dir) {
			if !isInterpreter(e.OS, name) {
				continue
			}
			// The interpreter of a virtual environment is a link to another one, and the
			// environment is the folder around the link. One in ~/.local/bin may be a link into
			// the environment.
			for _, p := range []string{e.join(dir, name), e.Files.Real(e.join(dir, name))} {
				prefix := e.dir(p)
				if b := e.base(prefix); e.OS != "windows" || strings.EqualFold(b, "Scripts") {
					prefix = e.dir(prefix)
				}
				keep(prefix)
			}
		}
	}
	for _, d := range e.pyenv() {
		keep(d)
	}
	if e.OS != "windows" {
		keep("/usr/local")
		keep("/usr")
	}
	for _, d := range e.windowsPythons() {
		keep(d)
	}
	return out
}

// isInterpreter reports whether a program's name is a Python interpreter's.
func isInterpreter(system, name string) bool {
	if system == "windows" {
		base, ok := cutSuffixFold(name, ".exe")
		return ok && strings.EqualFold(strings.TrimRight(base, "0123456789."), "python")
	}
	base := strings.TrimRight(name, "0123456789.")
	return (base == "python" || base == "pypy") && !strings.HasSuffix(name, ".")
}

// pyenv lists the environments of pyenv, the active ones first.
func (e *Env) pyenv() []string {
	root := e.Getenv("PYENV_ROOT")
	if root == "" {
		if e.Home == "" {
			return nil
		}
		root = e.join(e.Home, ".pyenv")
	}
	active := e.Getenv("PYENV_VERSION")
	if active == "" {
		for _, dir := range e.parents() {
			if active = e.text(e.join(dir, ".python-version")); active != "" {
				break
			}
		}
	}
	if active == "" {
		active = e.text(e.join(root, "version"))
	}
	var out []string
	for _, name := range strings.FieldsFunc(active, func(r rune) bool { return r == ':' || r == '\n' || r == '\r' || r == ' ' }) {
		// The entry is a name or a prefix of a name.
		if path.Base(name) == name && len(out) < 100 {
			out = append(out, e.join(root, "versions", name))
			rest := e.glob(root, "versions/"+strings.Map(plain, name)+".*")
			sorting.Func(rest, func(a, b string) int { return -compare(e.base(a), e.base(b)) })
			out = append(out, rest...)
		}
	}
	rest := e.glob(root, "versions/*")
	sorting.Func(rest, func(a, b string) int { return -compare(e.base(a), e.base(b)) })
	return append(out, rest...)
}

// plain removes characters that are special in patterns.
func plain(r rune) rune {
	if strings.ContainsRune(`*?[]\`, r) {
		return -1
	}
	return r
}

// windowsPythons lists the default folders of the Python installer on Windows.
func (e *Env) windowsPythons() []string {
	if e.OS != "windows" {
		return nil
	}
	var out []string
	for v, pattern := range map[string]string{"LOCALAPPDATA": "Programs/Python/Python3*", "ProgramFiles": "Python3*"} {
		if dir := e.Getenv(v); e.isAbs(dir) {
			out = append(out, e.glob(dir, pattern)...)
		}
	}
	sorting.Func(out, func(a, b string) int { return strings.Compare(b, a) })
	return out
}

// userSites lists the user's site-packages outside of environments.
func (e *Env) userSites() []string {
	var out []string
	if e.Home != "" {
		switch e.OS {
		case "windows":
		case "darwin":
			out = e.glob(e.Home, "Library/Python/3*/lib/python/site-packages")
		}
		if e.OS != "windows" {
			out = append(out, e.glob(e.Home, ".local/lib/python3*/site-packages")...)
		}
	}
	if dir := e.Getenv("APPDATA"); e.OS == "windows" && e.isAbs(dir) {
		out = e.glob(dir, "Python/Python3*/site-packages")
	}
	slices.Reverse(out)
	return out
}

// environment searches a Python environment: its site-packages, and the libraries that Conda
// installs beside them.
func (s *searcher) environment(dir string, where Where) {
	if s.e.Files.Kind(dir) != kindFolder {
		return
	}
	patterns := []string{
		"lib/python3*/site-packages", "lib64/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages",
		"lib/pypy3*/site-packages",
	}
	libraries := []string{"lib"}
	if s.e.OS == "windows" {
		patterns = []string{"Lib/site-packages"}
		libraries = []string{"Library/bin"}
	}
	for _, p := range patterns {
		for _, d := range s.e.glob(dir, p) {
			s.site(d, where)
		}
	}
	// Libraries in the system's own folders are found by system.
	if dir == "/usr" || dir == "/usr/local" {
		return
	}
	for _, p := range libraries {
		s.folder(s.e.join(dir, p), where, pack{})
	}
}

// site searches a site-packages folder.
func (s *searcher) site(dir string, where Where) {
	for i := range s.eng.python {
		p := &s.eng.python[i]
		if folder := s.e.join(dir, p.folder); s.e.Files.Kind(folder) == kindFolder {
			s.pythonPackage(folder, p, where, s.packages(dir))
		}
	}
}

// pythonPackage searches the folder of a package for the library, or for a module without it.
func (s *searcher) pythonPackage(dir string, p *pythonPackage, where Where, owner pack) {
	if s.e.base(dir) != p.folder {
		return
	}
	libs := dir
	if p.libs != "" {
		libs = s.e.join(dir, p.libs)
	}
	if s.folder(libs, where, owner) || p.module == "" {
		return
	}
	for _, name := range s.e.Files.List(libs) {
		if strings.HasPrefix(name, p.module) && (strings.Contains(name, ".so") || strings.HasSuffix(name, ".pyd")) {
			f := Found{Path: libs, Where: where, Package: owner.name, Version: owner.version, Problem: ModuleOnly}
			what := owner.name
			if what == "" {
				what = p.folder
			}
			if owner.version != "" {
				what += " " + owner.version
			}
			f.Help = what + " in " + dir + " has a Python module only, without " + s.eng.file(s.e.OS) + ": " +
				strings.Replace(s.eng.advice(s.e.OS), "pip install ", "pip install --upgrade ", 1)
			s.add(f)
			return
		}
	}
}

// packages finds the distribution that installed the engine's package. Several may have: their
// names are joined, and the version is unknown unless they agree.
func (s *searcher) packages(site string) pack {
	var out pack
	agree := true
	for _, name := range s.e.Files.List(site) {
		base, ok := strings.CutSuffix(name, ".dist-info")
		if !ok {
			continue
		}
		dist, version, ok := strings.Cut(base, "-")
		dist = strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(dist))
		if !ok || len(version) > 64 || !slices.ContainsFunc(s.eng.python, func(p pythonPackage) bool { return slices.Contains(p.dists, dist) }) {
			continue
		}
		dist = strings.ReplaceAll(dist, "_", "-")
		if out.name == "" {
			out = pack{dist, version}
			continue
		}
		out.name += " " + dist
		agree = agree && out.version == version
	}
	if !agree {
		out.version = ""
	}
	return out
}
