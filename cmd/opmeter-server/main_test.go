package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/cli"
)

// program names the variable that makes the test binary the program opmeter.
const program = "OPMETER_TEST_PROGRAM"

// TestMain makes the test binary both programs: opmeter starts this one with the flag -opmeter, and
// this one starts opmeter with the name of a command.
func TestMain(m *testing.M) {
	switch {
	case slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-opmeter=") }):
		main()
	case os.Getenv(program) != "":
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	default:
		os.Exit(m.Run())
	}
}

// started is a run of opmeter whose lines are read.
type started struct {
	*exec.Cmd
	t     *testing.T
	lines *bufio.Scanner
}

func start(t *testing.T, args ...string) *started {
	t.Helper()
	return startWith(t, nil, args...)
}

func startWith(t *testing.T, env []string, args ...string) *started {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), append(env, program+"=1", "OPMETER_SERVER="+os.Args[0])...)
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return &started{c, t, bufio.NewScanner(out)}
}

// until reads lines up to one that contains a text.
func (s *started) until(text string) string {
	s.t.Helper()
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), text) {
			return s.lines.Text()
		}
	}
	s.t.Fatalf("it ended without %q", text)
	return ""
}

// end sends Ctrl-C and expects the status 0.
func (s *started) end() {
	s.t.Helper()
	if err := s.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		s.t.Errorf("ended by Ctrl-C with %v", err)
	}
}

// TestServe starts a server, a worker elsewhere and a push, as a user does, and copies the results.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, "serve", "--data", filepath.Join(dir, "data"), "--open=false", "--worker=false")
	_, url, _ := strings.Cut(server.until("serves at"), " at ")
	worker := start(t, "worker", "--server", url, "--name", "far")
	worker.until("does jobs of")
	model := filepath.Join(dir, "resnet8.tflite")
	if status := cli.Main([]string{"build", filepath.FromSlash("../../examples/resnet8.yaml"), "-o", model}, strings.NewReader(""), io.Discard, t.Output()); status != 0 {
		t.Fatalf("build ended with %d", status)
	}
	push := start(t, "push", model, "--server", url, "--project", "p", "--commit", "abc")
	line := push.until(url + "runs/")
	if err := push.Wait(); err != nil || !strings.HasPrefix(line, model+"  ") {
		t.Errorf("push: %q, %v", line, err)
	}
	// A second commit compares with the first.
	again := exec.Command(os.Args[0], "push", model, "--server", url, "--project", "p", "--commit", "def", "--base", "abc", "--comment", "comment.md")
	again.Env = append(os.Environ(), program+"=1", "OPMETER_SERVER="+os.Args[0])
	again.Dir = dir // no repository
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "compared with commit abc: "+url+"compare?runs=") {
		t.Errorf("second push: %v\n%s", err, out)
	}
	comment, err := os.ReadFile(filepath.Join(dir, "comment.md"))
	if text := string(comment); err != nil || !strings.HasPrefix(text, "<!-- opmeter push p -->\n**") || !strings.Contains(text, "| Time | ") || !strings.Contains(text, "| Multiply-accumulates | ") {
		t.Errorf("comment: %v\n%s", err, text)
	}
	worker.end()
	server.end()
}

// TestHostileFiles pushes a small model that declares huge tensors, and a small archive whose
// content is large. Both get an error, and the server does the next job.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	if !subprocess.Limits {
		t.Skip("this system does not bound the memory of a process")
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("huge.yaml"), []byte("name: huge\ntype: float32\ninput: {name: x, shape: [1, 4096, 4096, 16]}\nlayers:\n  - {op: conv, filters: 16, kernel: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for model, source := range map[string]string{"huge.tflite": file("huge.yaml"), "good.tflite": filepath.FromSlash("../../examples/resnet8.yaml")} {
		if status := cli.Main([]string{"build", source, "-o", file(model)}, strings.NewReader(""), io.Discard, t.Output()); status != 0 {
			t.Fatalf("build of %s ended with %d", model, status)
		}
	}
	f, err := os.Create(file("bomb.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("trace.json")
	for i := 0; i < 1500 && err == nil; i++ {
		_, err = w.Write(bytes.Repeat([]byte("["), 1<<20))
	}
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	server := start(t, "serve", "--data", file("data"), "--open=false", "--memory", "1GiB")
	_, url, _ := strings.Cut(server.until("serves at"), " at ")
	for _, c := range []struct{ file, want string }{{"huge.tflite", "memory"}, {"bomb.zip", "trace.json"}, {"good.tflite", ""}} {
		push := exec.Command(os.Args[0], "push", file(c.file), "--server", url, "--project", "p")
		push.Env = append(os.Environ(), program+"=1", "OPMETER_SERVER="+os.Args[0])
		out, err := push.CombinedOutput()
		if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %q, expected %q", c.file, err, out, c.want)
		}
	}
	server.end()
}

// issue signs a certificate, by itself if there is no issuer, and writes it and its key.
func issue(t *testing.T, file string, issuer *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: file}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: issuer == nil, BasicConstraintsValid: true,
	}
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey.(crypto.Signer)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: raw}, file + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(file, file+".key")
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestTLS: a worker and a push reach a server with the certificate of an authority that they are
// told of, and no other server.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := issue(t, file("ca.pem"), nil)
	issue(t, file("other.pem"), nil)
	issue(t, file("server.pem"), &ca)
	server := start(t, "serve", "--data", file("data"), "--open=false", "--worker=false", "--listen", "127.0.0.1:0", "--tls-cert", file("server.pem"), "--tls-key", file("server.pem.key"))
	_, token, _ := strings.Cut(server.until("Token of the first"), "once: ")
	_, url, _ := strings.Cut(server.until("serves at"), " at ")
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("the server is at %s", url)
	}
	text := "network: a\n"
	if err := os.WriteFile(file("a.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, url, ca, token, want string }{
		{"no authority", url, "", token, "OPMETER_CA"},
		{"another authority", url, file("other.pem"), token, "OPMETER_CA"},
		{"no certificate", url, file("a.csv"), token, "no certificate inside"},
		{"no token", url, file("ca.pem"), "", "token"},
		{"wrong token", url, file("ca.pem"), "opm_wrong", "token"},
		{"without TLS", strings.Replace(url, "https", "http", 1), file("ca.pem"), token, "400"},
	} {
		for _, args := range [][]string{{"worker", "--server", c.url}, {"push", file("a.csv"), "--server", c.url, "--project", "p"}} {
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), program+"=1", "OPMETER_SERVER="+os.Args[0], "OPMETER_CA="+c.ca, "OPMETER_TOKEN="+c.token)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) || c.token != "" && strings.Contains(string(out), c.token) {
				t.Errorf("%s with %s: %v, %q, expected %q", args[0], c.name, err, out, c.want)
			}
		}
	}
	env := []string{"OPMETER_CA=" + file("ca.pem"), "OPMETER_TOKEN=" + token}
	worker := startWith(t, env, "worker", "--server", url)
	worker.until("does jobs of")
	model := file("resnet8.tflite")
	if status := cli.Main([]string{"build", filepath.FromSlash("../../examples/resnet8.yaml"), "-o", model}, strings.NewReader(""), io.Discard, t.Output()); status != 0 {
		t.Fatalf("build ended with %d", status)
	}
	push := startWith(t, env, "push", model, "--server", url, "--project", "p")
	push.until(url + "runs/")
	if err := push.Wait(); err != nil {
		t.Errorf("push: %v", err)
	}
	worker.end()
	server.end()
	moved := start(t, "serve", "copy", "--from", filepath.Join(dir, "data"), "--to", filepath.Join(dir, "other"))
	for _, want := range []string{"projects         1 rows", "runs             1 rows", "files            2 checked"} {
		moved.until(want)
	}
	if err := moved.Wait(); err != nil {
		t.Errorf("copy: %v", err)
	}
}

// TestMistakes are answered in one line.
func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reads := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"name":"a","role":"read"}`) }))
	defer reads.Close()
	scoped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"a","role":"run","project":"p"}`)
	}))
	defer scoped.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--data", dir, "--listen", "here"}, "HOST:PORT"},
		{[]string{"serve", "--data", dir, "--database", "postgres://a:s3cret@127.0.0.1:1/x"}, "database: PostgreSQL at 127.0.0.1:1 does not answer: connect: connection refused: "},
		{[]string{"serve", "--data", dir, "--tls-cert", "a"}, "name both"},
		{[]string{"serve", "copy", "--from", dir}, "--from and --to"},
		{[]string{"serve", "copy", "--from", dir, "--to", "postgres://a:s3cret@127.0.0.1:1/x"}, "results.db"},
		{[]string{"serve", "--data", dir, "--memory", "64MiB"}, "at least 512MiB"},
		{[]string{"serve", "--data", dir, "--limit", "1ms"}, "at least 1s"},
		{[]string{"serve", "--data", dir, "--database", "foo.db"}, "--database: expected a URL"},
		{[]string{"serve", "--data", dir, "--nats", "nats://127.0.0.1:1"}, "--nats nats://127.0.0.1:1: "},
		{[]string{"worker", "--server", reads.URL}, "needs a token with the role run"},
		{[]string{"worker", "--server", scoped.URL}, "for all projects"},
		{[]string{"worker", "--server", "127.0.0.1"}, "expected the address"},
		{[]string{"worker", "--server", "http://127.0.0.1:1"}, "refused"},
		{[]string{"push", "absent", "--server", "http://127.0.0.1:1", "--project", "p"}, "absent"},
		{[]string{"push", dir, "--server", "http://127.0.0.1:1", "--project", "p"}, "no profile"},
		{[]string{"push", dir, "--server", "http://127.0.0.1:1"}, "--project"},
		{[]string{"push", dir, "--server", "http://127.0.0.1:1", "--project", "p", "--wait=false", "--comment", "-"}, "--wait=false"},
	} {
		cmd := exec.Command(os.Args[0], c.args...)
		cmd.Env = append(os.Environ(), program+"=1", "OPMETER_SERVER="+os.Args[0])
		out, err := cmd.CombinedOutput()
		if text := string(out); err == nil || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "opmeter: ") || !strings.Contains(text, c.want) || strings.Contains(text, "s3cret") {
			t.Errorf("%v: %v, %q", c.args, err, text)
		}
	}
}

// The token of the first administrator is shown by the server that listens, not by one that cannot.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	dir := t.TempDir()
	serve := func(listen string) []string {
		return []string{"serve", "--data", filepath.Join(dir, "data"), "--open=false", "--worker=false", "--listen", listen}
	}
	c := exec.Command(os.Args[0], serve(taken.Addr().String())...)
	c.Env = append(os.Environ(), program+"=1", "OPMETER_SERVER="+os.Args[0])
	if out, err := c.CombinedOutput(); err == nil || strings.Contains(string(out), "oken") || !strings.Contains(string(out), "--listen") {
		t.Errorf("%v, %q", err, out)
	}
	server := start(t, serve("0.0.0.0:0")...)
	server.until("Token of the first")
	server.end()
}
