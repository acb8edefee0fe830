package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func testRetention(t *testing.T, open func() *DB) {
	d := open()
	day := func(n int) time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, n) }
	names := map[string]string{} // of runs by id
	var p, other Project
	add := func(at int, project, name, model, branch, pull string, tags ...string) string {
		d.now = func() time.Time { return day(at) }
		id := ""
		d.do(t, func(tx *Tx) error {
			r, err := tx.AddRun(Series{Model: model}, Run{Project: project, Job: name, Branch: branch, Pull: pull}, nil, tags)
			id, names[r.ID] = r.ID, name
			return err
		})
		return id
	}
	d.do(t, func(tx *Tx) error {
		p, other = must[Project](t)(tx.AddProject("p", "")), must[Project](t)(tx.AddProject("other", ""))
		return nil
	})
	add(0, p.ID, "a0", "a", "main", "")
	add(1, p.ID, "a1", "a", "main", "", "nightly", Pinned)
	shown := add(2, p.ID, "a2", "a", "main", "")
	add(3, p.ID, "a3", "a", "", "")
	add(4, p.ID, "a4", "a", "main", "")
	add(4, p.ID, "b4", "b", "main", "")
	add(5, p.ID, "pull5", "a", "main", "7")
	add(6, p.ID, "branch6", "a", "try", "")
	add(0, other.ID, "other0", "a", "main", "")
	d.now = func() time.Time { return day(10) }
	d.do(t, func(tx *Tx) error {
		// A link that ended keeps nothing.
		end := day(9).UnixMilli()
		_, _, err1 := tx.AddShare(Share{Runs: "none," + shown})
		_, _, err2 := tx.AddShare(Share{Runs: strings.Join([]string{shown, "none"}, ","), Expires: &end})
		return errors.Join(err1, err2)
	})
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{}, ""},
		{Rule{Days: n(100), Pulls: n(100)}, ""},
		{Rule{Days: n(7)}, "a0"},
		{Rule{Days: n(5)}, "a0 a3 a4 b4"},
		{Rule{Last: n(1)}, "a0 a3 a4"}, // branch6 is the last one of its series
		{Rule{Last: n(1), Branch: "main"}, "a0 a3"},
		{Rule{Days: n(5), Last: n(1), Branch: "main"}, "a0 a3"},
		{Rule{Days: n(9), Last: n(1)}, "a0"},
		{Rule{Pulls: n(1)}, "pull5"},
		{Rule{Pulls: n(1), Branch: "main"}, "branch6 pull5"},
		{Rule{Pulls: n(5), Branch: "main"}, ""},
		{Rule{Days: n(1), Pulls: n(1)}, "a0 a3 a4 b4 branch6 pull5"},
	} {
		d.do(t, func(tx *Tx) error {
			var got []string
			for _, r := range must[[]Run](t)(tx.Due(p.ID, c.rule, day(10))) {
				got = append(got, names[r.ID])
			}
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%+v deletes %v, expected %s", c.rule, got, c.want)
			}
			return nil
		})
	}
	d.do(t, func(tx *Tx) error {
		if r := must[Rule](t)(tx.RuleOf(p.ID)); r != (Rule{}) {
			t.Errorf("no rule is %+v", r)
		}
		if err := errors.Join(tx.SetRule(Rule{Project: Others, Days: n(9)}), tx.SetRule(Rule{Project: p.ID}), tx.SetRule(Rule{Project: p.ID, Days: n(1)})); err != nil {
			return err
		}
		if a, b := must[Rule](t)(tx.RuleOf(p.ID)), must[Rule](t)(tx.RuleOf(other.ID)); *a.Days != 1 || *b.Days != 9 || len(must[[]Rule](t)(tx.Rules())) != 2 {
			t.Errorf("rules %+v, %+v", a, b)
		}
		due := must[[]Run](t)(tx.Due(p.ID, Rule{Days: n(1)}, day(10)))
		// One is pinned and another one deleted before the rule is applied.
		if err := errors.Join(tx.Note(due[0].ID, "", []string{Pinned}), tx.Delete("runs", due[1].ID)); err != nil {
			return err
		}
		if got := must[int64](t)(tx.DeleteRuns(due, day(10))); got != int64(len(due))-2 {
			t.Errorf("deleted %d of %d", got, len(due))
		}
		if got := must[Run](t)(tx.Run(due[0].ID)); got.Deleted != nil {
			t.Error("a pinned run was deleted")
		}
		if err := tx.RemoveRule(p.ID); err != nil {
			return err
		}
		if r := must[Rule](t)(tx.RuleOf(p.ID)); *r.Days != 9 {
			t.Errorf("after removal %+v", r)
		}
		return nil
	})
}

func testUnused(t *testing.T, open func() *DB) {
	d := open()
	_, runs := filled(t, d, 3)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	d.do(t, func(tx *Tx) error {
		if got := must[map[string]bool](t)(tx.Used([]string{runs[0].Blob, "none"})); fmt.Sprint(got) != fmt.Sprint(map[string]bool{runs[0].Blob: true}) {
			t.Errorf("used %v", got)
		}
		if _, err := tx.AddRun(Series{Model: "m"}, Run{Project: runs[0].Project, Job: "j", Blob: "profile", ModelHash: "model", Output: "compressed"}, nil, nil); err != nil {
			return err
		}
		if got := must[map[string]bool](t)(tx.Used([]string{"profile", "model", "compressed", "none"})); len(got) != 3 || got["none"] {
			t.Errorf("used %v", got)
		}
		// Noted again, it stays unused since the first time.
		if err := errors.Join(tx.MarkUnused("a", at(1)), tx.MarkUnused("a", at(5)), tx.MarkUnused("b", at(5))); err != nil {
			return err
		}
		if got := must[[]Unused](t)(tx.UnusedSince(at(2), "")); len(got) != 1 || got[0].Hash != "a" {
			t.Errorf("unused %v", got)
		}
		if got := must[[]Unused](t)(tx.UnusedSince(at(9), "a")); len(got) != 1 || got[0].Hash != "b" {
			t.Errorf("unused behind a: %v", got)
		}
		if err := tx.TakeUnused("b", at(5)); !errors.Is(err, ErrNotFound) {
			t.Errorf("taken too early: %v", err)
		}
		if err := tx.TakeUnused("a", at(2)); err != nil {
			t.Error(err)
		}
		if err := tx.Use("b"); err != nil {
			t.Error(err)
		}
		if must[bool](t)(tx.MarkedUnused("b")) {
			t.Error("a used file is noted as unused")
		}
		return nil
	})
}
