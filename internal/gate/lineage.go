package gate

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// Reasons why the figures of a record are not those of the present branch.
const (
	// Replaced: the record came with a merge, which kept another model.
	Replaced = "replaced"
	// OtherBranch: HEAD has neither the commit of the record nor its line of the index.
	OtherBranch = "other_branch"
)

// Place is where a record belongs in the first-parent history of HEAD.
type Place struct {
	// At orders the records that have a place, the oldest first. Known says that there is one.
	At    int
	Known bool
	// LeftOut is why the figures are not those of the branch, "" where they are.
	LeftOut string
}

// errElsewhere is why records are not ordered by a repository.
var errElsewhere = errors.New("HEAD has none of the commits")

// Lineage finds the places of the records of a store. A record of a clean commit on the first-parent
// history of HEAD belongs there. Others belong where the line of the index arrived there: figures of
// a working tree are those of the next commit, and merges and squashed commits bring the lines of
// their branch. Such a record counts if its model is the one that this commit has.
func (r *Repo) Lineage(ctx context.Context, s *Store) ([]Place, error) {
	if r.Head == "" {
		return nil, errors.New("the repository has no commit yet")
	}
	arrived, err := r.arrivals(ctx, filepath.Join(s.Dir, BaselineDir, IndexFile))
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for i := range s.Records {
		rec := &s.Records[i]
		for _, c := range []string{rec.Commit, arrived[rec.ID()]} {
			if isHash(c) {
				wanted[c] = true
			}
		}
	}
	steps, err := r.walk(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, errElsewhere
	}
	out := make([]Place, len(s.Records))
	var brought []int      // records that came with another commit than their own
	var models [][2]string // its hash, and their model
	for i := range s.Records {
		rec := &s.Records[i]
		own, known := steps[rec.Commit]
		at, came := steps[arrived[rec.ID()]]
		switch {
		case known && own.first && !rec.Dirty:
			out[i] = Place{At: 2 * own.at, Known: true}
			continue
		case !came && known && own.first: // the working tree after a commit
			out[i] = Place{At: 2*own.at + 1, Known: true}
			continue
		case !came && known:
			at = own
		case !came:
			if rec.Commit != "" && !r.Shallow {
				out[i].LeftOut = OtherBranch
			}
			continue
		}
		out[i] = Place{At: 2 * at.at, Known: true}
		brought, models = append(brought, i), append(models, [2]string{at.commit, rec.Model})
	}
	blobs, err := r.blobs(ctx, models)
	if err != nil {
		return nil, err
	}
	for k, i := range brought {
		if b := s.Records[i].Blob; b != "" && blobs[k] != "" && blobs[k] != b {
			out[i].LeftOut = Replaced
		}
	}
	return out, nil
}

// step is a commit of the first-parent history of HEAD.
type step struct {
	commit string
	at     int // 0 for HEAD, negative before it
	// first says that the commit that was asked for is this one; else a merge brought it.
	first bool
}

// walk finds the oldest commits of the first-parent history of HEAD that have some commits. Those
// that HEAD lacks are left out.
func (r *Repo) walk(ctx context.Context, wanted map[string]bool) (map[string]step, error) {
	out := map[string]step{}
	if len(wanted) == 0 {
		return out, nil
	}
	var line []string // the history, from HEAD on
	next := r.Head
	bringer := map[string]int{} // of commits whose children were seen, by index of line
	err := r.each(ctx, "", '\n', func(text string) error {
		ids := strings.Fields(text) // a commit and its parents; all of its children came before it
		if len(ids) == 0 {
			return nil
		}
		c, first := ids[0], ids[0] == next
		at := bringer[c]
		delete(bringer, c)
		if first {
			at, line, next = len(line), append(line, c), ""
			if len(ids) > 1 {
				next = ids[1]
			}
		}
		if wanted[c] {
			out[c] = step{line[at], -at, first}
			if len(out) == len(wanted) {
				return errEnough
			}
		}
		for _, parent := range ids[1:] {
			bringer[parent] = max(bringer[parent], at)
		}
		return nil
	}, "rev-list", "--topo-order", "--parents", r.Head)
	return out, err
}

// arrivals finds the commits of the first-parent history of HEAD that brought the lines of an index,
// by the IDs of the records.
func (r *Repo) arrivals(ctx context.Context, index string) (map[string]string, error) {
	out := map[string]string{}
	path, ok := r.Relative(index)
	if !ok {
		return out, nil
	}
	commit := ""
	err := r.each(ctx, "", '\n', func(line string) error {
		if c, ok := strings.CutPrefix(line, "commit "); ok {
			commit = c
			return nil
		}
		text, ok := strings.CutPrefix(line, "+")
		if !ok || !strings.HasPrefix(text, "{") {
			return nil
		}
		var rec Record
		if jsonx.Unmarshal([]byte(text), &rec) == nil {
			out[rec.ID()] = commit // the log begins with the newest: the first arrival stays
		}
		return nil
	}, "log", "--first-parent", "-m", "-p", "-U0", "--text", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-show-signature", "--format=commit %H", r.Head, "--", ":(literal)"+path)
	return out, err
}

// blobs finds the objects of files at commits, "" for files that a commit lacks.
func (r *Repo) blobs(ctx context.Context, files [][2]string) ([]string, error) {
	out := make([]string, len(files))
	var ask strings.Builder
	var asked []int
	for i, f := range files {
		if isHash(f[0]) && !strings.Contains(f[1], "\n") {
			ask.WriteString(f[0] + ":" + f[1] + "\n")
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return out, nil
	}
	n := 0
	err := r.each(ctx, ask.String(), '\n', func(line string) error {
		if object, kind, _ := strings.Cut(line, " "); n < len(asked) && kind == "blob" && isHash(object) {
			out[asked[n]] = object
		}
		n++
		return nil
	}, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	return out, err
}
