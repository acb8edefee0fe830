package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package of the module, as `go list` describes it.
type pkg struct {
	Dir, ImportPath string
	GoFiles         []string
	TestGoFiles     []string
	XTestGoFiles    []string
	Imports         []string
	TestImports     []string
	XTestImports    []string
	Deps            []string
	Module          struct{ Path, Dir string }
}

// files lists the files that may be changed.
func (p *pkg) files() []string {
	out := make([]string, len(p.GoFiles))
	for i, f := range p.GoFiles {
		out[i] = filepath.Join(p.Dir, f)
	}
	return out
}

func (p *pkg) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// packages of the module by import path.
type packages map[string]*pkg

func load(ctx context.Context, patterns ...string) (packages, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps,Module", "--"}, patterns...)...)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, told.Bytes())
	}
	all := packages{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
}

// choose gives the packages that patterns name, all of the program without any.
func (all packages) choose(ctx context.Context, patterns []string) ([]*pkg, error) {
	some := all
	if len(patterns) > 0 {
		var err error
		if some, err = load(ctx, patterns...); err != nil {
			return nil, err
		}
	}
	var out []*pkg
	for _, p := range some {
		top, rest, _ := strings.Cut(p.name(), "/")
		if len(patterns) == 0 && (top == "bench" || top == "tools" || top == "docs" || strings.HasPrefix(rest, "testing/")) {
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pkg) int { return cmp.Compare(a.ImportPath, b.ImportPath) })
	return out, nil
}

// usersOf lists packages with tests that import one, those with the fewest
// dependencies first: they are the quickest and the nearest.
func (all packages) usersOf(p *pkg, most int) []*pkg {
	var out []*pkg
	for _, q := range all {
		if q == p || !q.hasTests() {
			continue
		}
		if slices.Contains(q.Imports, p.ImportPath) || slices.Contains(q.TestImports, p.ImportPath) || slices.Contains(q.XTestImports, p.ImportPath) {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *pkg) int {
		return cmp.Or(cmp.Compare(len(a.Deps), len(b.Deps)), cmp.Compare(a.ImportPath, b.ImportPath))
	})
	return out[:min(most, len(out))]
}
