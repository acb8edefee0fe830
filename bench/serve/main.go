// Command serve measures a server with many results, jobs or workers, and kills its processes.
//
//	go run ./bench/serve                                 # lists, searches and pages; restart
//	go run ./bench/serve -external                       # the same with a PostgreSQL that it starts
//	go run ./bench/serve -kill 200 -jobs 1000            # kills server, workers and their children
//	go run ./bench/serve -kill 200 -jobs 1000 -external  # and three nodes of NATS, and PostgreSQL
//	go run ./bench/serve -load                           # 1,000 small jobs a minute
//	go run ./bench/serve -load -ab ./opmeter             # and whether measuring beside is disturbed
//	go run ./bench/serve -fleet 200                      # 200 workers with 50 boards each
//
// Jobs are done by a stand-in for opmeter, so that only the server is measured.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/server"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// standIn is the environment variable that makes this program answer as opmeter does.
const standIn = "OPMETER_STANDIN"

func main() {
	if os.Getenv(standIn) != "" {
		os.Exit(answer(os.Args[1:]))
	}
	for name, part := range map[string]func([]string) error{"server": serve, "during": during} {
		if len(os.Args) > 1 && os.Args[1] == name {
			if err := part(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "serve:", err)
				os.Exit(1)
			}
			return
		}
	}
	runs := flag.Int("runs", 100_000, "results to fill the database with")
	external := flag.Bool("external", false, "use a PostgreSQL and three nodes of NATS, and start them")
	kills := flag.Int("kill", 0, "how often to kill, instead of measuring")
	loaded := flag.Bool("load", false, "send 1,000 small jobs a minute, instead of measuring")
	opmeter := flag.String("ab", "", "program opmeter that compares measurements beside an idle and a busy server")
	budget := flag.Duration("budget", 3*time.Minute, "time of that comparison")
	workers := flag.Int("fleet", 0, "how many workers to simulate, instead of measuring")
	jobs := flag.Int("jobs", 1000, "jobs to send while processes are killed")
	flag.Parse()
	run := func() error { return measure(*runs, *external) }
	switch {
	case *kills > 0:
		run = func() error { return survive(*runs, *kills, *jobs, *external, os.Stdout) }
	case *loaded:
		run = func() error { return load(*opmeter, *budget) }
	case *workers > 0:
		run = func() error { return fleet(*workers) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// jobTime is how long a job takes: moments at which something is killed fall into it.
const jobTime = 50 * time.Millisecond

// answer does what the program opmeter does for a job, without a model.
func answer(args []string) int {
	output := ""
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--output="); ok {
			output = v
		}
	}
	switch args[0] {
	case "history":
		fmt.Println(`{"series":[{"model":"net","target":"host","figure":"latency_s","points":[{"value":0.5,"machine":"m","settings":"opmeter threads=1"}]}]}`)
	case "engines", "devices":
		fmt.Println("{}")
	default:
		time.Sleep(jobTime)
		input := args[1]
		if strings.HasPrefix(input, "-") {
			input = args[len(args)-1]
		}
		text, err := os.ReadFile(input)
		if err != nil {
			fmt.Fprintln(os.Stderr, "opmeter:", err)
			return 1
		}
		if err := os.WriteFile(output, text, 0o600); err != nil {
			return 1
		}
	}
	return 0
}

// measure fills a database and times what people do.
func measure(n int, external bool) (err error) {
	_ = os.Setenv(standIn, "1") // for children
	database := ""
	if external {
		p, err := postgres.New()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		if err := p.Start(); err != nil {
			return err
		}
		database = p.URL()
	}
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background()
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	begin := time.Now()
	ids, err := fill(ctx, database, data, n)
	if err != nil {
		return err
	}
	fmt.Printf("%d results written in %.0f s\n", n, time.Since(begin).Seconds())
	if info, err := os.Stat(filepath.Join(data, "results.db")); err == nil {
		fmt.Printf("database: %.0f bytes a result\n", float64(info.Size())/float64(n))
	}

	begin = time.Now()
	o := options(data, database, "")
	o.Worker = true
	s, err := server.Open(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("server ready in %.3f s\n", time.Since(begin).Seconds())
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready, done := make(chan string), make(chan error, 1)
	go func() { done <- s.Serve(ctx, func(url string) error { ready <- url; return nil }) }()
	url := <-ready
	load, _ := os.ReadFile("/proc/loadavg") // Linux alone has it
	fmt.Printf("load %s\n%-32s %8s %8s %8s\n", bytes.TrimSpace(load), "request", "p50, ms", "p99, ms", "max, ms")
	for _, r := range []struct{ name, path string }{
		{"latest runs", "/api/v1/runs"},
		{"runs of a project", "/api/v1/runs?project=p3&limit=50"},
		{"page 1,000 of runs", "/api/v1/runs?before=" + ids[len(ids)/2]},
		{"search of a frequent word", "/api/v1/runs?search=net"},
		{"search of two frequent words", "/api/v1/runs?search=net7+chip3"},
		{"search of a rare word", "/api/v1/runs?search=c00042"},
		{"search without a result", "/api/v1/runs?search=absent"},
		{"tag", "/api/v1/runs?tag=nightly"},
		{"one run", "/api/v1/runs/" + ids[7]},
		{"series of a project", "/api/v1/projects/p3/series"},
		{"trend of 500", "/api/v1/series/SERIES/trend?figure=latency_s"},
		{"page of a run, again", "/runs/" + ids[7] + "/page"},
		{"start page", "/"},
	} {
		r.path = strings.Replace(r.path, "SERIES", lastSeries, 1)
		var times []time.Duration
		for i := range 201 {
			begin := time.Now()
			res, err := http.Get(strings.TrimSuffix(url, "/") + r.path) //nolint:noctx // it has no end to wait for
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK {
				return errors.Join(fmt.Errorf("%s: %s", r.path, res.Status), err)
			}
			if i > 0 { // the first one makes the page
				times = append(times, time.Since(begin))
			}
		}
		slices.Sort(times)
		ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
		fmt.Printf("%-32s %8.1f %8.1f %8.1f\n", r.name, ms(times[len(times)/2]), ms(times[len(times)*99/100]), ms(times[len(times)-1]))
	}
	stop()
	return <-done
}

func options(data, database, nats string) server.Options {
	self, _ := os.Executable()
	return server.Options{
		Program: self, Data: data, Listen: "127.0.0.1:0", Database: database, NATS: nats, MaxFile: 1 << 30, Limit: time.Minute,
		Log: slog.New(slog.DiscardHandler), Silence: 3 * time.Second,
	}
}

// figures are those of a run.
var figures = []string{"latency_s", "energy_j", "macs", "ops", "params", "weights_bytes", "bytes_read", "bytes_written", "ram_bytes", "flash_bytes"}

// lastSeries is the series with most runs.
var lastSeries string

// fill writes results as a year of CI makes them: 20 projects with 10 models on 5 targets.
func fill(ctx context.Context, database, data string, n int) (ids []string, err error) {
	db, err := store.Open(ctx, cmp.Or(database, filepath.Join(data, "results.db")))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := blob.Open(filepath.Join(data, "files"), "", 1<<20)
	if err != nil {
		return nil, err
	}
	hash, _, err := files.Put(strings.NewReader("a profile"))
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // made results
	var projects []string
	err = db.Change(ctx, func(tx *store.Tx) error {
		for i := range 20 {
			p, err := tx.AddProject(fmt.Sprintf("p%d", i), "")
			if err != nil {
				return err
			}
			projects = append(projects, p.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const batch = 1000
	for from := 0; from < n; from += batch {
		err = db.Change(ctx, func(tx *store.Tx) error {
			for i := from; i < min(from+batch, n); i++ {
				var fs []store.Figure
				for _, f := range figures {
					fs = append(fs, store.Figure{Name: f, Value: random.ExpFloat64()})
				}
				s := store.Series{
					Kind: "profile", Model: fmt.Sprintf("net%d", random.IntN(10)), Target: fmt.Sprintf("chip%d", random.IntN(5)),
					Engine: "opmeter", Machine: "m", Settings: "threads=1",
				}
				var tags []string
				if i%10 == 0 {
					tags = []string{"nightly"}
				}
				r, err := tx.AddRun(s, store.Run{
					Project: projects[random.IntN(len(projects))], Job: fmt.Sprint("filled", i), Blob: hash, Branch: "main", Commit: fmt.Sprintf("c%05d", i),
				}, fs, tags)
				if err != nil {
					return err
				}
				ids, lastSeries = append(ids, r.ID), r.Series
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
