package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/filelock"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/store"
)

// place is where results are: a folder of a server, or a database elsewhere.
type place struct {
	text   string
	source string      // of the database
	lock   *os.File    // nil for a database elsewhere
	files  *blob.Store // nil for a database elsewhere
	db     *store.DB
}

const (
	// databaseName and filesName are the database and the files in the folder of a server.
	databaseName = "results.db"
	filesName    = "files"
)

// lockFolder makes a folder the one of this process alone.
func lockFolder(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("folder for results: %w", err)
	}
	if err := filelock.Try(lock); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another server uses this folder: end it, or name another one (%w)", dir, err), lock.Close())
	}
	return lock, nil
}

// openPlace opens a place, given as a URL of PostgreSQL or as a folder, without its database.
func openPlace(text string, make bool) (_ *place, err error) {
	p := &place{text: text}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	p.source = text
	switch {
	case store.Elsewhere(text):
		p.text = "the database"
	case strings.Contains(text, "://"):
		return nil, errors.New("expected a folder, or a URL such as postgres://USER:PASSWORD@HOST/NAME")
	default:
		p.source = filepath.Join(text, databaseName)
		if make {
			err = os.MkdirAll(text, 0o700)
		} else if _, err = os.Stat(p.source); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s has no %s: name a folder as opmeter serve --data does, or a URL such as postgres://USER:PASSWORD@HOST/NAME", text, databaseName)
		}
		if err != nil {
			return nil, err
		}
		if p.lock, err = lockFolder(text); err != nil {
			return nil, err
		}
		if p.files, err = blob.Open(filepath.Join(text, filesName), "", 1<<62); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// open opens the database, which is made where it is absent.
func (p *place) open(ctx context.Context) (err error) {
	p.db, err = store.Open(ctx, p.source)
	return err
}

func (p *place) close() (err error) {
	if p.db != nil {
		err = p.db.Close()
	}
	if p.lock != nil {
		_ = filelock.Release(p.lock)
		err = errors.Join(err, p.lock.Close())
	}
	return err
}

// Copied says what a copy contains.
type Copied struct {
	Tables []store.Sum
	// Files were checked against their SHA-256, and copied from a folder to a folder.
	Files int
}

// Copy copies all results from one place to another, which has none, and compares both: each is a
// URL of PostgreSQL or the folder of a server. Files stay where they are, in the folder, but from a
// folder to a folder they are copied too. No server may use the folder.
func Copy(ctx context.Context, from, to string) (out Copied, err error) {
	src, err := openPlace(from, false)
	if err != nil {
		return out, fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, src.close()) }()
	if err := src.open(ctx); err != nil {
		return out, fmt.Errorf("--from: %w", err)
	}
	dst, err := openPlace(to, true)
	if err != nil {
		return out, fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, dst.close()) }()
	switch {
	case src.files != nil && dst.files != nil:
		if out.Files, err = copyFiles(ctx, src, dst); err == nil {
			err = checkRuns(ctx, src.db, dst)
		}
	case src.files != nil:
		if out.Files, err = checkFiles(ctx, src); err == nil {
			err = checkRuns(ctx, src.db, src)
		}
	case dst.files != nil:
		if out.Files, err = checkFiles(ctx, dst); err == nil {
			err = checkRuns(ctx, src.db, dst)
		}
	}
	if err != nil {
		return out, err
	}
	// A database that is made is made last: where files are missing, none remains.
	if err := dst.open(ctx); err != nil {
		return out, fmt.Errorf("--to: %w", err)
	}
	out.Tables, err = store.Copy(ctx, src.db, dst.db)
	return out, err
}

// checkFiles compares all files of a folder with their names.
func checkFiles(ctx context.Context, p *place) (n int, err error) {
	return n, p.files.All(func(hash string) error {
		n++
		f, err := p.files.Open(hash)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != hash {
			return damaged(p, hash, got)
		}
		return ctx.Err()
	})
}

func damaged(p *place, hash, got string) error {
	return fmt.Errorf("%s: file %s is damaged: its SHA-256 is %s", p.text, hash, got)
}

// copyFiles copies all files of a folder.
func copyFiles(ctx context.Context, from, to *place) (n int, err error) {
	return n, from.files.All(func(hash string) error {
		n++
		f, err := from.files.Open(hash)
		if err != nil {
			return err
		}
		defer f.Close()
		got, _, err := to.files.Put(io.Reader(f))
		if err == nil && got != hash {
			err = errors.Join(damaged(from, hash, got), to.files.Remove(got))
		}
		return errors.Join(err, ctx.Err())
	})
}

// checkRuns makes sure that the files of each run are in a folder.
func checkRuns(ctx context.Context, db *store.DB, p *place) error {
	return db.View(ctx, func(tx *store.Tx) error {
		for _, deleted := range []bool{false, true} {
			for before := ""; ; {
				runs, err := tx.Runs(store.Filter{Deleted: deleted, Before: before, Limit: 1000})
				if err != nil {
					return err
				}
				if len(runs) == 0 {
					break
				}
				for _, r := range runs {
					for _, h := range []string{r.Blob, r.Output} {
						if h == "" {
							continue
						}
						if _, err := p.files.Size(h); err != nil {
							return fmt.Errorf("%s: a file of run %s is missing (%w): name the folder that the server has as --data", p.text, r.ID, err)
						}
					}
				}
				before = runs[len(runs)-1].ID
			}
		}
		return nil
	})
}
