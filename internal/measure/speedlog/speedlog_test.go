package speedlog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestAdd: a computer sees its own earlier speeds, the last 32 of 30 days.
func TestAdd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a := Log{Path: filepath.Join(t.TempDir(), "cache", "speeds"), Computer: "a"}
	b := Log{Path: a.Path, Computer: "b"}
	if got := a.Add(1.5, now.Add(-31*24*time.Hour)); got != nil {
		t.Errorf("the first one sees %v", got)
	}
	for i, want := range [][]float64{nil, {1.1}, {1.1, 1.2}} {
		if got := a.Add(1.1+0.1*float64(i), now); !slices.Equal(got, want) {
			t.Errorf("addition %d sees %v, want %v", i, got, want)
		}
	}
	if got := b.Add(2, now); got != nil {
		t.Errorf("another computer sees %v", got)
	}
	for range 40 {
		a.Add(3, now)
	}
	if got := a.Add(3, now); len(got) != most || got[0] != 3 {
		t.Errorf("%d speeds from %v", len(got), got)
	}
	if got := b.Add(2, now); !slices.Equal(got, []float64{2}) {
		t.Errorf("the other computer sees %v, want [2]", got)
	}
}

// TestBrokenFile: what cannot be read or written changes nothing.
func TestBrokenFile(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	dir := t.TempDir()
	l := Log{Path: filepath.Join(dir, "speeds")}
	l.Add(1.25, now)
	line, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"noise": "\x00\xff\n1 2\n", "not a number": "1800000000 cbf29ce484222325 NaN\n", "infinite": "1800000000 cbf29ce484222325 Inf\n",
		"the future": "1900000000 cbf29ce484222325 1\n", "negative": "1800000000 cbf29ce484222325 -1\n",
	} {
		if err := os.WriteFile(l.Path, append([]byte(data), line...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := l.Add(1.25, now); !slices.Equal(got, []float64{1.25}) {
			t.Errorf("%s: %v, want [1.25]", name, got)
		}
	}
	for _, l := range []Log{{}, {Path: dir}, {Path: filepath.Join(l.Path, "below", "a file")}} {
		if got := l.Add(1, now); got != nil {
			t.Errorf("%q: %v", l.Path, got)
		}
	}
}
