package mcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/profile"
)

// keptProfiles is how many profiles the server keeps; older ones are removed.
const keptProfiles = 64

// store keeps the profiles that tools made, as files of a temporary folder.
type store struct {
	dir    string
	remove func()
	mu     sync.Mutex
	last   int
}

// add takes a file and returns the id of the profile.
func (s *store) add(file string) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id = "p" + strconv.Itoa(s.last)
	if err := os.Rename(file, s.path(id)); err != nil {
		return "", cause(err)
	}
	if old := s.last - keptProfiles; old > 0 {
		_ = os.Remove(s.path("p" + strconv.Itoa(old)))
	}
	return id, nil
}

func (s *store) path(id string) string { return filepath.Join(s.dir, id+profile.Extension) }

// isID reports whether an argument is the id of a profile.
func isID(arg string) bool {
	n, ok := strings.CutPrefix(arg, "p")
	if _, err := strconv.ParseUint(n, 10, 31); !ok || err != nil {
		return false
	}
	return n[0] >= '1' && n[0] <= '9'
}

// file returns the file of a profile, by its id or as a file that may be read.
func (s *server) file(what, arg string) (string, error) {
	if !isID(arg) {
		return s.paths.read(what, arg, false)
	}
	path := s.store.path(arg)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s %q: the server has no such profile; it keeps the last %d: call summary, profile or estimate first", what, arg, keptProfiles)
	}
	return path, nil
}

// profile reads a profile by its id or from a file.
func (s *server) profile(arg string) (*profile.Profile, error) {
	path, err := s.file("profile", arg)
	if err != nil {
		return nil, err
	}
	p, err := profile.Read(path)
	switch {
	case errors.Is(err, profile.ErrNotProfile):
		return nil, fmt.Errorf("profile %q: is no saved profile: give an id such as p1, or a file %s", clip(arg), "*"+profile.Extension)
	case err != nil:
		return nil, fmt.Errorf("profile %q: %w", clip(arg), cause(err))
	}
	return p, nil
}

// made takes the profiles that the program wrote into a folder.
func (s *server) made(dir string) (ids []string, ps []*profile.Profile, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+profile.Extension))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		p, err := profile.Read(file)
		if err != nil {
			return nil, nil, cause(err)
		}
		id, err := s.store.add(file)
		if err != nil {
			return nil, nil, err
		}
		ids, ps = append(ids, id), append(ps, p)
	}
	return ids, ps, nil
}
