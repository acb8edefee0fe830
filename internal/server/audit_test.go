package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// operation is an operation of the description with its identifier.
type operation struct {
	method, path, id string
}

// described lists the operations of the API's description.
func (c *client) described() (out []operation) {
	c.t.Helper()
	_, text, _ := c.send("GET", "/openapi.json", nil)
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := jsonx.Unmarshal([]byte(text), &doc); err != nil {
		c.t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			out = append(out, operation{strings.ToUpper(method), path, o.ID})
		}
	}
	if len(out) < 30 {
		c.t.Fatalf("%d operations are described", len(out))
	}
	return out
}

// ask sends a request with a body that is a text or a value, nil for none.
func (c *client) ask(method, path string, body any) (int, string, http.Header) {
	c.t.Helper()
	var r io.Reader
	header := []string{"Content-Type", "application/json"}
	switch b := body.(type) {
	case nil:
	case string:
		r, header = strings.NewReader(b), []string{"Content-Type", "application/octet-stream"}
	default:
		text, err := jsonx.Marshal(b)
		if err != nil {
			c.t.Fatal(err)
		}
		r = bytes.NewReader(text)
	}
	return c.send(method, path, r, header...)
}

// TestEveryRole calls each operation with each role: nobody gets in without a token, and no role
// below that of the operation.
func TestEveryRole(t *testing.T) {
	t.Parallel()
	c := other(t)
	c.s.longPoll = time.Millisecond
	// What reads needs the role read, what changes something the role run, but for these.
	least := map[string]store.Role{
		"sign-in": anyone, "sign-out": store.Read, "uploaded": store.Start,
		"add-token": store.Admin, "list-tokens": store.Admin, "revoke-token": store.Admin, "list-audit": store.Admin,
		"list-hooks": store.Admin, "add-hook": store.Admin, "remove-hook": store.Admin, "test-hook": store.Admin, "list-deliveries": store.Admin,
		"list-retention": store.Admin, "set-retention": store.Admin, "remove-retention": store.Admin, "preview-retention": store.Admin,
		"apply-retention": store.Admin, "list-shares": store.Start,
	}
	operations := c.described()
	for _, path := range []string{"/metrics", "/runs/x/page", "/runs/x/profile", "/compare/page?runs=a,b"} {
		operations = append(operations, operation{http.MethodGet, path, path})
	}
	callers := []*client{c.as(store.Read, ""), c.as(store.Start, ""), c.as(store.Admin, "")}
	nobody := *c
	nobody.token = ""
	for _, o := range operations {
		need, ok := least[o.id]
		delete(least, o.id)
		switch {
		case ok:
		case o.method == http.MethodGet:
			need = store.Read
		default:
			need = store.Start
		}
		path := strings.NewReplacer("{id}", "x", "{hash}", "x").Replace(o.path)
		if status, text, _ := nobody.ask(o.method, path, nil); (status == http.StatusUnauthorized) != (need != anyone) {
			t.Errorf("%s without a token: %d %s", o.id, status, text)
		}
		for i, caller := range callers {
			status, text, _ := caller.ask(o.method, path, nil)
			if allowed := need == anyone || i >= slices.Index(store.Roles, need); allowed == (status == http.StatusForbidden) || status == http.StatusUnauthorized {
				t.Errorf("%s as %s: %d %s, it needs %s", o.id, store.Roles[i], status, text, need)
			}
		}
	}
	for id := range least {
		t.Errorf("operation %s is not described", id)
	}
}

// stage is a server with a run, a job that waits and a lease, as operations need them.
type stage struct {
	*client
	run, other runView // of the projects p and q
	lease      queue.Lease
	waits      queue.Job
	token      string // id of a token
	has, lacks things // of the projects p and q
}

// things are ids of what belongs to a run or a project.
type things struct{ alert, hook, share string }

func (v *stage) things(r *runView) (out things) {
	err := v.s.db.Change(v.t.Context(), func(tx *store.Tx) error {
		a, err1 := tx.AddAlert(store.Alert{Project: r.Project, Series: r.Series, Run: r.ID, Figure: "latency_s", Before: 1, After: 2})
		h, err2 := tx.AddHook(r.Project, "https://127.0.0.1:1/")
		s, _, err3 := tx.AddShare(store.Share{Project: r.Project, Runs: r.ID})
		out = things{a.ID, h.ID, s.ID}
		return errors.Join(err1, err2, err3)
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return out
}

func staged(t *testing.T) *stage {
	t.Helper()
	v := &stage{client: other(t)}
	v.run = v.finished("model")
	v.other = v.finished("secret", func(b *jobBody) { b.Project = "q" })
	v.s.longPoll = time.Millisecond
	var k tokenView
	v.call(200, "POST", "/tokens", tokenBody{Name: "old", Role: store.Read}, &k)
	v.token = k.ID
	// The worker of the server ends: jobs wait from now on.
	v.s.stop()
	v.s.tasks.Wait()
	c := v.client
	c.close()
	o := c.s.o
	o.Worker = false
	c.open(o)
	c.job("first")
	v.call(200, "POST", "/leases", leaseBody{Worker: "w", Offers: queue.Offers{Targets: []string{"host"}, CPUs: []string{}, Engines: []string{}, Boards: []string{}}}, &v.lease)
	v.has, v.lacks = v.things(&v.run), v.things(&v.other)
	v.waits = v.job("second", func(b *jobBody) { b.Project = "q" })
	return v
}

// TestAudit calls each operation that changes something. It must write one line, or none for the
// reason that stands here.
func TestAudit(t *testing.T) {
	t.Parallel()
	v := staged(t)
	v.call(204, "DELETE", "/projects/"+v.other.Project, nil, nil)
	run := "/runs/" + v.run.ID
	hash := v.upload("known")
	steps := []struct {
		id, path string
		body     any
		want     string // "" for none
	}{
		{"add-job", "/jobs", jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "a.onnx", Hash: hash}}}, "add job"},
		{"cancel-job", "/jobs/" + v.waits.ID + "/cancel", nil, "cancel job"},
		{"lease-job", "/leases", leaseBody{Worker: "w", Offers: queue.Offers{Targets: []string{"none"}, CPUs: []string{}, Engines: []string{}, Boards: []string{}}}, ""}, // its end is a line
		{"renew-lease", "/leases", work.Renewal{Token: v.lease.Token}, ""},                                                                                               // every few seconds
		{"end-lease", "/leases/end", work.End{Token: v.lease.Token, Result: &work.Result{Hash: hash, Figures: []store.Figure{}}}, "end job"},
		{"add-project", "/projects", projectBody{Name: "new"}, "add project"},
		{"change-project", "/projects/p", projectBody{Name: "p", Description: "x"}, "change project"},
		{"delete-project", "/projects/" + v.run.Project, nil, "delete project"},
		{"restore-project", "/projects/" + v.run.Project + "/restore", nil, "restore project"},
		{"note-run", run + "/note", noteBody{Note: "x", Tags: []string{}}, "note run"},
		{"delete-run", run, nil, "delete run"},
		{"restore-run", run + "/restore", nil, "restore run"},
		{"delete-runs", "/delete-runs", several{IDs: []string{v.run.ID, v.run.ID}}, "delete run"},
		{"restore-runs", "/restore-runs", several{IDs: []string{v.run.ID}}, "restore run"},
		{"acknowledge-alert", "/alerts/" + v.has.alert + "/acknowledge", seenBody{}, "acknowledge alert"},
		{"add-hook", "/projects/p/hooks", hookBody{URL: "https://example.org/"}, "add webhook"},
		{"test-hook", "/hooks/" + v.has.hook + "/test", nil, "test webhook"},
		{"remove-hook", "/hooks/" + v.has.hook, nil, "remove webhook"},
		{"add-share", "/shares", shareBody{Runs: []string{v.run.ID}, Days: 1}, "add share"},
		{"revoke-share", "/shares/" + v.has.share, nil, "revoke share"},
		{"set-retention", "/retention/p", store.Rule{}, "set retention"},
		{"preview-retention", "/retention/p/preview", store.Rule{}, ""},
		{"remove-retention", "/retention/p", nil, "remove retention"},
		{"apply-retention", "/apply-retention", nil, ""}, // each deletion is a line
		{"add-token", "/tokens", tokenBody{Name: "k", Role: store.Read}, "add token"},
		{"revoke-token", "/tokens/" + v.token, nil, "revoke token"},
		{"sign-in", "/session", sessionBody{Token: v.client.token}, "sign in"},
		{"sign-out", "/session", nil, "sign out"},
		{"upload-file", "/files/9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0", "aaa", "upload file"},
	}
	methods := map[string]operation{}
	for _, o := range v.described() {
		if o.method != http.MethodGet && o.method != http.MethodHead {
			methods[o.id] = o
		}
	}
	lines := func() []store.Entry {
		var l listed[store.Entry]
		v.call(200, "GET", "/audit?limit=200", nil, &l)
		return l.Items
	}
	for _, s := range steps {
		o, ok := methods[s.id]
		if !ok {
			t.Fatalf("%s is not described", s.id)
		}
		delete(methods, s.id)
		before := len(lines())
		if status, text, _ := v.ask(o.method, prefix+s.path, s.body); status >= 300 {
			t.Fatalf("%s: %d %s", s.id, status, text)
		}
		now := lines()
		switch {
		case s.want == "" && len(now) == before:
		case len(now) != before+1 || now[0].What != s.want:
			t.Errorf("%s wrote %d lines, the last is %+v, expected %q", s.id, len(now)-before, now[0], s.want)
		case now[0].Who != "first" || now[0].Address != "127.0.0.1" || now[0].Created == 0 || now[0].Object == "":
			t.Errorf("%s: who, where, when or what is absent in %+v", s.id, now[0])
		}
	}
	for id := range methods {
		t.Errorf("operation %s changes something and has no row here", id)
	}
	// The same request again changes nothing.
	before := len(lines())
	v.upload("known")
	if now := lines(); len(now) != before {
		t.Errorf("a file that is here: %+v", now[0])
	}
}

// TestOneProject calls each operation with tokens for one project and things of another. Nothing of
// it may be seen or changed, not even that it exists.
func TestOneProject(t *testing.T) {
	t.Parallel()
	v := staged(t)
	v.call(204, "PUT", "/runs/"+v.other.ID+"/note", noteBody{Note: "confidential", Tags: []string{"hidden"}}, nil)
	run, file := "/runs/"+v.other.ID, "/files/"+v.other.Blob
	model := "/files/" + v.other.ModelHash
	steps := []struct {
		id, path string
		body     any
		want     []int // 200: an answer in which nothing of the other project stands
	}{
		{"list-jobs", "/jobs", nil, []int{200}},
		{"add-job", "/jobs", jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "a.onnx", Hash: v.other.ModelHash}}}, []int{422}},
		{"add-job", "/jobs", jobBody{Project: "q", Kind: work.Profile, Inputs: []inputBody{{Name: "a.onnx", Hash: v.run.ModelHash}}}, []int{404}},
		{"get-job", "/jobs/" + v.waits.ID, nil, []int{404}},
		{"get-job", "/jobs/" + v.other.Job, nil, []int{404}},
		{"cancel-job", "/jobs/" + v.waits.ID + "/cancel", nil, []int{404}},
		{"follow-job", "/jobs/" + v.waits.ID + "/events", nil, []int{200}},
		{"lease-job", "/leases", leaseBody{Worker: "w", Offers: queue.Offers{Targets: []string{"host"}, CPUs: []string{}, Engines: []string{}, Boards: []string{}}}, []int{403}},
		{"renew-lease", "/leases", work.Renewal{Token: v.lease.Token}, []int{403}},
		{"end-lease", "/leases/end", work.End{Token: v.lease.Token, Problem: "x"}, []int{403}},
		{"list-projects", "/projects", nil, []int{200}},
		{"list-projects", "/projects?deleted=true", nil, []int{200}},
		{"add-project", "/projects", projectBody{Name: "q"}, []int{403}},
		{"change-project", "/projects/q", projectBody{Name: "stolen"}, []int{404}},
		{"delete-project", "/projects/" + v.other.Project, nil, []int{404}},
		{"restore-project", "/projects/" + v.other.Project + "/restore", nil, []int{404}},
		{"list-series", "/projects/q/series", nil, []int{404}},
		{"list-runs", "/runs", nil, []int{200}},
		{"list-runs", "/runs?search=confidential", nil, []int{200}},
		{"list-runs", "/runs?tag=hidden", nil, []int{200}},
		{"list-runs", "/runs?deleted=true", nil, []int{200}},
		{"list-runs", "/runs?series=" + v.other.Series, nil, []int{200}},
		{"list-runs", "/runs?project=q", nil, []int{404}},
		{"get-run", run, nil, []int{404}},
		{"note-run", run + "/note", noteBody{Note: "x", Tags: []string{}}, []int{404}},
		{"delete-run", run, nil, []int{404}},
		{"restore-run", run + "/restore", nil, []int{404}},
		{"delete-runs", "/delete-runs", several{IDs: []string{v.run.ID, v.other.ID}}, []int{404}},
		{"restore-runs", "/restore-runs", several{IDs: []string{v.other.ID}}, []int{404}},
		{"get-base", run + "/base", nil, []int{404}},
		{"compare-runs", "/comparison?runs=" + v.run.ID + "," + v.other.ID, nil, []int{404}},
		{"list-alerts", "/alerts", nil, []int{200}},
		{"list-alerts", "/alerts?project=q", nil, []int{404}},
		{"acknowledge-alert", "/alerts/" + v.lacks.alert + "/acknowledge", seenBody{}, []int{404}},
		{"list-hooks", "/projects/q/hooks", nil, []int{404}},
		{"add-hook", "/projects/q/hooks", hookBody{URL: "https://example.org/"}, []int{404}},
		{"remove-hook", "/hooks/" + v.lacks.hook, nil, []int{404}},
		{"list-deliveries", "/hooks/" + v.lacks.hook + "/deliveries", nil, []int{404}},
		{"test-hook", "/hooks/" + v.lacks.hook + "/test", nil, []int{404}},
		{"add-share", "/shares", shareBody{Runs: []string{v.run.ID, v.other.ID}, Days: 1}, []int{404}},
		{"add-share", "/shares", shareBody{Series: v.other.Series, Figure: "macs", Days: 1}, []int{404}},
		{"list-shares", "/shares?runs=" + v.other.ID, nil, []int{200}},
		{"revoke-share", "/shares/" + v.lacks.share, nil, []int{404}},
		{"list-retention", "/retention", nil, []int{200}},
		{"set-retention", "/retention/q", store.Rule{}, []int{404}},
		{"set-retention", "/retention/*", store.Rule{}, []int{403}},
		{"remove-retention", "/retention/q", nil, []int{404}},
		{"preview-retention", "/retention/q/preview", store.Rule{}, []int{404}},
		{"apply-retention", "/apply-retention", nil, []int{403}},
		{"list-workers", "/workers", nil, []int{200}},
		{"get-trend", "/series/" + v.other.Series + "/trend?figure=macs", nil, []int{404}},
		{"add-token", "/tokens", tokenBody{Name: "k", Role: store.Read, Project: "q"}, []int{403, 404}},
		{"add-token", "/tokens", tokenBody{Name: "k", Role: store.Read}, []int{403}},
		{"list-tokens", "/tokens", nil, []int{200, 403}},
		{"revoke-token", "/tokens/" + v.token, nil, []int{403}},
		{"list-audit", "/audit", nil, []int{403}},
		{"get-me", "/me", nil, []int{200}},
		{"get-system", "/system", nil, []int{200}},
		{"list-targets", "/targets", nil, []int{200}},
		{"sign-in", "/session", sessionBody{Token: "guessed"}, []int{401}},
		{"sign-out", "/session", nil, []int{204}},
		{"upload-file", model, "not the model", []int{422}},
		{"uploaded", model, nil, []int{204}},
		{"download-file", model, nil, []int{404}},
		{"download-file", file, nil, []int{404}},
		{"page", "/../.." + run + "/page", nil, []int{404}},
		{"page", "/../.." + run + "/profile", nil, []int{404}},
		{"page", "/../.." + run + "/report?as=.json", nil, []int{404}},
		{"page", "/../.." + run + "/model", nil, []int{404}},
		{"page", "/../../compare/page?runs=" + v.run.ID + "," + v.other.ID, nil, []int{404}},
		{"page", "/../../metrics", nil, []int{403}},
	}
	known := map[string]operation{"page": {method: http.MethodGet}}
	for _, o := range v.described() {
		known[o.id] = o
	}
	called := map[string]bool{}
	secrets := []string{v.other.ID, v.other.Series, v.other.Blob, v.other.ModelHash, v.other.Project, v.waits.ID, "confidential", "hidden", `"q"`}
	for _, role := range store.Roles {
		scoped := v.as(role, "p")
		for _, s := range steps {
			o, ok := known[s.id]
			if !ok {
				t.Fatalf("%s is not described", s.id)
			}
			called[s.id] = true
			path := prefix + s.path
			if rest, ok := strings.CutPrefix(s.path, "/../.."); ok {
				path = rest
			}
			status, text, header := scoped.ask(o.method, path, s.body)
			// A role below that of the operation is told only that it is too low.
			if !slices.Contains(s.want, status) && (status != 403 || role == store.Admin) {
				t.Errorf("%s %s as %s: %d %.300s, expected %v", o.method, path, role, status, text, s.want)
			}
			for _, secret := range secrets {
				if status < 300 && strings.Contains(text, secret) {
					t.Errorf("%s %s as %s tells %s: %.300s", o.method, path, role, secret, text)
				}
			}
			if s.id == "uploaded" && status == 204 && (header.Get(offsetHeader) != "0" || header.Get(completeHeader) != "") {
				t.Errorf("%s as %s tells what is there: %v", path, role, header)
			}
		}
	}
	for id := range known {
		if !called[id] {
			t.Errorf("operation %s has no row here", id)
		}
	}
	// Whoever has the file itself may use it, and only then.
	scoped := v.as(store.Start, "p")
	body := jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "a.onnx", Hash: v.other.ModelHash}}}
	scoped.upload("secret")
	scoped.call(201, "POST", "/jobs", body, nil)
	if status, text, _ := scoped.ask("GET", prefix+model, nil); status != 200 || text != "secret" {
		t.Errorf("own file: %d %s", status, text)
	}
}

// Nobody completes an upload that another project began: the end of a file gives no right to it.
func TestUploadOfOthers(t *testing.T) {
	t.Parallel()
	v := staged(t)
	c, d := v.as(store.Start, "p"), v.as(store.Start, "q")
	const path, half = prefix + "/files/2e99758548972a8e8822ad47fa1017ff72f06f3ff6a016851f45c398732bc50c", "this is"
	begun := func(c *client) string {
		_, _, h := c.send("HEAD", path, nil)
		return h.Get(offsetHeader)
	}
	// The length says more than follows: the rest comes later.
	ctx := context.WithValue(t.Context(), callerKey{}, caller{project: v.run.Project})
	if _, err := v.s.take(ctx, strings.TrimPrefix(path, prefix+"/files/"), 0, 14, strings.NewReader(half)); err == nil {
		t.Fatal("half a file was taken for the whole")
	}
	if a, b := begun(c), begun(d); a != "7" || b != "0" {
		t.Errorf("its project is told %s bytes, another one %s", a, b)
	}
	if status, text, _ := d.send("PUT", path, strings.NewReader("a test"), "Content-Range", "bytes 7-13/14"); status != 409 {
		t.Errorf("another project goes on: %d %s", status, text)
	}
	if status, text, _ := c.send("PUT", path, strings.NewReader(" a test"), "Content-Range", "bytes 7-13/14"); status != 204 {
		t.Errorf("its project goes on: %d %s", status, text)
	}
	if status, _, _ := d.send("GET", path, nil); status != 404 {
		t.Errorf("another project reads it: %d", status)
	}
}
