package find

import (
	"path"
	"slices"
	"strings"
)

// system searches the system's library folders and the usual folders for unpacked releases.
func (s *searcher) system() {
	e := s.e
	seen := map[string]bool{}
	look := func(dir string) {
		if !seen[dir] && len(seen) < 4000 {
			seen[dir] = true
			s.folder(dir, System, pack{})
		}
	}
	// Variables take precedence over the default folders.
	for _, v := range map[string][]string{"windows": {"PATH"}, "darwin": {"DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"}}[e.OS] {
		for _, dir := range e.list(v) {
			look(dir)
		}
	}
	if e.OS != "windows" && e.OS != "darwin" {
		for _, dir := range e.list("LD_LIBRARY_PATH") {
			look(dir)
		}
	}
	if dir := e.Getenv("INTEL_OPENVINO_DIR"); s.eng.Name == "openvino" && e.isAbs(dir) {
		s.installation(e.clean(dir), look)
	}
	s.place++
	for _, dir := range e.libraries() {
		look(dir)
	}
	s.place++
	for _, dir := range e.unpackFolders() {
		s.installation(dir, look)
	}
	s.place++
}

// installation searches a folder with an unpacked release.
func (s *searcher) installation(dir string, look func(string)) {
	look(dir)
	for _, sub := range s.eng.inside(s.e) {
		for _, d := range s.e.glob(dir, sub) {
			look(d)
		}
	}
}

// libraries lists the library folders of the system.
func (e *Env) libraries() []string {
	var out []string
	if e.Home != "" && e.OS != "windows" {
		out = append(out, e.join(e.Home, ".local", "lib"), e.join(e.Home, "lib"))
	}
	switch e.OS {
	case "windows":
		if dir := e.Getenv("SystemRoot"); e.isAbs(dir) {
			out = append(out, e.join(dir, "System32"))
		}
		return out
	case "darwin":
		return append(out, "/opt/homebrew/lib", "/usr/local/lib", "/opt/local/lib", "/usr/lib")
	}
	out = append(out, "/usr/local/lib", "/usr/local/lib64")
	out = append(out, e.configured("/etc/ld.so.conf", map[string]bool{})...)
	out = append(out, "/home/linuxbrew/.linuxbrew/lib")
	if triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu", "arm": "arm-linux-gnueabihf"}[e.Arch]; triplet != "" {
		out = append(out, "/usr/local/lib/"+triplet, "/usr/lib/"+triplet, "/lib/"+triplet)
	}
	return append(out, "/usr/lib64", "/lib64", "/usr/lib", "/lib")
}

// configured lists the folders in the loader's configuration (ld.so.conf(5)): one folder a line,
// or "include" with patterns of further files.
func (e *Env) configured(name string, seen map[string]bool) []string {
	if seen[name] || len(seen) >= 100 {
		return nil
	}
	seen[name] = true
	var out []string
	for line := range strings.Lines(e.text(name)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n,:=", r) })
		if len(words) == 0 {
			continue
		}
		if words[0] != "include" {
			if e.isAbs(words[0]) {
				out = append(out, e.clean(words[0]))
			}
			continue
		}
		for _, w := range words[1:] {
			if !e.isAbs(w) {
				w = e.join(e.dir(name), w)
			}
			for _, file := range e.Files.List(e.dir(w)) {
				if ok, _ := path.Match(e.base(w), file); ok {
					out = append(out, e.configured(e.join(e.dir(w), file), seen)...)
				}
			}
		}
	}
	return out[:min(len(out), 1000)]
}

// unpackFolders lists the folders to which users unpack releases.
func (e *Env) unpackFolders() []string {
	var out []string
	if e.OS == "windows" {
		for _, v := range []string{"ProgramFiles", "ProgramFiles(x86)"} {
			if dir := e.Getenv(v); e.isAbs(dir) {
				out = append(out, e.clean(dir), e.join(dir, "Intel"))
			}
		}
		return out
	}
	out = append(out, "/opt")
	out = append(out, e.glob("/opt", "*")...)
	return slices.DeleteFunc(out, func(d string) bool { return d == "/opt/homebrew" })
}
