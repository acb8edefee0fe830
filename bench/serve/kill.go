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
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/server"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/work"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// serve is a server or a worker as a process of its own, to be killed.
func serve(args []string) error {
	_ = os.Setenv(standIn, "1") // for children
	f := flag.NewFlagSet("server", flag.ContinueOnError)
	data := f.String("data", "", "")
	listen := f.String("listen", "", "")
	database := f.String("database", "", "")
	nats := f.String("nats", "", "")
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
			Pause: func(context.Context, int) { again() }, // the server is away for moments only
		}
		fmt.Println("ready")
		return w.Work(ctx)
	}
	o := options(*data, *database, *nats)
	o.Listen = *listen
	s, err := server.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(s.Serve(ctx, func(string) error { _, err := fmt.Println("ready"); return err }), s.Close())
}

// victim is what is killed at random moments.
type victim struct {
	name string
	// kill ends it at once, and reports whether there was something to end.
	kill func() bool
	// start starts it again and waits until it works, nil if others do.
	start  func() error
	kills  int
	starts []time.Duration
}

// process is a program that is started again after each end.
type process struct {
	args  []string  // with the program before them
	ready string    // part of the line that it prints once it works
	log   io.Writer // gets what it prints later
	cmd   *exec.Cmd
	ended chan struct{}
}

// own is this program as a server or a worker.
func own(args ...string) *process {
	self, _ := os.Executable()
	return &process{args: append([]string{self, "server"}, args...), ready: "ready", log: os.Stderr}
}

// start runs the process and waits until it works.
func (p *process) start() error {
	c := exec.Command(p.args[0], p.args[1:]...)
	if _, err := c.StdinPipe(); err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	c.Stdout, c.Stderr = in, in
	err = c.Start()
	in.Close()
	if err != nil {
		return errors.Join(err, out.Close())
	}
	p.cmd, p.ended = c, make(chan struct{})
	lines, said, ready := bufio.NewScanner(out), []string{}, false
	for !ready && lines.Scan() {
		said = append(said, lines.Text())
		ready = strings.Contains(lines.Text(), p.ready)
	}
	go func() {
		defer close(p.ended)
		defer out.Close()
		_, _ = io.Copy(p.log, out)
	}()
	if !ready {
		p.kill()
		return fmt.Errorf("%s ended at its start:\n%s", filepath.Base(p.args[0]), strings.Join(said, "\n"))
	}
	return nil
}

// kill ends the process at once.
func (p *process) kill() bool {
	if p.cmd == nil || p.cmd.ProcessState != nil {
		return false
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait()
	return true
}

// awaitChild is [killChild] for a process that will begin soon, if it does.
func awaitChild(of int) bool {
	for range 100 {
		if killChild(of) {
			return true
		}
		again()
	}
	return false
}

// killChild ends a process that another one started, at once. It reports whether there was one.
func killChild(of int) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// NUMBER (NAME) STATE PARENT …
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(of) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if p, err := os.FindProcess(id); err == nil && p.Kill() == nil {
			return true
		}
	}
	return false
}

// system is a server with three workers, and with engines of its own if they are external.
type system struct {
	url      string
	victims  []*victim
	database string
	server   *victim
	close    []func() error
}

// addresses returns addresses that no program uses now.
func addresses(n int) (out []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // together: each has another port
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// engines starts a PostgreSQL and three nodes of NATS, and returns their addresses.
func (s *system) engines(dir string) (nats string, err error) {
	p, err := postgres.New()
	if err != nil {
		return "", err
	}
	s.close = append(s.close, p.Close)
	s.database = p.URL()
	s.victims = append(s.victims, &victim{name: "PostgreSQL", kill: func() bool { p.Kill(); return true }, start: p.Start})
	program := filepath.Join(dir, "nats-server")
	build := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2")
	build.Dir = material.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building nats-server: %w\n%s", err, out)
	}
	const nodes = 3
	all, err := addresses(2 * nodes)
	if err != nil {
		return "", err
	}
	routes := "nats://" + strings.Join(all[nodes:], ",nats://")
	for i := range nodes {
		node := &process{ready: "Server is ready", log: io.Discard, args: []string{
			program, "--addr", "127.0.0.1", "--port", port(all[i]), "--jetstream", "--store_dir", filepath.Join(dir, "nats", strconv.Itoa(i)),
			"--name", fmt.Sprint("node", i), "--cluster_name", "test", "--cluster", "nats://" + all[nodes+i], "--routes", routes,
		}}
		s.add("NATS", node)
	}
	return "nats://" + strings.Join(all[:nodes], ",nats://"), nil
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

func (s *system) add(name string, p *process) *victim {
	v := &victim{name: name, kill: p.kill, start: p.start}
	s.victims = append(s.victims, v)
	s.close = append(s.close, func() error { p.kill(); return nil })
	return v
}

// start starts everything. The database has some results before the server does.
func (s *system) start(dir string, runs int, external bool) (err error) {
	data, nats := filepath.Join(dir, "data"), ""
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if external {
		if nats, err = s.engines(dir); err != nil {
			return err
		}
	}
	free, err := addresses(1)
	if err != nil {
		return err
	}
	s.url = "http://" + free[0]
	engines := len(s.victims)
	for _, v := range s.victims {
		if err := v.start(); err != nil {
			return err
		}
	}
	if _, err := fill(context.Background(), s.database, data, runs); err != nil {
		return err
	}
	s.server = s.add("server", own("-data="+data, "-listen="+free[0], "-database="+s.database, "-nats="+nats))
	var children []*victim
	for range 3 {
		w := own("-worker=" + s.url)
		s.add("worker", w)
		children = append(children, &victim{name: "child", kill: func() bool { return awaitChild(w.cmd.Process.Pid) }})
	}
	for _, v := range s.victims[engines:] {
		if err := v.start(); err != nil {
			return err
		}
	}
	s.victims = append(s.victims, children...)
	return nil
}

// end ends everything, what was started last first.
func (s *system) end() (err error) {
	for _, f := range slices.Backward(s.close) {
		err = errors.Join(err, f())
	}
	return err
}

// kindsOf groups victims by their names.
func kindsOf(all []*victim) map[string][]*victim {
	kinds := map[string][]*victim{}
	for _, v := range all {
		kinds[v.name] = append(kinds[v.name], v)
	}
	return kinds
}

// killOne kills one of the victims and starts it again. Each kind is as likely as the others.
func (s *system) killOne(random *rand.Rand) error {
	kinds := kindsOf(s.victims)
	names := slices.Sorted(maps.Keys(kinds))
	for {
		of := kinds[names[random.IntN(len(names))]]
		v := of[random.IntN(len(of))]
		if !v.kill() {
			continue // no child runs: another victim
		}
		v.kills++
		if v.start == nil {
			return nil
		}
		begin := time.Now()
		if err := v.start(); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		v.starts = append(v.starts, time.Since(begin))
		return nil
	}
}

// survive sends jobs while processes are killed at random moments, and counts what is there in the
// end.
func survive(runs, kills, jobs int, external bool, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &system{}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.start(dir, runs, external); err != nil {
		return err
	}
	var (
		moments = make(chan struct{}, 4) // jobs wait while processes are killed
		killing = make(chan error, 1)
	)
	go func() {
		random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // moments
		for range moments {
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			if err := s.killOne(random); err != nil {
				killing <- err
				return
			}
		}
		killing <- nil
	}()
	begin := time.Now()
	ids := make([]string, jobs)
	for i, killed := 0, 0; i < jobs; i++ {
		for ; killed < kills*(i+1)/jobs; killed++ {
			select {
			case moments <- struct{}{}: // waits while the kill before is not over
			case err := <-killing:
				return err
			}
		}
		for ids[i] == "" {
			if ids[i], err = send(s.url, i); err != nil {
				again() // as a client does
			}
		}
	}
	close(moments)
	if err := <-killing; err != nil {
		return err
	}
	c, err := s.count(ids)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d jobs, %d kills in %.0f s, beside %d results: %d lost, %d shown twice, %d damaged profiles; states %v\n",
		jobs, kills, time.Since(begin).Seconds(), runs, c.lost, c.twice, c.damaged, c.states)
	kinds := kindsOf(s.victims)
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		total, starts := 0, []time.Duration{}
		for _, v := range kinds[name] {
			total, starts = total+v.kills, append(starts, v.starts...)
		}
		fmt.Fprintf(w, "%-10s killed %3d times", name, total)
		if slices.Sort(starts); len(starts) > 0 {
			fmt.Fprintf(w, ", start: median %.3f s, longest %.3f s", starts[len(starts)/2].Seconds(), starts[len(starts)-1].Seconds())
		}
		fmt.Fprintln(w)
	}
	if c.lost+c.twice+c.damaged > 0 || c.states[queue.Done] != jobs {
		return errors.New("jobs were lost")
	}
	return nil
}

// again waits before the next try.
func again() { time.Sleep(20 * time.Millisecond) }

// counted is what is there in the end.
type counted struct {
	lost, twice, damaged int
	states               map[queue.State]int
}

// count waits until all jobs have ended, and looks for their results.
func (s *system) count(ids []string) (c counted, err error) {
	c.states = map[queue.State]int{}
	for _, id := range ids {
		var j queue.Job
		for get(s.url+"/api/v1/jobs/"+id, &j) != nil || !j.State.Ended() {
			again()
		}
		c.states[j.State]++
		if j.State != queue.Done {
			fmt.Fprintf(os.Stderr, "job %s: %s\n", id, j.Error)
		}
	}
	runs, shown := map[string]int{}, map[string]bool{}
	for before := ""; ; {
		var l struct {
			Items []struct{ ID, Job, Blob string }
			Next  string
		}
		if err := get(s.url+"/api/v1/runs?project=sent&limit=200&before="+before, &l); err != nil {
			return c, err
		}
		for _, r := range l.Items {
			runs[r.Job]++
			if shown[r.ID] {
				c.twice++
			}
			shown[r.ID] = true
			res, err := http.Get(s.url + "/runs/" + r.ID + "/profile") //nolint:noctx // it has no end to wait for
			if err != nil {
				return c, err
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if h := sha256.Sum256(b); err != nil || hex.EncodeToString(h[:]) != r.Blob {
				c.damaged++
			}
		}
		if before = l.Next; before == "" {
			break
		}
	}
	for _, id := range ids {
		switch runs[id] {
		case 0:
			c.lost++
		case 1:
		default:
			c.twice++
		}
	}
	return c, nil
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
	body := fmt.Sprintf(`{"project":"sent","kind":"profile","inputs":[{"name":"m%d.onnx","hash":%q}]}`, i, hash)
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
