package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	c := start(t)
	var runs []runView
	for i := range 4 {
		runs = append(runs, c.finished(fmt.Sprint("model", i), func(b *jobBody) {
			if i == 0 {
				b.Tags = []string{store.Pinned}
			}
		}))
	}
	one := int64(1)
	var due dueView
	c.call(200, "POST", "/retention/p/preview", store.Rule{Last: &one}, &due)
	if due.Total != 2 || due.Items[0].ID != runs[1].ID {
		t.Errorf("due %+v", due)
	}
	c.call(200, "POST", "/retention/*/preview", store.Rule{Last: &one}, &due)
	if due.Total != 2 {
		t.Errorf("due by the rule of others: %d", due.Total)
	}
	c.call(204, "PUT", "/retention/p", store.Rule{Last: &one}, nil)
	c.call(200, "POST", "/retention/*/preview", store.Rule{Last: &one}, &due)
	if due.Total != 0 {
		t.Errorf("the rule of others deletes %d runs of a project with its own", due.Total)
	}
	// The server applies the rules by itself, but not at once.
	if err := c.s.tidy(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	var left, bin listed[runView]
	if c.call(200, "GET", "/runs", nil, &left); len(left.Items) != 4 {
		t.Errorf("%d runs right after the start", len(left.Items))
	}
	now := time.Now().Add(firstSweep)
	if err := c.s.tidy(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	c.call(200, "GET", "/runs", nil, &left)
	c.call(200, "GET", "/runs?deleted=true", nil, &bin)
	if len(left.Items) != 2 || len(bin.Items) != 2 || left.Items[0].ID != runs[3].ID || left.Items[1].ID != runs[0].ID {
		t.Errorf("left %+v, bin %+v", left.Items, bin.Items)
	}
	var audit listed[store.Entry]
	if c.call(200, "GET", "/audit", nil, &audit); audit.Items[0].What != "delete 2 runs by retention" || audit.Items[0].Who != "server" {
		t.Errorf("audit %+v", audit.Items[0])
	}
	// An undo lasts.
	c.call(204, "POST", "/runs/"+runs[1].ID+"/restore", nil, nil)
	var swept sweptView
	if c.call(200, "POST", "/apply-retention", nil, &swept); swept.Runs != 0 {
		t.Errorf("restored runs were deleted again: %+v", swept)
	}
	var r runView
	if c.call(200, "GET", "/runs/"+runs[1].ID, nil, &r); !slices.Contains(r.Tags, store.Pinned) {
		t.Errorf("tags of a restored run: %v", r.Tags)
	}
	// After the bin and the time of unused files, its files are gone, and only those.
	for range 3 {
		now = now.Add(keepDeleted + time.Hour)
		if err := c.s.tidy(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range runs {
		want := error(nil)
		if i == 2 {
			want = blob.ErrNotFound
		}
		for _, h := range []string{r.Blob, r.ModelHash} {
			if _, err := c.s.files.Size(h); !errors.Is(err, want) {
				t.Errorf("file of run %d: %v, expected %v", i, err, want)
			}
		}
	}
	var rules listed[store.Rule]
	if c.call(200, "GET", "/retention", nil, &rules); len(rules.Items) != 1 || *rules.Items[0].Last != 1 || rules.Items[0].Days != nil {
		t.Errorf("rules %+v", rules.Items)
	}
	c.call(204, "DELETE", "/retention/p", nil, nil)
	c.call(404, "DELETE", "/retention/p", nil, nil)
	c.call(404, "PUT", "/retention/none", store.Rule{}, nil)
	zero := int64(0)
	c.call(422, "PUT", "/retention/*", store.Rule{Days: &zero}, nil)
}

func TestRetentionOfOneProject(t *testing.T) {
	t.Parallel()
	c := other(t)
	c.call(200, "POST", "/projects", projectBody{Name: "mine"}, nil)
	c.call(200, "POST", "/projects", projectBody{Name: "other"}, nil)
	c.call(204, "PUT", "/retention/other", store.Rule{}, nil)
	scoped := c.as(store.Admin, "mine")
	scoped.call(204, "PUT", "/retention/mine", store.Rule{}, nil)
	scoped.call(404, "PUT", "/retention/other", store.Rule{}, nil)
	scoped.call(404, "POST", "/retention/other/preview", store.Rule{}, nil)
	scoped.call(403, "PUT", "/retention/*", store.Rule{}, nil)
	scoped.call(403, "POST", "/apply-retention", nil, nil)
	var rules listed[store.Rule]
	if scoped.call(200, "GET", "/retention", nil, &rules); len(rules.Items) != 1 {
		t.Errorf("rules %+v", rules.Items)
	}
	c.as(store.Start, "").call(403, "GET", "/retention", nil, nil)
}

// Whatever uses a file between two looks for unused ones keeps it.
func TestUnusedFiles(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	uses := map[string]func(text, hash string){
		"nothing": func(string, string) {},
		"asked":   func(_, hash string) { c.send("HEAD", prefix+"/files/"+hash, nil) },
		"again":   func(text, _ string) { c.upload(text) },
		"job":     func(text, _ string) { c.job(text) },
	}
	hashes := map[string]string{}
	for name := range uses {
		hashes[name] = c.upload(name)
	}
	job := c.job("of a job")
	now := time.Now()
	collect := func(want int64) {
		t.Helper()
		if n, size, err := c.s.collect(t.Context(), now); err != nil || n != want || (size > 0) != (n > 0) {
			t.Errorf("removed %d files of %d bytes, %v, expected %d", n, size, err, want)
		}
	}
	collect(0)
	now = now.Add(keepUnused + time.Second)
	for name, use := range uses {
		use(name, hashes[name])
	}
	collect(1)
	for name, hash := range hashes {
		if _, err := c.s.files.Size(hash); (name == "nothing") != errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What was used only once becomes unused again; files of jobs stay as long as their jobs.
	now = now.Add(keepUnused + time.Second)
	collect(2)
	if _, err := c.s.queue.Cancel(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	c.until(job.ID, ended)
	if err := c.s.queue.Forget(t.Context(), func(j *queue.Job) bool { return j.ID == job.ID }); err != nil {
		t.Fatal(err)
	}
	// The queue tells its readers of the end on its own time.
	for len(c.s.queue.Jobs(func(j *queue.Job) bool { return j.ID == job.ID })) > 0 {
		time.Sleep(time.Millisecond)
	}
	collect(0)
	now = now.Add(keepUnused + time.Second)
	collect(1)
}

// A file that somebody was told is here is not removed by a look for unused ones at that moment,
// and an upload at that moment is not lost.
func TestUnusedFilesWhileUsed(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	now := time.Now()
	for i := range 40 {
		text := fmt.Sprint("file ", i)
		hash := c.upload(text)
		if _, _, err := c.s.collect(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if _, _, err := c.s.collect(t.Context(), now.Add(keepUnused+time.Second)); err != nil {
				t.Error(err)
			}
		})
		told := false
		both.Go(func() {
			if i%2 == 0 {
				_, _, h := c.send("HEAD", prefix+"/files/"+hash, nil)
				told = h.Get(completeHeader) != ""
				return
			}
			status, _, _ := c.send("PUT", prefix+"/files/"+hash, strings.NewReader(text))
			told = status == 204
		})
		both.Wait()
		if _, err := c.s.files.Size(hash); told && err != nil || !told && i%2 == 1 {
			t.Fatalf("%s: told that it is here: %v, then %v", text, told, err)
		}
	}
}
