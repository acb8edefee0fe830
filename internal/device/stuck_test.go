package device

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// TestStuck has devices that send for hours and come no further, or do after a while.
func TestStuck(t *testing.T) {
	t.Parallel()
	drip := func(text string, n int) []step {
		return slices.Repeat([]step{{data: text, after: time.Second}}, n)
	}
	head := []step{{data: "counts#1\nhz=1000\n"}}
	inference := []step{{data: "10\n"}}
	for name, c := range map[string]struct {
		steps []step
		runs  int
		kept  int64 // -1 for none
		want  error // nil for the device's silence in the end
	}{
		"no inference":               {slices.Concat(head, drip(".\n", 9999)), 9, 0, ErrStuck},
		"no further inference":       {slices.Concat(head, inference, drip(".\n", 9999)), 9, 1, ErrStuck},
		"none, runs without a limit": {slices.Concat(head, drip(".\n", 9999)), 0, 0, ErrStuck},
		"one, runs without a limit":  {slices.Concat(head, inference, drip(".\n", 999), inference), 0, 2, ErrSilent},
		"slow":                       {slices.Concat(head, drip(".\n", 15), inference, drip(".\n", 15), inference), 9, 2, ErrSilent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var told []Waiting
				p, err := source.Collect(t.Context(), session(&script{steps: c.steps}, Options{
					Protocols: []*Protocol{counts("counts", "")}, Timeout: 3 * time.Second, Rules: Rules{Runs: c.runs},
					Waiting: func(w Waiting) { told = append(told, w) },
				}), source.Options{Version: "test", Created: time.Unix(1, 0)})
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				if len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByDeadline || c.kept > 0 && *p.Totals.Latency.N != c.kept {
					t.Errorf("%+v of %+v", p.Incomplete, p.Totals.Latency)
				}
				if len(told) < 10 || told[9].Bytes < 10 || told[9].Since < 10*time.Second {
					t.Errorf("the state was told as %+v", told)
				}
				if took := time.Since(begun); c.want == ErrStuck && took > time.Minute { //nolint:errorlint // of the table
					t.Errorf("given up after %v", took)
				}
			})
		})
	}
}

// TestSlowRubbish has a device that sends slowly what no protocol knows.
func TestSlowRubbish(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ok\n", "\x01\x02\xff"} {
		synctest.Test(t, func(t *testing.T) {
			steps := slices.Repeat([]step{{data: text, after: 600 * time.Millisecond}}, 99999)
			begun := time.Now()
			s := session(&script{steps: steps}, Options{Protocols: []*Protocol{counts("counts", "")}, Timeout: 3 * time.Second})
			s.addr.Kind = port.TCP
			_, err := source.Collect(t.Context(), s, source.Options{})
			if e, ok := errors.AsType[*UnknownError](err); !ok || !strings.Contains(e.Error(), "that no protocol knows") {
				t.Errorf("%q: %v", text, err)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("%q: given up after %v", text, took)
			}
		})
	}
}
