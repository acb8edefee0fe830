// Package hook sends events to webhooks. Events and their attempts are in the database, so that none
// is lost when the server ends. They are signed as Standard Webhooks (standardwebhooks.com) are.
package hook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/server/store"
)

// Events.
const (
	RunFinished = "run.finished"
	AlertRaised = "alert.raised"
	JobFailed   = "job.failed"
	Test        = "test" // sent once, on demand
)

const (
	// timeout bounds one attempt.
	timeout = 15 * time.Second
	// held is how long an attempt keeps others from sending the same: longer than it can take.
	held = time.Minute
	// most is how many webhooks are served at the same time.
	most = 20
	// answer bounds what is read of an answer in bytes. Nothing in it is used.
	answer = 64 << 10
	// longest bounds the address in bytes, and the text of a problem.
	longest = 2000
)

// waits are the times between attempts. After the last attempt the event is given up.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

// Sender sends events.
type Sender struct {
	DB *store.DB
	// Private allows addresses of the own network and of this computer.
	Private bool
	// Now is the clock.
	Now    func() time.Time
	client *http.Client
}

// New makes a sender.
func New(db *store.DB, private bool) *Sender {
	s := &Sender{DB: db, Private: private, Now: time.Now}
	dialer := &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error { return s.allowed(address) }}
	s.client = &http.Client{
		Timeout: timeout,
		// No proxy: it would connect where this must not.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: answer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

// Check refuses what is no address of a webhook.
func (s *Sender) Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http", len(address) > longest:
		return errors.New("url: expected an address such as https://example.com/hook")
	case u.User != nil:
		return errors.New("url: leave out name and password: the secret of the webhook signs what is sent")
	case u.Scheme != "https" && !s.Private:
		return errors.New("url: expected https")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return s.allowed(netip.AddrPortFrom(ip, 443).String())
	}
	return nil
}

// reserved are addresses that are not of the public network, and prefixes that hold others.
var reserved = func() (out []netip.Prefix) {
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10",
	} {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}()

// allowed refuses an address to connect to that is not public.
func (s *Sender) allowed(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().WithZone("").Unmap()
	ok := ip.IsGlobalUnicast() && !ip.IsPrivate()
	for _, p := range reserved {
		ok = ok && !p.Contains(ip)
	}
	if !ok && !s.Private {
		return fmt.Errorf("%s is not a public address: webhooks reach others only if the server itself listens on loopback", ip)
	}
	return nil
}

// Deliver sends all events that are due, and returns when the next one is, zero if none waits.
func (s *Sender) Deliver(ctx context.Context) (next time.Time, err error) {
	for {
		var due []store.Delivery
		var at *int64
		err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
			if due, err = tx.DueDeliveries(s.Now().UnixMilli(), most); err != nil {
				return err
			}
			at, err = tx.NextDue()
			return err
		})
		switch {
		case err != nil:
			return next, err
		case len(due) == 0 && at == nil:
			return next, nil
		case len(due) == 0:
			return time.UnixMilli(*at), nil
		}
		errs := make([]error, len(due))
		var sent sync.WaitGroup
		for i := range due {
			sent.Go(func() { errs[i] = s.Attempt(ctx, &due[i]) })
		}
		sent.Wait()
		if err := errors.Join(errs...); err != nil {
			return next, err
		}
	}
}

// Attempt sends an event once and records what came of it.
func (s *Sender) Attempt(ctx context.Context, d *store.Delivery) error {
	var h store.Hook
	now := s.Now()
	err := s.DB.Change(ctx, func(tx *store.Tx) (err error) {
		if h, err = tx.Hook(d.Hook); err != nil {
			return err
		}
		return tx.Claim(d, now.Add(held).UnixMilli())
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // removed, or another server sends it
	}
	if err != nil {
		return err
	}
	status, err := s.send(ctx, &h, d, now)
	if ctx.Err() != nil {
		return ctx.Err() // the server ends: the claim expires
	}
	d.Status, d.Problem, d.Next = int64(status), "", nil
	if err == nil {
		d.Delivered = new(s.Now().UnixMilli())
	} else {
		d.Problem = err.Error()
		d.Problem = strings.ToValidUTF8(d.Problem[:min(len(d.Problem), longest)], "")
		if at := int(d.Attempts) - 1; d.Event != Test && at < len(waits) {
			d.Next = new(s.Now().Add(waits[at]).UnixMilli())
		}
	}
	err = s.DB.Change(ctx, func(tx *store.Tx) error { return tx.Attempted(d) })
	if errors.Is(err, store.ErrNotFound) {
		return nil // removed meanwhile
	}
	return err
}

// send posts an event.
func (s *Sender) send(ctx context.Context, h *store.Hook, d *store.Delivery, now time.Time) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	signature, err := sign(h.Secret, d.ID, at, d.Body)
	if err != nil {
		return 0, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "opmeter/" + buildinfo.Version(),
		"webhook-id": d.ID, "webhook-timestamp": at, "webhook-signature": signature,
	} {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the address is known
		}
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, answer)
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return res.StatusCode, nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return res.StatusCode, fmt.Errorf("the receiver answers %d: redirects are not followed", res.StatusCode)
	}
	return res.StatusCode, fmt.Errorf("the receiver answers %d", res.StatusCode)
}

// sign makes the signature of an event: HMAC-SHA256 of id, time and body.
func sign(secret, id, at, body string) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, store.SecretPrefix))
	if err != nil {
		return "", fmt.Errorf("secret of the webhook: %w", err)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(id + "." + at + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)), nil
}
