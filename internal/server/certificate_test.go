package server

import (
	"crypto/tls"
	"crypto/x509"
	"os"
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
	for _, o := range []Options{{Listen: "127.0.0.1:0"}, {Listen: "localhost:0"}, {Listen: "127.0.0.1:0", Cert: "cert.pem"}} {
		c := start(t, func(p *Options) { p.Listen, p.Cert, p.Worker = o.Listen, o.Cert, false })
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
