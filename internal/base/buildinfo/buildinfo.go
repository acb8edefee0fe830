// Package buildinfo returns the version of the running program.
package buildinfo

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// module is the one whose version counts.
const module = "github.com/opmeter/opmeter"

// stamp is "VERSION,COMMIT,DATE". The linker sets it in the programs of a release, which are built
// without the version control system; tools/release passes it.
var stamp string

// Info says what a program was built from. Commit and Date (that of the commit, such as
// "2026-11-29") are empty where the build does not record them.
type Info struct{ Version, Commit, Date string }

// Version returns the module's version as recorded by the build, also if the module is part of
// another program, or "development".
func Version() string { return Read().Version }

// Read returns what the release or the build recorded.
func Read() Info {
	b, _ := debug.ReadBuildInfo()
	return read(stamp, b)
}

func read(stamp string, b *debug.BuildInfo) Info {
	if f := strings.Split(stamp, ","); len(f) == 3 {
		return Info{f[0], f[1], f[2]}
	}
	if b == nil {
		return Info{Version: released("")}
	}
	for _, m := range b.Deps {
		if m.Path == module {
			return Info{Version: released(m.Version)}
		}
	}
	i := Info{Version: released(b.Main.Version)}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value
		case "vcs.time":
			i.Date, _, _ = strings.Cut(s.Value, "T")
		}
	}
	return i
}

// String returns one line: the version, then commit and date where they are recorded.
func (i Info) String() string {
	var known []string
	if i.Commit != "" {
		known = append(known, "commit "+i.Commit)
	}
	if i.Date != "" {
		known = append(known, i.Date)
	}
	if known == nil {
		return i.Version
	}
	return i.Version + " (" + strings.Join(known, ", ") + ")"
}

// released returns a version, or "development" for one that names no commit.
func released(v string) string {
	if v == "(devel)" || strings.HasPrefix(v, "v0.0.0-00010101000000-") {
		v = ""
	}
	return cmp.Or(v, "development")
}
