package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/profile"
)

// killedResult counts what processes that were killed left behind.
type killedResult struct {
	Rounds int `json:"rounds"`
	// Killed is how many did not end before, Torn how many incomplete lines they left.
	Killed int      `json:"killed"`
	Torn   int      `json:"torn"`
	Faults []string `json:"faults,omitempty"`
}

// accept is a process that accepts the figures of a model.
func accept(ctx context.Context, program, dir, reason string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, "gate", "accept", filepath.Join(dir, "net.yaml"), "--baselines", filepath.Join(dir, gate.Folder), "--reason", reason)
	c.Dir = dir
	return c
}

// folder makes a folder with a model.
func folder() (string, error) {
	dir, err := os.MkdirTemp("", "gate-")
	if err != nil {
		return "", err
	}
	n := network{size: 16, channels: 3, classes: 4, stem: 3, filters: []int{8, 8}, name: "net"}
	return dir, os.WriteFile(filepath.Join(dir, "net.yaml"), n.text(), 0o600)
}

// steps counts what a process has done in the folder: files that appeared or grew.
func steps(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a temporary file that is gone by now
		}
		n++
		if st, err := d.Info(); err == nil && st.Mode().IsRegular() {
			n += st.Size() + st.ModTime().UnixNano()
		}
		return nil
	})
	return n
}

// killed kills processes once a random number of changes in the folder were seen, and checks what
// is left.
func killed(ctx context.Context, program string, rounds int) (*killedResult, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &killedResult{}
	random := rand.New(rand.NewPCG(1, 1))
	whole := 0
	store := filepath.Join(dir, gate.Folder)
	for i := range rounds {
		c := accept(ctx, program, dir, fmt.Sprint("round ", i))
		if err := c.Start(); err != nil {
			return nil, err
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		left, last := random.IntN(6), steps(store)
		for running := true; running; {
			select {
			case err := <-ended:
				ended <- err
				running = false
			default:
				if now := steps(store); now != last {
					if left, last = left-1, now; left < 0 {
						running = false
					}
				}
			}
		}
		_ = c.Process.Kill()
		err := <-ended
		r.Rounds++
		s, openErr := gate.Open(store)
		if openErr != nil {
			r.Faults = append(r.Faults, fmt.Sprintf("round %d: %v", i, openErr))
			continue
		}
		if err != nil {
			r.Killed++
		} else if len(s.Records) == whole {
			r.Faults = append(r.Faults, fmt.Sprintf("round %d: a record that was confirmed is lost", i))
		}
		r.check(i, s, whole)
		whole = len(s.Records)
	}
	// What is left can be added to.
	if out, err := accept(ctx, program, dir, "last").CombinedOutput(); err != nil {
		r.Faults = append(r.Faults, "a later run: "+string(out))
	}
	return r, nil
}

// check checks the baselines after a round.
func (r *killedResult) check(round int, s *gate.Store, before int) {
	fault := func(format string, args ...any) {
		r.Faults = append(r.Faults, fmt.Sprintf("round %d: ", round)+fmt.Sprintf(format, args...))
	}
	if n := len(s.Records); n < before || n > before+1 {
		fault("%d records, %d before", n, before)
	}
	r.Torn = 0
	for _, n := range s.Notes {
		if strings.Contains(n, "left out") {
			r.Torn++
		} else {
			fault("%s", n)
		}
	}
	_ = filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".opmeter" && !strings.HasPrefix(d.Name(), ".") {
			if _, err := profile.Read(path); err != nil {
				fault("%s: %v", path, err)
			}
		}
		return nil
	})
}

func (r *killedResult) show() bool {
	fmt.Printf("\nKilled: %d of %d processes; %d incomplete lines, named when read; %d faults\n", r.Killed, r.Rounds, r.Torn, len(r.Faults))
	for _, f := range r.Faults[:min(len(r.Faults), 10)] {
		fmt.Println("  fault:", f)
	}
	return len(r.Faults) == 0
}

// togetherResult counts the records of processes that ran at the same time.
type togetherResult struct {
	Processes int      `json:"processes"`
	Records   int      `json:"records"`
	Notes     []string `json:"notes,omitempty"`
}

// together runs processes in pairs.
func together(ctx context.Context, program string) (*togetherResult, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &togetherResult{}
	for i := range 10 {
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for k := range errs {
			wg.Go(func() {
				if out, err := accept(ctx, program, dir, fmt.Sprint("pair ", i, ".", k)).CombinedOutput(); err != nil {
					errs[k] = fmt.Errorf("%w: %s", err, out)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		r.Processes += len(errs)
	}
	s, err := gate.Open(filepath.Join(dir, gate.Folder))
	if err != nil {
		return nil, err
	}
	r.Records, r.Notes = len(s.Records), s.Notes
	if heads := s.Heads("net.yaml", gate.Host, "default"); len(heads) != 1 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d records are not replaced", len(heads)))
	} else if _, note := s.Profile(heads[0]); note != "" {
		r.Notes = append(r.Notes, note)
	}
	return r, nil
}

func (r *togetherResult) show() bool {
	fmt.Printf("Together: %d records of %d processes, notes %q\n", r.Records, r.Processes, r.Notes)
	return r.Records == r.Processes && len(r.Notes) == 0
}
