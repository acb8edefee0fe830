package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// folder makes the folder of a server that has a run, and returns the path of its profile.
func folder(t *testing.T) (dir, profile string) {
	t.Helper()
	dir = t.TempDir()
	files, err := blob.Open(filepath.Join(dir, filesName), "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	hash, _, err := files.Put(strings.NewReader("a profile"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Change(t.Context(), func(tx *store.Tx) error {
		p, err := tx.AddProject("p", "")
		if err != nil {
			return err
		}
		_, err = tx.AddRun(store.Series{Kind: "profile"}, store.Run{Project: p.ID, Job: "j", Blob: hash}, []store.Figure{{Name: "macs", Value: 0.1}}, []string{"t"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, filesName, hash[:2], hash)
}

// TestCopy copies results to PostgreSQL and back, and to another folder.
func TestCopy(t *testing.T) {
	t.Parallel()
	url := postgres.Start(t)
	dir, _ := folder(t)
	copied := func(from, to string) Copied {
		t.Helper()
		c, err := Copy(t.Context(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := copied(dir, url)
	if first.Files != 1 || len(first.Tables) == 0 || first.Tables[0].Rows != 1 {
		t.Errorf("copied %+v", first)
	}
	if _, err := Copy(t.Context(), url, dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("copied into a folder with results: %v", err)
	}
	empty := t.TempDir()
	if _, err := Copy(t.Context(), url, empty); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("copied into a folder without files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(empty, databaseName)); !os.IsNotExist(err) {
		t.Errorf("a copy without files left a database: %v", err)
	}
	if _, err := Copy(t.Context(), url, "mysql://host/x"); err == nil || !strings.Contains(err.Error(), "--to: expected") {
		t.Errorf("copied to no PostgreSQL: %v", err)
	}
	for _, name := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(dir, databaseName+name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	for _, way := range [][2]string{{url, dir}, {dir, other}} {
		if diff := cmp.Diff(first, copied(way[0], way[1])); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", way, diff)
		}
	}
}

// TestCopyDamaged finds a file that is not what its name says, whatever the target is.
func TestCopyDamaged(t *testing.T) {
	t.Parallel()
	dir, profile := folder(t)
	for _, c := range []struct {
		name, want string
		harm       func() error
	}{
		{"changed", "is damaged", func() error { return os.WriteFile(profile, []byte("b profile"), 0o600) }},
		{"absent", "is missing", func() error { return os.Remove(profile) }},
	} {
		if err := c.harm(); err != nil {
			t.Fatal(err)
		}
		if _, err := Copy(t.Context(), dir, filepath.Join(t.TempDir(), "to")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := Copy(t.Context(), t.TempDir(), dir); err == nil || !strings.Contains(err.Error(), "has no results.db") {
		t.Errorf("folder without results: %v", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := Copy(t.Context(), dir, t.TempDir()); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("folder in use: %v", err)
	}
}
