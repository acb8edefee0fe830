package cli

import (
	"bytes"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		phase       string
		f           float64
		lasted, all time.Duration
		want        string
	}{
		{"nothing known", "planning", 0, time.Second, 4 * time.Second, "planning, 4 s"},
		{"a quarter", "measuring", 0.25, 3 * time.Second, 9 * time.Second, "measuring [======                  ]  25 %, 9 s left"},
		{"too early to say", "measuring", 0.01, time.Second, time.Second, "measuring [                        ]   1 %"},
		{"all but done", "measuring", 0.99, 10 * time.Second, 11 * time.Second, "measuring [======================= ]  99 %"},
		{"beyond", "measuring", 1, 10 * time.Second, 11 * time.Second, "measuring [========================] 100 %"},
	} {
		if got := line(tt.phase, tt.f, tt.lasted, tt.all); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Without a terminal a line appears from time to time.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	now := time.Unix(1000, 0)
	show, stop := (&app{err: &b}).progressLines(func() time.Time { return now })
	defer stop()
	for i := range 10 {
		show("measuring int8", float64(i)/10)
		now = now.Add(10 * time.Second)
	}
	want := "opmeter: measuring int8, 30 % of this step, 30s\nopmeter: measuring int8, 60 % of this step, 1m0s\nopmeter: measuring int8, 90 % of this step, 1m30s\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
