package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/postgres"
)

// TestAway kills PostgreSQL under open connections: what follows waits until it is there again.
func TestAway(t *testing.T) {
	t.Parallel()
	p, err := postgres.New()
	if errors.Is(err, postgres.ErrMissing) {
		material.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	d := opened(t, p.URL())
	_, runs := filled(t, d, 3)
	err = d.Change(t.Context(), func(tx *Tx) error {
		p.Kill()
		return tx.Note(runs[0].ID, "lost", nil)
	})
	if !errors.Is(err, ErrAway) {
		t.Errorf("killed within a transaction: %v", err)
	}
	started := make(chan error, 1)
	go func() { started <- p.Start() }()
	var got []Run
	view := func(tx *Tx) (err error) { got, err = tx.Runs(Filter{}); return err }
	if err := d.View(t.Context(), view); errors.Is(err, ErrAway) { // it takes long on a busy machine
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		started <- nil
		err = d.View(t.Context(), view)
		if err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[2].Note != "" {
		t.Errorf("runs %+v", got)
	}
}

// TestUnreached: a PostgreSQL that is not there is one line that says where.
func TestUnreached(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), "postgres://me:s3cret@127.0.0.1:1/x")
	if err == nil || !strings.HasPrefix(err.Error(), "database: PostgreSQL at 127.0.0.1:1 does not answer: ") || strings.ContainsAny(err.Error(), "\n\t`") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%q", err)
	}
}
