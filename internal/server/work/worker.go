package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/program"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
)

// Renewal is a sign of life.
type Renewal struct {
	Token string   `json:"token" maxLength:"2000"`
	Doing string   `json:"doing,omitempty" maxLength:"4096"`
	Share *float64 `json:"share,omitempty" minimum:"0" maximum:"1"`
}

// End is the end of a job: a result, a problem, or neither if it was cancelled.
type End struct {
	Token   string  `json:"token"`
	Result  *Result `json:"result,omitempty"`
	Problem string  `json:"problem,omitempty" maxLength:"4000"`
	// Cause is the code of the problem.
	Cause string `json:"cause,omitempty" maxLength:"40"`
	// Release gives the job back to other workers. The problem then says what it did to this one.
	Release bool `json:"release,omitempty"`
}

// Server is where jobs come from and results go: in this process or elsewhere.
type Server interface {
	// Lease waits for a job, nil if none came for a while.
	Lease(ctx context.Context, worker string, o *queue.Offers) (*queue.Lease, error)
	// Renew tells that the worker is alive. It is [queue.ErrStop] if the job was cancelled, and
	// [queue.ErrLate] if it is another worker's by now.
	Renew(ctx context.Context, r Renewal) error
	End(ctx context.Context, e End) error
	// Fetch copies a file of the server to a new file. Store copies one to the server.
	Fetch(ctx context.Context, hash, to string) error
	Store(ctx context.Context, hash, from string) error
}

// Worker does jobs of a server, one at a time.
type Worker struct {
	Server Server
	Runner Runner
	Name   string
	Offers queue.Offers
	Log    *slog.Logger
	// Pause is how long it waits after an error of the server, nil for the usual time.
	Pause func(ctx context.Context, failures int)
}

// refusals are answers of a server that will not give this worker a job: it must not, or its name
// is wrong.
var refusals = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity}

// Work does jobs until the context ends, or until the server refuses this worker.
func (w *Worker) Work(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		l, err := w.Server.Lease(ctx, w.Name, &w.Offers)
		if p, ok := errors.AsType[*Problem](err); ok && slices.Contains(refusals, p.Status) {
			return p
		}
		if err != nil {
			if ctx.Err() == nil {
				failures++
				w.Log.Warn("no answer from the server", "error", err)
				w.pause(ctx, failures)
			}
			continue
		}
		if failures = 0; l != nil {
			w.do(ctx, l)
		}
	}
	return nil
}

// retried asks the server again while it is away, until the context ends.
func (w *Worker) retried(ctx context.Context, ask func() error) error {
	for failures := 1; ; failures++ {
		err := ask()
		if !away(err) || ctx.Err() != nil {
			return err
		}
		w.pause(ctx, failures)
	}
}

// pause waits longer after each failure.
func (w *Worker) pause(ctx context.Context, failures int) {
	if w.Pause != nil {
		w.Pause(ctx, failures)
		return
	}
	t := time.NewTimer(min(time.Second<<min(failures-1, 5), 30*time.Second))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// do does a job and reports its end.
func (w *Worker) do(ctx context.Context, l *queue.Lease) {
	log := w.Log.With("job", l.Job.ID)
	log.Info("job starts", "kind", l.Job.Kind, "attempt", l.Job.Attempt)
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	report := &reporter{worker: w, token: l.Token, stop: stop}
	var alive sync.WaitGroup
	alive.Go(func() { report.run(work, time.Duration(l.SilenceS/3*float64(time.Second))) })
	res, clean, err := w.result(work, &l.Job, report.progress)
	defer clean()
	if err == nil {
		report.progress("uploading")
		err = w.retried(work, func() error { return w.Server.Store(work, res.Hash, res.File) })
		if err == nil && res.OutputFile != "" {
			err = w.retried(work, func() error { return w.Server.Store(work, res.Output, res.OutputFile) })
		}
	}
	cause := context.Cause(work)
	stop(nil)
	alive.Wait()
	e := End{Token: l.Token}
	switch {
	case errors.Is(cause, queue.ErrLate):
		log.Warn("another worker has the job by now")
		return
	case errors.Is(cause, queue.ErrStop):
		log.Info("job cancelled")
	case ctx.Err() != nil: // this worker ends: another one can begin at once
		e.Release = true
	case errors.Is(err, program.ErrKilled): // perhaps memory ran out here, and does not elsewhere
		e.Release, e.Problem = true, "its process was killed"
		log.Warn("the process of a job was killed")
	case err != nil:
		e.Cause, e.Problem = w.Runner.problem(err)
		log.Info("job failed", "cause", e.Cause, "problem", e.Problem)
	default:
		e.Result = res
		log.Info("job done")
	}
	// The end is told also if this worker ends, within a while.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := w.retried(last, func() error { return w.Server.End(last, e) }); err != nil {
		log.Warn("the server did not take the end of the job", "error", err)
	}
}

// maxProblem bounds the error of a job in bytes.
const maxProblem = 2000

// Causes of a problem.
const (
	causeTime    = "time-limit"
	causeMemory  = "memory-limit"
	causeDisk    = "disk-limit"
	causeCrash   = "crash"   // the child ended without an answer
	causeRefused = "refused" // opmeter cannot do with the file what was asked
	causeWorker  = "worker"  // a file did not arrive, no process started
)

// problem returns the code and the text of a problem.
func (r *Runner) problem(err error) (cause, text string) {
	_, refused := errors.AsType[*program.Problem](err)
	switch {
	case errors.Is(err, program.ErrLimit):
		return causeTime, fmt.Sprintf("the job exceeded the time limit of %v and was ended: measure for less time, or start the worker with a higher --limit", r.Limit)
	case errors.Is(err, program.ErrMemory):
		return causeMemory, fmt.Sprintf("the job exceeded the memory limit of %s and was ended: use a smaller model or batch, or start the worker with more --memory", binary(r.memory()))
	case errors.Is(err, program.ErrDisk):
		return causeDisk, fmt.Sprintf("the job wrote more than %d MB and was ended: use a smaller model or record", cmp.Or(r.Disk, maxDisk)/1e6)
	case errors.Is(err, program.ErrEnded):
		cause = causeCrash
	case refused:
		cause = causeRefused
	default:
		cause = causeWorker
	}
	text = strings.ToValidUTF8(err.Error(), "\ufffd")
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return cause, text
}

// binary writes a size as --memory takes it.
func binary(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// result does the work of a job in a folder of its own. Call clean in the end.
func (w *Worker) result(ctx context.Context, j *queue.Job, progress func(string)) (res *Result, clean func(), err error) {
	dir, clean, err := subprocess.Folder("job")
	if err != nil {
		return nil, func() {}, err
	}
	if err := Check(j); err != nil {
		return nil, clean, err
	}
	k := kinds[j.Kind]
	files, err := k.inputs(j)
	if err != nil {
		return nil, clean, err
	}
	inputs := map[string]string{}
	for i, role := range slices.Sorted(maps.Keys(files)) {
		in := files[role]
		progress("fetching " + in.Name)
		// A folder for each file: two may have one name.
		sub := filepath.Join(dir, strconv.Itoa(i+1))
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, clean, err
		}
		file := filepath.Join(sub, filepath.Base(in.Name))
		if err := w.retried(ctx, func() error { return w.Server.Fetch(ctx, in.Hash, file) }); err != nil {
			return nil, clean, fmt.Errorf("fetching %s: %w", in.Name, err)
		}
		inputs[role] = file
	}
	res, err = w.Runner.Do(ctx, dir, j, inputs, progress)
	if err != nil {
		return nil, clean, err
	}
	if res.Hash, err = blob.Hash(res.File); err == nil && res.OutputFile != "" {
		res.Output, err = blob.Hash(res.OutputFile)
	}
	return res, clean, err
}

// reporter tells the server that a worker is alive and what it does.
type reporter struct {
	worker *Worker
	token  string
	stop   context.CancelCauseFunc
	mu     sync.Mutex
	doing  string
	news   chan struct{}
}

func (r *reporter) progress(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing = text
	if r.news != nil {
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
}

// leastGap is the time between two reports of progress.
const leastGap = 500 * time.Millisecond

// run reports until the context ends, at the latest after each period.
func (r *reporter) run(ctx context.Context, period time.Duration) {
	r.mu.Lock()
	r.news = make(chan struct{}, 1)
	r.mu.Unlock()
	for {
		if err := r.tell(ctx); errors.Is(err, queue.ErrStop) || errors.Is(err, queue.ErrLate) {
			r.stop(err)
			return
		}
		t := time.NewTimer(period)
		select {
		case <-r.news:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		gap := time.NewTimer(min(leastGap, period))
		select {
		case <-gap.C:
		case <-ctx.Done():
			gap.Stop()
			return
		}
	}
}

// tell sends one report.
func (r *reporter) tell(ctx context.Context) error {
	r.mu.Lock()
	doing := r.doing
	r.mu.Unlock()
	return r.worker.Server.Renew(ctx, Renewal{Token: r.token, Doing: doing, Share: share(doing)})
}

// share reads how much is done from a line of progress such as "measuring 50 %".
func share(doing string) *float64 {
	words := strings.Fields(strings.ReplaceAll(doing, ",", " "))
	for i, w := range words {
		if n, err := strconv.ParseFloat(strings.TrimSuffix(w, "%"), 64); err == nil && n >= 0 && n <= 100 &&
			(strings.HasSuffix(w, "%") || i+1 < len(words) && words[i+1] == "%") {
			n /= 100
			return &n
		}
	}
	return nil
}
