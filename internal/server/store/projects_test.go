package store

import (
	"context"
	"sync"
	"testing"
)

// Transactions at the same time add a project once.
func testOneProject(t *testing.T, open func() *DB) {
	db := open()
	const many = 8
	var (
		ready, ended sync.WaitGroup
		ids          [many]string
		errs         [many]error
	)
	ready.Add(many)
	for i := range many {
		ended.Go(func() {
			ready.Done()
			ready.Wait()
			errs[i] = db.Change(context.Background(), func(tx *Tx) error {
				p, err := tx.EnsureProject("new")
				ids[i] = p.ID
				return err
			})
		})
	}
	ended.Wait()
	for i := range many {
		if errs[i] != nil || ids[i] != ids[0] {
			t.Errorf("project %s, %v, expected %s", ids[i], errs[i], ids[0])
		}
	}
}
