package find

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// nodes searches Node package folders: of the current folder and its parents, and system-wide
// ones.
func (s *searcher) nodes() {
	if len(s.eng.node) == 0 {
		return
	}
	e := s.e
	var dirs []string
	for _, dir := range e.parents() {
		dirs = append(dirs, e.join(dir, "node_modules"))
	}
	dirs = append(dirs, e.list("NODE_PATH")...)
	global := "lib/node_modules"
	if e.OS == "windows" {
		global = "node_modules"
		if dir := e.Getenv("APPDATA"); e.isAbs(dir) {
			dirs = append(dirs, e.join(dir, "npm", "node_modules"))
		}
	}
	for _, v := range []string{"NPM_CONFIG_PREFIX", "npm_config_prefix", "PREFIX"} {
		if dir := e.Getenv(v); dir != "" && e.isAbs(dir) {
			dirs = append(dirs, e.join(dir, global))
		}
	}
	for _, dir := range e.list("PATH") {
		program := "node"
		if e.OS == "windows" {
			program = "node.exe"
		}
		for _, p := range []string{e.join(dir, program), e.Files.Real(e.join(dir, program))} {
			if k := e.Files.Kind(p); k != kindFile && k != kindProgram {
				continue
			}
			if e.OS == "windows" {
				dirs = append(dirs, e.join(e.dir(p), global))
			} else {
				dirs = append(dirs, e.join(e.dir(e.dir(p)), global))
			}
		}
	}
	if e.Home != "" && e.OS != "windows" {
		dirs = append(dirs, e.join(e.Home, ".npm-global", global))
	}
	if e.OS != "windows" {
		dirs = append(dirs, "/usr/local/"+global, "/usr/"+global, "/opt/homebrew/"+global)
	}
	for _, dir := range dirs {
		s.modules(dir, Node)
		s.place++
	}
}

// modules searches a node_modules folder: the package itself, pnpm's store, and packages that
// bundle their own copy.
func (s *searcher) modules(dir string, where Where) {
	if s.e.Files.Kind(dir) != kindFolder {
		return
	}
	for _, n := range s.eng.node {
		for _, at := range []string{"", "@huggingface/transformers/node_modules", "@xenova/transformers/node_modules"} {
			s.nodePackage(s.e.join(dir, at, n.name), n, where)
		}
		for _, at := range s.e.glob(dir, ".pnpm/"+n.name+"@*/node_modules/"+n.name) {
			s.nodePackage(at, n, where)
		}
	}
}

// nodePackage searches the folder of a Node package.
func (s *searcher) nodePackage(dir string, n nodePackage, where Where) {
	description := s.e.text(s.e.join(dir, "package.json"))
	if description == "" {
		return
	}
	var d struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	// An invalid package.json tells nothing; the library may still be there.
	if jsonx.Unmarshal([]byte(description), &d) == nil && d.Name != "" && d.Name != n.name {
		return
	}
	if !isVersion(d.Version) {
		d.Version = ""
	}
	platform := map[string]string{"windows": "win32"}[s.e.OS]
	if platform == "" {
		platform = s.e.OS
	}
	arch := map[string]string{"amd64": "x64", "386": "ia32"}[s.e.Arch]
	if arch == "" {
		arch = s.e.Arch
	}
	found := false
	for _, libs := range s.e.glob(dir, strings.NewReplacer("PLATFORM", platform, "ARCH", arch).Replace(n.libs)) {
		found = s.folder(libs, where, pack{n.name, d.Version}) || found
	}
	if !found {
		f := Found{Path: dir, Where: where, Package: n.name, Version: d.Version, Problem: OtherMachine}
		f.Help = n.name + " in " + dir + " has no library for " + platform + " on " + arch + ": " + s.eng.advice(s.e.OS)
		s.add(f)
	}
}
