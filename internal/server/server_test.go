package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// TestMain also is the program that does jobs: tests need no engine.
func TestMain(m *testing.M) {
	if os.Getenv("OPMETER_STANDIN") != "" {
		os.Exit(standIn(os.Args[1:]))
	}
	_ = os.Setenv("OPMETER_STANDIN", "1") // for children
	os.Exit(m.Run())
}

// standIn answers as opmeter does. What the model file says is what happens.
func standIn(args []string) int {
	output := ""
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--output="); ok {
			output = v
		}
	}
	switch args[0] {
	case "engines", "devices":
		fmt.Println("{}")
	case "targets":
		fmt.Println("host   this computer, measured\nm4     Cortex-M4")
	case "history":
		text, err := os.ReadFile(filepath.Join(args[1], "result.opmeter"))
		if err != nil {
			return 1
		}
		latency := 0.5
		if _, v, ok := strings.Cut(string(text), "latency="); ok {
			_, _ = fmt.Sscan(v, &latency)
		}
		fmt.Printf(`{"series":[{"model":"net","target":"host","figure":"latency_s","measured":true,"points":[`+
			`{"value":%g,"low":%g,"high":%g,"estimator":"median","machine":"m1","settings":"opmeter threads=1","model_sha256":"%064d","model_format":"onnx"}]},`+
			`{"model":"net","target":"host","figure":"macs","points":[{"value":%d,"estimator":"value","settings":"opmeter threads=1"}]}]}`,
			latency, latency*0.99, latency*1.01, 7, len(text))
	case "compress":
		return standInCompress(args[1:], output)
	case "profile", "import", "report", "compare":
		if strings.HasSuffix(output, ".html") {
			_ = os.WriteFile(output, []byte("<html>"+args[0]), 0o600)
			return 0
		}
		if strings.HasSuffix(output, ".json") {
			b, _ := jsonx.Marshal(map[string]any{"args": args})
			_ = os.WriteFile(output, b, 0o600)
			return 0
		}
		text, err := os.ReadFile(args[1])
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "opmeter:", err)
			return 1
		case strings.HasPrefix(string(text), "broken"):
			fmt.Fprintf(os.Stderr, "warning\nopmeter: %s: not a model\n", args[1])
			return 1
		case strings.HasPrefix(string(text), "crash"):
			panic("a defect")
		case strings.HasPrefix(string(text), "hungry"):
			var held [][]byte
			for range 1 << 14 {
				b := make([]byte, 1<<20)
				for i := range b {
					b[i] = 1
				}
				held = append(held, b)
			}
			return len(held)
		case strings.HasPrefix(string(text), "family"): // each takes less than all may
			if len(args) > 3 {
				b := make([]byte, 192<<20)
				for i := range b {
					b[i] = 1
				}
				select {}
			}
			for range 4 {
				c := exec.Command(os.Args[0], append(slices.Clone(args), "child", "child")...)
				if err := c.Start(); err != nil {
					return 1
				}
			}
			select {}
		case strings.HasPrefix(string(text), "large"):
			if err := os.WriteFile(output, make([]byte, 2<<20), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, "opmeter:", err)
			}
			return 1
		case strings.HasPrefix(string(text), "many"):
			for i := range 20 {
				if f, err := os.CreateTemp("", fmt.Sprint(i)); err == nil {
					_, _ = f.Write(make([]byte, 1<<19))
					_ = f.Close()
				}
			}
			select {}
		case strings.HasPrefix(string(text), "slow"):
			fmt.Fprint(os.Stderr, "\r\x1b[Kmeasuring [==   ] 40 %")
			select {}
		}
		_ = os.WriteFile(output, []byte("profile of "+string(text)+" "+strings.Join(args[2:len(args)-1], " ")), 0o600)
	}
	return 0
}

// client calls a server.
type client struct {
	t     *testing.T
	s     *Server
	http  *httptest.Server
	url   string
	token string
}

// start opens a server and a client of it.
func start(t *testing.T, change ...func(*Options)) *client {
	t.Helper()
	o := Options{
		Program: os.Args[0], Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", MaxFile: 1 << 20, Limit: time.Minute, Worker: true,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, c := range change {
		c(&o)
	}
	certify(t, &o)
	c := &client{t: t}
	c.open(o)
	t.Cleanup(c.close)
	return c
}

// certify makes a certificate where a test only says that there is one.
func certify(t *testing.T, o *Options) {
	t.Helper()
	if o.Cert == "" || o.Key != "" {
		return
	}
	own, err := ownCertificate(t.TempDir(), o.Listen, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o.Cert, o.Key = own.File, own.Key
}

func (c *client) open(o Options) {
	c.t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.s, c.http = s, httptest.NewServer(s.handler)
	c.url = c.http.URL
}

func (c *client) close() {
	c.s.stop()
	c.http.Close()
	if err := c.s.Close(); err != nil {
		c.t.Error(err)
	}
}

// send sends a request and returns status and body.
func (c *client) send(method, path string, body io.Reader, header ...string) (int, string, http.Header) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// call calls the API and expects a status. It reads the answer, unless out is nil.
func (c *client) call(want int, method, path string, in, out any) string {
	c.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := jsonx.Marshal(in)
		if err != nil {
			c.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	status, text, _ := c.send(method, prefix+path, body, "Content-Type", "application/json")
	if status != want {
		c.t.Fatalf("%s %s: %d %s, expected %d", method, path, status, text, want)
	}
	if out != nil {
		if err := jsonx.Unmarshal([]byte(text), out); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return text
}

// upload stores a file and returns its hash.
func (c *client) upload(text string) string {
	c.t.Helper()
	h := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(h[:])
	if status, body, _ := c.send("PUT", prefix+"/files/"+hash, strings.NewReader(text)); status != http.StatusNoContent {
		c.t.Fatalf("upload: %d %s", status, body)
	}
	return hash
}

// job starts a job with a model of that content.
func (c *client) job(content string, change ...func(*jobBody)) queue.Job {
	c.t.Helper()
	b := jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "net.onnx", Hash: c.upload(content)}}}
	for _, f := range change {
		f(&b)
	}
	var j queue.Job
	c.call(http.StatusCreated, "POST", "/jobs", b, &j)
	return j
}

// until follows a job until a function says that it is far enough.
func (c *client) until(id string, enough func(*queue.Job) bool) (j queue.Job) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+prefix+"/jobs/"+id+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := jsonx.Unmarshal([]byte(data), &j); err != nil {
				c.t.Fatalf("%v in %s", err, data)
			}
			if enough(&j) {
				return j
			}
		}
	}
	c.t.Fatalf("the events ended (%v) with %+v", lines.Err(), j)
	return j
}

func ended(j *queue.Job) bool { return j.State.Ended() }

// finished runs a job to its end and returns its run.
func (c *client) finished(content string, change ...func(*jobBody)) runView {
	c.t.Helper()
	j := c.until(c.job(content, change...).ID, ended)
	if j.State != queue.Done || len(j.Runs) != 1 {
		c.t.Fatalf("job ended as %+v", j)
	}
	var r runView
	c.call(http.StatusOK, "GET", "/runs/"+j.Runs[0], nil, &r)
	return r
}

func TestJobToPage(t *testing.T) {
	t.Parallel()
	c := start(t)
	r := c.finished("model", func(b *jobBody) {
		b.Options = map[string]string{"on": "m4", "batch": "2"}
		b.Tags = []string{" nightly "}
		b.Labels = labelsBody{Branch: "main", Commit: "abc123", Note: "first"}
	})
	if r.About.Model != "net" || r.About.Engine != "opmeter" || r.About.Settings != "threads=1 batch=2 format=onnx" || r.Commit != "abc123" || !slices.Equal(r.Tags, []string{"nightly"}) || len(r.Figures) != 2 {
		t.Errorf("run %+v", r)
	}
	if f := r.Figures[0]; f.Low == nil || *f.Low != 0.495 || f.High == nil || *f.High != 0.505 || f.Estimator != "median" || !f.Measured || r.Figures[1].Low != nil {
		t.Errorf("figures %+v", r.Figures)
	}
	if status, body, h := c.send("GET", "/runs/"+r.ID+"/profile", nil); status != 200 || body != "profile of model --batch=2 --on=m4" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") {
		t.Errorf("profile %d %s %v", status, body, h)
	}
	for range 2 { // made, then kept
		if status, body, h := c.send("GET", "/runs/"+r.ID+"/page", nil); status != 200 || body != "<html>report" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("page %d %s %v", status, body, h)
		}
	}
	second := c.finished("model 2", func(b *jobBody) { b.Options = map[string]string{"batch": "2"} })
	if status, body, _ := c.send("GET", "/compare/page?runs="+r.ID+","+second.ID, nil); status != 200 || body != "<html>compare" {
		t.Errorf("comparison %d %s", status, body)
	}
	var trend trendView
	c.call(200, "GET", "/series/"+r.Series+"/trend?figure=macs", nil, &trend)
	if len(trend.Items) != 2 || trend.Items[0].Run != r.ID || trend.Items[1].Value != float64(len("profile of model 2 --batch=2")) {
		t.Errorf("trend %+v", trend)
	}
	var series listed[seriesView]
	c.call(200, "GET", "/projects/p/series", nil, &series)
	if len(series.Items) != 1 || series.Items[0].Latest.ID != second.ID {
		t.Errorf("series %+v", series)
	}
	// What lists show of how it was measured is found, too.
	var found listed[runView]
	c.call(200, "GET", "/runs?search=batch&limit=1", nil, &found)
	if len(found.Items) != 1 || found.Items[0].ID != second.ID {
		t.Errorf("search finds %+v", found)
	}
	// Another shape is other work: its figures are no change of these.
	if other := c.finished("model", func(b *jobBody) { b.Options = map[string]string{"shape": "x=1x8"} }); other.Series == r.Series {
		t.Errorf("series %+v of another shape", other.About)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	c := start(t)
	for content, want := range map[string][2]string{"broken": {"refused", "net.onnx: not a model"}, "crash": {"crash", "ended without an answer"}} {
		j := c.until(c.job(content).ID, ended)
		if j.State != queue.Failed || j.Cause != want[0] || !strings.Contains(j.Error, want[1]) || strings.Contains(j.Error, os.TempDir()) {
			t.Errorf("%s: %+v", content, j)
		}
	}
	// A cancelled job ends while its program runs, and the worker goes on.
	j := c.job("slow")
	c.until(j.ID, func(j *queue.Job) bool { return j.Share != nil && *j.Share == 0.4 })
	c.call(200, "POST", "/jobs/"+j.ID+"/cancel", nil, nil)
	if j = c.until(j.ID, ended); j.State != queue.Cancelled {
		t.Errorf("cancelled job %+v", j)
	}
	c.call(409, "POST", "/jobs/"+j.ID+"/cancel", nil, nil)
	c.finished("after")
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Limit = time.Nanosecond })
	if j := c.until(c.job("slow").ID, ended); j.State != queue.Failed || j.Cause != "time-limit" || !strings.Contains(j.Error, "time limit") {
		t.Errorf("job %+v", j)
	}
}

// A job that takes too much of the computer ends and says what it took, and the worker goes on.
func TestJobLimits(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Memory, o.Disk = 512<<20, 1<<20 })
	for _, j := range []struct {
		content, cause, want string
		system               bool // only where the system bounds it
	}{
		{"hungry", "memory-limit", "memory limit of 512 MiB", true},
		{"family", "memory-limit", "memory limit of 512 MiB", true},
		{"large", "disk-limit", "wrote more than 1 MB", true},
		{"many", "disk-limit", "wrote more than 1 MB", false},
	} {
		if j.system && !subprocess.Limits {
			continue
		}
		got := c.until(c.job(j.content).ID, ended)
		if got.State != queue.Failed || got.Cause != j.cause || !strings.Contains(got.Error, j.want) {
			t.Errorf("%s: %+v", j.content, got)
		}
	}
	c.finished("after")
}

func TestSameKey(t *testing.T) {
	t.Parallel()
	c := start(t)
	body := `{"project":"p","kind":"profile","inputs":[{"name":"a.onnx","hash":"` + c.upload("a") + `"}]}`
	var ids []string
	for range 3 {
		status, text, _ := c.send("POST", prefix+"/jobs", strings.NewReader(body), "Content-Type", "application/json", "Idempotency-Key", "build 7")
		var j queue.Job
		if err := jsonx.Unmarshal([]byte(text), &j); status != 201 || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		ids = append(ids, j.ID)
		c.until(j.ID, ended)
	}
	if ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("jobs %v", ids)
	}
	other := strings.Replace(body, "a.onnx", "b.onnx", 1)
	if status, text, _ := c.send("POST", prefix+"/jobs", strings.NewReader(other), "Content-Type", "application/json", "Idempotency-Key", "build 7"); status != 422 || !strings.Contains(text, "used with another request") {
		t.Errorf("another request with the key: %d %s", status, text)
	}
	// Long after the queue forgot the job, its result still says that it was done.
	if err := c.s.tidy(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	var j queue.Job
	c.call(200, "GET", "/jobs/"+ids[0], nil, &j)
	if j.State != queue.Done || len(j.Runs) != 1 {
		t.Errorf("forgotten job %+v", j)
	}
}

// Jobs are listed by their time, whatever their ids, in parts that miss none.
func TestJobsByTime(t *testing.T) {
	t.Parallel()
	c := start(t)
	body := `{"project":"p","kind":"profile","inputs":[{"name":"a.onnx","hash":"` + c.upload("a") + `"}]}`
	var want []queue.Job
	for i := range 12 {
		status, text, _ := c.send("POST", prefix+"/jobs", strings.NewReader(body), "Content-Type", "application/json", "Idempotency-Key", fmt.Sprintf("%d", i))
		var j queue.Job
		if err := jsonx.Unmarshal([]byte(text), &j); status != 201 || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		want = append(want, c.until(j.ID, ended))
	}
	slices.SortFunc(want, func(a, b queue.Job) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.ID, a.ID))
	})
	var got []string
	for before := ""; ; {
		var l listed[queue.Job]
		c.call(200, "GET", "/jobs?limit=5&before="+before, nil, &l)
		for _, j := range l.Items {
			got = append(got, j.ID)
		}
		if before = l.Next; before == "" {
			break
		}
	}
	if !slices.EqualFunc(got, want, func(id string, j queue.Job) bool { return id == j.ID }) {
		t.Errorf("jobs %v, want %v", got, want)
	}
}

// What cannot be done is refused with what was expected.
func TestRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	hash := c.upload("a")
	for _, change := range []func(*jobBody){
		func(b *jobBody) { b.Kind = "shell" },
		func(b *jobBody) { b.Inputs = nil },
		func(b *jobBody) { b.Inputs = append(b.Inputs, b.Inputs[0]) },
		func(b *jobBody) { b.Inputs[0].Hash = strings.Repeat("0", 64) },
		func(b *jobBody) { b.Inputs[0].Hash = "../../etc/passwd" },
		func(b *jobBody) { b.Options = map[string]string{"output": "/etc/passwd"} },
		func(b *jobBody) { b.Options = map[string]string{"threads": "0"} },
		func(b *jobBody) { b.Options = map[string]string{"on": "../../target.yaml"} },
		func(b *jobBody) { b.Options = map[string]string{"on": "device:/dev/../etc/passwd"} },
		func(b *jobBody) { b.Options = map[string]string{"engine": "onnxruntime=/tmp/evil.so"} },
		func(b *jobBody) { b.Options = map[string]string{"shape": "x=1x3\n--output=y"} },
		func(b *jobBody) { b.Options = map[string]string{"time": "11m"} },
		func(b *jobBody) { b.Kind, b.Options = work.Saved, map[string]string{"threads": "1"} },
		func(b *jobBody) { b.Project = "" },
	} {
		b := jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "net.onnx", Hash: hash}}}
		change(&b)
		if text := c.call(http.StatusUnprocessableEntity, "POST", "/jobs", b, nil); !strings.Contains(text, "expected") && !strings.Contains(text, "detail") {
			t.Errorf("%+v: %s", b, text)
		}
	}
	for _, r := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/runs/none", 404},
		{"GET", "/jobs/none", 404},
		{"GET", "/jobs/a%20b*%3E", 404},
		{"DELETE", "/runs/none", 404},
		{"GET", "/runs?limit=0", 422},
		{"GET", "/runs?limit=100000", 422},
		{"GET", "/series/none/trend?figure=macs", 404},
		{"GET", "/projects/none/series", 404},
		{"GET", "/nothing", 404},
		{"POST", "/jobs", 400},
	} {
		c.call(r.want, r.method, r.path, nil, nil)
	}
	for path, want := range map[string]int{"/runs/none/page": 404, "/compare/page?runs=a": 400, "/compare/page?runs=a,b": 404, "/runs/none/profile": 404} {
		if status, text, _ := c.send("GET", path, nil); status != want {
			t.Errorf("%s: %d %s, expected %d", path, status, text, want)
		}
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	c := start(t)
	text := strings.Repeat("model", 1000)
	h := sha256.Sum256([]byte(text))
	path := prefix + "/files/" + hex.EncodeToString(h[:])
	offset := func(want string) {
		t.Helper()
		if status, _, h := c.send("HEAD", path, nil); status != 204 || h.Get(offsetHeader) != want {
			t.Errorf("%d, offset %q, expected %q", status, h.Get(offsetHeader), want)
		}
	}
	offset("0")
	// The first part arrives, then the connection breaks: the server has what arrived.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.url+path, io.MultiReader(strings.NewReader(text[:2000]), brokenReader{}))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(text))
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Errorf("broken upload: %s", res.Status)
	}
	// The server notices the end of the connection on its own time: its lock ends then.
	at := int64(0)
	for at == 0 {
		if !c.s.files.Busy(hex.EncodeToString(h[:])) {
			at, err = c.s.files.Offset(hex.EncodeToString(h[:]))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	rest := fmt.Sprintf("bytes %d-%d/%d", at, len(text)-1, len(text))
	for _, bad := range []string{"bytes 1-2/3", "bytes 5-4/10", "lines 0-1/2", fmt.Sprintf("bytes %d-%d/%d", at+1, len(text)-1, len(text)), "bytes -1-2/3", "bytes 0-9999999999/10000000000"} {
		if status, body, _ := c.send("PUT", path, strings.NewReader("x"), "Content-Range", bad); status != 400 && status != 409 && status != 413 {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if status, body, _ := c.send("PUT", path, strings.NewReader(text[at:]), "Content-Range", rest); status != 204 {
		t.Fatalf("rest: %d %s", status, body)
	}
	offset("5000")
	if status, body, _ := c.send("GET", path, nil); status != 200 || body != text {
		t.Errorf("download %d, %d bytes", status, len(body))
	}
	if status, _, _ := c.send("PUT", prefix+"/files/"+strings.Repeat("0", 64), strings.NewReader("x")); status != 422 {
		t.Errorf("wrong content: %d", status)
	}
	if status, _, _ := c.send("PUT", prefix+"/files/"+strings.Repeat("1", 64), bytes.NewReader(make([]byte, 1<<20+1))); status != 413 {
		t.Errorf("too large: %d", status)
	}
	for _, bad := range []string{"..%2f..%2fetc%2fpasswd", "x", strings.Repeat("G", 64)} {
		if status, _, _ := c.send("PUT", prefix+"/files/"+bad, strings.NewReader("x")); status != 400 {
			t.Errorf("%s: %d", bad, status)
		}
		if status, _, _ := c.send("GET", prefix+"/files/"+bad, nil); status != 404 {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the cable was pulled") }

// Other pages of the browser cannot use a server of this computer.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	c := start(t)
	body := `{"name":"stolen"}`
	for _, h := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Sec-Fetch-Site", "same-site"},
	} {
		if status, _, _ := c.send("POST", prefix+"/projects", strings.NewReader(body), append([]string{"Content-Type", "application/json"}, h...)...); status != 403 {
			t.Errorf("%v: %d", h, status)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example"} {
		if status, _, _ := c.send("GET", prefix+"/projects", nil, "Host", host); status != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", host, status)
		}
	}
	var ps listed[store.Project]
	c.call(200, "GET", "/projects", nil, &ps)
	if len(ps.Items) != 0 {
		t.Errorf("projects %v", ps.Items)
	}
	if _, _, h := c.send("GET", "/", nil); !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("headers %v", h)
	}
}

// other starts a server that other computers reach, with the first token.
func other(t *testing.T) *client {
	t.Helper()
	return otherWith(t)
}

func otherWith(t *testing.T, change ...func(*Options)) *client {
	t.Helper()
	c := start(t, append(change, func(o *Options) { o.Listen, o.Cert = "0.0.0.0:0", "cert.pem" })...)
	secret, err := c.s.FirstToken(t.Context())
	if err != nil || secret == "" {
		t.Fatalf("first token %q, %v", secret, err)
	}
	if again, err := c.s.FirstToken(t.Context()); again != "" || err != nil {
		t.Errorf("second first token %q, %v", again, err)
	}
	c.token = secret
	return c
}

func (c *client) as(role store.Role, project string) *client {
	c.t.Helper()
	var k tokenView
	c.call(200, "POST", "/tokens", tokenBody{Name: string(role), Role: role, Project: project}, &k)
	d := *c
	d.token = k.Secret
	return &d
}

func TestRoles(t *testing.T) {
	t.Parallel()
	c := other(t)
	nobody := *c
	nobody.token = ""
	r := c.finished("model")
	c.call(200, "POST", "/projects", projectBody{Name: "other"}, nil)
	hash := c.upload("b")
	operations := []struct {
		method, path string
		body         any
		need         store.Role
	}{
		{"GET", "/runs", nil, store.Read},
		{"GET", "/runs/" + r.ID, nil, store.Read},
		{"GET", "/jobs", nil, store.Read},
		{"GET", "/files/" + r.Blob, nil, store.Read},
		{"POST", "/jobs", jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "net.onnx", Hash: hash}}}, store.Start},
		{"PUT", "/runs/" + r.ID + "/note", noteBody{Note: "x", Tags: []string{}}, store.Start},
		{"DELETE", "/runs/" + r.ID, nil, store.Start},
		{"POST", "/runs/" + r.ID + "/restore", nil, store.Start},
		{"GET", "/tokens", nil, store.Admin},
		{"GET", "/audit", nil, store.Admin},
		{"GET", "/retention", nil, store.Admin},
		{"PUT", "/retention/p", store.Rule{}, store.Admin},
		{"POST", "/retention/p/preview", store.Rule{}, store.Admin},
		{"POST", "/apply-retention", nil, store.Admin},
		{"GET", "/alerts", nil, store.Read},
		{"GET", "/shares?runs=" + r.ID, nil, store.Start},
		{"GET", "/projects/p/hooks", nil, store.Admin},
	}
	callers := map[store.Role]*client{"": &nobody, store.Read: c.as(store.Read, ""), store.Start: c.as(store.Start, ""), store.Admin: c.as(store.Admin, "")}
	for _, o := range operations {
		for role, caller := range callers {
			var body io.Reader
			if o.body != nil {
				b, err := jsonx.Marshal(o.body)
				if err != nil {
					t.Fatal(err)
				}
				body = bytes.NewReader(b)
			}
			status, text, _ := caller.send(o.method, prefix+o.path, body, "Content-Type", "application/json")
			allowed := slices.Index(store.Roles, role) >= slices.Index(store.Roles, o.need)
			switch {
			case role == "" && status != 401, role != "" && !allowed && status != 403, allowed && status >= 400:
				t.Errorf("%s %s as %q: %d %s", o.method, o.path, role, status, text)
			}
		}
	}
	// A token of one project sees nothing of another.
	scoped := c.as(store.Start, "other")
	for _, path := range []string{"/runs/" + r.ID, "/files/" + r.Blob, "/projects/p/series", "/series/" + r.Series + "/trend?figure=macs", "/jobs/" + r.Job, "/runs?project=p", "/alerts?project=p"} {
		scoped.call(404, "GET", path, nil, nil)
	}
	for _, path := range []string{"/runs/" + r.ID + "/page", "/runs/" + r.ID + "/profile"} {
		if status, _, _ := scoped.send("GET", path, nil); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	var runs listed[runView]
	if scoped.call(200, "GET", "/runs", nil, &runs); len(runs.Items) != 0 {
		t.Errorf("runs of another project: %+v", runs.Items)
	}
	if scoped.call(200, "GET", "/runs?deleted=true", nil, &runs); len(runs.Items) != 0 {
		t.Errorf("deleted runs of another project: %+v", runs.Items)
	}
	scoped.call(404, "DELETE", "/runs/"+r.ID, nil, nil)
	scoped.call(403, "POST", "/leases", leaseBody{Worker: "w"}, nil)
	scoped.upload("b")
	scoped.call(403, "POST", "/projects", projectBody{Name: "mine"}, nil)
	scoped.call(404, "POST", "/jobs", jobBody{Project: "fresh", Kind: work.Profile, Inputs: []inputBody{{Name: "net.onnx", Hash: hash}}}, nil)
	// Revoked tokens end at once; cookies hold tokens.
	cookie := func(secret string) int {
		status, _, _ := nobody.send("GET", prefix+"/me", nil, "Cookie", sessionCookie+"="+secret)
		return status
	}
	status, text, h := nobody.send("POST", prefix+"/session", strings.NewReader(`{"token":"`+scoped.token+`"}`), "Content-Type", "application/json")
	if set := h.Get("Set-Cookie"); status != 204 || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") || !strings.Contains(set, "Secure") {
		t.Errorf("session: %d %s %s", status, text, set)
	}
	if status, _, _ := nobody.send("POST", prefix+"/session", strings.NewReader(`{"token":"wrong"}`), "Content-Type", "application/json"); status != 401 {
		t.Errorf("session of a wrong token: %d", status)
	}
	if got := cookie(scoped.token); got != 200 {
		t.Errorf("cookie: %d", got)
	}
	var all listed[store.Token]
	text = c.call(200, "GET", "/tokens", nil, &all)
	if strings.Contains(text, scoped.token) || strings.Contains(text, "hash") {
		t.Errorf("secrets in %s", text)
	}
	for _, k := range all.Items {
		if k.Project != "" {
			c.call(204, "DELETE", "/tokens/"+k.ID, nil, nil)
		}
	}
	if got := cookie(scoped.token); got != 401 {
		t.Errorf("cookie of a revoked token: %d", got)
	}
	var audit listed[store.Entry]
	if c.call(200, "GET", "/audit", nil, &audit); len(audit.Items) < 6 || !strings.Contains(fmt.Sprint(audit.Items), "revoke token") {
		t.Errorf("audit %+v", audit.Items)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), Options{Data: t.TempDir(), Listen: "here"}); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Errorf("no port: %v", err)
	}
}

func TestOneServerPerFolder(t *testing.T) {
	t.Parallel()
	c := start(t)
	if _, err := Open(t.Context(), c.s.o); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("second server: %v", err)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	c := start(t)
	var made []string
	for i := range 5 {
		made = append(made, c.finished(fmt.Sprint("model", i)).ID)
	}
	slices.Reverse(made)
	var got []string
	for before := ""; ; {
		var l listed[runView]
		c.call(200, "GET", "/runs?limit=2&before="+before, nil, &l)
		for _, r := range l.Items {
			got = append(got, r.ID)
		}
		if before = l.Next; before == "" {
			break
		}
	}
	if !slices.Equal(got, made) {
		t.Errorf("paged %v, expected %v", got, made)
	}
	id := made[2]
	c.call(204, "PUT", "/runs/"+id+"/note", noteBody{Note: "odd <script>alert(1)</script>", Tags: []string{"a b"}}, nil)
	var l listed[runView]
	for query, n := range map[string]int{"search=ODD": 1, "search=script": 1, "tag=a+b": 1, "search=net": 5, "search=none": 0, "project=p": 5, "search=%27%20OR%201=1": 0, "search=p": 5, "search=%25": 0, "search=_": 0} {
		if c.call(200, "GET", "/runs?"+query, nil, &l); len(l.Items) != n {
			t.Errorf("%s finds %d, expected %d", query, len(l.Items), n)
		}
	}
	c.call(200, "PUT", "/projects/p", projectBody{Name: "Speech Team"}, nil)
	if c.call(200, "GET", "/runs?search=speech", nil, &l); len(l.Items) != 5 {
		t.Errorf("the new name of the project finds %d runs", len(l.Items))
	}
	if text := c.call(404, "GET", "/runs/none", nil, nil); !strings.Contains(text, "there is no such run") {
		t.Error(text)
	}
	c.call(204, "DELETE", "/runs/"+id, nil, nil)
	var bin, rest listed[runView]
	c.call(200, "GET", "/runs?deleted=true", nil, &bin)
	c.call(200, "GET", "/runs", nil, &rest)
	if len(bin.Items) != 1 || len(rest.Items) != 4 {
		t.Errorf("bin %d, rest %d", len(bin.Items), len(rest.Items))
	}
	c.call(204, "POST", "/runs/"+id+"/restore", nil, nil)
	if c.call(200, "GET", "/runs", nil, &rest); len(rest.Items) != 5 {
		t.Errorf("restored: %d runs", len(rest.Items))
	}
}

// Everything is there after the process ended, also jobs that wait.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	c := start(t)
	r := c.finished("model")
	c.s.stop()
	c.s.tasks.Wait() // the worker ends, so the next jobs wait
	waits := c.job("later")
	c.close()
	c.open(c.s.o)
	c.call(200, "GET", "/runs/"+r.ID, nil, nil)
	if j := c.until(waits.ID, ended); j.State != queue.Done {
		t.Errorf("job of before %+v", j)
	}
}

// A worker elsewhere does jobs over HTTP, with a token.
func TestRemoteWorker(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Listen, o.Cert, o.Worker = "0.0.0.0:0", "cert.pem", false })
	secret, err := c.s.FirstToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.token = secret
	w := work.Worker{
		Server: &work.Remote{URL: c.url, Token: c.as(store.Start, "").token, Client: http.DefaultClient},
		Runner: c.s.runner, Name: "far", Offers: queue.Offers{Targets: []string{"host", "file"}}, Log: c.s.o.Log,
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Work(ctx) }()
	defer func() { stop(); <-ended }()
	r := c.finished("model")
	if status, body, _ := c.send("GET", "/runs/"+r.ID+"/profile", nil); status != 200 || !strings.HasPrefix(body, "profile of model") {
		t.Errorf("profile %d %s", status, body)
	}
	j := c.job("slow")
	c.until(j.ID, func(j *queue.Job) bool { return j.Share != nil })
	c.call(200, "POST", "/jobs/"+j.ID+"/cancel", nil, nil)
	if j = c.until(j.ID, func(j *queue.Job) bool { return j.State.Ended() }); j.State != queue.Cancelled || j.Worker != "far" {
		t.Errorf("job %+v", j)
	}
	// A worker that ends gives its job back.
	j = c.job("slow")
	c.until(j.ID, func(j *queue.Job) bool { return j.Share != nil })
	stop()
	<-ended
	c.until(j.ID, func(j *queue.Job) bool { return j.State == queue.Waiting })
}

// Results of jobs that a worker does not hold are refused, and results that no job makes.
func TestHostileWorker(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	c.job("a")
	c.job("b")
	var one, two queue.Lease
	lease := leaseBody{Worker: "w", Offers: queue.Offers{Targets: []string{"host"}, CPUs: []string{}, Engines: []string{}, Boards: []string{}}}
	c.call(200, "POST", "/leases", lease, &one)
	c.call(200, "POST", "/leases", lease, &two)
	hash := c.upload("result")
	ok := &work.Result{Hash: hash, Series: store.Series{Model: "net"}, Figures: []store.Figure{}}
	for _, token := range []string{"", "x", one.Token + "x", one.Token[:len(one.Token)-4] + "AAAA"} {
		c.call(409, "POST", "/leases/end", work.End{Token: token, Result: ok}, nil)
		c.call(409, "PUT", "/leases", work.Renewal{Token: token}, nil)
	}
	long := *ok
	long.Series.Model = strings.Repeat("x", 1000)
	absent := *ok
	absent.Hash = strings.Repeat("0", 64)
	figure := *ok
	figure.Figures = []store.Figure{{Name: strings.Repeat("x", 1000)}}
	for _, r := range []*work.Result{&long, &absent, &figure, {Hash: hash, Figures: make([]store.Figure, 300)}} {
		c.call(422, "POST", "/leases/end", work.End{Token: one.Token, Result: r}, nil)
	}
	c.call(200, "POST", "/leases/end", work.End{Token: one.Token, Result: ok}, nil)
	c.call(409, "POST", "/leases/end", work.End{Token: one.Token, Result: ok}, nil) // replayed
	c.call(200, "POST", "/leases/end", work.End{Token: two.Token, Problem: "no"}, nil)
	var l listed[runView]
	if c.call(200, "GET", "/runs", nil, &l); len(l.Items) != 1 {
		t.Errorf("%d runs", len(l.Items))
	}
}

// A worker that does not end a cancelled job loses it: signs of life no longer count.
func TestEndlessWorker(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker, o.Silence = false, 500*time.Millisecond })
	id := c.job("a").ID
	var l queue.Lease
	lease := leaseBody{Worker: "w", Offers: queue.Offers{Targets: []string{"host"}, CPUs: []string{}, Engines: []string{}, Boards: []string{}}}
	c.call(200, "POST", "/leases", lease, &l)
	half, much := 0.5, 7.0
	c.call(200, "PUT", "/leases", work.Renewal{Token: l.Token, Doing: "mining", Share: &half}, nil)
	c.call(422, "PUT", "/leases", work.Renewal{Token: l.Token, Share: &much}, nil)
	c.call(422, "PUT", "/leases", work.Renewal{Token: l.Token, Doing: strings.Repeat("x", 5000)}, nil)
	c.call(422, "POST", "/leases/end", work.End{Token: l.Token, Problem: strings.Repeat("x", 5000)}, nil)
	c.call(200, "POST", "/jobs/"+id+"/cancel", nil, nil)
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	workers.Go(func() { // the worker goes on
		for ctx.Err() == nil && !errors.Is(c.s.queue.Renew(ctx, l.Token, "mining", nil), queue.ErrLate) {
		}
	})
	workers.Go(func() { // another one looks for jobs
		for ctx.Err() == nil {
			_, _ = c.s.queue.Lease(ctx, "honest", &lease.Offers)
		}
	})
	if j := c.until(id, ended); j.State != queue.Cancelled {
		t.Errorf("job %+v", j)
	}
	c.call(409, "POST", "/leases/end", work.End{Token: l.Token, Result: &work.Result{Hash: c.upload("late"), Figures: []store.Figure{}}}, nil)
}

// A defect of a handler is an answer, and the server goes on.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Log = slog.New(slog.DiscardHandler) })
	h := httptest.NewServer(c.s.guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("defect") })))
	defer h.Close()
	c.url = h.URL
	if status, text, _ := c.send("GET", "/", nil); status != 500 || !strings.Contains(text, "defect of opmeter") {
		t.Errorf("%d %s", status, text)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.finished("model")
	for path, want := range map[string]string{"/health/live": "ok", "/health/ready": "ok", "/metrics": "opmeter_results_total 1", "/openapi.json": `"openapi":"3.1`, "/": "<!doctype html>", "/projects/x": "<!doctype html>"} {
		if status, text, _ := c.send("GET", path, nil); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.200s", path, status, text)
		}
	}
}
