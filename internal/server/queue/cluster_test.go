package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// node is a NATS that can start again.
type node struct {
	*server.Server
	o *server.Options
}

// run starts a node.
func run(t *testing.T, o *server.Options) node {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return node{s, o}
}

// nodes starts NATS nodes, one alone or several as a cluster.
func nodes(t *testing.T, n int) (all []node, urls string) {
	t.Helper()
	dir := t.TempDir()
	var (
		ports  []int
		routes []*url.URL
	)
	// Between finding a free port and using it nobody else takes it at an address of its own.
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	for range n {
		l, err := net.Listen("tcp", host+":0")
		if err != nil { // not Linux
			host = "127.0.0.1"
			l, err = net.Listen("tcp", host+":0")
		}
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, port := range ports {
		o := &server.Options{
			ServerName: fmt.Sprint("node", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(i)), NoSigs: true, NoLog: true,
		}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "test", Host: host, Port: port}
			o.Routes = routes
		}
		all = append(all, run(t, o))
	}
	var list []string
	for _, s := range all {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("a node does not start")
		}
		list = append(list, s.ClientURL())
	}
	return all, strings.Join(list, ",")
}

// up waits until a queue is ready, however long the cluster takes to elect a leader.
func up(t *testing.T, q *Queue) {
	t.Helper()
	for {
		err := q.Up(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, ErrAway) {
			t.Fatal(err)
		}
	}
}

// Without a leader a queue opens, and is ready once there is one.
func TestLateLeader(t *testing.T) {
	t.Parallel()
	all, urls := nodes(t, 3)
	q, err := Open(t.Context(), Options{URL: urls, Silence: time.Minute, Results: (&results{}).of})
	if err != nil {
		t.Fatal(err)
	}
	up(t, q)
	add(t, q, "a", Needs{Target: "host"})
	q.Close()
	// One node of three elects nobody.
	for _, s := range all[1:] {
		s.Shutdown()
		s.WaitForShutdown()
	}
	late := make(chan error, 100)
	q, err = Open(t.Context(), Options{URL: urls, Silence: time.Minute, Results: (&results{}).of, Late: func(err error) { late <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := <-late; err == nil {
		t.Error("no reason why it is late")
	}
	if err := q.Healthy(t.Context()); !errors.Is(err, ErrAway) {
		t.Errorf("healthy: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := q.Up(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("up: %v", err)
	}
	run(t, all[1].o)
	up(t, q)
	if l := lease(t, q, host); l.Job.ID != "a" {
		t.Errorf("lease %+v", l)
	}
}

// TestReplicas keeps jobs three times in a cluster, also if only one of its addresses is given, and
// goes on without one of the nodes.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, replicas int }{{1, 1}, {3, 3}} {
		t.Run(fmt.Sprint(c.nodes), func(t *testing.T) {
			t.Parallel()
			all, urls := nodes(t, c.nodes)
			first, _, _ := strings.Cut(urls, ",")
			q, err := Open(t.Context(), Options{URL: first, Silence: time.Minute, Results: (&results{}).of})
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			up(t, q)
			for _, name := range []string{streamName, "KV_" + bucketName, "KV_" + keysName} {
				s, err := q.js.Stream(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.CachedInfo().Config; got.Replicas != c.replicas || got.AllowDirect {
					t.Errorf("%s: %+v, expected %d replicas", name, got, c.replicas)
				}
			}
			for i := range 3 {
				add(t, q, fmt.Sprint(i), Needs{Target: "host"})
			}
			l := lease(t, q, host)
			if c.nodes > 1 {
				all[0].Shutdown()
				all[0].WaitForShutdown()
			}
			for range 2 {
				if _, err := q.Finish(t.Context(), l.Token, []string{"r"}, ""); err != nil {
					t.Fatal(err)
				}
				l = lease(t, q, host)
			}
			states, stop := q.Follow(l.Job.ID)
			defer stop()
			if _, err := q.Finish(t.Context(), l.Token, nil, "broken"); err != nil {
				t.Fatal(err)
			}
			for j := range states { // also those who follow go on
				if j.State.Ended() {
					break
				}
			}
			if n := len(q.Jobs(func(j *Job) bool { return j.State == Done })); n != 2 {
				t.Errorf("%d jobs are done, expected 2", n)
			}
		})
	}
}

// TestBroken fails a job that breaks its workers, and no job that they give back.
func TestBroken(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), time.Minute)
	add(t, q, "a", Needs{Target: "host"})
	for range attempts + 1 {
		if err := q.Release(t.Context(), lease(t, q, host).Token, ""); err != nil {
			t.Fatal(err)
		}
	}
	for range attempts {
		if err := q.Release(t.Context(), lease(t, q, host).Token, "it was killed"); err != nil {
			t.Fatal(err)
		}
	}
	j, err := q.Job(t.Context(), "a")
	if err != nil || j.State != Failed || !strings.Contains(j.Error, "because it was killed") || !idle(t, q, host) {
		t.Errorf("job %+v, %v", j, err)
	}
	if n, err := q.Length(t.Context()); n != 0 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
}
