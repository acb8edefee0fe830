// Command samecode compares the code of two commits modulo names, comments, layout, moves and
// texts, and lists what differs. It shows that a rewrite changed no behaviour.
//
//	go run ./tools/samecode [-texts] [-tests] [OLD [NEW [DIR...]]]
//
// OLD and NEW are commits; NEW may be "." for the working tree. The defaults are HEAD and the
// working tree. DIR limits the comparison to folders (a declaration that moved into or out of
// them is then listed as missing or new).
//
// Ignored: comments, formatting, grouping of declarations, imports, names of locals, and names
// of package-level declarations, fields and methods as long as they are renamed consistently.
// Compared: everything else, including struct tags, numbers, operators, build constraints (also
// those in file names), compiler directives, names from other modules, and which declaration
// each name refers to. Assembly may differ in comments and symbol names, data files in path.
//
// String literals are counted; -texts lists them. Those without a blank (keys, flags, formats)
// are always listed, since code may depend on them. -tests compares _test.go files as well.
//
// The exit status is 0 when nothing differs, 1 when something does, 2 on an error. Changed texts
// with blanks do not count as a difference.
//
// Limits: types are not checked. A field or method is known by name only, so that exchanging two
// fields goes unnoticed if another declaration was renamed just so. Not noticed either: the order
// in which package-level variables are initialised, and names visible through reflection (%T, %+v).
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	texts := flag.Bool("texts", false, "list every string literal that changed")
	tests := flag.Bool("tests", false, "compare _test.go files too")
	flag.Parse()
	oldRev, newRev := "HEAD", "."
	args := flag.Args()
	if len(args) > 0 {
		oldRev = args[0]
	}
	if len(args) > 1 {
		newRev = args[1]
	}
	var dirs []string
	if len(args) > 2 {
		dirs = args[2:]
	}
	same, err := run(os.Stdout, oldRev, newRev, dirs, options{texts: *texts, tests: *tests})
	if err != nil {
		fmt.Fprintln(os.Stderr, "samecode:", err)
		os.Exit(2)
	}
	if !same {
		os.Exit(1)
	}
}

func run(w io.Writer, oldRev, newRev string, dirs []string, opt options) (bool, error) {
	before, err := load(oldRev, dirs)
	if err != nil {
		return false, err
	}
	after, err := load(newRev, dirs)
	if err != nil {
		return false, err
	}
	r, err := compare(before, after, opt)
	if err != nil {
		return false, err
	}
	r.print(w, opt)
	return r.same(), nil
}

// load reads the files of a commit, or of the working tree for ".".
func load(rev string, dirs []string) (map[string][]byte, error) {
	top, err := git("", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	root := strings.TrimSpace(string(top))
	files := map[string][]byte{}
	if rev == "." {
		list, err := git(root, append([]string{"ls-files", "-z", "-co", "--exclude-standard", "--"}, dirs...)...)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
			info, err := os.Lstat(filepath.Join(root, name))
			if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
				continue // deleted, or a link
			}
			if err != nil {
				return nil, err
			}
			if files[name], err = os.ReadFile(filepath.Join(root, name)); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	// A folder need not exist in both commits: the archive is filtered here.
	archive, err := git(root, "archive", "--format=tar", rev)
	if err != nil {
		return nil, err
	}
	for tr := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || !within(h.Name, dirs) {
			continue
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			return nil, err
		}
	}
}

// within reports whether a path is in one of the folders; no folders stand for all.
func within(path string, dirs []string) bool {
	for _, d := range dirs {
		d = filepath.ToSlash(filepath.Clean(d))
		if d == "." || path == d || strings.HasPrefix(path, d+"/") {
			return true
		}
	}
	return len(dirs) == 0
}

func git(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
