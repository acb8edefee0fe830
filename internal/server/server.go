// Package server is opmeter as a service: an API over HTTP, pages for people, and workers that
// measure. Results are in package store, jobs in package queue, files in package blob; nothing else
// keeps state.
//
// Models and records are opened by child processes only (package work).
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/filelock"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/hook"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// Options configure a server.
type Options struct {
	// Program is the file of opmeter.
	Program string
	// Data is the folder of everything that is kept.
	Data string
	// Listen is the address, such as 127.0.0.1:8080. Port 0 is any free one.
	Listen string
	// Database is a URL of PostgreSQL, "" for a file of SQLite in the folder.
	Database string
	// Files is a bucket of S3 for profiles and models, such as s3://BUCKET/PREFIX, "" for the folder.
	Files string
	// NATS is the address of a NATS elsewhere, "" for the one inside this process.
	NATS string
	// Cert and Key are files of a certificate for TLS. "" is none for an address of this computer
	// only, and one that the server makes itself for others.
	Cert, Key string
	// MaxFile bounds an uploaded file in bytes.
	MaxFile int64
	// Limit is the longest time of a job.
	Limit time.Duration
	// Memory bounds the memory of a job in bytes, 0 for the usual bound; Disk what it writes.
	Memory, Disk int64
	// Worker says that the server does jobs itself.
	Worker bool
	// Silence is after which time a silent worker loses its job, 0 for the usual one.
	Silence time.Duration
	Log     *slog.Logger
}

// Server is an open server.
type Server struct {
	o        Options
	db       *store.DB
	files    *blob.Store
	queue    *queue.Queue
	runner   work.Runner
	pages    pages
	handler  http.Handler
	open     bool // anyone who reaches the address may do everything: it is a loopback address
	limits   *limits
	longPoll time.Duration
	lock     *os.File
	partials partials
	signs    signs
	started  int64 // milliseconds
	targets  targets
	own      Certificate
	pair     tls.Certificate // empty without TLS
	metrics  metrics
	hooks    *hook.Sender
	news     chan struct{} // a series may have a new run
	mail     chan struct{} // there may be events to send
	ctx      context.Context
	stop     context.CancelFunc
	tasks    sync.WaitGroup

	sweeping  sync.Mutex
	nextSweep time.Time
}

// Open opens a server without listening. Close it in the end.
func Open(ctx context.Context, o Options) (_ *Server, err error) {
	o.Silence = cmp.Or(o.Silence, queue.UsualSilence)
	s := &Server{o: o, started: time.Now().UnixMilli(), signs: signs{leases: map[string]lease{}, jobs: map[string]int64{}}, nextSweep: time.Now().Add(firstSweep), limits: newLimits(), longPoll: longPoll, runner: work.Runner{Program: o.Program, Limit: o.Limit, Memory: o.Memory, Disk: o.Disk}, news: make(chan struct{}, 1), mail: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// Programs for pages and jobs run in folders of their own.
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return nil, fmt.Errorf("folder for results: %w", err)
	}
	if o.Database != "" && !store.Elsewhere(o.Database) {
		return nil, errors.New("--database: expected a URL such as postgres://USER:PASSWORD@HOST/NAME; without --database results are in the folder")
	}
	local, err := loopback(o.Listen)
	if err != nil {
		return nil, err
	}
	if o.Cert != "" {
		if s.pair, err = readPair(o.Cert, o.Key); err != nil {
			return nil, err
		}
	}
	s.open = local && o.Cert == "" // a certificate is for others, and they need tokens
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, fmt.Errorf("folder for results: %w", err)
	}
	if s.lock, err = lockFolder(o.Data); err != nil {
		return nil, err
	}
	if !local && o.Cert == "" {
		if s.own, err = ownCertificate(o.Data, o.Listen, time.Now()); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		s.o.Cert, s.o.Key = s.own.File, s.own.Key
		if s.pair, err = readPair(s.own.File, s.own.Key); err != nil {
			return nil, err
		}
	}
	if s.db, err = store.Open(ctx, cmp.Or(o.Database, filepath.Join(o.Data, databaseName))); err != nil {
		return nil, err
	}
	s.hooks = hook.New(s.db, s.open)
	if s.files, err = blob.Open(filepath.Join(o.Data, filesName), o.Files, o.MaxFile); err != nil {
		return nil, err
	}
	if s.pages, err = openPages(filepath.Join(o.Data, "pages")); err != nil {
		return nil, err
	}
	s.queue, err = queue.Open(ctx, queue.Options{Dir: filepath.Join(o.Data, "jobs"), URL: o.NATS, Silence: o.Silence, Results: s.results, Failed: s.failedJob, Late: s.queueLate})
	if err != nil {
		return nil, err
	}
	s.handler = s.routes()
	if o.Worker {
		if err := s.startWorker(); err != nil {
			return nil, err
		}
	}
	s.tasks.Go(s.housekeeping)
	s.tasks.Go(s.watch)
	s.tasks.Go(s.post)
	return s, nil
}

// queueLate logs that the server goes on without a job queue for a while.
func (s *Server) queueLate(err error) { s.o.Log.Warn("the job queue is not ready yet", "error", err) }

// loopback reports whether an address is reachable from this computer only.
func loopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("--listen %q: expected HOST:PORT, such as 127.0.0.1:8080", address)
	}
	if host == "localhost" {
		return true, nil
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback(), nil
}

// Close ends everything. Jobs and results stay.
func (s *Server) Close() error {
	s.stop()
	s.tasks.Wait()
	if s.queue != nil {
		s.queue.Close()
	}
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if s.lock != nil {
		_ = filelock.Release(s.lock)
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// OwnCertificate is the certificate that the server made for itself, empty if it has another or none.
func (s *Server) OwnCertificate() Certificate { return s.own }

// results returns the runs that a job has in the database.
func (s *Server) results(ctx context.Context, job string) (ids []string, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		r, err := tx.RunOf(job)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		ids = []string{r.ID}
		return err
	})
	return ids, err
}

// Serve answers requests until the context ends. It calls ready with the address of the page once it
// listens, and ends if that fails.
func (s *Server) Serve(ctx context.Context, ready func(url string) error) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.o.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w: choose another port, or 0 for a free one", s.o.Listen, err)
	}
	h := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	defer context.AfterFunc(ctx, func() {
		s.stop() // ends what waits: long polls and events
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if h.Shutdown(grace) != nil {
			_ = h.Close()
		}
	})()
	url := "http://" + l.Addr().String() + "/"
	if s.o.Cert != "" {
		h.TLSConfig = &tls.Config{Certificates: []tls.Certificate{s.pair}, MinVersion: tls.VersionTLS12}
		url = "https://" + reachable(ctx, l.Addr(), s.pair.Leaf) + "/"
	}
	if err := ready(url); err != nil {
		return errors.Join(err, l.Close())
	}
	if s.o.Cert != "" {
		err = h.ServeTLS(l, "", "")
	} else {
		err = h.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

const (
	// keepDone is how long states of jobs that are done are kept; their results stay.
	keepDone = 10 * time.Minute
	// keepFailed is how long others are kept.
	keepFailed = 30 * 24 * time.Hour
	// keepDeleted is how long deleted runs can come back.
	keepDeleted = 30 * 24 * time.Hour
	// keepDelivered is how long the log of webhooks is kept.
	keepDelivered = 30 * 24 * time.Hour
	// keepUpload is how long an upload can go on that broke off.
	keepUpload = 24 * time.Hour
)

// housekeeping removes what is no longer needed.
func (s *Server) housekeeping() {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		if err := s.tidy(s.ctx, time.Now()); err != nil && s.ctx.Err() == nil {
			s.o.Log.Warn("tidying failed", "error", err)
		}
		select {
		case <-t.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// tidy removes what is too old at a time.
func (s *Server) tidy(ctx context.Context, now time.Time) error {
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	swept := error(nil)
	if !now.Before(s.nextSweep) {
		s.nextSweep = now.Add(sweepEvery)
		_, swept = s.sweep(ctx, now, "server")
	}
	return errors.Join(
		swept,
		s.queue.Forget(ctx, func(j *queue.Job) bool {
			return j.Changed < ago(keepFailed) || j.State == queue.Done && j.Changed < ago(keepDone)
		}),
		s.db.Change(ctx, func(tx *store.Tx) error {
			return errors.Join(tx.Purge(ago(keepDeleted)), tx.ForgetDeliveries(ago(keepDelivered)))
		}),
		s.files.Sweep(now.Add(-keepUpload)),
		s.pages.trim(),
	)
}
