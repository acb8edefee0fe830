package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// profileSize is about that of the saved profile of a small network, in bytes.
const profileSize = 20_000

// timed is a transport that remembers how long requests of each kind took.
type timed struct {
	next http.RoundTripper
	mu   sync.Mutex
	of   map[string][]time.Duration
}

func newTimed() *timed {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 1000
	return &timed{next: t, of: map[string][]time.Duration{}}
}

// RoundTrip sends a request. Its kind is its method and the first part of its path.
func (t *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	begin := time.Now()
	res, err := t.next.RoundTrip(r)
	if err == nil {
		path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
		kind := r.Method + " " + path
		if path == "leases" && strings.HasSuffix(r.URL.Path, "/end") {
			kind += "/end"
		}
		t.mu.Lock()
		t.of[kind] = append(t.of[kind], time.Since(begin))
		t.mu.Unlock()
	}
	return res, err
}

// reset forgets what was measured.
func (t *timed) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.of)
}

// print writes rates and times of all kinds. A lease waits for a job, so its time says nothing.
func (t *timed) print(over time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Printf("%-20s %8s %8s %8s %8s %8s\n", "request", "number", "1/s", "p50, ms", "p99, ms", "max, ms")
	kinds := make([]string, 0, len(t.of))
	for k := range t.of {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		n := len(t.of[k])
		fmt.Printf("%-20s %8d %8.1f", k, n, float64(n)/over.Seconds())
		if k != "POST leases" {
			fmt.Print(" ", quantiles(t.of[k]))
		}
		fmt.Println()
	}
}

// quantiles writes median, 99th percentile and maximum in milliseconds.
func quantiles(times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	times = slices.Clone(times)
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	return fmt.Sprintf("%8.1f %8.1f %8.1f", ms(times[len(times)/2]), ms(times[len(times)*99/100]), ms(times[len(times)-1]))
}

// rig is a server as a process of its own, with workers and a client in this one.
type rig struct {
	server  *process
	url     string
	dir     string
	http    *timed
	client  *http.Client
	context context.Context
	stop    context.CancelFunc
	workers sync.WaitGroup

	mu     sync.Mutex
	sent   map[string]time.Time // by the commit of the job
	starts []time.Duration      // from sending to the start of a job
	ends   []time.Duration      // and to its result
	failed error
	open   atomic.Int64 // jobs that were sent and did not end
}

func newRig() (r *rig, err error) {
	r = &rig{http: newTimed(), sent: map[string]time.Time{}}
	r.client = &http.Client{Transport: r.http}
	r.context, r.stop = context.WithCancel(context.Background())
	if r.dir, err = os.MkdirTemp("", "serve"); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	r.url = "http://" + address
	r.server = own("-data="+filepath.Join(r.dir, "data"), "-listen="+address)
	err = r.server.start()
	return r, err
}

func (r *rig) end() error {
	r.stop()
	r.workers.Wait()
	r.server.kill()
	return errors.Join(r.failed, os.RemoveAll(r.dir))
}

// fail remembers the first error.
func (r *rig) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil && r.context.Err() == nil {
		r.failed = err
		r.stop()
	}
}

// work is a worker without children: it speaks the protocol of workers, and its jobs take a time
// during which it tells its progress.
func (r *rig) work(name string, o queue.Offers, takes, tells time.Duration) {
	r.workers.Go(func() {
		s := &work.Remote{URL: r.url, Client: r.client}
		for r.context.Err() == nil {
			l, err := s.Lease(r.context, name, &o)
			if err != nil {
				r.fail(fmt.Errorf("%s: lease: %w", name, err))
				return
			}
			if l == nil {
				continue
			}
			now := time.Now()
			r.mu.Lock()
			at, ok := r.sent[l.Job.Labels["commit"]]
			if ok {
				r.starts = append(r.starts, now.Sub(at))
			}
			r.mu.Unlock()
			if err := r.do(s, l, takes, tells); err != nil {
				r.fail(fmt.Errorf("%s: job: %w", name, err))
				return
			}
			if ok {
				r.mu.Lock()
				r.ends = append(r.ends, time.Since(at))
				r.mu.Unlock()
			}
			r.open.Add(-1)
		}
	})
}

// do does a job: its result is as large as that of a small network, and no two are equal.
func (r *rig) do(s *work.Remote, l *queue.Lease, takes, tells time.Duration) error {
	ctx := context.WithoutCancel(r.context)
	for until := time.Now().Add(takes); ; {
		rest := time.Until(until)
		if err := s.Renew(ctx, work.Renewal{Token: l.Token, Doing: fmt.Sprint("measuring, ", rest, " left")}); err != nil {
			return err
		}
		if rest <= 0 || r.context.Err() != nil {
			break
		}
		time.Sleep(min(rest, tells))
	}
	in := filepath.Join(r.dir, "in "+l.Job.ID)
	if err := s.Fetch(ctx, l.Job.Inputs[0].Hash, in); err != nil {
		return err
	}
	text := append([]byte(l.Job.ID), make([]byte, profileSize)...)
	h := sha256.Sum256(text)
	res := &work.Result{
		Hash: hex.EncodeToString(h[:]), Figures: []store.Figure{},
		Series: store.Series{Model: l.Job.Inputs[0].Name, Target: "host", Engine: "opmeter", Machine: "m", Settings: "threads=1"},
	}
	for _, f := range figures {
		res.Figures = append(res.Figures, store.Figure{Name: f, Value: float64(text[0])})
	}
	if err := os.WriteFile(in, text, 0o600); err != nil {
		return err
	}
	defer os.Remove(in)
	if err := s.Store(ctx, res.Hash, in); err != nil {
		return err
	}
	return s.End(ctx, work.End{Token: l.Token, Result: res})
}

// submit sends a job for a target, such as "host" or "device:PORT".
func (r *rig) submit(i int, on string) {
	model := fmt.Appendf(nil, "model %d", i%100)
	h := sha256.Sum256(model)
	hash := hex.EncodeToString(h[:])
	s := &work.Remote{URL: r.url, Client: r.client}
	file := filepath.Join(r.dir, fmt.Sprint("model ", i))
	begin, commit := time.Now(), fmt.Sprintf("c%06d", i)
	r.open.Add(1)
	err := os.WriteFile(file, model, 0o600)
	if err == nil {
		err = errors.Join(s.Store(r.context, hash, file), os.Remove(file))
	}
	body := map[string]any{
		"project": fmt.Sprint("p", i%20), "kind": "profile", "options": map[string]string{"on": on},
		"inputs": []map[string]string{{"name": fmt.Sprintf("net%d.onnx", i%100), "hash": hash}},
		"labels": map[string]string{"branch": "main", "commit": commit},
	}
	r.mu.Lock()
	r.sent[commit] = begin
	r.mu.Unlock()
	if err == nil {
		_, err = s.Call(r.context, http.MethodPost, "/jobs", body, nil)
	}
	if err != nil {
		r.fail(fmt.Errorf("job %d: %w", i, err))
	}
}

// look does what people at the page do: a list, a search and a trend.
func (r *rig) look(i int) {
	s := &work.Remote{URL: r.url, Client: r.client}
	paths := []string{"/runs", "/runs?search=net7", fmt.Sprintf("/runs?project=p%d&limit=50", i%20), "/jobs"}
	var out map[string]any
	if _, err := s.Call(r.context, http.MethodGet, paths[i%len(paths)], nil, &out); err != nil {
		// The project may have no job yet.
		if p, ok := errors.AsType[*work.Problem](err); !ok || p.Status != http.StatusNotFound {
			r.fail(err)
		}
	}
}

// every calls a function at a rate until a function says that it is enough, each call on its own.
func (r *rig) every(gap time.Duration, more func(i int) bool, f func(i int)) {
	t := time.NewTicker(gap)
	defer t.Stop()
	var all sync.WaitGroup
	for i := 0; more(i); i++ {
		select {
		case <-t.C:
		case <-r.context.Done():
		}
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// settle waits until all jobs ended.
func (r *rig) settle() error {
	for r.open.Load() > 0 {
		r.mu.Lock()
		err := r.failed
		r.mu.Unlock()
		if err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// usage is what a process used.
type usage struct {
	cpu      time.Duration
	resident int64 // bytes
}

// usage reads what the server used (Linux only, zero elsewhere).
func (r *rig) usage() (u usage) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.server.cmd.Process.Pid))
	if err != nil {
		return u
	}
	// The name in parentheses may contain anything. Times are in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for _, i := range []int{11, 12} {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		u.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	u.resident = pages * int64(os.Getpagesize())
	return u
}

// size is how much disk a folder of the server takes in bytes.
func (r *rig) size(names ...string) (n int64) {
	_ = filepath.WalkDir(filepath.Join(append([]string{r.dir, "data"}, names...)...), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// report prints what happened since a moment.
func (r *rig) report(begin time.Time, before usage) {
	over := time.Since(begin)
	r.http.print(over)
	u := r.usage()
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf("%-46s %s\n%-46s %s\n", "from sending to start, p50, p99, max, ms", quantiles(r.starts), "from sending to result", quantiles(r.ends))
	fmt.Printf("server: %.0f %% of a processor, %.0f MB resident, %d jobs ended in %.1f s\n",
		100*(u.cpu-before.cpu).Seconds()/over.Seconds(), float64(u.resident)/1e6, len(r.ends), over.Seconds())
	fmt.Printf("disk: results %.1f MB, files %.1f MB, jobs %.1f MB\n", float64(r.size("results.db")+r.size("results.db-wal"))/1e6, float64(r.size("files"))/1e6, float64(r.size("jobs"))/1e6)
	r.starts, r.ends = nil, nil
	r.http.reset()
}

// load sends 1,000 small jobs a minute, and compares measurements beside an idle and a busy server.
func load(opmeter string, budget time.Duration) (err error) {
	r, err := newRig()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	for i := range 4 {
		r.work(fmt.Sprint("worker ", i), queue.Offers{Targets: []string{"host"}}, 0, time.Second)
	}
	const gap = time.Minute / 1000
	begin, before := time.Now(), r.usage()
	var looks sync.WaitGroup
	until := begin.Add(time.Minute)
	during := func(int) bool { return time.Now().Before(until) }
	looks.Go(func() { r.every(4*gap, during, r.look) })
	r.every(gap, during, func(i int) { r.submit(i, "host") })
	looks.Wait()
	if err := r.settle(); err != nil {
		return err
	}
	fmt.Println("1,000 small jobs a minute, and 250 looks at lists")
	r.report(begin, before)
	if opmeter == "" {
		return nil
	}
	return r.disturbance(opmeter, budget, gap)
}

// disturbance compares by opmeter ab how long the same measurement takes while the server is idle,
// and while it serves.
func (r *rig) disturbance(opmeter string, budget, gap time.Duration) error {
	serving, n := false, 0
	var mu sync.Mutex
	control := http.NewServeMux()
	control.HandleFunc("POST /{state}", func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		serving = q.PathValue("state") == "serving"
		mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: control, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	defer func() { _ = s.Close() }()
	done := make(chan struct{})
	var loading sync.WaitGroup
	loading.Go(func() {
		r.every(gap, func(int) bool {
			select {
			case <-done:
				return false
			default:
				return true
			}
		}, func(i int) {
			mu.Lock()
			now := serving
			n += map[bool]int{true: 1}[now]
			mu.Unlock()
			if now {
				r.submit(i, "host")
			}
		})
	})
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := func(state string) string {
		return fmt.Sprintf("%s during http://%s/%s %s profile %s --runs=4000 --warmup=1ms --output=%s", self, l.Addr(), state, opmeter, "examples/resnet8.yaml", filepath.Join(r.dir, state+".opmeter"))
	}
	c := exec.Command(opmeter, "ab", "--command", command("idle"), command("serving"), "--name=idle", "--name=serving", "--budget="+budget.String())
	c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, standIn+"=") })
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	err = c.Run()
	close(done)
	loading.Wait()
	fmt.Printf("%d jobs were sent while the server served\n", n)
	return errors.Join(err, r.settle())
}

// during tells the load what to be while a program runs. Afterwards the load ends in any case, so
// that both states cost the same and few of its jobs reach into the next measurement.
func during(args []string) error {
	tell := func(url string) error {
		res, err := http.Post(url, "", nil) //nolint:noctx,gosec // the address is that of the load
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
	if err := tell(args[0]); err != nil {
		return err
	}
	c := exec.Command(args[1], args[2:]...)
	c.Stdout, c.Stderr = io.Discard, os.Stderr
	return errors.Join(c.Run(), tell(strings.Replace(args[0], "/serving", "/idle", 1)))
}
