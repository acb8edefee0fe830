package hook

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/server/store"
)

// receiver is a webhook with what it got.
type receiver struct {
	t      *testing.T
	s      *Sender
	at     time.Time
	hook   store.Hook
	answer int
	got    []*http.Request
	bodies []string
}

func start(t *testing.T) *receiver {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &receiver{t: t, s: New(db, true), at: time.Now(), answer: http.StatusNoContent}
	r.s.Now = func() time.Time { return r.at }
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.do(func(tx *store.Tx) error {
		p, err := tx.AddProject("p", "")
		if err != nil {
			return err
		}
		r.hook, err = tx.AddHook(p.ID, server.URL+"/hook")
		return err
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.got, r.bodies = append(r.got, req), append(r.bodies, string(b))
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(r.answer)
}

func (r *receiver) do(f func(*store.Tx) error) {
	r.t.Helper()
	if err := r.s.DB.Change(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *receiver) emit(object string) {
	r.t.Helper()
	r.do(func(tx *store.Tx) error { _, err := tx.Emit(r.hook.ID, RunFinished, object, `{"a":1}`); return err })
	r.at = r.at.Add(time.Second) // the event is due
}

// deliver sends what is due and returns when the next is, and the log.
func (r *receiver) deliver() (next time.Time, log []store.Delivery) {
	r.t.Helper()
	next, err := r.s.Deliver(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.do(func(tx *store.Tx) (err error) { log, err = tx.Deliveries(r.hook.ID, "", 99); return err })
	return next, log
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.emit("a")
	r.emit("b")
	next, log := r.deliver()
	if !next.IsZero() || len(r.got) != 2 || log[0].Delivered == nil || log[0].Status != 204 || log[0].Attempts != 1 {
		t.Fatalf("next %v, %d requests, log %+v", next, len(r.got), log)
	}
	h := r.got[0].Header
	want, err := sign(r.hook.Secret, h.Get("webhook-id"), h.Get("webhook-timestamp"), r.bodies[0])
	if err != nil || h.Get("webhook-signature") != want || h.Get("webhook-id") != log[1].ID || h.Get("webhook-timestamp") != fmt.Sprint(r.at.Unix()) || r.bodies[0] != `{"a":1}` || r.got[0].Method != http.MethodPost {
		t.Errorf("request %+v, body %s", r.got[0], r.bodies[0])
	}
	if r.deliver(); len(r.got) != 2 {
		t.Error("sent again")
	}
}

// The signature is that of the example in the specification of Standard Webhooks.
func TestSign(t *testing.T) {
	t.Parallel()
	got, err := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("%s, %v, expected %s", got, err, want)
	}
	if _, err := sign("whsec_?", "a", "b", "c"); err == nil {
		t.Error("a secret that is no base64 signs")
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.answer = http.StatusInternalServerError
	r.emit("a")
	for i, wait := range waits {
		next, log := r.deliver()
		if len(r.got) != i+1 || next.UnixMilli() != r.at.Add(wait).UnixMilli() || log[0].Problem != "the receiver answers 500" || log[0].Status != 500 {
			t.Fatalf("attempt %d: %d requests, next %v, log %+v", i, len(r.got), next, log)
		}
		r.at = next.Add(-time.Millisecond)
		if r.deliver(); len(r.got) != i+1 {
			t.Fatalf("attempt %d: sent too early", i)
		}
		r.at = next
	}
	next, log := r.deliver()
	if !next.IsZero() || len(r.got) != len(waits)+1 || log[0].Next != nil || log[0].Delivered != nil {
		t.Errorf("given up: next %v, log %+v", next, log)
	}
}

// An attempt that ended with its process is made again, and the receiver's recovery ends retries.
func TestClaimExpires(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.emit("a")
	r.do(func(tx *store.Tx) error {
		due, err := tx.DueDeliveries(r.at.UnixMilli(), 9)
		if err != nil {
			return err
		}
		return tx.Claim(&due[0], r.at.Add(held).UnixMilli())
	})
	next, _ := r.deliver()
	if len(r.got) != 0 || next.UnixMilli() != r.at.Add(held).UnixMilli() {
		t.Fatalf("%d requests, next %v", len(r.got), next)
	}
	r.at = next
	if next, log := r.deliver(); !next.IsZero() || len(r.got) != 1 || log[0].Attempts != 2 || log[0].Delivered == nil {
		t.Errorf("%d requests, log %+v", len(r.got), log)
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.answer = http.StatusFound
	r.emit("a")
	if _, log := r.deliver(); len(r.got) != 1 || !strings.Contains(log[0].Problem, "redirects are not followed") || log[0].Next == nil {
		t.Errorf("%d requests, log %+v", len(r.got), log)
	}
}

// A server that others reach connects to public addresses only, whatever a name leads to.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.s.Private = false
	for _, ip := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1",
		"[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]", "[ff02::1]",
	} {
		if err := r.s.allowed(ip + ":443"); err == nil {
			t.Errorf("%s is allowed", ip)
		}
		if err := r.s.Check("https://" + ip + "/"); err == nil {
			t.Errorf("https://%s/ is accepted", ip)
		}
	}
	for _, ip := range []string{"93.184.215.14:443", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443"} {
		if err := r.s.allowed(ip); err != nil {
			t.Error(err)
		}
	}
	r.emit("a")
	if _, log := r.deliver(); len(r.got) != 0 || !strings.Contains(log[0].Problem, "not a public address") {
		t.Errorf("%d requests, log %+v", len(r.got), log)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	local, public := New(nil, true), New(nil, false)
	for address, want := range map[string][2]bool{
		"https://example.com/hook":                  {true, true},
		"http://example.com/hook":                   {true, false},
		"http://127.0.0.1:8080/":                    {true, false},
		"https://u:p@example.com/":                  {false, false},
		"ftp://example.com/":                        {false, false},
		"file:///etc/passwd":                        {false, false},
		"example.com":                               {false, false},
		"https:///hook":                             {false, false},
		"https://a/" + strings.Repeat("x", longest): {false, false},
	} {
		if err := local.Check(address); (err == nil) != want[0] {
			t.Errorf("on loopback, %s: %v", address, err)
		}
		if err := public.Check(address); (err == nil) != want[1] {
			t.Errorf("elsewhere, %s: %v", address, err)
		}
	}
}
