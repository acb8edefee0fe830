//go:build unix

// Package postgres runs a PostgreSQL for tests: on loopback, in a temporary folder.
package postgres

import (
	"bufio"
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

// Start starts a server that ends with the test, and returns the URL of an empty database. Without
// PostgreSQL the test is skipped.
func Start(t testing.TB) (url string) {
	t.Helper()
	initdb, server := tool("initdb"), tool("postgres")
	if initdb == "" || server == "" {
		if material.Required() {
			t.Fatal("PostgreSQL is missing")
		}
		t.Skip("PostgreSQL is missing: install the package postgresql")
	}
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := account(t, dir)
	run := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr = dir, as
		return c
	}
	data := filepath.Join(dir, "data")
	if out, err := run(initdb, "-D", data, "-U", "opmeter", "-A", "trust", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := free(t)
	c := run(server, "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+dir)
	log, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(log)
	rest := make(chan struct{})
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGQUIT) // at once
		<-rest
		_ = c.Wait()
	})
	ready := false
	for !ready && said.Scan() {
		ready = strings.Contains(said.Text(), "ready to accept connections")
	}
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, log)
	}()
	if !ready {
		t.Fatal("PostgreSQL ended at its start")
	}
	return fmt.Sprintf("postgres://opmeter@127.0.0.1:%d/postgres?sslmode=disable", port)
}

// account is who runs the server: PostgreSQL refuses to run as root, so that is its own account.
func account(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		material.Skip(t, "the account postgres is missing, and root must not run PostgreSQL")
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// free is a port that no program uses now.
func free(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}
