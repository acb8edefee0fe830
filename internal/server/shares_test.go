package server

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/server/store"
)

func TestShares(t *testing.T) {
	t.Parallel()
	c := other(t)
	first, second := c.finished("one"), c.finished("two")
	visitor := *c
	visitor.token = ""
	see := func(path string) (int, string, http.Header) { return visitor.send("GET", path, nil) }

	var one, both shareView
	c.as(store.Start, "").call(201, "POST", "/shares", shareBody{Runs: []string{first.ID}, Days: 30}, &one)
	c.call(201, "POST", "/shares", shareBody{Runs: []string{first.ID, second.ID}}, &both)
	status, body, h := see(one.Path)
	if status != 200 || body != "<html>report" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Robots-Tag") != "noindex" || one.Expires == nil {
		t.Errorf("shared run: %d %s %v", status, body, h)
	}
	if status, body, _ := see(both.Path); status != 200 || body != "<html>compare" {
		t.Errorf("shared comparison: %d %s", status, body)
	}

	// The secret opens nothing else.
	secret := strings.TrimPrefix(one.Path, "/shared/")
	for _, path := range []string{
		"/runs/" + first.ID + "/page", "/runs/" + first.ID + "/profile", "/compare/page?runs=" + first.ID + "," + second.ID,
		prefix + "/runs", prefix + "/runs/" + first.ID, prefix + "/files/" + first.Blob, prefix + "/shares?runs=" + first.ID, prefix + "/me",
	} {
		for _, header := range [][]string{nil, {"Authorization", "Bearer " + secret}, {"Cookie", sessionCookie + "=" + secret}} {
			if status, body, _ := visitor.send("GET", path, nil, header...); status != 401 {
				t.Errorf("%s with %q: %d %s", path, header, status, body)
			}
		}
	}
	for _, path := range []string{one.Path + "/badge.svg", one.Path + "x", "/shared/" + one.ID, "/shared/%27%20OR%201=1", "/shared/" + strings.Repeat("A", 32)} {
		if status, body, _ := see(path); status != 404 || !strings.Contains(body, noShare) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{one.Path + "/profile", one.Path + "/page"} { // the page of the server, which knows nothing
		if _, body, _ := see(path); strings.Contains(body, "profile of one") || strings.Contains(body, first.ID) {
			t.Errorf("%s: %s", path, body)
		}
	}

	// Links are listed without their secrets, and end.
	var list listed[store.Share]
	if text := c.call(200, "GET", "/shares?runs="+first.ID, nil, &list); len(list.Items) != 1 || strings.Contains(text, secret) {
		t.Errorf("shares %s", text)
	}
	c.call(405, "GET", "/shares/"+one.ID, nil, nil)
	c.call(204, "DELETE", "/shares/"+one.ID, nil, nil)
	if status, _, _ := see(one.Path); status != 404 {
		t.Errorf("revoked: %d", status)
	}
	if c.call(200, "GET", "/shares?runs="+first.ID, nil, &list); len(list.Items) != 0 {
		t.Errorf("shares after revoking: %+v", list.Items)
	}
	var ended string
	err := c.s.db.Change(t.Context(), func(tx *store.Tx) (err error) {
		_, ended, err = tx.AddShare(store.Share{Project: first.Project, Runs: first.ID, Expires: new(int64(1))})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, _ := see("/shared/" + ended); status != 404 {
		t.Errorf("expired: %d", status)
	}
	c.call(204, "DELETE", "/runs/"+second.ID, nil, nil)
	if status, _, _ := see(both.Path); status != 404 {
		t.Errorf("a run is in the bin: %d", status)
	}

	// Others' projects and nonsense cannot be shared.
	c.call(200, "POST", "/projects", projectBody{Name: "other"}, nil)
	scoped := c.as(store.Start, "other")
	scoped.call(404, "POST", "/shares", shareBody{Runs: []string{first.ID}}, nil)
	scoped.call(404, "POST", "/shares", shareBody{Series: first.Series, Figure: "macs"}, nil)
	scoped.call(404, "DELETE", "/shares/"+both.ID, nil, nil)
	if scoped.call(200, "GET", "/shares?runs="+first.ID+","+second.ID, nil, &list); len(list.Items) != 0 {
		t.Errorf("shares of another project: %+v", list.Items)
	}
	for _, b := range []shareBody{{}, {Runs: []string{first.ID}, Series: first.Series}, {Series: first.Series}, {Figure: "macs"}} {
		c.call(422, "POST", "/shares", b, nil)
	}
	c.as(store.Read, "").call(403, "POST", "/shares", shareBody{Runs: []string{first.ID}}, nil)
}

func TestBadge(t *testing.T) {
	t.Parallel()
	c := other(t)
	r := c.finished("one latency=0.0031 ")
	c.finished("two latency=7 ", func(b *jobBody) { b.Labels.Pull = "8" }) // not merged
	visitor := *c
	visitor.token = ""
	var v shareView
	c.call(201, "POST", "/shares", shareBody{Series: r.Series, Figure: "latency_s"}, &v)
	status, body, h := visitor.send("GET", v.Path, nil)
	if status != 200 || h.Get("Content-Type") != "image/svg+xml" || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" || !strings.Contains(body, "<title>net: 3.10 ms</title>") {
		t.Errorf("badge: %d %s %v", status, body, h)
	}
	if status, _, _ := visitor.send("GET", strings.TrimSuffix(v.Path, "/badge.svg"), nil); status != 404 {
		t.Errorf("the page of a badge: %d", status)
	}
	c.call(204, "DELETE", "/shares/"+v.ID, nil, nil)
	if status, _, _ := visitor.send("GET", v.Path, nil); status != 404 {
		t.Errorf("revoked: %d", status)
	}
}

// A badge is XML whatever a model is called, and has no markup of it.
func TestBadgeNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "resnet8", `<script>"&'`, strings.Repeat("é", 500), "a\x00\u202e\xff"} {
		text := badge(name, "3.1 ms")
		d, elements := xml.NewDecoder(strings.NewReader(text)), 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v in %s", name, err, text)
			}
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		if elements != 7 || len(text) > 1500 || strings.Contains(text, "%!") {
			t.Errorf("%q: %d elements in %s", name, elements, text)
		}
	}
}
