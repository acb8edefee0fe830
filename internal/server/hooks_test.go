package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/server/hook"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
)

// told is an event as a receiver reads it.
type told struct {
	Type string `json:"type"`
	Data struct {
		Path    string `json:"path"`
		Project struct {
			Name string `json:"name"`
		} `json:"project"`
		Run   runView   `json:"run"`
		Alert alertView `json:"alert"`
		Job   struct {
			Error string `json:"error"`
		} `json:"job"`
	} `json:"data"`
}

// receiver takes events and passes them on.
func receiver(t *testing.T, status int) (url string, events chan told) {
	t.Helper()
	events = make(chan told, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e told
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = jsonx.Unmarshal(b, &e)
		}
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		events <- e
	}))
	t.Cleanup(s.Close)
	return s.URL, events
}

// hooked adds a project with a webhook.
func (c *client) hooked(url string) (v hookView) {
	c.t.Helper()
	c.call(200, "POST", "/projects", projectBody{Name: "p"}, nil)
	c.call(201, "POST", "/projects/p/hooks", hookBody{url}, &v)
	return v
}

func TestHooks(t *testing.T) {
	t.Parallel()
	c := start(t)
	url, events := receiver(t, 204)
	h := c.hooked(url)
	if !strings.HasPrefix(h.Secret, store.SecretPrefix) {
		t.Errorf("webhook %+v", h)
	}
	var d store.Delivery
	c.call(200, "POST", "/hooks/"+h.ID+"/test", nil, &d)
	if e := <-events; e.Type != hook.Test || e.Data.Project.Name != "p" || d.Status != 204 || d.Delivered == nil {
		t.Errorf("test %+v, %+v", e, d)
	}
	runs := []runView{}
	for i, text := range []string{"a", "bb"} { // the second has more MACs
		runs = append(runs, c.finished(text, func(b *jobBody) { b.Labels.Branch, b.Labels.Commit = "main", fmt.Sprint("c", i) }))
	}
	got := map[string]told{}
	for range 3 {
		e := <-events
		got[e.Type+e.Data.Path] = e
	}
	for _, r := range runs {
		if e := got[hook.RunFinished+"/runs/"+r.ID]; e.Data.Run.ID != r.ID || len(e.Data.Run.Figures) != 2 {
			t.Errorf("no event of the run %s in %+v", r.ID, got)
		}
	}
	alert := got[hook.AlertRaised+"/projects/"+runs[0].Project+"?figure=macs&series="+runs[0].Series]
	if alert.Data.Alert.Run != runs[1].ID || alert.Data.Alert.Commit != "c1" {
		t.Errorf("no event of the alert in %+v", got)
	}
	j := c.job("broken")
	c.until(j.ID, ended)
	if e := <-events; e.Type != hook.JobFailed || e.Data.Path != "/jobs/"+j.ID || !strings.Contains(e.Data.Job.Error, "not a model") {
		t.Errorf("failed job: %+v", e)
	}
	var log listed[store.Delivery]
	text := c.call(200, "GET", "/hooks/"+h.ID+"/deliveries", nil, &log)
	if len(log.Items) != 5 || strings.Contains(text, h.Secret) {
		t.Errorf("deliveries %s", text)
	}
	if text := c.call(200, "GET", "/projects/p/hooks", nil, nil); strings.Contains(text, h.Secret) {
		t.Errorf("the list shows secrets: %s", text)
	}
	c.call(204, "DELETE", "/hooks/"+h.ID, nil, nil)
	c.call(404, "GET", "/hooks/"+h.ID+"/deliveries", nil, nil)
	var audit listed[store.Entry]
	c.call(200, "GET", "/audit", nil, &audit)
	for _, what := range []string{"add webhook", "remove webhook"} {
		if !slices.ContainsFunc(audit.Items, func(e store.Entry) bool { return e.What == what && e.Object == h.ID }) {
			t.Errorf("audit without %q: %+v", what, audit)
		}
	}
}

// Events that a receiver refused are still queued after a restart.
func TestHooksRestart(t *testing.T) {
	t.Parallel()
	c := start(t)
	url, events := receiver(t, 503)
	h := c.hooked(url)
	j := c.finished("a").Job
	<-events
	// The log shows the refusal once the attempt is recorded: closing waits for it.
	c.close()
	c.open(c.s.o)
	var log listed[store.Delivery]
	c.call(200, "GET", "/hooks/"+h.ID+"/deliveries", nil, &log)
	if len(log.Items) != 1 || log.Items[0].Next == nil || log.Items[0].Delivered != nil {
		t.Errorf("job %s: %+v", j, log.Items)
	}
}

// A job that failed is told once, however often its end is reported.
func TestFailedJobOnce(t *testing.T) {
	t.Parallel()
	c := start(t)
	url, events := receiver(t, 204)
	h := c.hooked(url)
	var p store.Project
	c.call(200, "PUT", "/projects/p", projectBody{Name: "p"}, &p)
	for range 2 {
		if err := c.s.failedJob(t.Context(), &queue.Job{ID: "j1", Project: p.ID, Error: "bad"}); err != nil {
			t.Fatal(err)
		}
	}
	<-events
	var log listed[store.Delivery]
	if c.call(200, "GET", "/hooks/"+h.ID+"/deliveries", nil, &log); len(log.Items) != 1 {
		t.Errorf("%+v", log)
	}
}

func TestHookLimits(t *testing.T) {
	t.Parallel()
	c := other(t).as(store.Admin, "")
	c.call(200, "POST", "/projects", projectBody{Name: "p"}, nil)
	for _, url := range []string{"http://example.com/", "https://127.0.0.1/", "https://[::1]:8443/", "https://10.0.0.1/", "ftp://example.com/", "x"} {
		c.call(422, "POST", "/projects/p/hooks", hookBody{url}, nil)
	}
	var v hookView
	for range maxHooks {
		c.call(201, "POST", "/projects/p/hooks", hookBody{"https://localhost/"}, &v)
	}
	c.call(409, "POST", "/projects/p/hooks", hookBody{"https://example.com/"}, nil)
	// A name that leads to this computer passes the first check, and no connection is made.
	var d store.Delivery
	c.call(200, "POST", "/hooks/"+v.ID+"/test", nil, &d)
	if !strings.Contains(d.Problem, "not a public address") || d.Next != nil || d.Delivered != nil {
		t.Errorf("delivery %+v", d)
	}
}
