package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRelativeFolder: programs run in folders of their own and find the results all the same.
func TestRelativeFolder(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Rel(here, filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *Options) { o.Data = data })
	r := c.finished("model")
	if status, body, _ := c.send("GET", "/runs/"+r.ID+"/page", nil); status != http.StatusOK || body != "<html>report" {
		t.Errorf("page: %d %s", status, body)
	}
}

// TestDatabaseURL refuses what is no URL of PostgreSQL, without its password, and makes no file.
func TestDatabaseURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"foo.db", "mysql://a:s3cret@host/x"} {
		data := filepath.Join(t.TempDir(), "data")
		_, err := Open(t.Context(), Options{Data: data, Listen: "127.0.0.1:0", Database: url})
		if err == nil || !strings.Contains(err.Error(), "expected a URL such as postgres://") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Errorf("%s: the folder was made: %v", url, err)
		}
	}
}

// TestHealthWithToken: the server is alive also while the database is away, and whatever token a
// probe sends.
func TestHealthWithToken(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	if err := c.s.db.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/health/live": http.StatusOK, "/health/ready": http.StatusServiceUnavailable} {
		if status, body, _ := c.send("GET", path, nil, "Authorization", "Bearer opm_x"); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestForeignOrigin: a refusal has the form of all errors.
func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	status, body, h := c.send("POST", prefix+"/jobs", strings.NewReader("{}"), "Origin", "https://evil.example")
	if status != http.StatusForbidden || h.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"status": 403`) {
		t.Errorf("%d %s %s", status, h.Get("Content-Type"), body)
	}
}
