package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
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

// unreached says in one line why no connection to PostgreSQL came about: the driver's error has
// several, one for each try.
func unreached(err error) error {
	c, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	at := net.JoinHostPort(c.Config.Host, strconv.Itoa(int(c.Config.Port)))
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("PostgreSQL at %s refuses: %s (%s)", at, p.Message, p.Code)
	}
	why := c.Unwrap()
	if n, ok := errors.AsType[*net.OpError](err); ok {
		why = n.Err
	} else if n, ok := errors.AsType[*net.DNSError](err); ok {
		why = n
	}
	return fmt.Errorf("PostgreSQL at %s does not answer: %s: expected postgres://USER:PASSWORD@HOST/NAME of one that runs", at, strings.Join(strings.Fields(why.Error()), " "))
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
