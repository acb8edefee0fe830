package target

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed chips/*.yaml
var chips embed.FS

// Set is a list of targets, ordered by id.
type Set struct {
	targets []*Target
}

// shipped parses the embedded files once; they cannot change.
var shipped = sync.OnceValues(func() ([]*Target, error) {
	sub, err := fs.Sub(chips, "chips")
	if err != nil {
		return nil, err
	}
	return readAll(sub, "")
})

// Load returns the targets of the binary with those of the folder dir added; a
// file there replaces a shipped target of the same id. Dir "" adds none. Faulty
// files are left out: the set holds the rest, and the error names them all.
func Load(dir string) (*Set, error) {
	list, err := shipped()
	if err != nil {
		return nil, err
	}
	byID := map[string]*Target{}
	for _, t := range list {
		byID[t.ID] = t
	}
	if dir != "" {
		info, serr := os.Stat(dir)
		if serr != nil {
			return nil, serr
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: is not a folder of target files", dir)
		}
		var own []*Target
		own, err = readAll(os.DirFS(dir), dir)
		for _, t := range own {
			byID[t.ID] = t
		}
	}
	s := &Set{}
	for _, t := range byID {
		s.targets = append(s.targets, t)
	}
	slices.SortFunc(s.targets, func(a, b *Target) int { return strings.Compare(a.ID, b.ID) })
	return s, err
}

func readAll(fsys fs.FS, dir string) ([]*Target, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var list []*Target
	var errs []error
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		b, err := fs.ReadFile(fsys, e.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t, err := Parse(b, filepath.Join(dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, t)
	}
	return list, errors.Join(errs...)
}

// List returns all targets, ordered by id.
func (s *Set) List() []*Target { return slices.Clone(s.targets) }

// UnknownError is the error for an id that no target has.
type UnknownError struct {
	ID      string
	Nearest []string // ids that look alike, best first
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("no target %q", e.ID)
	if len(e.Nearest) > 0 {
		s += "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	}
	return s
}

// Find returns the target with an id; case does not matter.
func (s *Set) Find(id string) (*Target, error) {
	id = strings.ToLower(id)
	for _, t := range s.targets {
		if t.ID == id {
			return t, nil
		}
	}
	type near struct {
		id   string
		cost int
	}
	var list []near
	for _, t := range s.targets {
		c := distance(id, t.ID)
		if strings.HasPrefix(t.ID, id) || strings.Contains(t.ID, id) && len(id) >= 3 {
			c = 0
		}
		if c <= max(2, len(id)/3) {
			list = append(list, near{t.ID, c})
		}
	}
	slices.SortStableFunc(list, func(a, b near) int { return a.cost - b.cost })
	err := &UnknownError{ID: id}
	for _, n := range list[:min(len(list), 3)] {
		err.Nearest = append(err.Nearest, n.id)
	}
	return nil, err
}

// nearest is the word of list that looks most like s, "" when none does.
func nearest(s string, list []string) string {
	best, cost := "", max(1, len(s)/2)+1
	for _, w := range list {
		if c := distance(s, w); c < cost {
			best, cost = w, c
		}
	}
	return best
}

// distance is the number of insertions, removals, replacements and swaps of
// neighbours that make b of a.
func distance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+c)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, cur
	}
	return prev[len(b)]
}
