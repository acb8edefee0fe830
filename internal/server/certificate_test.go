package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestOwnCertificate: addresses that others reach need TLS. Without a certificate the server makes
// one, and keeps it until it is about to expire.
func TestOwnCertificate(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0", "name.example:0"} {
		c := start(t, func(o *Options) { o.Listen, o.Worker = listen, false })
		own := c.s.OwnCertificate()
		if c.s.open || c.s.o.Cert != own.File || own.Fingerprint == "" {
			t.Errorf("%s: open %v, certificate %+v", listen, c.s.open, own)
		}
	}
	given, err := ownCertificate(t.TempDir(), "127.0.0.1:0", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Listen: "127.0.0.1:0"}, {Listen: "localhost:0"}, {Listen: "127.0.0.1:0", Cert: given.File, Key: given.Key}} {
		c := start(t, func(p *Options) { p.Listen, p.Cert, p.Key, p.Worker = o.Listen, o.Cert, o.Key, false })
		if own := c.s.OwnCertificate(); own.File != "" || c.s.open != (o.Cert == "") {
			t.Errorf("%+v: open %v, certificate %+v", o, c.s.open, own)
		}
	}
	dir, now := t.TempDir(), time.Now()
	get := func(at time.Time) Certificate {
		t.Helper()
		c, err := ownCertificate(dir, "lab.example:8443", at)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := get(now)
	for _, file := range []string{first.File, first.Key} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	pair, err := tls.LoadX509KeyPair(first.File, first.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	for name, good := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "lab.example": true, "evil.example": false} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now}); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if pair.Leaf.IsCA {
		t.Error("the certificate can sign others")
	}
	if again := get(now.Add(700 * 24 * time.Hour)); again != first {
		t.Error("a certificate that is still valid was replaced")
	}
	renewed := get(now.Add(800 * 24 * time.Hour))
	if renewed.Fingerprint == first.Fingerprint {
		t.Error("a certificate that is about to expire was kept")
	}
	if err := os.WriteFile(renewed.Key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := get(now.Add(800 * 24 * time.Hour)); again.Fingerprint == renewed.Fingerprint {
		t.Error("a certificate without its key was kept")
	}
}

// TestWrongCertificate: errors name the option and the file, before anything else happens.
func TestWrongCertificate(t *testing.T) {
	t.Parallel()
	var pairs [2]Certificate
	for i := range pairs {
		var err error
		if pairs[i], err = ownCertificate(t.TempDir(), "127.0.0.1:0", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	a, b := pairs[0], pairs[1]
	for _, c := range []struct{ cert, key, want string }{
		{"nope.pem", a.Key, "--tls-cert: open nope.pem"},
		{a.File, "nope.key", "--tls-key: open nope.key"},
		{a.File, b.Key, "--tls-key " + b.Key},
		{a.Key, a.File, "--tls-cert " + a.Key},
	} {
		_, err := Open(t.Context(), Options{Data: t.TempDir(), Listen: "127.0.0.1:0", Cert: c.cert, Key: c.key})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, %s: %v", c.cert, c.key, err)
		}
	}
}

// TestReachable: the address that is printed leads to the server, by a name of its certificate.
func TestReachable(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		c := start(t, func(o *Options) { o.Listen, o.Worker = listen, false })
		ctx, stop := context.WithCancel(t.Context())
		at, ended := make(chan string, 1), make(chan error, 1)
		go func() { ended <- c.s.Serve(ctx, func(url string) error { at <- url; return nil }) }()
		page := <-at
		u, err := url.Parse(page)
		if err != nil || u.Hostname() == "::" || u.Hostname() == "0.0.0.0" {
			t.Errorf("%s: %s, %v", listen, page, err)
		}
		transport := &http.Transport{}
		if c.s.pair.Leaf != nil {
			pool := x509.NewCertPool()
			pool.AddCert(c.s.pair.Leaf)
			transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
		res, err := (&http.Client{Transport: transport}).Get(page + "health/live")
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %v", listen, page, err)
		} else {
			res.Body.Close()
		}
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
