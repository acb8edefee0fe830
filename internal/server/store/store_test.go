package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// TestStore runs all tests on SQLite and on PostgreSQL.
func TestStore(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, open func() *DB){
		"runs": testRuns, "frequent words": testFrequentWords, "one result": testOneResult, "notes and bin": testNotesAndBin, "projects": testProjects,
		"secrets": testSecrets, "alerts": testAlerts, "unchecked": testUnchecked, "deliveries": testDeliveries, "copy": testCopy, "reopen": testReopen,
		"retention": testRetention, "unused files": testUnused, "one project": testOneProject,
	}
	each := func(t *testing.T, source func(t *testing.T) string) {
		t.Parallel()
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, func() *DB { return opened(t, source(t)) })
			})
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		each(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "a?b#c%d.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgres.Start(t) // ends after the tests below
		each(t, func(t *testing.T) string { return freshSchema(t, url) })
	})
}

// freshSchema makes a schema of its own in a database of PostgreSQL.
func freshSchema(t *testing.T, source string) string {
	t.Helper()
	admin := opened(t, source)
	name := "t" + NewID(time.Now())
	run := func(q string) {
		if err := admin.Change(context.Background(), func(tx *Tx) error { return tx.exec(q) }); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE SCHEMA " + name)
	t.Cleanup(func() { run("DROP SCHEMA " + name + " CASCADE") })
	sep := "?"
	if strings.Contains(source, "?") {
		sep = "&"
	}
	return source + sep + "search_path=" + name
}

func opened(t *testing.T, source string) *DB {
	t.Helper()
	d, err := Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	// Each row gets a time of its own.
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	d.now = func() time.Time { at = at.Add(time.Millisecond); return at }
	return d
}

// do runs a function in a transaction that must succeed.
func (d *DB) do(t *testing.T, f func(*Tx) error) {
	t.Helper()
	if err := d.Change(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// must returns a value that cannot fail.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// filled adds a project with n runs of two series.
func filled(t *testing.T, d *DB, n int) (p Project, runs []Run) {
	t.Helper()
	d.do(t, func(tx *Tx) error {
		p = must[Project](t)(tx.AddProject("Ölprojekt", "with a 'quote' and ?"))
		for i := range n {
			s := Series{Kind: "measured", Model: []string{"résnet8.onnx", "kws.tflite"}[i%2], Target: "host", Engine: "opmeter", Machine: "m1"}
			low := float64(i) - 0.25
			r := must[Run](t)(tx.AddRun(s, Run{Project: p.ID, Job: fmt.Sprint("job", i), Blob: fmt.Sprint("blob", i), Commit: fmt.Sprintf("c%04d", i), Branch: "main"},
				[]Figure{{Name: "latency_s", Value: float64(i), Low: &low}, {Name: "macs", Value: 1e6}}, []string{"nightly", fmt.Sprint("n", i%3)}))
			runs = append(runs, r)
		}
		return nil
	})
	return p, runs
}

func ids(rs []Run) (out []string) {
	for _, r := range rs {
		out = append(out, r.ID)
	}
	return out
}

func testRuns(t *testing.T, open func() *DB) {
	d := open()
	p, runs := filled(t, d, 10)
	slices.Reverse(runs) // the latest first
	even := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Series != runs[1].Series })
	d.do(t, func(tx *Tx) error {
		for _, c := range []struct {
			f    Filter
			want []Run
		}{
			{Filter{}, runs},
			{Filter{Project: p.ID, Limit: 3}, runs[:3]},
			{Filter{Project: p.ID, Limit: 3, Before: runs[2].ID}, runs[3:6]},
			{Filter{Project: "other"}, nil},
			{Filter{Search: "RÉS"}, even},
			{Filter{Search: "résnet8 onnx c0004"}, runs[5:6]},
			{Filter{Search: "esnet"}, nil},
			{Filter{Tag: "n0", Limit: 1}, runs[:1]},
			{Filter{Commit: "c0002"}, runs[7:8]},
			{Filter{Deleted: true}, nil},
		} {
			got := must[[]Run](t)(tx.Runs(c.f))
			if diff := cmp.Diff(ids(c.want), ids(got)); diff != "" {
				t.Errorf("%+v: (-want +got)\n%s", c.f, diff)
			}
		}
		ps := must[[]Point](t)(tx.Trend(even[0].Series, "latency_s", 3))
		if len(ps) != 3 || ps[0].Value != 4 || ps[2].Value != 8 || *ps[2].Low != 7.75 || ps[2].High != nil || ps[2].Commit != "c0008" {
			t.Errorf("trend %+v", ps)
		}
		if got := must[[]Run](t)(tx.Latest(p.ID)); !slices.Equal(ids(got), ids(runs[:2])) {
			t.Errorf("latest %v, expected %v", ids(got), ids(runs[:2]))
		}
		fs := must[map[string][]Figure](t)(tx.Figures(runs[:2]))
		if len(fs) != 2 || len(fs[runs[0].ID]) != 2 || fs[runs[0].ID][0].Value != 9 {
			t.Errorf("figures %v", fs)
		}
		if got := must[map[string]Series](t)(tx.SeriesOf(runs)); len(got) != 2 || got[even[0].Series].Model != "résnet8.onnx" {
			t.Errorf("series %v", got)
		}
		return nil
	})
}

// Words that most runs have are searched in another way than rare ones.
func testFrequentWords(t *testing.T, open func() *DB) {
	d := open()
	_, runs := filled(t, d, fewRows+10)
	slices.Reverse(runs)
	d.do(t, func(tx *Tx) error {
		for _, c := range []struct {
			search string
			want   []Run
		}{
			{"main", runs[1:4]},
			{"main nightly", runs[1:4]},
			{"nig main host", runs[1:4]},
			{"n main", runs[1:4]}, // begins several words
			{"n c0004", runs[len(runs)-5 : len(runs)-4]},
			{"main absent", nil},
		} {
			got := must[[]Run](t)(tx.Runs(Filter{Search: c.search, Before: runs[0].ID, Limit: 3}))
			if diff := cmp.Diff(ids(c.want), ids(got)); diff != "" {
				t.Errorf("%q: (-want +got)\n%s", c.search, diff)
			}
		}
		return nil
	})
}

// A job has one result, whoever reports it and how often.
func testOneResult(t *testing.T, open func() *DB) {
	d := open()
	p, runs := filled(t, d, 1)
	d.do(t, func(tx *Tx) error {
		again := must[Run](t)(tx.AddRun(Series{Kind: "measured", Model: "other"}, Run{Project: p.ID, Job: "job0", Blob: "late"}, []Figure{{Name: "macs", Value: 7}}, nil))
		if diff := cmp.Diff(runs[0], again); diff != "" {
			t.Errorf("(-first +second)\n%s", diff)
		}
		return nil
	})
}

func testNotesAndBin(t *testing.T, open func() *DB) {
	d := open()
	_, runs := filled(t, d, 2)
	id := runs[0].ID
	d.do(t, func(tx *Tx) error {
		if err := tx.Note(id, "before the Refactoring", []string{"kept", "kept"}); err != nil {
			return err
		}
		if got := must[[]Run](t)(tx.Runs(Filter{Search: "refactor kept"})); !slices.Equal(ids(got), []string{id}) {
			t.Errorf("search finds %v", ids(got))
		}
		if got := must[map[string][]string](t)(tx.Tags(runs)); !slices.Equal(got[id], []string{"kept"}) || len(got) != 2 {
			t.Errorf("tags %v", got)
		}
		if got := must[[]Run](t)(tx.Runs(Filter{Tag: "nightly"})); len(got) != 1 {
			t.Errorf("a tag that was removed finds %v", ids(got))
		}
		if err := tx.Delete("runs", id); err != nil {
			return err
		}
		if got := must[[]Run](t)(tx.Runs(Filter{})); len(got) != 1 {
			t.Errorf("deleted run listed: %v", ids(got))
		}
		if err := tx.Restore("runs", id); err != nil {
			return err
		}
		if got := must[[]Run](t)(tx.Runs(Filter{})); len(got) != 2 {
			t.Errorf("restored run absent: %v", ids(got))
		}
		if err := errors.Join(tx.Delete("runs", id), tx.Purge(tx.millis())); err != nil {
			return err
		}
		if _, err := tx.Run(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("purged run: %v", err)
		}
		if got := must[map[string][]Figure](t)(tx.Figures(runs[:1])); len(got) != 0 {
			t.Errorf("figures of a purged run: %v", got)
		}
		if err := tx.Delete("tokens", id); err == nil {
			t.Error("a table without a bin was accepted")
		}
		return nil
	})
}

func testProjects(t *testing.T, open func() *DB) {
	d := open()
	d.do(t, func(tx *Tx) error {
		a := must[Project](t)(tx.AddProject("a", ""))
		b := must[Project](t)(tx.AddProject("b", ""))
		if _, err := tx.AddProject("a", ""); !errors.Is(err, ErrExists) {
			t.Errorf("same name: %v", err)
		}
		if err := tx.ChangeProject(b.ID, "a", ""); !errors.Is(err, ErrExists) {
			t.Errorf("renamed to a name in use: %v", err)
		}
		if err := tx.ChangeProject(a.ID, "a", "text"); err != nil {
			t.Error(err)
		}
		if got := must[Project](t)(tx.Project("a")); got.ID != a.ID || got.Description != "text" {
			t.Errorf("got %+v", got)
		}
		if err := tx.ChangeProject("none", "c", ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("absent project: %v", err)
		}
		return nil
	})
}

func testSecrets(t *testing.T, open func() *DB) {
	d := open()
	d.do(t, func(tx *Tx) error {
		past := tx.millis()
		k, secret, err := tx.AddToken(Token{Name: "ci", Role: Start})
		if err != nil {
			return err
		}
		_, old, err := tx.AddToken(Token{Name: "old", Role: Read, Expires: &past})
		if err != nil {
			return err
		}
		if got, err := tx.TokenOf(secret); err != nil || got.ID != k.ID || got.Hash == secret {
			t.Errorf("token %+v, %v", got, err)
		}
		if err := tx.Revoke("tokens", k.ID); err != nil {
			return err
		}
		for _, s := range []string{secret, old, "", k.Hash, "' OR ''='"} {
			if _, err := tx.TokenOf(s); !errors.Is(err, ErrNotFound) {
				t.Errorf("secret %q: %v", s, err)
			}
		}
		v, link, err := tx.AddShare(Share{Runs: "r1,r2"})
		if err != nil {
			return err
		}
		if got, err := tx.ShareOf(link); err != nil || got.ID != v.ID {
			t.Errorf("share %+v, %v", got, err)
		}
		_, ended, err := tx.AddShare(Share{Runs: "r1,r2", Expires: &past})
		if err != nil {
			return err
		}
		if all := must[[]Share](t)(tx.Shares("r1,r2", "")); len(all) != 1 || all[0].ID != v.ID {
			t.Errorf("shares %+v", all)
		}
		if err := tx.Revoke("shares", v.ID); err != nil {
			return err
		}
		for _, s := range []string{link, ended, "", v.Hash} {
			if _, err := tx.ShareOf(s); !errors.Is(err, ErrNotFound) {
				t.Errorf("share of %q: %v", s, err)
			}
		}
		return nil
	})
}

func testAlerts(t *testing.T, open func() *DB) {
	d := open()
	p, runs := filled(t, d, 2)
	d.do(t, func(tx *Tx) error {
		first := Alert{Project: p.ID, Series: runs[0].Series, Run: runs[0].ID, Figure: "macs", Before: 1, After: 2}
		a := must[Alert](t)(tx.AddAlert(first))
		if _, err := tx.AddAlert(first); !errors.Is(err, ErrExists) {
			t.Errorf("twice: %v", err)
		}
		b := must[Alert](t)(tx.AddAlert(Alert{Project: p.ID, Series: runs[1].Series, Run: runs[1].ID, Figure: "macs"}))
		if err := tx.Move(a.ID, runs[0].ID, 3, 4); err != nil {
			return err
		}
		if got := must[[]Alert](t)(tx.AlertsOf(runs[0].Series, "macs")); len(got) != 1 || got[0].ID != a.ID || got[0].Before != 3 || got[0].After != 4 {
			t.Errorf("alerts of the figure %v", got)
		}
		if err := tx.Acknowledge(a.ID, "ann", "known"); err != nil {
			return err
		}
		if err := tx.Acknowledge(a.ID, "bob", "later"); !errors.Is(err, ErrNotFound) {
			t.Errorf("acknowledged twice: %v", err)
		}
		if got := must[[]Alert](t)(tx.Alerts(p.ID, true, "", 9)); len(got) != 1 || got[0].ID != b.ID || must[int](t)(tx.OpenAlerts(p.ID)) != 1 {
			t.Errorf("open alerts %v", got)
		}
		if got := must[[]Alert](t)(tx.Alerts("", false, b.ID, 9)); len(got) != 1 || got[0].Note != "known" || got[0].AcknowledgedBy != "ann" {
			t.Errorf("alerts %v", got)
		}
		if got := must[[]Alert](t)(tx.Alerts("other", false, "", 9)); len(got) != 0 {
			t.Errorf("alerts of another project %v", got)
		}
		if err := tx.Delete("runs", runs[1].ID); err != nil {
			return err
		}
		if got := must[int](t)(tx.OpenAlerts("")); got != 0 {
			t.Errorf("%d open alerts with their runs in the bin", got)
		}
		return nil
	})
}

func testUnchecked(t *testing.T, open func() *DB) {
	d := open()
	_, runs := filled(t, d, 3)
	d.do(t, func(tx *Tx) error {
		all := must[[]Series](t)(tx.Unchecked(9))
		if len(all) != 2 || all[0].Newest != runs[2].ID || all[1].Newest != runs[1].ID {
			t.Errorf("unchecked %+v", all)
		}
		if err := tx.Checked(&all[0]); err != nil {
			return err
		}
		if err := tx.Checked(&all[0]); !errors.Is(err, ErrNotFound) {
			t.Errorf("checked twice: %v", err)
		}
		if left := must[[]Series](t)(tx.Unchecked(9)); len(left) != 1 || left[0].ID != all[1].ID {
			t.Errorf("unchecked then %+v", left)
		}
		return nil
	})
}

func testDeliveries(t *testing.T, open func() *DB) {
	d := open()
	p, _ := filled(t, d, 1)
	d.do(t, func(tx *Tx) error {
		h, other := must[Hook](t)(tx.AddHook(p.ID, "https://a")), must[Hook](t)(tx.AddHook(p.ID, "https://b"))
		first := must[Delivery](t)(tx.Emit(h.ID, "run", "r1", "{}"))
		for range 2 { // once
			must[Delivery](t)(tx.Emit(h.ID, "run", "r2", "{}"))
		}
		must[Delivery](t)(tx.Emit(other.ID, "run", "r1", "{}"))
		now := tx.millis()
		due := must[[]Delivery](t)(tx.DueDeliveries(now, 9))
		if len(due) != 2 || due[0].ID != first.ID || due[1].Hook != other.ID {
			t.Errorf("due %+v", due)
		}
		if err := tx.Claim(&first, now+1000); err != nil {
			return err
		}
		if err := tx.Claim(&due[0], now+1000); !errors.Is(err, ErrNotFound) {
			t.Errorf("claimed twice: %v", err)
		}
		if due := must[[]Delivery](t)(tx.DueDeliveries(now, 9)); len(due) != 2 || due[0].Object != "r2" && due[1].Object != "r2" {
			t.Errorf("due while the first is sent: %+v", due)
		}
		first.Next, first.Delivered, first.Status = nil, &now, 204
		if err := tx.Attempted(&first); err != nil {
			return err
		}
		all := must[[]Delivery](t)(tx.Deliveries(h.ID, "", 9))
		if len(all) != 2 || all[1].Status != 204 || all[1].Attempts != 1 || all[1].Next != nil {
			t.Errorf("deliveries %+v", all)
		}
		if err := tx.ForgetDeliveries(now + 1000); err != nil {
			return err
		}
		if all := must[[]Delivery](t)(tx.Deliveries(h.ID, "", 9)); len(all) != 1 || all[0].Object != "r2" {
			t.Errorf("left %+v", all)
		}
		if at := must[*int64](t)(tx.NextDue()); at == nil || *at > now {
			t.Errorf("next at %v", at)
		}
		for i := range MaxPending + 2 {
			must[Delivery](t)(tx.Emit(h.ID, "run", fmt.Sprint("x", i), "{}"))
		}
		if all := must[[]Delivery](t)(tx.Deliveries(h.ID, "", 2*MaxPending)); len(all) != MaxPending {
			t.Errorf("%d wait", len(all))
		}
		if err := tx.RemoveHook(h.ID); err != nil {
			return err
		}
		if all := must[[]Delivery](t)(tx.Deliveries(h.ID, "", 9)); len(all) != 0 {
			t.Errorf("left of a removed webhook: %+v", all)
		}
		return nil
	})
}

func testCopy(t *testing.T, open func() *DB) {
	first := opened(t, filepath.Join(t.TempDir(), "first.db"))
	p, runs := filled(t, first, 600) // more than a batch
	first.do(t, func(tx *Tx) error {
		_, _, a := tx.AddToken(Token{Name: "ci", Role: Admin})
		_, _, b := tx.AddShare(Share{Runs: runs[0].ID})
		_, c := tx.AddAlert(Alert{Project: p.ID, Series: runs[0].Series, Run: runs[0].ID, Figure: "latency_s", Before: 0.1, After: 1e-300})
		h, e := tx.AddHook(p.ID, "https://example.org/?a=1")
		_, f := tx.Emit(h.ID, "test", "x", "{}")
		days := int64(30)
		return errors.Join(a, b, c, e, f, tx.Log("ann", "delete", runs[0].ID), tx.Uploaded(runs[0].Blob, p.ID), tx.Delete("runs", runs[5].ID),
			tx.SetRule(Rule{Project: Others, Days: &days}), tx.MarkUnused("hash", time.UnixMilli(1)))
	})
	second, third := open(), opened(t, filepath.Join(t.TempDir(), "third.db"))
	want := must[[]Sum](t)(first.Sums(t.Context()))
	for i, s := range want {
		if s.Table != tables[i].name || s.Rows == 0 {
			t.Errorf("%+v: expected rows in each table", s)
		}
	}
	must[[]Sum](t)(Copy(t.Context(), first, second))
	if diff := cmp.Diff(want, must[[]Sum](t)(Copy(t.Context(), second, third))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := Copy(t.Context(), first, third); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("copied into a database with rows: %v", err)
	}
	other := opened(t, filepath.Join(t.TempDir(), "other.db"))
	other.do(t, func(tx *Tx) error { return tx.Log("ann", "sign in", "") })
	if _, err := Copy(t.Context(), first, other); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("copied into a database with one other row: %v", err)
	}
	third.do(t, func(tx *Tx) error { return tx.Note(runs[3].ID, "changed", nil) })
	if cmp.Equal(want, must[[]Sum](t)(third.Sums(t.Context()))) {
		t.Error("a change does not change the sums")
	}
}

// The password of a database is in no error.
func TestHidden(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), "postgres://ann:s3cret@127.0.0.1:1/db?connect_timeout=1")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
}

// Opening again keeps everything, and a schema of a later program is refused.
func testReopen(t *testing.T, open func() *DB) {
	d := open()
	filled(t, d, 3)
	if err := d.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.do(t, func(tx *Tx) error { return tx.exec("INSERT INTO schema_version (version) VALUES (99)") })
	if err := d.migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("schema 99: %v", err)
	}
}

// Ids of one millisecond sort as they were made.
func TestNewID(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_000)
	last := NewID(at)
	for range 1000 {
		next := NewID(at)
		if next <= last || len(next) != 25 {
			t.Fatalf("%s follows %s", next, last)
		}
		last = next
	}
	if next := NewID(at.Add(time.Millisecond)); next <= last {
		t.Errorf("%s of a later time follows %s", next, last)
	}
}
