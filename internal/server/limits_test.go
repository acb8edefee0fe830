package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opmeter/opmeter/internal/server/store"
)

// frozen stops the clock of the limits. The function sets it on.
func (c *client) frozen() (on func(time.Duration)) {
	now := time.Now()
	c.s.limits.now = func() time.Time { return now }
	return func(d time.Duration) { now = now.Add(d) }
}

// use takes all that is left of an allowance.
func (c *client) use(a *allowance, key string) {
	c.t.Helper()
	n := 0
	for c.s.limits.allow(a, key) {
		n++
	}
	if n > a.burst || n < a.burst/2 {
		c.t.Errorf("%d %s at once, expected about %d", n, a.what, a.burst)
	}
}

// TestAllowances: whoever uses up an allowance is told to wait, others are not, and it fills again.
func TestAllowances(t *testing.T) {
	t.Parallel()
	c := other(t)
	on := c.frozen()
	id := c.tokenID()
	known := *c
	wrong := *c
	wrong.token = "opm_wrong"
	const me, session = prefix + "/me", prefix + "/session"
	for _, a := range []struct {
		a            *allowance
		key          string
		caller       *client
		method, path string
		body         any
		full, spent  int
	}{
		{addressRequests, "127.0.0.1", c, "GET", me, nil, 200, 429},
		{tokenRequests, id, c, "GET", me, nil, 200, 429},
		{tokenUploads, id, c, "PUT", prefix + "/files/9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0", "aaa", 204, 429},
		{failedSignIns, "127.0.0.1", &wrong, "GET", me, nil, 401, 429},
		{failedSignIns, "127.0.0.1", &wrong, "POST", session, sessionBody{"opm_wrong"}, 401, 429},
		{failedSignIns, "127.0.0.1", &known, "GET", me, nil, 200, 200}, // others behind the same address
	} {
		if status, text, _ := a.caller.ask(a.method, a.path, a.body); status != a.full {
			t.Errorf("%s %s: %d %s, expected %d", a.method, a.path, status, text, a.full)
		}
		c.use(a.a, a.key)
		status, text, h := a.caller.ask(a.method, a.path, a.body)
		if status != a.spent || status == 429 && (!strings.Contains(text, "too many "+a.a.what) || h.Get("Retry-After") == "" && a.path != session) {
			t.Errorf("%s used up: %d %s %v, expected %d", a.a.what, status, text, h, a.spent)
		}
		on(time.Duration(float64(time.Second) * float64(a.a.burst) / float64(a.a.perSecond)))
		if status, text, _ := a.caller.ask(a.method, a.path, a.body); status != a.full {
			t.Errorf("%s later: %d %s, expected %d", a.a.what, status, text, a.full)
		}
		on(time.Hour)
	}
}

// tokenID is the id of the client's token.
func (c *client) tokenID() string {
	c.t.Helper()
	var k store.Token
	if err := c.s.db.View(c.t.Context(), func(tx *store.Tx) (err error) { k, err = tx.TokenOf(c.token); return err }); err != nil {
		c.t.Fatal(err)
	}
	return k.ID
}

// Addresses are remembered up to a number. Those that used up nothing make place for others.
func TestKnownAddresses(t *testing.T) {
	t.Parallel()
	l := newLimits()
	now := time.Now()
	l.now = func() time.Time { return now }
	for i := range maxKnown {
		l.allow(addressRequests, string(rune('a'+i)))
	}
	if l.allow(addressRequests, "new") {
		t.Error("more addresses are known than the limit")
	}
	now = now.Add(time.Minute)
	if !l.allow(addressRequests, "new") || len(l.of[addressRequests]) != 1 {
		t.Errorf("%d addresses are known after a minute", len(l.of[addressRequests]))
	}
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "pipe": "",
	} {
		if got := network(address); got != want {
			t.Errorf("%s counts as %q, expected %q", address, got, want)
		}
	}
}

// Uploads at the same time are bounded for each token and for all.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	c := other(t)
	const path = prefix + "/files/9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0"
	for _, b := range []struct {
		many int
		key  func(int) string
	}{
		{tokenUploading, func(int) string { return c.tokenID() }},
		{uploading, func(i int) string { return string(rune('a' + i)) }},
	} {
		var ends []func()
		for i := range b.many {
			end := c.s.limits.upload(b.key(i))
			if end == nil {
				t.Fatalf("only %d uploads at once, expected %d", i, b.many)
			}
			ends = append(ends, end)
		}
		if status, text, h := c.ask("PUT", path, "aaa"); status != 429 || h.Get("Retry-After") == "" {
			t.Errorf("one more than %d: %d %s", b.many, status, text)
		}
		for _, end := range ends {
			end()
		}
		if status, text, _ := c.ask("PUT", path, "aaa"); status != 204 {
			t.Errorf("afterwards: %d %s", status, text)
		}
	}
	if len(c.s.limits.uploads) != 0 || c.s.limits.total != 0 {
		t.Errorf("uploads that ended are counted: %v", c.s.limits.uploads)
	}
}

// deadlines notes the times that a body and an answer get.
type deadlines struct {
	httptest.ResponseRecorder
	all, written []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.written = append(d.written, t)
	return nil
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.all = append(d.all, t)
	return nil
}

// TestSlowUpload: each piece of a body has its time. An upload that stalls keeps what arrived.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	c := start(t)
	const path = prefix + "/files/9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0"
	w := &deadlines{ResponseRecorder: *httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPut, path, io.MultiReader(strings.NewReader("aa"), iotest.ErrReader(os.ErrDeadlineExceeded)))
	r.ContentLength, r.Host = 3, "127.0.0.1"
	c.s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestTimeout || w.Header().Get(offsetHeader) != "2" || len(w.all) == 0 {
		t.Errorf("stalled upload: %d %s, %d deadlines", w.Code, w.Body, len(w.all))
	}
	w = &deadlines{ResponseRecorder: *httptest.NewRecorder()}
	answer := &recorded{ResponseWriter: w}
	if n, err := answer.Write(make([]byte, 2*piece+1)); n != 2*piece+1 || err != nil || w.Body.Len() != n || len(w.written) != 4 || !w.written[3].IsZero() {
		t.Errorf("answer: %d bytes, %v, deadlines %v", n, err, w.written)
	}
	w = &deadlines{}
	p := &patient{r: strings.NewReader(strings.Repeat("x", 3*piece)), control: http.NewResponseController(w)}
	if n, err := io.Copy(io.Discard, p); n != 3*piece || err != nil || len(w.all) < 3 || len(w.all) > 4 {
		t.Errorf("%d bytes, %v, %d deadlines", n, err, len(w.all))
	}
}

// TestLimitsAreDocumented: the tables of the guide hold the figures of the code.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.FromSlash("../../docs/howto/serve.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := func(what string, a *allowance) string {
		return fmt.Sprintf("| %s | %d | %v |", what, a.burst, a.perSecond)
	}
	for _, want := range []string{
		row("requests | an address", addressRequests), row("requests | a token", tokenRequests),
		row("uploads | a token", tokenUploads), row("wrong tokens | an address", failedSignIns),
		fmt.Sprintf("| uploads at the same time | %d with one token, %d of all |", tokenUploading, uploading),
		fmt.Sprintf("| a piece of %d KB of an upload or of an answer | %.0f s |", piece>>10, slowest.Seconds()),
		fmt.Sprintf("| the header of a request | %.0f s, %d KB |", headerTime.Seconds(), maxHeader>>10),
		fmt.Sprintf("| jobs that wait or run | %d,000 |", maxWaiting/1000),
	} {
		if !strings.Contains(string(guide), want) {
			t.Errorf("docs/howto/serve.md lacks %s", want)
		}
	}
}
