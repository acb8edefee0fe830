package cli

import (
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
