// Package store keeps the results of a server: projects, runs with the figures of whole models,
// tokens and alerts. It is one schema in SQLite or PostgreSQL. Profiles themselves are files
// (package blob), and layers never enter the database.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	_ "github.com/jackc/pgx/v5/stdlib"       // the driver "pgx"
	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"
)

var (
	// ErrNotFound says that there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrExists says that another row has the name already.
	ErrExists = errors.New("exists already")
)

// rows names a row of each table that is sought by what a person gave.
var rows = map[string]string{
	"projects": "project", "runs": "run", "series": "series", "tokens": "token", "shares": "link", "alerts": "alert", "hooks": "webhook",
	"deliveries": "delivery", "retention": "rule",
}

// Absent is an [ErrNotFound] that says of which table a row is absent.
func Absent(table string) error {
	if row := rows[table]; row != "" {
		return absent(row)
	}
	return ErrNotFound
}

type absent string

func (a absent) Error() string { return "there is no such " + string(a) }

// Is makes it an [ErrNotFound].
func (absent) Is(target error) bool { return target == ErrNotFound }

//go:embed migrations/*.sql
var migrations embed.FS

// DB is an open database.
type DB struct {
	// SQLite takes one writer at a time: write has one connection. In PostgreSQL both are the same.
	read, write *sql.DB
	postgres    bool
	now         func() time.Time
}

// Open opens a database and brings its schema up to date: a URL of PostgreSQL, or the path of a
// file of SQLite, which is made where it is absent.
func Open(ctx context.Context, source string) (*DB, error) {
	d := &DB{now: time.Now}
	var err error
	if Elsewhere(source) {
		d.postgres = true
		if d.write, err = sql.Open("pgx", source); err != nil {
			return nil, fmt.Errorf("database: %w: expected postgres://USER:PASSWORD@HOST/NAME", hidden(err, source))
		}
		d.write.SetMaxOpenConns(16)
		d.read = d.write
	} else {
		path, err := filepath.Abs(source)
		if err != nil {
			return nil, err
		}
		uri := "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path)) +
			"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(on)"
		if d.write, err = sql.Open("sqlite3", uri+"&_txlock=immediate"); err != nil {
			return nil, fmt.Errorf("database %s: %w", source, err)
		}
		d.write.SetMaxOpenConns(1)
		if d.read, err = sql.Open("sqlite3", uri); err != nil {
			return nil, errors.Join(fmt.Errorf("database %s: %w", source, err), d.write.Close())
		}
		d.read.SetMaxOpenConns(4)
	}
	err = d.Ping(ctx) // at the start nobody waits for a database that is away
	if err == nil {
		err = d.migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database: %w", hidden(unreached(err), source)), d.Close())
	}
	return d, nil
}

// Elsewhere reports whether a source is a URL of PostgreSQL, not a file.
func Elsewhere(source string) bool {
	return strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://")
}

// hidden takes the password out of an error of the driver.
func hidden(err error, source string) error {
	_, rest, ok := strings.Cut(source, "://")
	user, _, at := strings.Cut(rest, "@")
	if _, password, has := strings.Cut(user, ":"); ok && at && has && password != "" && strings.Contains(err.Error(), password) {
		return errors.New(strings.ReplaceAll(err.Error(), password, "…"))
	}
	return err
}

// Close closes all connections.
func (d *DB) Close() error {
	if d.read == d.write {
		return d.write.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error { return d.read.PingContext(ctx) }

// migrate applies the files of the schema that the database lacks, each in one transaction.
func (d *DB) migrate(ctx context.Context) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	return d.Change(ctx, func(tx *Tx) error {
		if d.postgres {
			// Several servers may start at once.
			if err := tx.exec("SELECT pg_advisory_xact_lock(727266)"); err != nil {
				return err
			}
		}
		if err := tx.exec("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"); err != nil {
			return err
		}
		var have sql.NullInt64
		if err := tx.row("SELECT MAX(version) FROM schema_version").Scan(&have); err != nil {
			return err
		}
		if have.Int64 > int64(len(names)) {
			return fmt.Errorf("schema %d is newer than this program, which knows %d: use a newer opmeter", have.Int64, len(names))
		}
		for i, name := range names[have.Int64:] {
			text, err := migrations.ReadFile(name)
			if err != nil {
				return err
			}
			for statement := range strings.SplitSeq(string(text), ";\n") {
				if d.postgres {
					// Texts are compared by their bytes, as SQLite does, whatever the language of the database.
					statement = strings.NewReplacer(" INTEGER", " BIGINT", " TEXT", ` TEXT COLLATE "C"`).Replace(statement)
				}
				if strings.TrimSpace(statement) == "" {
					continue
				}
				if err := tx.exec(statement); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			if err := tx.exec("INSERT INTO schema_version (version) VALUES (?)", have.Int64+int64(i)+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// Tx is a transaction.
type Tx struct {
	ctx      context.Context
	tx       *sql.Tx
	postgres bool
	now      func() time.Time
}

// Change runs a function in a transaction that is committed if it returns nil.
func (d *DB) Change(ctx context.Context, f func(*Tx) error) error { return d.in(ctx, d.write, nil, f) }

// View runs a function in a transaction that only reads.
func (d *DB) View(ctx context.Context, f func(*Tx) error) error {
	return d.in(ctx, d.read, &sql.TxOptions{ReadOnly: true}, f)
}

func (d *DB) in(ctx context.Context, db *sql.DB, o *sql.TxOptions, f func(*Tx) error) error {
	tx, err := d.begin(ctx, db, o)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := f(&Tx{ctx: ctx, tx: tx, postgres: d.postgres, now: d.now}); err != nil {
		return away(err)
	}
	return away(tx.Commit())
}

// sql numbers the parameters of a statement as the database expects.
func (t *Tx) sql(q string) string {
	if !t.postgres {
		return q
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(q, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// storable makes texts from outside such that both databases take them: UTF-8 without NUL.
func storable(args []any) []any {
	for i, a := range args {
		v := reflect.ValueOf(a)
		if v.Kind() != reflect.String {
			continue
		}
		if s := v.String(); strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
			args[i] = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
		}
	}
	return args
}

func (t *Tx) exec(q string, args ...any) error {
	_, err := t.tx.ExecContext(t.ctx, t.sql(q), storable(args)...)
	return err
}

// one executes a statement that must change a row.
func (t *Tx) one(q string, args ...any) error {
	r, err := t.tx.ExecContext(t.ctx, t.sql(q), storable(args)...)
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		words := strings.Fields(q) // UPDATE table, DELETE FROM table
		err = Absent(words[slices.Index([]string{"", "UPDATE", "DELETE"}, words[0])])
	}
	return err
}

func (t *Tx) row(q string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(t.ctx, t.sql(q), storable(args)...)
}

// columns names the columns of a struct, by the tag "db" of its fields.
func columns(of reflect.Type) (names []string, fields []int) {
	for i := range of.NumField() {
		if name := of.Field(i).Tag.Get("db"); name != "" {
			names, fields = append(names, name), append(fields, i)
		}
	}
	return names, fields
}

// insert adds rows; the fields of T are their columns. It is ErrExists if one of them exists.
func insert[T any](t *Tx, table string, rows ...T) error {
	if len(rows) == 0 {
		return nil
	}
	names, fields := columns(reflect.TypeFor[T]())
	var args []any
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		for _, f := range fields {
			args = append(args, v.Field(f).Interface())
		}
	}
	r, err := t.tx.ExecContext(t.ctx, t.sql("INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES "+
		marks(len(names))+strings.Repeat(", "+marks(len(names)), len(rows)-1)+" ON CONFLICT DO NOTHING"), storable(args)...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n < int64(len(rows)) {
		return errors.Join(err, ErrExists)
	}
	return nil
}

// list returns rows. The rest of the statement follows the name of the table.
func list[T any](t *Tx, table, rest string, args ...any) (out []T, err error) {
	names, fields := columns(reflect.TypeFor[T]())
	rows, err := t.tx.QueryContext(t.ctx, t.sql("SELECT "+strings.Join(names, ", ")+" FROM "+table+" "+rest), storable(args)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v T
		to := make([]any, len(fields))
		for i, f := range fields {
			to[i] = reflect.ValueOf(&v).Elem().Field(f).Addr().Interface()
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// get returns one row.
func get[T any](t *Tx, table, rest string, args ...any) (T, error) {
	all, err := list[T](t, table, rest, args...)
	if err == nil && len(all) == 0 {
		err = Absent(table)
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// millis is the time as the database holds it.
func (t *Tx) millis() int64 { return t.now().UnixMilli() }

// lastID is the last id of this process.
var lastID struct {
	sync.Mutex
	millis int64
	random uint64
}

// NewID returns an id. Ids of later times sort behind those of earlier ones, and those of one
// millisecond in the order in which this process makes them.
func NewID(at time.Time) string {
	var random [8]byte
	_, _ = rand.Read(random[:])                  // never fails
	n := binary.BigEndian.Uint64(random[:]) >> 9 // 55 of 56 bits: later ids are larger
	lastID.Lock()
	defer lastID.Unlock()
	if millis := at.UnixMilli(); millis != lastID.millis {
		lastID.millis, lastID.random = millis, n
	} else {
		lastID.random += 1 + n>>23
	}
	return fmt.Sprintf("%011x%014x", lastID.millis, lastID.random&(1<<56-1))
}
