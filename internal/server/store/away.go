package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrAway says that the database does not answer. What was asked may be asked again.
var ErrAway = errors.New("the database does not answer: try again in a moment")

// lastPause is the longest pause before a transaction begins again; all pauses make 3 seconds.
const lastPause = 1600 * time.Millisecond

// begin begins a transaction. One that did not begin changed nothing, so it begins again while a
// PostgreSQL restarts: all connections that were open break then.
func (d *DB) begin(ctx context.Context, db *sql.DB, o *sql.TxOptions) (*sql.Tx, error) {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		tx, err := db.BeginTx(ctx, o)
		if !gone(err) || pause > lastPause {
			return tx, away(err)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// away marks an error of a connection as [ErrAway].
func away(err error) error {
	if gone(err) {
		return fmt.Errorf("%w (%w)", ErrAway, err)
	}
	return err
}

// gone reports whether an error says that PostgreSQL ended, restarts or is not reachable.
func gone(err error) bool {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Classes of SQLSTATE: lost connections, and the server ending or starting.
		return strings.HasPrefix(p.Code, "08") || strings.HasPrefix(p.Code, "57P")
	}
	_, network := errors.AsType[net.Error](err)
	for _, e := range []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, pgconn.ErrConnClosed} {
		network = network || errors.Is(err, e)
	}
	return network && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
