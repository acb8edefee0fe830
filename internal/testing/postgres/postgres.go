//go:build unix

// Package postgres runs a PostgreSQL for tests and benchmarks: on loopback, in a temporary folder.
package postgres

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// tool finds a program of PostgreSQL; distributions keep most of them off the path.
func tool(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// ErrMissing says that PostgreSQL is not installed, or that no account may run it.
var ErrMissing = errors.New("PostgreSQL is missing: install the package postgresql")

// Server is a PostgreSQL with a folder of its own.
type Server struct {
	dir, program string
	port         int
	as           *syscall.SysProcAttr
	cmd          *exec.Cmd
	ended        chan struct{} // closed when no process of the server is left
}

// New makes an empty database. It is [ErrMissing] where PostgreSQL is.
func New() (_ *Server, err error) {
	initdb := tool("initdb")
	s := &Server{program: tool("postgres")}
	if initdb == "" || s.program == "" {
		return nil, ErrMissing
	}
	if s.port, err = free(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "postgres"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	if s.as, err = account(s.dir); err != nil {
		return nil, err
	}
	if out, err := s.run(initdb, "-D", s.data(), "-U", "opmeter", "-A", "trust", "-E", "UTF8", "--locale-provider=icu", "--icu-locale=de", "--no-sync").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) run(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.SysProcAttr = s.dir, s.as
	return c
}

// URL is the address of the database.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://opmeter@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// Start starts the server and waits until it takes connections.
func (s *Server) Start() error {
	s.cmd = s.run(s.program, "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.dir)
	log, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	said, last, ready := bufio.NewScanner(log), "", false
	for !ready && said.Scan() {
		last = said.Text()
		ready = strings.Contains(last, "ready to accept connections")
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(io.Discard, log)
	}()
	if !ready {
		s.end(syscall.SIGKILL)
		return fmt.Errorf("PostgreSQL ended at its start: %s", last)
	}
	return nil
}

// Kill ends the first process of the server at once, and waits until those that it started ended.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(how syscall.Signal) {
	_ = s.cmd.Process.Signal(how)
	<-s.ended
	_ = s.cmd.Wait()
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		s.end(syscall.SIGQUIT)
	}
	return os.RemoveAll(s.dir)
}

// Start starts a server that ends with the test, and returns the URL of an empty database. Without
// PostgreSQL the test is skipped.
func Start(t testing.TB) (url string) {
	t.Helper()
	s, err := New()
	if errors.Is(err, ErrMissing) {
		material.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

// account is who runs the server: PostgreSQL refuses to run as root, so that is its own account.
func account(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: root must not run it, and the account postgres is absent", ErrMissing)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2, os.Chown(dir, uid, gid)); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// free is a port that no program uses now.
func free() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
