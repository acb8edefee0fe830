package server

import (
	"errors"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/testing/postgres"
	"github.com/opmeter/opmeter/internal/testing/s3"
)

// Two servers with one database, one NATS and one bucket share jobs, results and files.
func TestSeveralServers(t *testing.T) {
	files := s3.New(t)
	for name, value := range files.Environment() {
		t.Setenv(name, value)
	}
	database := postgres.Start(t)
	n, err := nats.NewServer(&nats.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	shared := func(worker bool) func(*Options) {
		return func(o *Options) {
			o.Database, o.NATS, o.Files, o.Worker = database, n.ClientURL(), "s3://"+s3.Bucket+"/lab", worker
		}
	}
	a, b := start(t, shared(false)), start(t, shared(true))
	j := a.until(a.job("model").ID, ended) // done by the worker of b
	if j.State != queue.Done {
		t.Fatalf("job %+v", j)
	}
	for name, c := range map[string]*client{"a": a, "b": b} {
		if status, body, _ := c.send("GET", "/runs/"+j.Runs[0]+"/page", nil); status != 200 || body != "<html>report" {
			t.Errorf("%s: page %d %s", name, status, body)
		}
		if status, body, _ := c.send("GET", "/runs/"+j.Runs[0]+"/profile", nil); status != 200 || body != "profile of model " {
			t.Errorf("%s: profile %d %q", name, status, body)
		}
	}
	// A file that one server sees unused stays if another one uses it.
	hash := a.upload("unused")
	now := time.Now()
	for _, c := range []struct {
		by   *client
		uses bool
		want int64
	}{{a, true, 0}, {a, false, 0}, {b, false, 1}, {a, false, 0}} {
		if got, _, err := c.by.s.collect(t.Context(), now); got != c.want || err != nil {
			t.Errorf("removed %d files, %v, expected %d", got, err, c.want)
		}
		if c.uses {
			b.send("HEAD", prefix+"/files/"+hash, nil)
		}
		now = now.Add(keepUnused + time.Second)
	}
	if _, err := b.s.files.Size(hash); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("unused file: %v", err)
	}
	if got := len(files.Files); got != 2 { // model and profile
		t.Errorf("%d files are left", got)
	}
}
