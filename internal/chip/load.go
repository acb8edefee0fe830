package chip

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/infile"
)

// Set is a list of targets, ordered by id. Shipped ones are read when they are asked
// for.
type Set struct {
	own map[string]*Target // from the user's folder
}

// Load returns the targets of the binary with those of the folder dir added; a
// file there replaces a shipped target of the same id. Dir "" adds none. Faulty
// files are left out: the set holds the rest, and the error names them all.
func Load(dir string) (*Set, error) {
	s := &Set{own: map[string]*Target{}}
	if dir == "" {
		return s, nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: is not a folder of target files", dir)
	}
	list, err := readAll(dir)
	for _, t := range list {
		s.own[t.ID] = t
	}
	return s, err
}

// maxFile bounds a target file, in bytes: real ones have some kilobytes.
const maxFile = 4 << 20

func readAll(dir string) ([]*Target, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []*Target
	var errs []error
	from := map[string]string{}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		b, err := infile.Read(filepath.Join(dir, e.Name()), maxFile)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t, err := Parse(b, filepath.Join(dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first := from[t.ID]; first != "" {
			errs = append(errs, &FileError{File: t.File, Line: 1, Key: "id", Text: fmt.Sprintf("is %q, which %s has already; expected one file for each id", t.ID, first)})
			continue
		}
		from[t.ID] = t.File
		list = append(list, t)
	}
	return list, errors.Join(errs...)
}

// ids lists all targets in order.
func (s *Set) ids() []string {
	ids := slices.Collect(maps.Keys(s.own))
	for id := range shipped() {
		if s.own[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// get finds one target.
func (s *Set) get(id string) (*Target, error) {
	if t := s.own[id]; t != nil {
		return t, nil
	}
	return shipped()[id]()
}

// List returns all targets, ordered by id.
func (s *Set) List() []*Target {
	var list []*Target
	for _, id := range s.ids() {
		// Shipped targets can be read: a test reads them all.
		if t, err := s.get(id); err == nil {
			list = append(list, t)
		}
	}
	return list
}

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
	// Arm writes Cortex-M0+; a plus sign does not suit file names.
	id = strings.ReplaceAll(strings.ToLower(id), "+", "plus")
	ids := s.ids()
	if slices.Contains(ids, id) {
		return s.get(id)
	}
	type near struct {
		id   string
		cost int
	}
	var list []near
	for _, other := range ids {
		if id == "" {
			break // looks like everything
		}
		c := distance(id, other)
		if strings.HasPrefix(other, id) || strings.Contains(other, id) && len(id) >= 3 {
			c = 0
		}
		if c <= max(2, len(id)/3) {
			list = append(list, near{other, c})
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
