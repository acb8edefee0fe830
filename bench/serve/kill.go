package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/server"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/work"
)

// serve is a server or a worker as a process of its own, to be killed.
func serve(args []string) error {
	_ = os.Setenv(standIn, "1") // for children
	f := flag.NewFlagSet("server", flag.ContinueOnError)
	data := f.String("data", "", "")
	listen := f.String("listen", "", "")
	database := f.String("database", "", "")
	worker := f.String("worker", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	if *worker != "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		w := work.Worker{
			Server: &work.Remote{URL: *worker, Client: &http.Client{}}, Runner: work.Runner{Program: self, Limit: time.Minute},
			Name: fmt.Sprint("worker ", os.Getpid()), Offers: queue.Offers{Targets: []string{"host"}}, Log: slog.New(slog.DiscardHandler),
		}
		fmt.Println("ready")
		w.Work(ctx)
		return nil
	}
	o := options(*data, *database)
	o.Listen, o.Worker = *listen, false
	s, err := server.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(s.Serve(ctx, func(string) { fmt.Println("ready") }), s.Close())
}

// victim is a process that is started again whenever it was killed.
type victim struct {
	args []string
	mu   sync.Mutex
	cmd  *exec.Cmd
}

// start runs the process and waits until it works.
func (v *victim) start() (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	c := exec.Command(self, append([]string{"server"}, v.args...)...)
	c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, standIn+"=") })
	c.Stderr = os.Stderr
	if _, err := c.StdinPipe(); err != nil {
		return 0, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	if !bufio.NewScanner(out).Scan() {
		return 0, errors.Join(errors.New("it ended at its start"), c.Wait())
	}
	v.cmd = c
	return time.Since(begin), nil
}

// kill ends the process at once and starts it again.
func (v *victim) kill() (time.Duration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
	return v.start()
}

func (v *victim) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cmd != nil {
		_ = v.cmd.Process.Kill()
		_ = v.cmd.Wait()
	}
}

// survive sends jobs while server and workers are killed at random moments, and counts what is
// there in the end.
func survive(kills, jobs int, database string) (err error) {
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	url := "http://" + address
	victims := []*victim{{args: []string{"-data=" + filepath.Join(dir, "data"), "-listen=" + address, "-database=" + database}}}
	for range 3 {
		victims = append(victims, &victim{args: []string{"-worker=" + url}})
	}
	for _, v := range victims {
		if _, err := v.start(); err != nil {
			return err
		}
		defer v.end()
	}
	var (
		sent    atomic.Int64
		killing = make(chan error, 1)
		slowest time.Duration
	)
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // moments
	go func() {
		for n := range kills {
			// A moment is a number of jobs that were sent, and a little more.
			for sent.Load() < int64(n*jobs/kills) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			which := victims[random.IntN(len(victims))]
			took, err := which.kill()
			if err != nil {
				killing <- fmt.Errorf("kill %d: %w", n, err)
				return
			}
			if which == victims[0] {
				slowest = max(slowest, took)
			}
		}
		killing <- nil
	}()
	ids := make([]string, jobs)
	for i := range jobs {
		for {
			if ids[i], err = send(url, i); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond) // the server was killed: a client tries again
		}
		sent.Add(1)
	}
	if err := <-killing; err != nil {
		return err
	}
	begin := time.Now()
	states := map[string]int{}
	runs := map[string]int{}
	for _, id := range ids {
		for {
			var j queue.Job
			if err := get(url+"/api/v1/jobs/"+id, &j); err == nil && j.State.Ended() {
				states[string(j.State)]++
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	damaged := 0
	for before := ""; ; {
		var l struct {
			Items []struct{ ID, Job, Blob string }
			Next  string
		}
		if err := get(url+"/api/v1/runs?limit=200&before="+before, &l); err != nil {
			return err
		}
		for _, r := range l.Items {
			runs[r.Job]++
			res, err := http.Get(url + "/runs/" + r.ID + "/profile") //nolint:noctx // it has no end to wait for
			if err != nil {
				return err
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if h := sha256.Sum256(b); err != nil || hex.EncodeToString(h[:]) != r.Blob {
				damaged++
			}
		}
		if before = l.Next; before == "" {
			break
		}
	}
	lost, twice := 0, 0
	for _, id := range ids {
		switch runs[id] {
		case 0:
			lost++
		case 1:
		default:
			twice++
		}
	}
	fmt.Printf("%d jobs, %d kills: %d without a result, %d with several, %d damaged profiles; states %v; all ended %.1f s after the last was sent; slowest restart of the server %.3f s\n",
		jobs, kills, lost, twice, damaged, states, time.Since(begin).Seconds(), slowest.Seconds())
	if lost+twice+damaged > 0 || states[string(queue.Done)] != jobs {
		return errors.New("jobs were lost")
	}
	return nil
}

// send uploads a model and starts a job. Each has a key: sending it again adds no second job.
func send(url string, i int) (string, error) {
	model := fmt.Appendf(nil, "model %d", i)
	h := sha256.Sum256(model)
	hash := hex.EncodeToString(h[:])
	req, err := http.NewRequest(http.MethodPut, url+"/api/v1/files/"+hash, bytes.NewReader(model)) //nolint:noctx // it has no end to wait for
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return "", errors.New(res.Status)
	}
	body := fmt.Sprintf(`{"project":"p","kind":"profile","inputs":[{"name":"m%d.onnx","hash":%q}]}`, i, hash)
	req, err = http.NewRequest(http.MethodPost, url+"/api/v1/jobs", strings.NewReader(body)) //nolint:noctx // it has no end to wait for
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprint("job ", i))
	res, err = http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var j queue.Job
	if err := json.NewDecoder(res.Body).Decode(&j); err != nil || res.StatusCode != http.StatusCreated {
		return "", errors.Join(errors.New(res.Status), err)
	}
	return j.ID, nil
}

func get(url string, to any) error {
	res, err := http.Get(url) //nolint:noctx // it has no end to wait for
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return json.NewDecoder(res.Body).Decode(to)
}
