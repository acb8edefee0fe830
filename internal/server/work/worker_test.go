//go:build unix

package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/server/queue"
)

// shaky is a server whose every first answer is an error that is over later.
type shaky struct {
	asked map[string]int
	ends  chan End
}

func (s *shaky) first(what string) error {
	if s.asked[what]++; s.asked[what] == 1 {
		return fmt.Errorf("%s: %w", what, &Problem{Status: http.StatusServiceUnavailable})
	}
	return nil
}

func (s *shaky) Lease(ctx context.Context, _ string, _ *queue.Offers) (*queue.Lease, error) {
	if s.asked["end"] > 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	j := queue.Job{Kind: Saved, Inputs: []queue.Input{{Name: "a.opmeter", Hash: "h"}}}
	return &queue.Lease{Job: j, SilenceS: 3600}, s.first("lease")
}

func (s *shaky) Renew(context.Context, Renewal) error { return nil }

func (s *shaky) End(_ context.Context, e End) error {
	err := s.first("end")
	if err == nil {
		s.ends <- e
	}
	return err
}

func (s *shaky) Fetch(_ context.Context, _, to string) error {
	return errors.Join(s.first("fetch"), os.WriteFile(to, []byte("text"), 0o600))
}

func (s *shaky) Store(context.Context, string, string) error { return s.first("store") }

// TestShaky asks a server again that is away, and gives a job back whose process was killed.
func TestShaky(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         func(End) bool
	}{
		{"done", `for a; do case "$a" in --output=*) echo made >"${a#--output=}";; esac; done; echo '{}'`, func(e End) bool { return e.Result != nil }},
		{"killed", "kill -9 $$", func(e End) bool { return e.Release && strings.Contains(e.Problem, "killed") }},
		{"broken", "echo 'opmeter: no profile' >&2; exit 1", func(e End) bool { return !e.Release && e.Problem == "no profile" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "opmeter")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			s := &shaky{asked: map[string]int{}, ends: make(chan End, 1)}
			w := &Worker{
				Server: s, Runner: Runner{Program: program, Limit: time.Minute}, Name: "w", Log: slog.New(slog.DiscardHandler),
				Pause: func(context.Context, int) {},
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = w.Work(ctx) }()
			if e := <-s.ends; !c.want(e) {
				t.Errorf("end %+v", e)
			}
			cancel()
			<-done
		})
	}
}

// refusing is a server that gives a worker no job.
type refusing struct {
	Server
	status int
}

func (r refusing) Lease(context.Context, string, *queue.Offers) (*queue.Lease, error) {
	return nil, fmt.Errorf("lease: %w", &Problem{Status: r.status, Detail: "no"})
}

// TestRefused: a worker that the server refuses ends at once.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, status := range refusals {
		w := &Worker{Server: refusing{status: status}, Log: slog.New(slog.DiscardHandler), Pause: func(context.Context, int) { t.Error("it asks again") }}
		if p, ok := errors.AsType[*Problem](w.Work(t.Context())); !ok || p.Status != status {
			t.Errorf("%d: %v", status, p)
		}
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{1 << 30: "1 GiB", 512 << 20: "512 MiB", 3 << 29: "1536 MiB"} {
		if got := binary(n); got != want {
			t.Errorf("%d: %s, expected %s", n, got, want)
		}
	}
}
