// Command opmeter-server is the service behind opmeter serve, worker and push, which start it. It
// is a program of its own: databases and the message server would double the size of opmeter.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/server"
	"github.com/opmeter/opmeter/internal/server/push"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Printf("opmeter-server %s: opmeter serve and opmeter worker start it, there is nothing to do with it by hand.\n", buildinfo.Version())
		return
	}
	subprocess.Sweep()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	subprocess.WatchParent(os.Stdin, stop)
	err := run(ctx, os.Args[1], os.Args[2:])
	stop()
	subprocess.EndAll()
	if err != nil {
		// opmeter shows it as its own.
		fmt.Printf("\x1e%s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// run starts a server or a worker.
func run(ctx context.Context, what string, args []string) error {
	f := flag.NewFlagSet(what, flag.ContinueOnError)
	o := server.Options{Log: slog.New(slog.DiscardHandler)}
	f.StringVar(&o.Program, "opmeter", "", "file of opmeter")
	f.DurationVar(&o.Limit, "limit", 10*time.Minute, "longest time of a job")
	f.Int64Var(&o.Memory, "memory", 0, "most memory of a job in bytes")
	format := f.String("log", formatAuto, "auto, text or json")
	verbose := f.Bool("verbose", false, "log requests too")
	var (
		from, to string

		remote  work.Remote
		name    string
		base    string
		comment string
		sent    = push.Options{Server: &remote, Out: os.Stdout}
	)
	switch what {
	case "serve":
		f.StringVar(&o.Data, "data", "", "folder for results")
		f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "address")
		f.StringVar(&o.Database, "database", "", "URL of PostgreSQL")
		f.StringVar(&o.Files, "files", "", "bucket of S3")
		f.StringVar(&o.NATS, "nats", "", "address of NATS")
		f.StringVar(&o.Cert, "tls-cert", "", "certificate")
		f.StringVar(&o.Key, "tls-key", "", "key of the certificate")
		f.Int64Var(&o.MaxFile, "max-file", 4<<30, "largest upload in bytes")
		f.BoolVar(&o.Worker, "worker", true, "do jobs in this process")
	case "copy":
		f.StringVar(&from, "from", "", "source of results")
		f.StringVar(&to, "to", "", "target of results")
	case "worker":
		f.StringVar(&remote.URL, "server", "", "URL of the server")
		f.StringVar(&name, "name", "", "name of this worker")
	case "push":
		f.StringVar(&remote.URL, "server", "", "URL of the server")
		f.StringVar(&sent.Project, "project", "", "project")
		f.StringVar(&sent.Labels.Branch, "branch", "", "branch")
		f.StringVar(&sent.Labels.Commit, "commit", "", "commit")
		f.StringVar(&sent.Labels.Pull, "pull", "", "pull request")
		f.Func("tag", "tag", func(t string) error { sent.Tags = append(sent.Tags, t); return nil })
		f.BoolVar(&sent.Wait, "wait", true, "wait for the results")
		f.StringVar(&base, "base", "", "commit to compare with")
		f.StringVar(&comment, "comment", "", "file for the text of a comment")
	default:
		return fmt.Errorf("unknown part %q: expected serve, copy, worker or push", what)
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	var err error
	if o.Log, err = logTo(os.Stderr, *format, level); err != nil {
		return err
	}
	switch what {
	case "serve":
		return serve(ctx, o)
	case "copy":
		return copyResults(ctx, from, to)
	}
	if err := connect(&remote); err != nil {
		return err
	}
	if what == "worker" {
		return worker(ctx, &remote, name, &o)
	}
	known, _ := push.Recognise(os.Getenv)
	if known == (push.Labels{}) {
		known = push.Git(ctx, ".")
	}
	l := &sent.Labels
	l.Branch, l.Commit, l.Pull = cmp.Or(l.Branch, known.Branch), cmp.Or(l.Commit, known.Commit), cmp.Or(l.Pull, known.Pull)
	sent.Paths = f.Args()
	if !sent.Wait {
		return push.Push(ctx, &sent)
	}
	if sent.Bases, err = push.Bases(ctx, ".", base, os.Getenv); err != nil {
		return err
	}
	sent.Named = base != "" && len(sent.Bases) == 1
	return commented(ctx, &sent, comment)
}

// commented pushes, and writes the text of a comment to a file, to standard output for "-".
func commented(ctx context.Context, o *push.Options, file string) error {
	switch file {
	case "":
		return push.Push(ctx, o)
	case "-":
		o.Comment, o.Out = os.Stdout, io.Discard
		return push.Push(ctx, o)
	}
	if err := atomicfile.Check(file, o.Paths...); err != nil {
		return fmt.Errorf("--comment: %w", err)
	}
	var text bytes.Buffer
	o.Comment = &text
	err := push.Push(ctx, o)
	if text.Len() > 0 {
		err = errors.Join(err, atomicfile.Write(file, text.Bytes()))
	}
	return err
}

// connect prepares the client of a server elsewhere, with its token and certificate.
func connect(r *work.Remote) error {
	r.Token = os.Getenv("OPMETER_TOKEN")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if file := os.Getenv("OPMETER_CA"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("OPMETER_CA: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("OPMETER_CA=%s: no certificate inside", file)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	r.Client = &http.Client{Transport: transport}
	return nil
}

func serve(ctx context.Context, o server.Options) (err error) {
	s, err := server.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c := s.OwnCertificate(); c.File != "" {
		fmt.Printf("certificate %s %s\n", c.Fingerprint, c.File)
	}
	return s.Serve(ctx, func(url string) error {
		secret, err := s.FirstToken(ctx)
		if err != nil {
			return err
		}
		if secret != "" {
			fmt.Printf("token %s\n", secret)
		}
		fmt.Printf("url %s\n", url)
		return nil
	})
}

// copyResults copies results and prints what was copied.
func copyResults(ctx context.Context, from, to string) error {
	c, err := server.Copy(ctx, from, to)
	if err != nil {
		return err
	}
	for _, t := range c.Tables {
		fmt.Printf("%-9s %8d rows   hash %s\n", t.Table, t.Rows, t.Hash)
	}
	fmt.Printf("%-9s %8d checked by their SHA-256\n", "files", c.Files)
	return nil
}

// worker does jobs of a server elsewhere until the context ends.
func worker(ctx context.Context, r *work.Remote, name string, o *server.Options) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	w := &work.Worker{Server: r, Runner: work.Runner{Program: o.Program, Limit: o.Limit, Memory: o.Memory}, Name: cmp.Or(name, host), Log: o.Log}
	w.Offers = work.Offered(ctx, &w.Runner)
	// The first request says whether address and token are right.
	var me struct {
		Role    store.Role `json:"role"`
		Project string     `json:"project"`
	}
	if _, err := r.Call(ctx, http.MethodGet, "/me", nil, &me); err != nil {
		return fmt.Errorf("--server %s: %w", r.URL, err)
	}
	if me.Role == store.Read || me.Project != "" {
		return fmt.Errorf("--server %s: a worker needs a token with the role run (or admin) for all projects in OPMETER_TOKEN", r.URL)
	}
	fmt.Println("ready")
	if err := w.Work(ctx); err != nil {
		return fmt.Errorf("--server %s: %w", r.URL, err)
	}
	return nil
}
