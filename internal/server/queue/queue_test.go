package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// host is what a usual worker offers.
var host = &Offers{Targets: []string{"host"}}

// results is a database in which jobs have results.
type results struct {
	mu   sync.Mutex
	runs map[string][]string
}

func (r *results) of(_ context.Context, job string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[job], nil
}

func open(t *testing.T, dir string, silence time.Duration) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Options{Dir: dir, Silence: silence, Results: (&results{}).of})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func add(t *testing.T, q *Queue, id string, n Needs) Job {
	t.Helper()
	j, err := q.Add(t.Context(), Job{ID: id, Kind: "profile", Needs: n})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func lease(t *testing.T, q *Queue, o *Offers) *Lease {
	t.Helper()
	l, err := q.Lease(t.Context(), "w", o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// idle reports whether no job waits that a worker can do.
func idle(t *testing.T, q *Queue, o *Offers) bool {
	t.Helper()
	info, err := q.stream.Info(t.Context(), jetstream.WithSubjectFilter("jobs.>"))
	if err != nil {
		t.Fatal(err)
	}
	for s := range info.State.Subjects {
		if n, ok := needs(s); !ok || !o.can(n) {
			continue
		}
		if l, err := q.takeFrom(t.Context(), s, "w"); err != nil || l != nil {
			t.Logf("a job waits: %+v, %v", l, err)
			return false
		}
	}
	return true
}

func TestLife(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Minute)
	states, stop := q.Follow("a")
	defer stop()
	var seen []State
	reader := make(chan struct{})
	go func() {
		defer close(reader)
		for j := range states {
			seen = append(seen, j.State)
			if j.State.Ended() {
				return
			}
		}
	}()
	add(t, q, "a", Needs{Target: "host"})
	if again := add(t, q, "a", Needs{Target: "host"}); again.State != Waiting {
		t.Errorf("added again: %+v", again)
	}
	l := lease(t, q, host)
	half := 0.5
	if err := q.Renew(t.Context(), l.Token, "measuring", &half); err != nil {
		t.Error(err)
	}
	before, _ := q.Job(t.Context(), "a")
	same := 0.5
	if err := q.Renew(t.Context(), l.Token, "measuring", &same); err != nil {
		t.Error(err)
	}
	if after, _ := q.Job(t.Context(), "a"); after.Revision != before.Revision {
		t.Error("a report without news is written")
	}
	if j, err := q.Job(t.Context(), "a"); err != nil || j.State != Running || j.Doing != "measuring" || *j.Share != 0.5 || j.Worker != "w" {
		t.Errorf("job %+v, %v", j, err)
	}
	if _, err := q.Finish(t.Context(), l.Token, []string{"r1"}, ""); err != nil {
		t.Error(err)
	}
	<-reader
	if seen[len(seen)-1] != Done {
		t.Errorf("seen %v", seen)
	}
	if !idle(t, q, host) {
		t.Error("a job waits although the only one is done")
	}
	for _, token := range []string{l.Token, "", "abc", l.Token + "A"} {
		if _, err := q.Finish(t.Context(), token, nil, "again"); !errors.Is(err, ErrLate) {
			t.Errorf("finished again: %v", err)
		}
		if err := q.Renew(t.Context(), token, "", nil); !errors.Is(err, ErrLate) {
			t.Errorf("renewed: %v", err)
		}
	}
	if _, err := q.Cancel(t.Context(), "a"); !errors.Is(err, ErrEnded) {
		t.Errorf("cancelled: %v", err)
	}
	if n, err := q.Length(t.Context()); n != 0 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
	if err := q.Forget(t.Context(), func(*Job) bool { return true }); err != nil {
		t.Error(err)
	}
	if _, err := q.Job(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("forgotten job: %v", err)
	}
}

// A worker gets what it can do and nothing else.
func TestNeeds(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Minute)
	odd := Needs{Target: "board", Board: "nucleo *.> é 7"}
	for i, n := range []Needs{{}, {Target: "host", Engine: "onnxruntime"}, {CPU: "arm64"}, odd} {
		if got, ok := needs(n.subject()); !ok || got != n {
			t.Errorf("subject %s is read as %+v", n.subject(), got)
		}
		add(t, q, fmt.Sprint(i), n)
	}
	for _, c := range []struct {
		o    Offers
		want string
	}{
		{Offers{Targets: []string{"host", "board"}, Boards: []string{odd.Board}, CPUs: []string{"amd64"}}, "03"},
		{Offers{Targets: []string{"host"}, Engines: []string{"onnxruntime"}}, "1"},
		{Offers{CPUs: []string{"arm64"}}, "2"},
	} {
		var got []string
		for range c.want {
			l := lease(t, q, &c.o)
			got = append(got, l.Job.ID)
			if _, err := q.Finish(t.Context(), l.Token, []string{"r"}, ""); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(slices.Sorted(slices.Values(splitted(c.want)))) || !idle(t, q, &c.o) {
			t.Errorf("%+v did %v, expected %s", c.o, got, c.want)
		}
	}
}

func splitted(s string) (out []string) {
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

// A worker that falls silent loses its job, and what it reports later is refused.
func TestFence(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), 100*time.Millisecond)
	add(t, q, "a", Needs{Target: "host"})
	first := lease(t, q, host)
	second := lease(t, q, host) // waits until the first one is silent for too long
	if second.Job.ID != "a" || second.Job.Attempt != 2 {
		t.Fatalf("second lease %+v", second.Job)
	}
	if err := q.Renew(t.Context(), first.Token, "", nil); !errors.Is(err, ErrLate) {
		t.Errorf("late worker renews: %v", err)
	}
	if _, err := q.Holder(t.Context(), first.Token); !errors.Is(err, ErrLate) {
		t.Errorf("late worker holds the job: %v", err)
	}
	if _, err := q.Finish(t.Context(), first.Token, []string{"late"}, ""); !errors.Is(err, ErrLate) {
		t.Errorf("late worker finishes: %v", err)
	}
	// The second lease may be late too on a busy machine: then the job goes on to another one.
	for token := second.Token; ; token = lease(t, q, host).Token {
		if _, err := q.Finish(t.Context(), token, []string{"r"}, ""); err == nil {
			break
		} else if !errors.Is(err, ErrLate) {
			t.Fatal(err)
		}
	}
	if j, err := q.Job(t.Context(), "a"); err != nil || j.State != Done || !slices.Equal(j.Runs, []string{"r"}) {
		t.Errorf("job %+v, %v", j, err)
	}
}

// A job whose workers all fall silent fails in the end and says so.
func TestSilentWorkers(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), 20*time.Millisecond)
	add(t, q, "a", Needs{Target: "host"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	states, stop := q.Follow("a")
	defer stop()
	go func() {
		for ctx.Err() == nil {
			_, _ = q.Lease(ctx, "lost", host)
		}
	}()
	for j := range states {
		if j.State == Failed {
			if j.Attempt != attempts || j.Error == "" {
				t.Errorf("failed job %+v", j)
			}
			return
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Minute)
	add(t, q, "waits", Needs{Target: "host"})
	if j, err := q.Cancel(t.Context(), "waits"); err != nil || j.State != Cancelled {
		t.Errorf("%+v, %v", j, err)
	}
	if !idle(t, q, host) {
		t.Error("a cancelled job is given to a worker")
	}
	add(t, q, "runs", Needs{Target: "host"})
	l := lease(t, q, host)
	if j, err := q.Cancel(t.Context(), "runs"); err != nil || j.State != Running || !j.Stop {
		t.Errorf("%+v, %v", j, err)
	}
	if err := q.Renew(t.Context(), l.Token, "", nil); !errors.Is(err, ErrStop) {
		t.Errorf("renewed: %v", err)
	}
	if j, err := q.Finish(t.Context(), l.Token, nil, ""); err != nil || j.State != Cancelled {
		t.Errorf("%+v, %v", j, err)
	}
	if _, err := q.Cancel(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("absent job: %v", err)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Minute)
	add(t, q, "a", Needs{Target: "host"})
	l := lease(t, q, host)
	if err := q.Release(t.Context(), l.Token, ""); err != nil {
		t.Fatal(err)
	}
	if again := lease(t, q, host); again.Job.ID != "a" || again.Job.Attempt != 2 {
		t.Errorf("lease %+v", again.Job)
	}
}

// Jobs, their states and leases outlive the process.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := open(t, dir, time.Minute)
	for i := range 5 {
		add(t, q, fmt.Sprint("waits", i), Needs{Target: "host"})
	}
	l := lease(t, q, host)
	q.Close()
	q = open(t, dir, time.Minute)
	if n := len(q.Jobs(func(j *Job) bool { return j.State == Waiting })); n != 4 {
		t.Errorf("%d jobs wait, expected 4", n)
	}
	if err := q.Renew(t.Context(), l.Token, "", nil); err != nil {
		t.Errorf("lease after the restart: %v", err)
	}
	if _, err := q.Finish(t.Context(), l.Token, []string{"r"}, ""); err != nil {
		t.Error(err)
	}
	for range 4 {
		l := lease(t, q, host)
		if _, err := q.Finish(t.Context(), l.Token, nil, "broken model"); err != nil {
			t.Error(err)
		}
	}
	if n := len(q.Jobs(func(j *Job) bool { return !j.State.Ended() })); n != 0 || !idle(t, q, host) {
		t.Errorf("%d jobs are left", n)
	}
}

// A job that has its result already is not done again: the server ended between recording the
// result and saying so.
func TestResultWithoutEnd(t *testing.T) {
	t.Parallel()
	db := &results{runs: map[string][]string{}}
	q, err := Open(t.Context(), Options{Dir: t.TempDir(), Silence: 50 * time.Millisecond, Results: db.of})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	add(t, q, "a", Needs{})
	lease(t, q, host)
	db.mu.Lock()
	db.runs["a"] = []string{"r1"}
	db.mu.Unlock()
	states, stop := q.Follow("a")
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = q.Lease(ctx, "w2", host) }()
	for j := range states {
		if j.State.Ended() {
			if j.State != Done || !slices.Equal(j.Runs, []string{"r1"}) {
				t.Errorf("job %+v", j)
			}
			return
		}
	}
}

// One worker looks for each job, and one that gave up passes on what it was told.
func TestWake(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Hour)
	ws := []*waiter{
		{offers: &Offers{Targets: []string{"file"}}},
		{offers: host},
		{offers: host},
		{offers: &Offers{Targets: []string{"host", "board"}, Boards: []string{"b"}}},
	}
	for _, w := range ws {
		w.look = make(chan string, 1)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiters = ws
	for _, c := range []struct {
		n    Needs
		want string
	}{
		{Needs{Target: "board", Board: "b"}, "0001"},
		{Needs{Target: "host"}, "0101"},
		{Needs{Target: "board", Board: "none"}, "0101"},
		{Needs{Target: "host"}, "0111"},
		{Needs{Target: "host"}, "0111"},
		{Needs{}, "1111"},
	} {
		q.wake(c.n.subject())
		got := ""
		for _, w := range ws {
			got += fmt.Sprint(len(w.look))
		}
		if got != c.want {
			t.Errorf("%+v: told %s, expected %s", c.n, got, c.want)
		}
	}
	q.waiters = nil
}

// A worker that gives up at any moment loses no job for another one.
func TestWaiterGivesUp(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Hour) // nothing looks again
	for i := range 30 {
		hasty, giveUp := context.WithCancel(t.Context())
		patient, stop := context.WithCancel(t.Context())
		got := make(chan string, 2)
		var workers sync.WaitGroup
		for _, ctx := range []context.Context{hasty, patient} {
			workers.Go(func() {
				if l, err := q.Lease(ctx, "w", host); err == nil {
					if _, err := q.Finish(t.Context(), l.Token, []string{"r"}, ""); err != nil {
						t.Error(err)
					}
					got <- l.Job.ID
				}
			})
		}
		workers.Go(giveUp)
		if id := add(t, q, fmt.Sprint(i), Needs{Target: "host"}).ID; <-got != id {
			t.Errorf("another job than %s", id)
		}
		stop()
		workers.Wait()
	}
}

// A lab may have more boards than NATS has readers of a stream by default.
func TestManyBoards(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Minute)
	if n := q.stream.CachedInfo().Config.MaxConsumers; n < 10_000 {
		t.Errorf("jobs for at most %d boards", n)
	}
}

// NATS removes idle readers. Jobs do not notice, and numbers of deliveries never repeat.
func TestIdleReader(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), 100*time.Millisecond)
	add(t, q, "a", Needs{Target: "host"})
	forget := func() {
		t.Helper()
		for name := range q.stream.ConsumerNames(t.Context()).Name() {
			if err := q.stream.DeleteConsumer(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	forget()
	first := lease(t, q, host)
	if err := q.Release(t.Context(), first.Token, ""); err != nil {
		t.Fatal(err)
	}
	forget()
	second := lease(t, q, host)
	if first.Job.Attempt != 1 || second.Job.Attempt <= 1 {
		t.Errorf("attempts %d and %d", first.Job.Attempt, second.Job.Attempt)
	}
	if _, err := q.Finish(t.Context(), first.Token, []string{"late"}, ""); !errors.Is(err, ErrLate) {
		t.Errorf("the first worker finishes the job of the second: %v", err)
	}
}
