// Command release makes the files of a release: an archive for each system with the programs,
// manual pages, completions and a container file; packages for pip, npm and Debian; a Homebrew
// formula and a Scoop manifest; a software bill of materials; checksums of all. The same commit
// gives the same bytes on every machine with the same Go. docs/howto/release.md explains it.
//
//	go run ./tools/release -o dist
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what packers work on.
type release struct {
	version   string
	commit    string    // "" where git does not know it
	when      time.Time // of the commit
	systems   []string
	documents []entry           // the files that every archive has
	built     map[string][]byte // programs by system and name, see programs
	files     []entry           // of the packers before
}

// packers lists the kinds of packages, in this order. Each returns the files of its kind; it finds
// those of the packers before it in files.
var packers = []struct {
	name string
	pack func(*release) ([]entry, error)
}{
	{"archives", archives},
	{"wheels", wheels},
	{"npm", npm},
	{"debs", debs},
	{"formula", formula},
	{"scoop", scoop},
	{"sbom", sbom},
}

func main() {
	out := flag.String("o", "dist", "folder for the files, made if absent")
	version := flag.String("version", "", "version in the names (default: what git describe says)")
	only := flag.String("systems", strings.Join(systems, ","), "systems to build for")
	kinds := map[string]*bool{}
	for _, p := range packers {
		kinds[p.name] = flag.Bool(p.name, false, "make "+p.name+"; without such a flag all kinds are made")
	}
	flag.Parse()
	wanted := func(name string) bool { return *kinds[name] }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(kinds)), wanted) {
		wanted = func(string) bool { return true }
	}
	if err := run(*out, *version, strings.Split(*only, ","), wanted); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out, version string, list []string, wanted func(kind string) bool) error {
	before := sources(".")
	when, err := commitTime()
	if err != nil {
		return err
	}
	if version == "" {
		if version, err = git("describe", "--tags", "--always", "--dirty"); err != nil {
			return err
		}
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		commit = "" // an unpacked archive of the sources, whose version is given
	}
	r := &release{version: version, commit: commit, when: when, systems: list}
	if r.documents, err = documents(".", version); err != nil {
		return err
	}
	for _, p := range packers {
		if !wanted(p.name) {
			continue
		}
		files, err := p.pack(r)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.files = append(r.files, files...)
	}
	if sources(".") != before {
		return errors.New("the working tree changed during the build: build again, in a clone of its own")
	}
	return write(out, append(r.files, entry{name: "SHA256SUMS", data: checksums(r.files)}))
}

// sources is what the working tree of a folder has: the commit, and what differs from it. It is ""
// without git.
func sources(folder string) string {
	var all strings.Builder
	for _, args := range [][]string{{"rev-parse", "HEAD"}, {"diff", "HEAD", "--no-ext-diff", "--no-textconv", "--binary"}, {"ls-files", "--others", "--exclude-standard"}} {
		text, err := git(append([]string{"-C", folder}, args...)...)
		if err != nil {
			return ""
		}
		all.WriteString(text + "\n")
	}
	return all.String()
}

// checksums lists the files as sha256sum does, in the order of their lines.
func checksums(files []entry) []byte {
	var sums []string
	for _, f := range files {
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(f.data), f.name))
	}
	slices.Sort(sums)
	return []byte(strings.Join(sums, ""))
}

// write puts files into a folder.
func write(folder string, files []entry) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Printf("%s, %d bytes\n", f.name, len(f.data))
		if err := os.WriteFile(filepath.Join(folder, f.name), f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// commitTime is the time of the commit that is built, or SOURCE_DATE_EPOCH.
func commitTime() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		var err error
		if s, err = git("log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the commit: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
