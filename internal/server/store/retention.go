package store

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// Pinned is the tag of runs that no rule deletes.
const Pinned = "pinned"

// Others stands for all projects without a rule of their own.
const Others = "*"

// Rule says which runs of a project are kept. What it does not bound is kept for ever.
type Rule struct {
	// Project is whose rule it is, or Others.
	Project string `db:"project" json:"project,omitempty" maxLength:"64" doc:"id of the project; * stands for those without a rule of their own"`
	// Branch is the default branch: runs of others count as those of pull requests. "" are all branches.
	Branch string `db:"branch" json:"branch,omitempty" maxLength:"200" doc:"default branch; runs of other branches count as those of pull requests; absent: all branches are default branches"`
	Days   *int64 `db:"days" json:"days,omitempty" minimum:"1" maximum:"36500" doc:"runs of the default branch are kept for so many days"`
	Last   *int64 `db:"last_runs" json:"last,omitempty" minimum:"1" maximum:"1000000" doc:"the last runs of each series on the default branch are kept, however old"`
	Pulls  *int64 `db:"pull_days" json:"pull_days,omitempty" minimum:"1" maximum:"36500" doc:"runs of pull requests are kept for so many days"`
}

// SetRule sets the rule of a project, or that of all others.
func (t *Tx) SetRule(r Rule) error {
	if err := t.RemoveRule(r.Project); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return insert(t, "retention", r)
}

// RemoveRule removes the rule of a project: that of all others holds again.
func (t *Tx) RemoveRule(project string) error {
	return t.one("DELETE FROM retention WHERE project = ?", project)
}

// Rules lists the rules.
func (t *Tx) Rules() ([]Rule, error) { return list[Rule](t, "retention", "ORDER BY project") }

// RuleOf returns the rule that holds for a project. Without one, everything is kept.
func (t *Tx) RuleOf(project string) (Rule, error) {
	r, err := get[Rule](t, "retention", "WHERE project IN (?, ?) ORDER BY CASE WHEN project = ? THEN 1 ELSE 0 END", project, Others, Others)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return r, err
}

// Due lists the runs of a project that a rule deletes at a time, the oldest first. Runs that are
// pinned or that a link shows are not among them.
func (t *Tx) Due(project string, r Rule, now time.Time) ([]Run, error) {
	before := func(days *int64) int64 {
		if days == nil {
			return 0
		}
		return now.AddDate(0, 0, -int(*days)).UnixMilli()
	}
	main, last := before(r.Days), int64(0)
	if r.Last != nil {
		if last = *r.Last; r.Days == nil {
			main = math.MaxInt64
		}
	}
	shown, err := t.shown()
	if err != nil {
		return nil, err
	}
	runs, err := list[Run](t, `(SELECT ranked.*, ROW_NUMBER() OVER (PARTITION BY series, main ORDER BY id DESC) AS place FROM
		(SELECT runs.*, CASE WHEN pull = '' AND (branch IN ('', ?) OR ? = '') THEN 1 ELSE 0 END AS main
			FROM runs WHERE project = ? AND deleted IS NULL) AS ranked) AS placed`,
		`WHERE (main = 1 AND created < ? AND place > ? OR main = 0 AND created < ?)
		AND NOT EXISTS (SELECT 1 FROM tags WHERE run = placed.id AND name = '`+Pinned+`') ORDER BY id`,
		r.Branch, r.Branch, project, main, last, before(r.Pulls))
	return slices.DeleteFunc(runs, func(r Run) bool { return shown[r.ID] }), err
}

// shown returns the runs that a valid link shows.
func (t *Tx) shown() (map[string]bool, error) {
	all, err := list[Share](t, "shares", "WHERE revoked IS NULL AND (expires IS NULL OR expires > ?)", t.millis())
	out := map[string]bool{}
	for _, s := range all {
		for id := range strings.SplitSeq(s.Runs, ",") {
			out[id] = true
		}
	}
	return out, err
}

// DeleteRuns moves runs to the bin, except those that were pinned or deleted meanwhile, and returns
// how many there were.
func (t *Tx) DeleteRuns(runs []Run, now time.Time) (int64, error) {
	where, ids := among("id", runs, func(r *Run) string { return r.ID })
	r, err := t.tx.ExecContext(t.ctx, t.sql("UPDATE runs SET deleted = ? "+where+
		" AND deleted IS NULL AND NOT EXISTS (SELECT 1 FROM tags WHERE run = runs.id AND name = '"+Pinned+"')"),
		append([]any{now.UnixMilli()}, ids...)...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Unused is a file that nothing referred to at a time. Whoever uses it again removes this row.
type Unused struct {
	Hash  string `db:"hash"`
	Since int64  `db:"since"`
}

// Used reports which files runs refer to.
func (t *Tx) Used(hashes []string) (map[string]bool, error) {
	args := make([]any, len(hashes))
	for i, h := range hashes {
		args[i] = h
	}
	out := map[string]bool{}
	for _, column := range []string{"blob", "model_hash", "output"} {
		rows, err := t.tx.QueryContext(t.ctx, t.sql("SELECT DISTINCT "+column+" FROM runs WHERE "+column+" IN "+marks(len(args))), args...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var h string
			if err := rows.Scan(&h); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			out[h] = true
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// MarkUnused notes that nothing refers to a file, unless that is known already.
func (t *Tx) MarkUnused(hash string, now time.Time) error {
	err := insert(t, "unused_files", Unused{hash, now.UnixMilli()})
	if errors.Is(err, ErrExists) {
		err = nil
	}
	return err
}

// Use notes that somebody uses a file.
func (t *Tx) Use(hash string) error {
	return t.exec("DELETE FROM unused_files WHERE hash = ?", hash)
}

// MarkedUnused reports whether a file is noted as unused.
func (t *Tx) MarkedUnused(hash string) (bool, error) {
	all, err := list[Unused](t, "unused_files", "WHERE hash = ?", hash)
	return len(all) > 0, err
}

// UnusedSince lists files that are noted as unused since before a time, behind a hash.
func (t *Tx) UnusedSince(before time.Time, after string) ([]Unused, error) {
	return list[Unused](t, "unused_files", "WHERE since < ? AND hash > ? ORDER BY hash LIMIT ?", before.UnixMilli(), after, batch)
}

// TakeUnused forgets a file that is noted as unused since before a time, and who may use it. It is ErrNotFound if
// somebody used it meanwhile. Until the transaction ends, nobody can: remove the file within it.
func (t *Tx) TakeUnused(hash string, before time.Time) error {
	if err := t.one("DELETE FROM unused_files WHERE hash = ? AND since < ?", hash, before.UnixMilli()); err != nil {
		return err
	}
	return t.exec("DELETE FROM uploads WHERE hash = ?", hash)
}
