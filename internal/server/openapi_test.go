package server

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// schemathesis names the program that makes requests from the API's description. The stage "api" of
// .ci/run sets it.
const schemathesis = "OPMETER_SCHEMATHESIS"

// TestFuzzedAPI sends right and wrong requests to every operation of the description. No answer may
// be an error of the server, or one that the description does not have.
func TestFuzzedAPI(t *testing.T) {
	t.Parallel()
	program := os.Getenv(schemathesis)
	if program == "" {
		t.Skip("the stage api of .ci/run runs it")
	}
	c := otherWith(t, func(o *Options) { o.Database = postgres.Start(t) }) // it is stricter than SQLite
	r := c.finished("model")
	hash := c.upload("b")
	var k tokenView
	c.call(200, "POST", "/tokens", tokenBody{Name: "old", Role: store.Read}, &k)
	c.s.longPoll = time.Millisecond
	c.s.limits.now = func() time.Time { return time.Now().Add(time.Since(started) * 1e6) } // an allowance is never used up
	// Ids that exist: random ones end at 404.
	config := "warnings = false\n"
	for name, id := range map[string]string{
		"GET /runs/{id}": r.ID, "PUT /runs/{id}/note": r.ID, "DELETE /runs/{id}": r.ID, "POST /runs/{id}/restore": r.ID, "GET /series/{id}/trend": r.Series,
		"GET /jobs/{id}": r.Job, "POST /jobs/{id}/cancel": r.Job, "GET /jobs/{id}/events": r.Job, "GET /files/{hash}": hash, "HEAD /files/{hash}": hash,
		"DELETE /tokens/{id}": k.ID, // not its own
	} {
		method, path, _ := strings.Cut(name, " ")
		config += fmt.Sprintf("[[operations]]\ninclude-name = %q\n[operations.parameters]\n", method+" "+prefix+path)
		if strings.Contains(path, "{hash}") {
			config += fmt.Sprintf("\"path.hash\" = %q\n", id)
		} else {
			config += fmt.Sprintf("\"path.id\" = %q\n", id)
		}
	}
	// What a description cannot say: a file that was not uploaded, options that do not fit together,
	// a content with another hash, 30.0 for a number of days, two ids, runs without a series, or names
	// without hidden characters.
	for _, name := range []string{
		"POST /jobs", "POST /leases/end", "PUT /files/{hash}", "POST /tokens", "GET /comparison", "POST /projects/{id}/hooks",
		"POST /retention/{id}/preview", "PUT /retention/{id}", "POST /shares", "POST /projects", "PUT /projects/{id}", "PUT /runs/{id}/note",
	} {
		method, path, _ := strings.Cut(name, " ")
		config += fmt.Sprintf("[[operations]]\ninclude-name = %q\n[operations.checks.positive_data_acceptance]\nenabled = false\n", method+" "+prefix+path)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "schemathesis.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), program, "--config-file", file, "--no-color", "run", c.url+"/openapi.json",
		"-H", "Authorization: Bearer "+c.token, "--max-examples", "8", "--seed", "1", "--generation-deterministic",
		"--continue-on-failure", "--request-timeout", "40",
		"--exclude-checks", "use_after_free") // what is deleted is in the bin, from which it can be read and restored
	run.Dir = dir
	run.Stdout, run.Stderr = t.Output(), t.Output()
	if err := run.Run(); err != nil {
		t.Errorf("schemathesis: %v", err)
	}
	if status, _, _ := c.send("GET", "/health/ready", nil); status != http.StatusOK {
		t.Errorf("afterwards the server is not ready: %d", status)
	}
}

// started is when the tests started.
var started = time.Now()
