package gate

import (
	"slices"
	"strings"
	"testing"
)

// Records of merged branches have the place of the merge, and count only if it kept their model.
func TestLineage(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	ctx := t.Context()
	store := func() *Store { return open(t, w.dir+"/"+Folder) }
	dirty := true
	accept := func(macs float64, model string) { // as gate accept does before the change is committed
		t.Helper()
		w.write("m", model)
		r := record(Accepted, "m", macs)
		repo := w.open()
		r.Commit, r.Dirty, r.Blob = repo.Head, dirty, repo.Hash(ctx, w.dir+"/m")
		if err := store().Accept([]Record{r}, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.commit("empty")
	accept(14, "first")
	w.commit("one")
	if err := store().Init(); err != nil {
		t.Fatal(err)
	}
	w.commit("attributes")
	for name, macs := range map[string]float64{"left": 16, "right": 18} {
		w.git("checkout", "-q", "-b", name, "main")
		accept(macs+100, name+" draft")
		w.commit(name + " draft")
		accept(macs, name)
		w.commit(name)
	}
	w.git("checkout", "-q", "-b", "other", "main")
	w.commit("other")
	dirty = false
	accept(20, "first")
	w.commit("its record")
	other := store().Records
	dirty = true
	w.git("checkout", "-q", "main")
	w.git("merge", "-q", "--no-ff", "-m", "merge left", "left")
	w.git("merge", "-q", "-X", "ours", "-m", "merge right, keep the model of left", "right")
	w.git("checkout", "-q", "-b", "squashed")
	accept(22, "squashed")
	w.commit("to squash")
	w.git("checkout", "-q", "main")
	w.git("merge", "-q", "--squash", "squashed")
	w.commit("squashed")
	// The commit comes before its record: what is recorded is that commit.
	w.write("m", "last")
	w.commit("last")
	dirty = false
	accept(24, "last")
	s := store()
	s.Records = append(s.Records, other[len(other)-1])

	places := func(s *Store) (kept []float64, why map[float64]string) {
		t.Helper()
		got, err := w.open().Lineage(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		why = map[float64]string{}
		at := map[float64]int{}
		for i, p := range got {
			v := s.Records[i].Figures["macs"]
			if why[v] = p.LeftOut; p.LeftOut == "" {
				kept = append(kept, v)
			}
			at[v] = p.At
		}
		slices.SortStableFunc(kept, func(a, b float64) int { return at[a] - at[b] })
		return slices.Compact(kept), why
	}
	kept, why := places(s)
	if !slices.Equal(kept, []float64{14, 16, 22, 24}) {
		t.Errorf("points of main: %v, %v", kept, why)
	}
	for v, want := range map[float64]string{116: Replaced, 18: Replaced, 118: Replaced, 20: OtherBranch} {
		if why[v] != want {
			t.Errorf("%v: %q, want %q", v, why[v], want)
		}
	}
	// Seen from the side branch, its own baseline counts.
	w.git("checkout", "-q", "-f", "right")
	if kept, why := places(store()); !slices.Equal(kept, []float64{14, 118, 18}) {
		t.Errorf("points of the branch: %v, %v", kept, why)
	}
	// Nothing is known of the commits of another repository.
	fresh := newWork(t)
	if _, err := fresh.open().Lineage(ctx, s); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("before the first commit: %v", err)
	}
	fresh.commit("one")
	if _, err := fresh.open().Lineage(ctx, s); err == nil || !strings.Contains(err.Error(), "HEAD has none of the commits") {
		t.Errorf("another repository: %v", err)
	}
}
