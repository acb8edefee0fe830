package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// suite is the tests of one package.
type suite struct {
	p     *pkg
	limit time.Duration
	reach map[string][][2]int // lines of the changed package's files that the tests run
}

// slack is how much longer than usual tests may take before a change counts as
// noticed by it, beside a constant for a busy machine.
const (
	slack      = 5
	busyMargin = 20 * time.Second
)

// try draws changes of a package and runs the tests on each.
func (o *options) try(ctx context.Context, dir string, p *pkg, all packages) (result, error) {
	r := result{name: p.name()}
	drawn, err := draw(p.ImportPath, p.files(), o.seed)
	if err != nil || len(drawn) == 0 {
		return r, err
	}
	var suites []suite
	for i, q := range append([]*pkg{p}, all.usersOf(p, o.users)...) {
		if !q.hasTests() {
			continue
		}
		s, err := measure(ctx, dir, p, q)
		if err != nil {
			if i == 0 {
				return r, err
			}
			continue // tests of a user that fail as they are say nothing
		}
		suites = append(suites, s)
	}
	for i := range drawn {
		if r.tried == o.n || ctx.Err() != nil {
			break
		}
		s := &drawn[i]
		overlay, err := write(dir, s)
		if err != nil {
			return r, err
		}
		if !compiles(ctx, overlay, p) {
			continue
		}
		by, reached, err := notice(ctx, dir, overlay, s, p, suites)
		if err != nil {
			return r, err
		}
		r.tried++
		switch {
		case by == p:
			r.own++
		case by != nil:
			r.byUsers++
		default:
			told := s.String()
			if !reached {
				r.unreached++
				told += "  (not reached)"
			}
			r.survivors = append(r.survivors, told)
		}
	}
	return r, ctx.Err()
}

// notice runs the suites that reach a change, and says whose tests fail.
func notice(ctx context.Context, dir, overlay string, s *site, p *pkg, suites []suite) (by *pkg, reached bool, err error) {
	for i := range suites {
		q := &suites[i]
		if !q.reaches(s) {
			continue
		}
		reached = true
		ok, err := passes(ctx, dir, q.p, q.limit, "-overlay="+overlay)
		if err != nil {
			return nil, reached, err
		}
		if !ok {
			return q.p, reached, nil
		}
	}
	return nil, reached, nil
}

func (q *suite) reaches(s *site) bool {
	for _, lines := range q.reach[filepath.Base(s.file)] {
		if lines[0] <= s.line && s.line <= lines[1] {
			return true
		}
	}
	return false
}

// measure runs a suite on the code as it is: it must pass, and says what it reaches of p.
func measure(ctx context.Context, dir string, p, q *pkg) (suite, error) {
	cover := filepath.Join(dir, "cover.out")
	begin := time.Now()
	ok, err := passes(ctx, dir, q, 30*time.Minute, "-coverpkg="+p.ImportPath, "-coverprofile="+cover)
	if err != nil {
		return suite{}, err
	}
	if !ok {
		return suite{}, fmt.Errorf("tests of %s fail as they are", q.name())
	}
	s := suite{p: q, limit: slack*time.Since(begin) + busyMargin, reach: map[string][][2]int{}}
	b, err := os.ReadFile(cover)
	if err != nil {
		return suite{}, err
	}
	for line := range strings.Lines(string(b)) {
		file, from, to, ok := block(line)
		if ok && strings.HasPrefix(file, p.ImportPath+"/") {
			name := filepath.Base(file)
			s.reach[name] = append(s.reach[name], [2]int{from, to})
		}
	}
	return s, nil
}

// block reads a line of a coverage profile, "file:line.col,line.col statements count",
// of a block that was run.
func block(line string) (file string, from, to int, ok bool) {
	f := strings.Fields(line)
	if len(f) != 3 || f[2] == "0" {
		return "", 0, 0, false
	}
	file, lines, ok := strings.Cut(f[0], ":")
	a, b, ok2 := strings.Cut(lines, ",")
	if !ok || !ok2 {
		return "", 0, 0, false
	}
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	from, err1 := strconv.Atoi(a)
	to, err2 := strconv.Atoi(b)
	return file, from, to, err1 == nil && err2 == nil
}

// write makes the changed file and the overlay that puts it in the place of the other.
func write(dir string, s *site) (overlay string, err error) {
	src, err := os.ReadFile(s.file)
	if err != nil {
		return "", err
	}
	changed := string(src[:s.start]) + s.text + string(src[s.end:])
	to := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(to, []byte(changed), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {s.file: to}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

func compiles(ctx context.Context, overlay string, p *pkg) bool {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "-overlay="+overlay, p.ImportPath)
	cmd.Dir = p.Module.Dir
	return cmd.Run() == nil
}

// passes builds and runs the tests of a package in its folder. The time that building
// takes does not count.
func passes(ctx context.Context, dir string, q *pkg, limit time.Duration, flags ...string) (bool, error) {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-vet=off", "-failfast", "-count=1", "-timeout=" + limit.String()}, flags...), q.ImportPath)...)
	cmd.Dir = q.Module.Dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &exit):
		return false, nil
	}
	return false, err
}
