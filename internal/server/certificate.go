package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// certificateLife is how long a certificate is valid that the server makes. Some systems refuse a
	// longer time.
	certificateLife = 825 * 24 * time.Hour
	// certificateRest is how long one must be valid at least: the server makes a new one before.
	certificateRest = 30 * 24 * time.Hour
)

// Certificate is one that the server made for itself.
type Certificate struct {
	File, Key string
	// Fingerprint is the SHA-256 of the certificate, as browsers show it.
	Fingerprint string
}

// ownCertificate returns the certificate in a folder. It makes one where none is there, or where it
// is about to expire or cannot be read. It is for this computer's names and the host of an address.
func ownCertificate(dir, listen string, now time.Time) (c Certificate, err error) {
	c = Certificate{File: filepath.Join(dir, "tls-cert.pem"), Key: filepath.Join(dir, "tls-key.pem")}
	if old, err := tls.LoadX509KeyPair(c.File, c.Key); err == nil && now.Add(certificateRest).Before(old.Leaf.NotAfter) {
		c.Fingerprint = fingerprint(old.Leaf.Raw)
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "opmeter server"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	template.DNSNames, template.IPAddresses = names(listen)
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return c, err
	}
	c.Fingerprint = fingerprint(raw)
	for _, f := range []struct {
		file, kind string
		content    []byte
	}{{c.Key, "PRIVATE KEY", secret}, {c.File, "CERTIFICATE", raw}} {
		if err := os.WriteFile(f.file, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.content}), 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readPair reads a certificate and its key. An error names the option and the file.
func readPair(cert, key string) (p tls.Certificate, err error) {
	public, err := os.ReadFile(cert)
	if err != nil {
		return p, fmt.Errorf("--tls-cert: %w", err)
	}
	secret, err := os.ReadFile(key)
	if err != nil {
		return p, fmt.Errorf("--tls-key: %w", err)
	}
	if p, err = tls.X509KeyPair(public, secret); err != nil {
		return p, fmt.Errorf("--tls-cert %s, --tls-key %s: expected a certificate and its key in PEM: %w", cert, key, err)
	}
	return p, nil
}

// reachable is HOST:PORT by which others reach an address. For one that stands for all addresses of
// this computer it is a name or an address that the certificate is for, if there is one.
func reachable(ctx context.Context, at net.Addr, cert *x509.Certificate) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	wait, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	host := "localhost"
	for _, h := range hosts(cert) {
		if cert.VerifyHostname(h) != nil {
			continue
		}
		if _, err := net.DefaultResolver.LookupHost(wait, h); err == nil {
			host = h
			break
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// hosts lists what this computer may be called, the best first.
func hosts(cert *x509.Certificate) (out []string) {
	dns, ips := names("")
	slices.Reverse(dns) // its name before localhost
	out = append(out, slices.DeleteFunc(slices.Clone(cert.DNSNames), func(n string) bool { return slices.Contains(dns, n) })...)
	out = append(out, dns[:len(dns)-1]...)
	for _, ip := range ips[2:] { // the first ones are for this computer alone
		out = append(out, ip.String())
	}
	return out
}

// names lists what this computer is called, and the host of an address.
func names(listen string) (dns []string, ips []net.IP) {
	host, _, _ := net.SplitHostPort(listen)
	dns, ips = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		ips = append(ips, ip)
	} else if ip == nil && host != "" {
		dns = append(dns, host)
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		dns = append(dns, name)
	}
	addresses, _ := net.InterfaceAddrs() // without them the names remain
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			ips = append(ips, n.IP)
		}
	}
	return dns, ips
}

func fingerprint(raw []byte) string {
	sum := sha256.Sum256(raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}
